import type { z } from 'zod'
import { storedJson, type StoredEnvelope } from '../../events/envelope.ts'
import { upcast, type Upcasters } from '../../events/upcast.ts'
import { systemEventSchemas, systemEventVersions, type SystemEventType } from './events.ts'

/** By type, and by the version it takes. */
export const systemEventUpcasters: Readonly<Partial<Record<SystemEventType, Upcasters>>> = {
  // Each file in force had a FileTaken of its own.
  ConfigurationLoaded: { 1: (data) => data },
  // Who was acted as stood in the text of the object, where names make it ambiguous: it is left there.
  AccessDenied: { 1: (data) => data },
  // Each of many names that nobody has was told by itself.
  AuthenticationFailed: { 1: (data) => data },
  // There was one door then, and no word for it.
  // Who, and from where, was not told.
  ProjectionRebuilt: { 1: (data) => data },
  DataForgotten: { 1: (data) => data },
  QueryKilled: { 1: (data) => ({ ...(data as object), how: 'canceled' }), 2: (data) => data },
}

type DataOf<T extends SystemEventType> = z.output<(typeof systemEventSchemas)[T]>

/** Is it a type of this version of the program? */
export function isSystemEventType(type: string): type is SystemEventType {
  return Object.hasOwn(systemEventSchemas, type)
}

/**
 * What an event of the stream `system` says, brought to the version of today and checked.
 * @throws ZodError when it carries what its schema refuses; Error for a version that nothing takes
 */
export function systemEventData<T extends SystemEventType>(type: T, version: number, data: unknown): DataOf<T> {
  const raised = upcast({ type, version, current: systemEventVersions[type] }, data, systemEventUpcasters[type])
  return systemEventSchemas[type].parse(raised) as DataOf<T>
}

/**
 * The same of an event as the log has it, for an audit; undefined where it does not fit, which is told as altered data.
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
