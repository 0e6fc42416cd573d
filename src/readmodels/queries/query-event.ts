import { decodeQueryEvent } from '../../coordinator/query/decode-event.ts'
import { isQueryEventType, queryEventVersions, type QueryEvent } from '../../coordinator/query/events.ts'
import type { Recorded } from '../../events/event-log.ts'

/**
 * A recorded event as one of a query's, of whatever version up to today's, its data checked: the log is outside.
 * @returns undefined for what is no query's event (any more): unknown types, forgotten data
 * @throws ZodError when the data is not what the type promises; Error when a newer program wrote it
 */
export function parseQueryEvent(recorded: Recorded): QueryEvent | undefined {
  const { type, v } = recorded
  if (isQueryEventType(type) && v > queryEventVersions[type])
    throw new Error(`${type} v${v} is unknown here; this program knows v${queryEventVersions[type]}`)
  return decodeQueryEvent(recorded)
}
