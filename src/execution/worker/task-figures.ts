import type { PipelineStats, TaskStats } from '../api/task.ts'
import type { EngineUsage } from '../engine/engine.ts'
import type { BatchFigures } from './batch-figures.ts'

export interface TaskProgress {
  readonly createdAt: number
  readonly startedAt: number | undefined
  readonly endedAt: number | undefined
  readonly now: number
  readonly batchesTotal: number
  readonly batchesRunning: number
  readonly done: readonly BatchFigures[]
  /** Usage of the running batch, or of the batch that failed. */
  readonly unfinished: EngineUsage
  /** Rows and bytes of the listed pages, including pages of running batches. */
  readonly outputPositions: number
  readonly outputBytes: number
  /** Sum over all batches that ended. */
  readonly pipelines: readonly PipelineStats[]
  /** Whether the task has to be profiled. */
  readonly profile: boolean
}

export const NOTHING_USED: EngineUsage = { cpuNanos: 0, peakBytes: 0 }

/** A task's statistics, calculated from the figures of its batches. */
export function taskStats(progress: TaskProgress): TaskStats {
  const { createdAt, startedAt, endedAt, done, unfinished, pipelines } = progress
  const peakMemoryBytes = Math.max(unfinished.peakBytes, max(done, 'peakMemoryBytes'))
  const sum = (field: (batch: BatchFigures) => number): number => done.reduce((total, batch) => total + field(batch), 0)
  const profiled = progress.profile && done.every(({ pipelines: ofBatch }) => ofBatch !== undefined)
  // A driver is one pipeline of one batch. The number of pipelines is known once a batch has ended.
  const driversABatch = Math.max(1, pipelines.length)
  const completedDrivers = Math.max(
    done.length,
    pipelines.reduce((total, { completedDrivers: drivers }) => total + drivers, 0),
  )
  const runningDrivers = progress.batchesRunning * driversABatch
  const queued = Math.max(0, progress.batchesTotal - progress.batchesRunning - done.length)
  const rawInputPositions = sum((batch) => batch.rawInputPositions)
  const rawInputBytes = sum((batch) => batch.rawInputBytes)
  return {
    createTime: new Date(createdAt).toISOString(),
    ...(startedAt !== undefined && { startTime: new Date(startedAt).toISOString() }),
    ...(endedAt !== undefined && startedAt !== undefined && { endTime: new Date(endedAt).toISOString() }),
    elapsedNanos: Math.max(0, Math.round(((endedAt ?? progress.now) - createdAt) * 1e6)),
    queuedNanos: Math.max(0, Math.round(((startedAt ?? endedAt ?? progress.now) - createdAt) * 1e6)),
    totalDrivers: completedDrivers + runningDrivers + queued * driversABatch,
    queuedDrivers: queued * driversABatch,
    runningDrivers,
    completedDrivers,
    totalSplits: progress.batchesTotal,
    queuedSplits: queued,
    runningSplits: progress.batchesRunning,
    completedSplits: done.length,
    // After the end the task holds no memory.
    memoryBytes: endedAt === undefined ? peakMemoryBytes : 0,
    peakMemoryBytes,
    spilledBytes: sum((batch) => batch.spilledBytes),
    scheduledNanos: sum((batch) => batch.scheduledNanos),
    cpuNanos: sum((batch) => batch.cpuNanos) + unfinished.cpuNanos,
    cpuExact: unfinished.cpuNanos === 0 && done.every(({ cpuExact }) => cpuExact),
    wallNanos: sum((batch) => batch.wallNanos),
    blockedNanos: sum((batch) => batch.blockedNanos),
    rawInputBytes,
    rawInputPositions,
    processedInputBytes: rawInputBytes,
    processedInputPositions: profiled && pipelines.length > 0 ? processedPositions(pipelines) : rawInputPositions,
    outputBytes: progress.outputBytes,
    outputPositions: progress.outputPositions,
    profiled,
    pipelines: [...pipelines],
  }
}

function max(done: readonly BatchFigures[], field: 'peakMemoryBytes'): number {
  return done.reduce((most, batch) => Math.max(most, batch[field]), 0)
}

/** Rows that the scans gave, after the filters that are pushed into them. */
function processedPositions(pipelines: readonly PipelineStats[]): number {
  return pipelines.reduce((total, { processedInputPositions }) => total + processedInputPositions, 0)
}
