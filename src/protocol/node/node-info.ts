import type { NodeSnapshot } from '../../coordinator/nodes/membership.ts'
import { isTaskTerminal } from '../../execution/api/task.ts'
import { formatDuration } from '../../shared/durations.ts'
import type { NodeInfo } from '../info/schemas/server.ts'
import type { LiveQueryView } from '../query/live-queries.ts'

/** The tasks that have not ended, by the address of their worker. */
export function runningTasks(open: readonly LiveQueryView[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { query } of open)
    for (const { state, nodeUrl } of query.tasks.values())
      if (!isTaskTerminal(state)) counts.set(nodeUrl, (counts.get(nodeUrl) ?? 0) + 1)
  return counts
}

/** A server as the node resource shows it, with its identity. @param tasks of open queries there */
export function nodeInfo(node: NodeSnapshot, tasks: number): NodeInfo {
  const { lastRequestAt, lastResponseAt, lastFailure } = node
  return {
    uri: node.url,
    age: formatDuration(node.ageMillis * 1e6),
    recentRequests: node.recentRequests,
    recentFailures: node.recentFailures,
    recentSuccesses: node.recentSuccesses,
    recentFailureRatio: node.recentFailureRatio,
    recentFailuresByType: node.recentFailuresByType,
    ...(lastRequestAt === undefined ? {} : { lastRequestTime: new Date(lastRequestAt).toISOString() }),
    ...(lastResponseAt === undefined ? {} : { lastResponseTime: new Date(lastResponseAt).toISOString() }),
    ...(lastFailure ? { lastFailureInfo: { ...lastFailure } } : {}),
    nodeId: node.nodeId,
    nodeVersion: { version: node.version },
    state: stateOf(node),
    runningTasks: tasks,
    cores: node.cores,
    memoryBytes: node.memoryBytes,
  }
}

/** The state that is shown. `shutting_down` replaces `active`, but not states of a worker that cannot be reached. */
export function stateOf({ state, leaving }: NodeSnapshot): NodeInfo['state'] {
  return leaving && state === 'active' ? 'shutting_down' : state
}
