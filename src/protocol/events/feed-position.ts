/*
 * A place in the whole log as one line: what `id:` says and `Last-Event-ID` brings back. It names, for each log
 * partition, the last offset that was read: `0-123`, or `0-123,2-45` where there are several; one that is not named was
 * not read at all. It needs no state of this process, so any coordinator of the log takes it.
 */

/** Before the first event of the log. */
export const BEGINNING = 'beginning'

const ID = /^\d{1,5}-\d{1,18}(,\d{1,5}-\d{1,18})*$/

/** @param next by log partition, the first offset not read */
export function formatFeedId(next: readonly bigint[]): string {
  const read = next.flatMap((offset, partition) => (offset > 0n ? [`${partition}-${offset - 1n}`] : []))
  return read.length > 0 ? read.join(',') : BEGINNING
}

/**
 * @param partitions log partitions there are
 * @returns the first offset not read, by log partition; undefined when the text is no id of such a log
 */
export function parseFeedId(text: string, partitions: number): bigint[] | undefined {
  const next = Array.from({ length: partitions }, () => 0n)
  if (text === BEGINNING) return next
  if (!ID.test(text)) return undefined
  for (const place of text.split(',')) {
    const [partition, offset] = place.split('-') as [string, string]
    if (Number(partition) >= partitions) return undefined
    next[Number(partition)] = BigInt(offset) + 1n
  }
  return next
}
