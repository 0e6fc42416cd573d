import { bytesOfColumn, type Fragment, type Split } from '../api/fragment.ts'

/** One DuckDB statement of a task, with the splits that it reads. */
export interface Batch {
  readonly batch: number
  readonly splits: readonly Split[]
}

/**
 * A batch of a streaming fragment reads at least this much, bytes: for smaller batches, pages and statements cost more
 * than the scan.
 */
export const BATCH_BYTES = 64 * 1024 * 1024

/**
 * Plans the batches of the splits known so far. A pure function of the splits' order, so that every attempt of a task
 * has the same batches. A streaming fragment runs over disjoint sets of scan 0's splits, with all splits of its other
 * scans in each batch. Any other fragment, and one that writes, is one batch, which exists once all splits are known.
 */
export function planBatches(
  fragment: Fragment,
  splits: readonly Split[],
  noMoreSplits: boolean,
  batchBytes = BATCH_BYTES,
): readonly Batch[] {
  if (!fragment.streams || fragment.scans.length === 0 || fragment.write)
    return noMoreSplits ? [{ batch: 0, splits }] : []
  // The other scans must be complete before the first batch can run.
  if (fragment.scans.length > 1 && !noMoreSplits) return []
  const others = splits.filter(({ scan }) => scan !== 0)
  const columns = fragment.scans[0]!.columns
  const batches: Batch[] = []
  let open: Split[] = []
  let openBytes = 0
  const close = (): void => {
    batches.push({ batch: batches.length, splits: [...open, ...others] })
    open = []
    openBytes = 0
  }
  for (const split of splits) {
    if (split.scan !== 0) continue
    open.push(split)
    openBytes += splitBytes(split, columns)
    if (openBytes >= batchBytes) close()
  }
  if (noMoreSplits && (open.length > 0 || batches.length === 0)) close()
  return batches
}

/** Compressed bytes that a scan of these columns reads from a split. */
export function splitBytes(split: Split, columns: readonly string[]): number {
  if (!split.columnBytes) return split.bytes ?? 0
  return columns.reduce((sum, column) => sum + (bytesOfColumn(split, column) ?? 0), 0)
}
