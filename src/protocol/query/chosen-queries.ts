import type { Request } from 'express'
import type { QueryRows } from '../../events/projection.ts'
import type { QueryFilter, QueryListRow } from '../../readmodels/queries/queries.ts'
import type { StoredQueries } from '../../readmodels/queries/stored-queries.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { Clock } from '../../shared/clock.ts'
import type { QueryId } from '../../shared/ids.ts'
import { seenBy } from '../access/seen-queries.ts'
import type { QueryFinder } from './find-query.ts'
import { boundedFilter, boundsOf, type ListingBounds } from './listing-bounds.ts'
import type { LiveQueries } from './live-queries.ts'
import { filterOf, uses, type WantedQueries } from './query-filter.ts'
import { liveRow } from './query-list.ts'

export interface ChosenQueriesDeps extends Pick<QueryFinder, 'ask'> {
  readonly live: LiveQueries
  readonly read: QueryRows
  readonly stored: Pick<StoredQueries, 'searchStart'>
  readonly clock: Pick<Clock, 'now'>
  readonly identify: (request: Request) => Identity
  readonly authorize: Authorize
}

/** The queries that a request is about: those in memory, and the filter that finds the others. */
export interface ChosenQueries {
  /** With the bounds. Queries in memory must pass it too. */
  readonly filter: QueryFilter
  readonly bounds: ListingBounds
  readonly inMemory: readonly QueryListRow[]
  /** Queries in memory, which the tables may have in an older state. */
  readonly without: readonly QueryId[]
}

export interface WantedListing {
  readonly wanted: WantedQueries
  /** Only these queries. */
  readonly ids?: readonly QueryId[] | undefined
  /** The bounds of the listing that the request continues; absent for a new listing. */
  readonly bounds?: ListingBounds | undefined
}

/** Finds the queries that the sender of a request may see in lists and that fit the wanted ones. */
export async function chooseQueries(
  request: Request,
  { wanted, ids, bounds: known }: WantedListing,
  { live, read, stored, clock, ask, identify, authorize }: ChosenQueriesDeps,
): Promise<ChosenQueries> {
  const seen = await ask(() => seenBy(identify(request), authorize, read))
  const asked = { ...filterOf(wanted), ...seen.filter, ...(ids && { ids }) }
  const isFiltered = ids !== undefined || Object.values(wanted).some((one) => one !== undefined)
  const views = live.list().filter((view) => seen.has(view.query.created.session))
  const without = views.map(({ query }) => query.queryId)
  const nowMs = clock.now()
  const bounds = known ?? (await ask(() => boundsOf({ ...asked, without }, isFiltered, { stored, nowMs })))
  const inMemory = views
    .filter(({ query }) => asked.table === undefined || uses(query, asked.table))
    .map((view) => liveRow(view, nowMs))
  return { filter: boundedFilter(asked, bounds), bounds, inMemory, without }
}
