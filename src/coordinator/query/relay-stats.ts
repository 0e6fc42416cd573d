import type { TaskStats } from '../../execution/api/task.ts'

/** What stage 0's relay did: it reads one task's output through a page buffer client and hands it on. */
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

/** Figures of the relay task: ExchangeOperator and TaskOutputOperator, one pipeline, one driver (groundwork 3). */
export function relayTaskStats(work: RelayWork): TaskStats {
  const createTime = new Date(work.createdAt).toISOString()
  const startTime = new Date(work.firstListedAt ?? work.lastPublishedAt).toISOString()
  const endTime = new Date(work.lastPublishedAt).toISOString()
  const elapsedNanos = Math.max(0, work.lastPublishedAt - work.createdAt) * 1e6
  const wallNanos = Math.max(0, work.lastPublishedAt - (work.firstListedAt ?? work.lastPublishedAt)) * 1e6
  const operator = (operatorId: number, operatorType: string, engineOperator: string) => ({
    operatorId,
    operatorType,
    engineOperator,
    inputPositions: work.rows,
    outputPositions: work.rows,
    inputBytes: work.bytes,
    outputBytes: work.bytes,
    timeNanos: operatorId === 0 ? work.cpuNanos : 0,
    blockedNanos: operatorId === 0 ? work.blockedNanos : 0,
    addInputCalls: operatorId === 0 ? 0 : work.pages,
    getOutputCalls: operatorId === 0 ? work.pages : 0,
    finishCalls: 1,
  })
  const figures = {
    memoryBytes: 0,
    rawInputBytes: work.bytes,
    rawInputPositions: work.rows,
    processedInputBytes: work.bytes,
    processedInputPositions: work.rows,
    outputBytes: work.bytes,
    outputPositions: work.rows,
    totalDrivers: 1,
    queuedDrivers: 0,
    runningDrivers: 0,
    completedDrivers: 1,
    scheduledNanos: work.cpuNanos,
    cpuNanos: work.cpuNanos,
    blockedNanos: work.blockedNanos,
  }
  return {
    ...figures,
    createTime,
    startTime,
    endTime,
    elapsedNanos,
    queuedNanos: 0,
    totalSplits: 1,
    queuedSplits: 0,
    runningSplits: 0,
    completedSplits: 1,
    peakMemoryBytes: 0,
    spilledBytes: 0,
    cpuExact: false,
    wallNanos,
    profiled: true,
    pipelines: [
      {
        pipelineId: 0,
        inputPipeline: true,
        outputPipeline: true,
        ...figures,
        operators: [
          {
            ...operator(0, 'ExchangeOperator', 'EXCHANGE'),
            exchange: {
              bufferedBytes: 0,
              averageBytesPerRequest:
                work.requestsCompleted > 0 ? Math.round(work.fetchedBytes / work.requestsCompleted) : 0,
              bufferedPages: 0,
              pageBufferClientStatuses: [
                {
                  uri: work.sourceUri,
                  state: 'closed',
                  lastUpdate: endTime,
                  pagesReceived: work.pages,
                  requestsScheduled: work.requestsScheduled,
                  requestsCompleted: work.requestsCompleted,
                  httpRequestState: 'completed',
                },
              ],
            },
          },
          operator(1, 'TaskOutputOperator', 'RESULT'),
        ],
        drivers: [
          {
            batch: 0,
            startTime,
            endTime,
            queuedNanos: 0,
            elapsedNanos,
            scheduledNanos: work.cpuNanos,
            cpuNanos: work.cpuNanos,
            blockedNanos: work.blockedNanos,
          },
        ],
      },
    ],
  }
}
