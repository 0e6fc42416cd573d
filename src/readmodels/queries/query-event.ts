import { decodeQueryEvent } from '../../coordinator/query/stream/decode-event.ts'
import { isQueryEventType, queryEventVersions, type QueryEvent } from '../../coordinator/query/stream/events.ts'
import type { Recorded } from '../../events/event-log.ts'

/**
 * Parses a recorded event as an event of a query, of any version up to the current one. Checks its data, because the
 * log is outside input.
 * @returns undefined for an event that is not (any more) a query's event: unknown types, forgotten data
 * @throws ZodError when the data does not fit the type; Error when a newer program wrote it
 */
export function parseQueryEvent(recorded: Recorded): QueryEvent | undefined {
  const { type, v } = recorded
  if (isQueryEventType(type) && v > queryEventVersions[type])
    throw new Error(`${type} v${v} is unknown: this version of Quipu knows v${queryEventVersions[type]}`)
  return decodeQueryEvent(recorded)
}
