import type { Request } from 'express'
import type { QueryRows } from '../../events/projection.ts'
import type { QueryFilter, QueryListRow } from '../../readmodels/queries/queries.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { Clock } from '../../shared/clock.ts'
import type { QueryId } from '../../shared/ids.ts'
import { seenBy } from '../access/seen-queries.ts'
import type { QueryFinder } from './find-query.ts'
import type { LiveQueries } from './live-queries.ts'
import { filterOf, uses, type WantedQueries } from './query-filter.ts'
import { liveRow } from './query-list.ts'

export interface ChosenQueriesDeps {
  readonly live: LiveQueries
  readonly read: QueryRows
  readonly clock: Pick<Clock, 'now'>
  readonly identify: (request: Request) => Identity
  readonly authorize: Authorize
}

/** The queries that a request is about: those in memory, and the filter that finds the others. */
export interface ChosenQueries {
  readonly filter: QueryFilter
  readonly inMemory: readonly QueryListRow[]
  /** Queries in memory, which the tables may have in an older state. */
  readonly without: readonly QueryId[]
}

/** Without filters, a list shows ended queries for this long. */
const RECENT_MS = 15 * 60_000

/** Finds the queries that the sender of a request may see in lists and that fit the wanted ones. */
export async function chooseQueries(
  request: Request,
  wanted: WantedQueries,
  { ask, onlyRecent, ...deps }: ChosenQueriesDeps & Pick<QueryFinder, 'ask'> & { readonly onlyRecent: boolean },
): Promise<ChosenQueries> {
  const { live, read, clock } = deps
  const seen = await ask(() => seenBy(deps.identify(request), deps.authorize, read))
  const filter = {
    ...filterOf(wanted),
    ...seen.filter,
    ...(onlyRecent ? { endedSince: new Date(clock.now() - RECENT_MS).toISOString() } : {}),
  }
  const views = live.list().filter((view) => seen.has(view.query.created.session))
  const inMemory = views
    .filter(({ query }) => filter.table === undefined || uses(query, filter.table))
    .map((view) => liveRow(view, clock.now()))
  return { filter, inMemory, without: views.map(({ query }) => query.queryId) }
}
