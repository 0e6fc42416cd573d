import type { Fragment } from '../api/fragment.ts'
import { splitBytes, type Batch } from './batches.ts'

/** The input of one scan of a batch. */
export interface ScanInput {
  readonly positions: number
  readonly bytes: number
  /** Files as the connector names them, if its splits are parts of files. */
  readonly files: ReadonlySet<string>
}

/** Sums the splits of a scan that a batch reads. */
export function scanInput(fragment: Fragment, batch: Batch, scan: number): ScanInput {
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

/** Bytes that a batch reads, according to its splits. */
export function batchBytes(fragment: Fragment, batch: Batch): number {
  return fragment.scans.reduce((sum, _, scan) => sum + scanInput(fragment, batch, scan).bytes, 0)
}
