import type { QueryId } from '../../shared/ids.ts'
import type { DataForgetter, StreamReader } from '../../events/event-log.ts'
import { foldReadable } from '../query/stream/read-query.ts'
import type { TaskRecord } from '../query/stream/state.ts'
import type { SystemJournal } from './system-journal.ts'

export interface ForgetDeps {
  /** The log, written by this process. */
  readonly log: DataForgetter
  readonly journal: SystemJournal
}

/** The user that changed the server, and from where. */
export interface Administrator {
  readonly by: string
  /** The user that logged in, where they act as `by`. */
  readonly originalUser?: string
  readonly remoteAddress?: string
}

/** The erasure for which a query is forgotten. */
export interface PartOfErasure {
  readonly erasureId: string
  /** Whether DataForgotten is valid already, because an interrupted call recorded it. */
  readonly isRecorded: boolean
}

/** The user that forgets a query. */
export interface ForgetBy extends Administrator {
  /** The act on many queries that this is a part of. */
  readonly act?: string
}

/** `open`: the query has not ended, nothing was done. `forgotten`: how many events lost their data; 0: none had any. */
export type ForgetOutcome =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'open' }
  | { readonly kind: 'forgotten'; readonly events: number }

export interface ForgetWholeDeps extends ForgetDeps {
  /** Reads streams of queries, wherever they are stored. */
  readonly history: StreamReader
  /** Takes a forgotten query out of memory, and its tasks with their pages off the workers. */
  readonly remove: (queryId: QueryId, tasks: readonly TaskRecord[]) => void
}

/** As `forgetQuery`, and removes the query's pages too. An event that cannot be read does not keep a query from this. */
export async function forgetWholeQuery(
  { log, journal, history, remove }: ForgetWholeDeps,
  queryId: QueryId,
  administrator: ForgetBy,
  erasure?: PartOfErasure,
): Promise<ForgetOutcome> {
  // Read the tasks now: after forgetting, they are not known any more.
  const { state } = await foldReadable(history, queryId)
  const outcome = await forgetQuery({ log, journal }, queryId, administrator, erasure)
  if (outcome.kind === 'forgotten') remove(queryId, state.kind === 'NONE' ? [] : [...state.tasks.values()])
  return outcome
}

const END_EVENTS: ReadonlySet<string> = new Set(['QueryFinished', 'QueryFailed'])

/**
 * Removes everything about an ended query from the log except that it existed. DataForgotten is valid first: whatever
 * happens after it, an audit knows why the data is gone, or should be, and a repeated call finishes the work.
 */
export async function forgetQuery(
  { log, journal }: ForgetDeps,
  queryId: QueryId,
  administrator: ForgetBy,
  erasure?: PartOfErasure,
): Promise<ForgetOutcome> {
  const events = await log.forgettable(queryId)
  if (events.length === 0) return { kind: 'unknown' }
  if (!events.some(({ type }) => END_EVENTS.has(type))) return { kind: 'open' }
  const sequences = events.filter(({ forgotten }) => !forgotten).map(({ sequence }) => sequence)
  if (sequences.length > 0 && erasure?.isRecorded !== true)
    await journal.record('DataForgotten', {
      stream: queryId,
      sequences,
      ...(erasure && { erasureId: erasure.erasureId }),
      ...administrator,
    })
  // Events that were forgotten before too: that call may have been interrupted before it reached all copies.
  await log.forget(
    queryId,
    events.map(({ sequence }) => sequence),
  )
  return { kind: 'forgotten', events: sequences.length }
}
