import { NO_ROWS, sumOf } from '../../../shared/row-digest.ts'
import type { ResultDigest } from '../stream/events.ts'
import type { ResultPageRecord } from '../stream/state.ts'

/**
 * The digest of a result, combined from those of its pages, each of which was published once.
 * @param keyName the name of the key that the digests were made with
 * @returns undefined when a page has no digest: its worker had an earlier version, or digests were switched off
 */
export function resultDigest(
  pages: readonly Pick<ResultPageRecord, 'batch' | 'digest'>[],
  ordered: boolean,
  keyName: string,
): ResultDigest | undefined {
  const digests = pages.flatMap(({ digest }) => (digest ? [digest] : []))
  if (digests.length < pages.length) return undefined
  // The last page of a single batch holds the chain over all rows of the batch. An ordered result is one batch.
  const chain = pages.every(({ batch }) => batch === pages[0]?.batch) ? (digests.at(-1) ?? EMPTY).chain : undefined
  return {
    version: 'sip24-1',
    key: keyName,
    sum: sumOf(digests.map(({ sum }) => sum)),
    ...(ordered && chain !== undefined && { chain }),
  }
}

const EMPTY = { chain: NO_ROWS }
