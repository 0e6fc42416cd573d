import type { StreamReader } from '../../events/event-log.ts'
import type { QueryId } from '../../shared/ids.ts'
import { decodeQueryEvent } from './decode-event.ts'
import type { QueryEvent } from './events.ts'
import { evolve } from './evolve.ts'
import { initialQueryState, type QueryState } from './state.ts'

/** A query's stream, folded as far as it can be read. */
export interface ReadableStream {
  readonly state: QueryState
  /** Of the last event, readable or not. */
  readonly sequence: number
  /** Why an event cannot be read; undefined when all can. What follows it counts no more, but for the query's failure. */
  readonly unreadable?: unknown
}

/** Folds a query's stream as it stands, whatever somebody wrote there. @throws EventLogError of the log itself */
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
  // Of a query that failed nobody needs the rest.
  return unreadable === undefined || state.kind === 'FAILED' ? { state, sequence } : { state, sequence, unreadable }
}

/** Folds a query's stream as it stands. @throws ZodError when an event of it cannot be read, unless it failed */
export async function readQuery(
  log: StreamReader,
  queryId: QueryId,
): Promise<{ readonly state: QueryState; readonly sequence: number }> {
  const { state, sequence, unreadable } = await foldReadable(log, queryId)
  if (unreadable !== undefined) throw unreadable
  return { state, sequence }
}
