import { queryEventVersions, type QueryEventType } from './events.ts'

/** Data of one version as the next one has it. */
export type Upcaster = (data: unknown) => unknown

/** By type, and by the version it takes; none so far, every type is at its first version. */
export const queryEventUpcasters: Readonly<Partial<Record<QueryEventType, Readonly<Record<number, Upcaster>>>>> = {}

/**
 * Brings stored data up to the version of today, a version at a time.
 * @param version that it was stored with; one of a later program is left as it is
 */
export function upcastQueryEvent(
  type: QueryEventType,
  version: number,
  data: unknown,
  upcasters = queryEventUpcasters,
): unknown {
  let upcast = data
  for (let v = version; v < queryEventVersions[type]; v++) {
    const next = upcasters[type]?.[v]
    if (!next) throw new Error(`No upcaster takes ${type} from version ${v}`)
    upcast = next(upcast)
  }
  return upcast
}
