import type { NodeSnapshot } from '../../coordinator/nodes/membership.ts'
import { formatDuration } from '../../shared/durations.ts'
import type { NodeId } from '../../shared/ids.ts'

/** A server as the node resource shows it, with its identity. */
export interface NodeInfo {
  readonly uri: string
  readonly age: string
  readonly recentRequests: number
  readonly recentFailures: number
  readonly recentSuccesses: number
  readonly recentFailureRatio: number
  readonly recentFailuresByType: Readonly<Record<string, number>>
  readonly lastRequestTime?: string
  readonly lastResponseTime?: string
  readonly lastFailureInfo?: {
    readonly type: string
    readonly message: string
    readonly stack: readonly string[]
    readonly suppressed: readonly unknown[]
  }
  readonly nodeId: NodeId
  readonly nodeVersion: { readonly version: string }
  readonly state: NodeSnapshot['state'] | 'shutting_down'
  readonly cores: number
  readonly memoryBytes: number
}

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
    ...(lastFailure ? { lastFailureInfo: lastFailure } : {}),
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
