import type { TaskStats } from '../../../execution/api/task.ts'
import { oneDriverStats } from './one-driver-stats.ts'

/** The work of stage 0's relay: it reads one task's output through a page buffer client and passes it on. */
export interface RelayWork {
  readonly sourceUri: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly firstListedAt: number | undefined
  readonly lastPublishedAt: number
  readonly pages: number
  readonly rows: number
  readonly bytes: number
  readonly requestsScheduled: number
  readonly requestsCompleted: number
  readonly fetchedBytes: number
  /** CPU of this process around hashing and copying pages. */
  readonly cpuNanos: number
  /** Time spent waiting for the producing task, nanoseconds. */
  readonly blockedNanos: number
}

/** Figures of the relay task: ExchangeOperator and TaskOutputOperator. */
export function relayTaskStats(work: RelayWork): TaskStats {
  const { createdAt, rows, bytes, pages, cpuNanos, blockedNanos } = work
  const startedAt = work.firstListedAt ?? work.lastPublishedAt
  const requests = work.requestsCompleted
  const client = {
    uri: work.sourceUri,
    state: 'closed',
    lastUpdate: new Date(work.lastPublishedAt).toISOString(),
    pagesReceived: pages,
    requestsScheduled: work.requestsScheduled,
    requestsCompleted: requests,
    httpRequestState: 'completed',
  }
  return oneDriverStats({
    createdAt,
    startedAt,
    endedAt: work.lastPublishedAt,
    rows,
    bytes,
    rawRows: rows,
    rawBytes: bytes,
    splits: 1,
    wallNanos: Math.max(0, work.lastPublishedAt - startedAt) * 1e6,
    cpuNanos,
    scheduledNanos: cpuNanos,
    cpuExact: false,
    blockedNanos,
    peakMemoryBytes: 0,
    profiled: true,
    operators: [
      {
        operatorType: 'ExchangeOperator',
        engineOperator: 'EXCHANGE',
        timeNanos: cpuNanos,
        blockedNanos,
        getOutputCalls: pages,
        exchange: {
          bufferedBytes: 0,
          averageBytesPerRequest: requests > 0 ? Math.round(work.fetchedBytes / requests) : 0,
          bufferedPages: 0,
          pageBufferClientStatuses: [client],
        },
      },
      { operatorType: 'TaskOutputOperator', engineOperator: 'RESULT', addInputCalls: pages },
    ],
  })
}
