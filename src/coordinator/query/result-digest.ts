import { NO_ROWS, sumOf } from '../../shared/row-digest.ts'
import type { ResultDigest } from './events.ts'
import type { ResultPageRecord } from './state.ts'

/**
 * The digest of a result out of those of its pages, each of which was published once.
 * @param keyName of the key that they were made by
 * @returns undefined where one has none, of a worker of a version before or of a time without digests
 */
export function resultDigest(
  pages: readonly Pick<ResultPageRecord, 'batch' | 'digest'>[],
  ordered: boolean,
  keyName: string,
): ResultDigest | undefined {
  const digests = pages.flatMap(({ digest }) => (digest ? [digest] : []))
  if (digests.length < pages.length) return undefined
  // Of one batch the last page has all of its chain; what has an order is one batch.
  const chain = pages.every(({ batch }) => batch === pages[0]?.batch) ? (digests.at(-1) ?? EMPTY).chain : undefined
  return {
    version: 'sip24-1',
    key: keyName,
    sum: sumOf(digests.map(({ sum }) => sum)),
    ...(ordered && chain !== undefined && { chain }),
  }
}

const EMPTY = { chain: NO_ROWS }
