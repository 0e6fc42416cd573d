import type { z } from 'zod'
import { storedJson, type StoredEnvelope } from '../../events/envelope.ts'
import { upcast, type Upcasters } from '../../events/upcast.ts'
import { systemEventSchemas, systemEventVersions, type SystemEventType } from './events.ts'

/** Upcasters by event type and by the version that each takes. */
export const systemEventUpcasters: Readonly<Partial<Record<SystemEventType, Upcasters>>> = {
  // Earlier each file in force had a FileTaken of its own.
  ConfigurationLoaded: { 1: (data) => data },
  // Earlier the text of the object named the impersonated user; names make it ambiguous, so the text stays as it is.
  AccessDenied: { 1: (data) => data },
  // Earlier each of many names that do not exist here had its own event.
  AuthenticationFailed: { 1: (data) => data },
  // Earlier the user and the address were not recorded. The first QueryKilled had no `how`, as there was only one way.
  ProjectionRebuilt: { 1: (data) => data },
  // Version 2 had no `erasureId` and no `act`.
  DataForgotten: { 1: (data) => data, 2: (data) => data },
  // Version 1 is from servers that searched a short text in all queries.
  ActStarted: { 1: (data) => data },
  // Earlier there was no mode `shadow`.
  ReplayStarted: { 1: (data) => data },
  QueryKilled: { 1: (data) => ({ ...(data as object), how: 'canceled' }), 2: (data) => data },
}

type DataOf<T extends SystemEventType> = z.output<(typeof systemEventSchemas)[T]>

/** Whether this version of the program knows the type. */
export function isSystemEventType(type: string): type is SystemEventType {
  return Object.hasOwn(systemEventSchemas, type)
}

/**
 * The data of an event of the stream `system`, brought to today's version and checked.
 * @throws ZodError when its schema refuses the data; Error for a version without an upcaster
 */
export function systemEventData<T extends SystemEventType>(type: T, version: number, data: unknown): DataOf<T> {
  const raised = upcast({ type, version, current: systemEventVersions[type] }, data, systemEventUpcasters[type])
  return systemEventSchemas[type].parse(raised) as DataOf<T>
}

/**
 * The same for an event as the log has it, for an audit; undefined where it does not fit, which the audit reports as
 * altered data.
 */
export function systemDataStored<T extends SystemEventType>(
  type: T,
  { v, data, enc }: Pick<StoredEnvelope, 'v' | 'data' | 'enc'>,
): DataOf<T> | undefined {
  try {
    return systemEventData(type, v, JSON.parse(storedJson({ enc, data })))
  } catch {
    return undefined
  }
}
