import type { Fragment } from '../api/fragment.ts'
import type { PipelineStats } from '../api/task.ts'
import type { EngineResult } from '../engine/engine.ts'
import { batchPipelines } from './batch-pipelines.ts'
import { splitBytes, type Batch } from './batches.ts'

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

/** Bytes that a batch reads, according to its splits. */
export function batchBytes(fragment: Fragment, batch: Batch): number {
  return fragment.scans.reduce((sum, _, scan) => sum + scanInput(fragment, batch, scan).bytes, 0)
}

/** The input of one scan of a batch. */
export interface ScanInput {
  readonly positions: number
  readonly bytes: number
  /** Files as the connector names them, if its splits are parts of files. */
  readonly files: ReadonlySet<string>
}

function scanInput(fragment: Fragment, batch: Batch, scan: number): ScanInput {
  let positions = 0
  let bytes = 0
  const files = new Set<string>()
  for (const split of batch.splits) {
    if (split.scan !== scan) continue
    positions += split.rows ?? 0
    bytes += splitBytes(split, fragment.scans[scan]!.columns)
    const { file } = split.data
    if (typeof file === 'string') files.add(file)
  }
  return { positions, bytes, files }
}
