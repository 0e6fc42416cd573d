import type { EventLog } from '../../events/event-log.ts'
import type { QueryId } from '../../shared/ids.ts'
import { decodeQueryEvent } from './decode-event.ts'
import { evolve } from './evolve.ts'
import { initialQueryState, type QueryState } from './state.ts'

/** Folds a query's stream as it stands. */
export async function readQuery(
  log: Pick<EventLog, 'readStream'>,
  queryId: QueryId,
): Promise<{ readonly state: QueryState; readonly sequence: number }> {
  let state: QueryState = initialQueryState
  let sequence = 0
  for await (const recorded of log.readStream(queryId)) {
    sequence = recorded.sequence
    const event = decodeQueryEvent(recorded)
    if (event) state = evolve(queryId, state, event)
  }
  return { state, sequence }
}
