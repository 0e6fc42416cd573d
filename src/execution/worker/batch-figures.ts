import type { DuckDbProfile, EngineResult } from '../engine/engine.ts'
import type { Fragment } from '../api/fragment.ts'
import { splitBytes, type Batch } from './batches.ts'

/** What is known of a batch that ended well. */
export interface BatchFigures {
  readonly batch: number
  /** Wall clock, milliseconds. */
  readonly startedAt: number
  readonly endedAt: number
  /** From when it could have run to when an engine took it. */
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
  /** Absent when the profiler was off or wrote none. */
  readonly profile?: DuckDbProfile
}

export interface MeasuredBatch {
  readonly result: EngineResult
  readonly fragment: Fragment
  readonly batch: Batch
  readonly queuedMs: number
  readonly endedAt: number
  readonly blockedMs: number
  readonly outputPositions: number
  readonly outputBytes: number
}

/** Input is what the splits' metadata say of the columns read: DuckDB's own counts of files are wrong. */
export function batchFigures(measured: MeasuredBatch): BatchFigures {
  const { result, fragment, batch } = measured
  let rawInputPositions = 0
  let rawInputBytes = 0
  for (const split of batch.splits) {
    rawInputPositions += split.rows ?? 0
    rawInputBytes += splitBytes(split, fragment.scans[split.scan]?.columns ?? [])
  }
  return {
    batch: batch.batch,
    startedAt: result.startedAt,
    endedAt: measured.endedAt,
    queuedNanos: Math.round(measured.queuedMs * 1e6),
    wallNanos: result.wallNanos,
    cpuNanos: result.cpuNanos,
    cpuExact: result.cpuExact,
    scheduledNanos: result.profile ? Math.round(result.profile.scheduledSeconds * 1e9) : result.wallNanos,
    blockedNanos: Math.round(measured.blockedMs * 1e6),
    peakMemoryBytes: result.peakMemoryBytes,
    spilledBytes: result.spilledBytes,
    rawInputPositions,
    rawInputBytes,
    outputPositions: measured.outputPositions,
    outputBytes: measured.outputBytes,
    ...(result.profile && { profile: result.profile }),
  }
}
