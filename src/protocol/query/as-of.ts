import type { Recorded } from '../../events/event-log.ts'
import type { StoredQueries } from '../../readmodels/queries/stored-queries.ts'
import { foldQueryStream } from '../../readmodels/queries/projection.ts'
import type { QueryId } from '../../shared/ids.ts'
import { HttpProblem } from '../edge/problem.ts'
import type { LiveQueryView } from './live-queries.ts'
import { storableTime } from './storable-time.ts'

/** A moment of a query's past: after its nth event, or after all events up to a time (ISO UTC). */
export type AsOf =
  | { readonly sequence: number; readonly time?: never }
  | { readonly time: string; readonly sequence?: never }

/** A query's state, made from its events alone. */
export interface StoredView extends LiveQueryView {
  readonly incomplete: boolean
}

/**
 * Header of an answer about a query or a task: the sequence of the last event in it. `asOf` with this value gives the
 * same answer again.
 */
export const SEQUENCE_HEADER = 'x-engine-sequence'

/** The most events that are folded for a read of the past. A query normally has few. */
const MAX_REPLAYED = 100_000
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2})$/

/**
 * Parses the parameter `asOf`.
 * @throws HttpProblem 400
 */
export function parseAsOf(text: string): AsOf {
  if (/^\d{1,15}$/.test(text) && Number(text) > 0) return { sequence: Number(text) }
  const time = TIME.test(text) ? storableTime(text) : undefined
  if (time !== undefined) return { time }
  // In a URL an unescaped plus sign is a space.
  const hint = / \d{2}:\d{2}$/.test(text) ? '; write + as %2B' : ''
  throw new HttpProblem(
    400,
    `asOf must be the sequence of an event (1, 2, …) or an ISO 8601 time with a zone, like 2026-01-31T12:00:00.000Z; it is '${text}'${hint}`,
  )
}

/**
 * Folds a query's stored events up to a moment, with the fold that live queries use. Call a barrier first.
 * @returns undefined when the log has no such query
 * @throws HttpProblem 404 with the reason when the query exists, but not yet at that moment, or has no such sequence
 */
export async function readAsOf(
  stored: Pick<StoredQueries, 'page'>,
  queryId: QueryId,
  asOf: AsOf,
): Promise<StoredView | undefined> {
  const events = await stored.page(queryId, 0, MAX_REPLAYED, asOf)
  const last = events.at(-1)
  if (!last) {
    const [first] = await stored.page(queryId, 0, 1)
    if (first)
      throw new HttpProblem(404, `Query ${queryId} did not exist at ${asOf.time}: it was created at ${first.time}`)
    return undefined
  }
  refuseForgotten(events)
  if (asOf.sequence !== undefined && last.sequence < asOf.sequence)
    throw new HttpProblem(404, `Query ${queryId} has no event ${asOf.sequence}: its last is ${last.sequence}`)
  return storedView(events)
}

/** Refuses a query whose data was forgotten. @throws HttpProblem 410 */
export function refuseForgotten(events: readonly Recorded[]): void {
  if (events[0]?.forgotten) throw new HttpProblem(410, 'The data of this query was forgotten')
}

/** The state that events make. @returns undefined for a stream without a query */
export function storedView(events: readonly Recorded[]): StoredView | undefined {
  const { state, sequence, incomplete } = foldQueryStream(events)
  return state.kind === 'NONE' ? undefined : { query: state, sequence, liveStats: new Map(), incomplete }
}

/** The time that counts as now in an answer about the past: nothing in it has changed since. */
export function momentOf(asOf: AsOf, view: LiveQueryView, now: number): number {
  return asOf.time === undefined ? Date.parse(view.query.updatedAt) : Math.min(now, Date.parse(asOf.time))
}
