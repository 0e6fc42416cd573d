import type { Request } from 'express'
import { isOnHold, isTerminal, type KnownQuery } from '../../coordinator/query/stream/state.ts'
import type { ActKind } from '../../coordinator/system/events.ts'
import type { QueryListRow } from '../../readmodels/queries/queries.ts'
import { cursorOf, NEWEST_FIRST } from '../../readmodels/queries/query-order.ts'
import type { StoredQueries } from '../../readmodels/queries/stored-queries.ts'
import { queryOfStream } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import { chooseQueries, type ChosenQueriesDeps } from '../query/chosen-queries.ts'
import type { ListingBounds } from '../query/listing-bounds.ts'
import { overlay } from '../query/query-list.ts'
import { queryStates } from '../query/query-states.ts'
import type { ActFilter } from './act-schemas.ts'

export interface MatchedQueriesDeps extends ChosenQueriesDeps {
  readonly stored: StoredQueries
  /** The most queries of one act. */
  readonly mostQueries: number
}

/** The queries that an act is about. */
export interface MatchedQueries {
  /** The newest first. */
  readonly rows: readonly QueryListRow[]
  /** How many other queries match that the user may see but not end. */
  readonly denied: number
  /** The bounds of a list with the same filter. */
  readonly bounds: ListingBounds
}

/** The queries that an act is to be about. */
export interface WantedAct {
  readonly act: ActKind
  readonly filter: ActFilter
  /** ISO UTC: only queries that were created, or had ended, before this time. */
  readonly before: string
  /** The bounds of the preview; absent in the preview itself. */
  readonly bounds?: ListingBounds
}

const PAGE = 1000
/** The characters of a text that a preview shows. */
export const PREVIEWED_CHARACTERS = 200

const OPEN = queryStates.filter((state) => !isTerminal(state))
const ENDED = queryStates.filter(isTerminal)

/** The states in which an act can do anything. */
const STATES: Readonly<Record<ActKind, readonly string[]>> = {
  kill: OPEN,
  hold: ['QUEUED'],
  release: ['QUEUED'],
  rerun: ENDED,
  forget: ENDED,
}

/**
 * Finds the queries of an act that the user may see, and may end if the act ends or runs queries.
 * @throws HttpProblem 400 when there are more than an act may have
 */
export async function matchQueries(
  request: Request,
  { act, filter: wanted, before, bounds: known }: WantedAct,
  deps: MatchedQueriesDeps,
): Promise<MatchedQueries> {
  const { ask, stored, live, mostQueries } = deps
  const { queries, ...parameters } = wanted
  const ids = queries?.map(queryOfStream)
  const states = STATES[act].filter((state) => parameters.state?.some((one) => one === state) ?? true)
  const until = parameters.until === undefined || before < parameters.until ? before : parameters.until
  const { bounds, ...chosen } = await chooseQueries(request, { wanted: parameters, ids, bounds: known }, deps)
  // `states` and `until` of the act do not change the bounds: a list with the same filter does not have them.
  const filter = { ...chosen.filter, states, until }
  const identity = deps.identify(request)
  const mayAct = (row: QueryListRow): boolean => {
    if (act === 'forget') return true
    const query = live.get(row.query_id)?.query.created.session ?? { user: row.user_name }
    return deps.authorize(identity, { action: 'kill', query, queryId: row.query_id })
  }
  const rows: QueryListRow[] = []
  let denied = 0
  for (let last: QueryListRow | undefined; ;) {
    const page = { ...filter, ...(last && { cursor: cursorOf(last, NEWEST_FIRST) }) }
    const listed = await ask(() => stored.list({ ...page, without: chosen.without }, PAGE, PREVIEWED_CHARACTERS))
    const found = overlay(listed, chosen.inMemory, page, PAGE)
    for (const row of found) {
      if (!fits(act, row, before, live.get(row.query_id)?.query)) continue
      if (mayAct(row)) rows.push(row)
      else denied++
    }
    if (rows.length + denied > mostQueries) throw tooMany(mostQueries)
    last = found.at(-1)
    if (!last || found.length < PAGE) return { rows, denied, bounds }
  }
}

/** Whether the act can do anything with the query. @param query in memory */
function fits(act: ActKind, row: QueryListRow, before: string, query: KnownQuery | undefined): boolean {
  switch (act) {
    case 'kill':
      return true
    case 'hold':
      return query === undefined || (query.queued !== undefined && !isOnHold(query))
    case 'release':
      return query === undefined || isOnHold(query)
    case 'rerun':
    case 'forget':
      return row.ended_at !== null && row.ended_at < before
  }
}

function tooMany(most: number): HttpProblem {
  return new HttpProblem(400, `More than ${most} queries match, and an act has at most ${most}: narrow the filter`)
}
