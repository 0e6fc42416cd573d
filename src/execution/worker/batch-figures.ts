import type { PipelineStats } from '../api/task.ts'

/** The figures of a batch that ended well. */
export interface BatchFigures {
  readonly batch: number
  /** Wall clock, milliseconds. */
  readonly startedAt: number
  readonly endedAt: number
  /** From when it could have started to when an engine took it. */
  readonly queuedNanos: number
  readonly wallNanos: number
  readonly cpuNanos: number
  readonly cpuExact: boolean
  readonly scheduledNanos: number
  readonly blockedNanos: number
  readonly peakMemoryBytes: number
  readonly spilledBytes: number
  readonly rawInputPositions: number
  readonly rawInputBytes: number
  readonly outputPositions: number
  readonly outputBytes: number
  /** Absent when the profiler was off or DuckDB wrote no profile. */
  readonly pipelines?: readonly PipelineStats[]
}
