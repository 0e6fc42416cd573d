import { z } from 'zod'
import type { QueryFilter } from '../../readmodels/queries/queries.ts'
import type { StoredQueries } from '../../readmodels/queries/stored-queries.ts'

/** A time that the database accepts: it has no year 0, which JavaScript has. */
export const rowTime = z.iso.datetime().refine((text) => !text.startsWith('0000'))

/**
 * The bounds of a listing, by one rule for lists, totals, previews of acts and acts, so that the same filter names the
 * same queries in all of them:
 * - Without a filter it has open queries, and queries that ended within the last 15 minutes.
 * - A text without three letters or digits in a row is searched in the newest queries only (`readSearchStart`), also
 *   among the queries in memory.
 *
 * The beginning of a listing determines its bounds. Tokens of next pages and tokens of previews contain them.
 */
export const listingBounds = z.strictObject({
  /** Only open queries, and queries that ended at or after this time, ISO UTC; absent: all. */
  endedSince: rowTime.optional(),
  /** Only queries that were created at or after this time, ISO UTC; absent: the text is searched in all queries. */
  searchedSince: rowTime.optional(),
})
export type ListingBounds = Readonly<z.output<typeof listingBounds>>

/** How long a listing without a filter shows queries after their end. */
const RECENT_MS = 15 * 60_000

/**
 * Determines the bounds of a new listing.
 * @param filter the conditions of the user, and their rights
 * @param isFiltered whether the user gave any condition
 */
export async function boundsOf(
  filter: QueryFilter,
  isFiltered: boolean,
  { stored, nowMs }: { readonly stored: Pick<StoredQueries, 'searchStart'>; readonly nowMs: number },
): Promise<ListingBounds> {
  if (!isFiltered) return { endedSince: new Date(nowMs - RECENT_MS).toISOString() }
  const start = await stored.searchStart(filter)
  return start === undefined || isBefore(start, filter.since) ? {} : { searchedSince: start }
}

/** The filter with the bounds of its listing. */
export function boundedFilter(filter: QueryFilter, { endedSince, searchedSince }: ListingBounds): QueryFilter {
  return {
    ...filter,
    ...(endedSince !== undefined && { endedSince }),
    ...(searchedSince !== undefined && !isBefore(searchedSince, filter.since) && { since: searchedSince }),
  }
}

function isBefore(time: string, other: string | undefined): boolean {
  return other !== undefined && Date.parse(time) < Date.parse(other)
}
