import type { NodeSnapshot } from '../../coordinator/nodes/membership.ts'
import { formatDuration } from '../../shared/durations.ts'
import type { NodeInfo } from '../info/wire-schemas.ts'

/** A server as the node resource shows it, with its identity. */
export function nodeInfo(node: NodeSnapshot): NodeInfo {
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
    cores: node.cores,
    memoryBytes: node.memoryBytes,
  }
}

/** The state that is shown. `shutting_down` replaces `active`, but not states of a worker that cannot be reached. */
export function stateOf({ state, leaving }: NodeSnapshot): NodeInfo['state'] {
  return leaving && state === 'active' ? 'shutting_down' : state
}
