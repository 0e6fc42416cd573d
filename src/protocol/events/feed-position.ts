/*
 * A position in the whole log as one line: the value of `id:` and `Last-Event-ID`. It names, for each log partition,
 * the last offset that was read: `0-123`, or `0-123,2-45` where there are several. A partition that it does not name
 * was not read at all. It needs no state of this process, so any coordinator of the log accepts it.
 */

/** The id of the position before the first event of the log. */
export const BEGINNING = 'beginning'

const ID = /^\d{1,5}-\d{1,18}(,\d{1,5}-\d{1,18})*$/

/** Writes a position. @param next by log partition, the first offset that was not read */
export function formatFeedId(next: readonly bigint[]): string {
  const read = next.flatMap((offset, partition) => (offset > 0n ? [`${partition}-${offset - 1n}`] : []))
  return read.length > 0 ? read.join(',') : BEGINNING
}

/**
 * Parses a position.
 * @param partitions number of log partitions
 * @returns the first offset that was not read, by log partition; undefined when the text is no position in such a log
 */
export function parseFeedId(text: string, partitions: number): bigint[] | undefined {
  const next = Array.from({ length: partitions }, () => 0n)
  if (text === BEGINNING) return next
  if (!ID.test(text)) return undefined
  for (const part of text.split(',')) {
    const [partition, offset] = part.split('-') as [string, string]
    if (Number(partition) >= partitions) return undefined
    next[Number(partition)] = BigInt(offset) + 1n
  }
  return next
}
