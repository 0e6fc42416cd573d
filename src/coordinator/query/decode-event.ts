import type { Recorded } from '../../events/event-log.ts'
import { isQueryEventType, queryEventSchemas, type QueryEvent } from './events.ts'

/**
 * A recorded event as the query machine takes it, its payload checked; undefined for types this version does not know
 * and for forgotten data.
 * @throws ZodError when a known type carries what its schema refuses
 */
export function decodeQueryEvent(
  recorded: Pick<Recorded, 'type' | 'time' | 'data' | 'forgotten'>,
): QueryEvent | undefined {
  if (!isQueryEventType(recorded.type) || recorded.forgotten) return undefined
  const data = queryEventSchemas[recorded.type].parse(recorded.data)
  return { type: recorded.type, time: recorded.time, data } as QueryEvent
}
