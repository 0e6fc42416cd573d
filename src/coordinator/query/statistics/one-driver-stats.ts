import type { OperatorStats, TaskStats } from '../../../execution/api/task.ts'

/**
 * The work of a task of the coordinator: one pipeline, one driver, no profiler. Times in milliseconds since the epoch.
 */
export interface OneDriverWork {
  readonly createdAt: number
  readonly startedAt: number
  readonly endedAt: number
  readonly rows: number
  readonly bytes: number
  /** Rows and bytes that came from outside. */
  readonly rawRows: number
  readonly rawBytes: number
  readonly splits: number
  readonly wallNanos: number
  /** How long a thread worked on it. */
  readonly scheduledNanos: number
  readonly cpuNanos: number
  readonly cpuExact: boolean
  readonly blockedNanos: number
  readonly peakMemoryBytes: number
  readonly profiled: boolean
  /** The operators, from source to output. */
  readonly operators: readonly (Pick<OperatorStats, 'operatorType' | 'engineOperator'> & Partial<OperatorStats>)[]
}

/** The figures of such a task; each operator has all rows as input and output, unless it has its own numbers. */
export function oneDriverStats(work: OneDriverWork): TaskStats {
  const createTime = new Date(work.createdAt).toISOString()
  const startTime = new Date(Math.min(work.startedAt, work.endedAt)).toISOString()
  const endTime = new Date(work.endedAt).toISOString()
  const elapsedNanos = Math.max(0, work.endedAt - work.createdAt) * 1e6
  const { scheduledNanos, cpuNanos, blockedNanos } = work
  const figures = {
    memoryBytes: 0,
    rawInputBytes: work.rawBytes,
    rawInputPositions: work.rawRows,
    processedInputBytes: work.rawBytes,
    processedInputPositions: work.rows,
    outputBytes: work.bytes,
    outputPositions: work.rows,
    totalDrivers: 1,
    queuedDrivers: 0,
    runningDrivers: 0,
    completedDrivers: 1,
    scheduledNanos,
    cpuNanos,
    blockedNanos,
  }
  const operators = work.operators.map((operator, operatorId): OperatorStats => ({
    operatorId,
    inputPositions: work.rows,
    outputPositions: work.rows,
    inputBytes: work.bytes,
    outputBytes: work.bytes,
    timeNanos: 0,
    blockedNanos: 0,
    addInputCalls: 0,
    getOutputCalls: 0,
    finishCalls: 1,
    ...operator,
  }))
  return {
    createTime,
    ...figures,
    startTime,
    endTime,
    elapsedNanos,
    queuedNanos: 0,
    totalSplits: work.splits,
    queuedSplits: 0,
    runningSplits: 0,
    completedSplits: work.splits,
    peakMemoryBytes: work.peakMemoryBytes,
    spilledBytes: 0,
    cpuExact: work.cpuExact,
    wallNanos: work.wallNanos,
    profiled: work.profiled,
    pipelines: [
      {
        pipelineId: 0,
        inputPipeline: true,
        outputPipeline: true,
        ...figures,
        operators,
        drivers: [
          { batch: 0, startTime, endTime, queuedNanos: 0, elapsedNanos, scheduledNanos, cpuNanos, blockedNanos },
        ],
      },
    ],
  }
}
