import type { QueryId } from '../../shared/ids.ts'
import type { DataForgetter } from '../../events/event-log.ts'
import type { SystemJournal } from './system-journal.ts'

export interface ForgetDeps {
  /** Written by this process. */
  readonly log: DataForgetter
  readonly journal: SystemJournal
}

/** Who did something to the server, and from where. */
export interface Administrator {
  readonly by: string
  /** Who logged in, where he acts as `by`. */
  readonly originalUser?: string
  readonly remoteAddress?: string
}

/** `open`: the query has not ended, nothing was done. `forgotten`: so many events lost their data, 0 when none had any. */
export type ForgetOutcome =
  { readonly kind: 'unknown' } | { readonly kind: 'open' } | { readonly kind: 'forgotten'; readonly events: number }

const ENDS: ReadonlySet<string> = new Set(['QueryFinished', 'QueryFailed'])

/**
 * Takes all that is known of an ended query out of the log but that it was there. DataForgotten is valid first: whatever
 * happens after it, an audit knows why the data is gone, or that it should be, and asking again finishes the work.
 */
export async function forgetQuery(
  { log, journal }: ForgetDeps,
  queryId: QueryId,
  administrator: Administrator,
): Promise<ForgetOutcome> {
  const events = await log.forgettable(queryId)
  if (events.length === 0) return { kind: 'unknown' }
  if (!events.some(({ type }) => ENDS.has(type))) return { kind: 'open' }
  const sequences = events.filter(({ forgotten }) => !forgotten).map(({ sequence }) => sequence)
  if (sequences.length > 0) await journal.record('DataForgotten', { stream: queryId, sequences, ...administrator })
  // Those of before too: it may have been cut off before all of its copies were reached.
  await log.forget(
    queryId,
    events.map(({ sequence }) => sequence),
  )
  return { kind: 'forgotten', events: sequences.length }
}
