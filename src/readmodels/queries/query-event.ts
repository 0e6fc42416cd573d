import {
  isQueryEventType,
  queryEventSchemas,
  queryEventVersions,
  type QueryEvent,
} from '../../coordinator/query/events.ts'
import type { Recorded } from '../../events/event-log.ts'

/**
 * A recorded event as one of a query's, its data checked: the log is outside.
 * @returns undefined for what is no query's event (any more): unknown types, forgotten data
 * @throws ZodError when the data is not what the type promises; Error when a newer program wrote it
 */
export function parseQueryEvent(recorded: Recorded): QueryEvent | undefined {
  const { type, time } = recorded
  if (!isQueryEventType(type) || recorded.forgotten) return undefined
  const version = queryEventVersions[type]
  if (recorded.v !== version) throw new Error(`${type} v${recorded.v} is unknown here; this program knows v${version}`)
  // One cast: the compiler cannot see that type and data come from the same entry.
  return { type, time, data: queryEventSchemas[type].parse(recorded.data) } as QueryEvent
}
