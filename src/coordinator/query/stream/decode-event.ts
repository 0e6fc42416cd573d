import type { Recorded } from '../../../events/event-log.ts'
import { isQueryEventType, queryEventSchemas, type QueryEvent } from './events.ts'
import { upcastQueryEvent } from './upcasters.ts'

/**
 * A recorded event as the query machine takes it, brought to today's version and with its payload checked; undefined
 * for types that this version does not know and for forgotten data.
 * @throws ZodError when a known type carries data that its schema refuses
 */
export function decodeQueryEvent(
  recorded: Pick<Recorded, 'type' | 'v' | 'time' | 'data' | 'forgotten' | 'typed'>,
): QueryEvent | undefined {
  const { type, v, time } = recorded
  if (!isQueryEventType(type) || recorded.forgotten) return undefined
  const data = recorded.typed ? recorded.data : queryEventSchemas[type].parse(upcastQueryEvent(type, v, recorded.data))
  return { type, time, data } as QueryEvent
}
