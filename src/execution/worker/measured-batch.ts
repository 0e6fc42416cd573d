import { scanInput } from './scan-input.ts'
import type { BatchFigures } from './batch-figures.ts'
import type { Fragment } from '../api/fragment.ts'
import type { EngineResult } from '../engine/engine.ts'
import { batchPipelines } from './batch-pipelines.ts'
import type { Batch } from './batches.ts'

/** A batch that ended well, with everything that is measured of it. */
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

/** Input comes from the splits' metadata for the columns that are read: DuckDB's own counts for files are wrong. */
export function batchFigures(measured: MeasuredBatch): BatchFigures {
  const { result, fragment, batch } = measured
  const inputs = fragment.scans.map((_, scan) => scanInput(fragment, batch, scan))
  const figures = {
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
    rawInputPositions: inputs.reduce((sum, { positions }) => sum + positions, 0),
    rawInputBytes: inputs.reduce((sum, { bytes }) => sum + bytes, 0),
    outputPositions: measured.outputPositions,
    outputBytes: measured.outputBytes,
  }
  return result.profile ? { pipelines: batchPipelines(result.profile, figures, inputs), ...figures } : figures
}
