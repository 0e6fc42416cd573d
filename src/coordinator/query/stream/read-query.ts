import type { StreamReader } from '../../../events/event-log.ts'
import type { QueryId } from '../../../shared/ids.ts'
import { decodeQueryEvent } from './decode-event.ts'
import type { QueryEvent } from './events.ts'
import { evolve } from './evolve.ts'
import { initialQueryState, type QueryState } from './state.ts'

/** A query's stream, folded as far as it can be read. */
export interface ReadableStream {
  readonly state: QueryState
  /** The sequence of the last event, readable or not. */
  readonly sequence: number
  /** Why an event cannot be read; undefined when all can. Later events do not count, except the query's failure. */
  readonly unreadable?: unknown
}

/** Folds a query's stream as it stands, even with unreadable events. @throws EventLogError of the log itself */
export async function foldReadable(log: StreamReader, queryId: QueryId): Promise<ReadableStream> {
  let state: QueryState = initialQueryState
  let sequence = 0
  let unreadable: unknown
  for await (const recorded of log.readStream(queryId)) {
    sequence = recorded.sequence
    if (unreadable !== undefined && recorded.type !== 'QueryFailed') continue
    let event: QueryEvent | undefined
    try {
      event = decodeQueryEvent(recorded)
    } catch (error) {
      unreadable ??= error
    }
    if (event) state = evolve(queryId, state, event)
  }
  // The unreadable rest of a failed query is not needed.
  return unreadable === undefined || state.kind === 'FAILED' ? { state, sequence } : { state, sequence, unreadable }
}

/** Folds a query's stream as it stands. @throws ZodError when an event of it cannot be read, unless the query failed */
export async function readQuery(
  log: StreamReader,
  queryId: QueryId,
): Promise<{ readonly state: QueryState; readonly sequence: number }> {
  const { state, sequence, unreadable } = await foldReadable(log, queryId)
  if (unreadable !== undefined) throw unreadable
  return { state, sequence }
}
