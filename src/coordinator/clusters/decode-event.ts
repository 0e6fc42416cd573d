import type { Recorded } from '../../events/event-log.ts'
import { upcast } from '../../events/upcast.ts'
import { clusterEventSchemas, clusterEventVersions, type ClusterEvent, type ClusterEventType } from './events.ts'

/** Whether this version of the program knows the type. */
export function isClusterEventType(type: string): type is ClusterEventType {
  return Object.hasOwn(clusterEventSchemas, type)
}

/**
 * Converts an event of the stream `cluster/{name}` to today's version and checks it; undefined for a type that this
 * version of the program does not know.
 * @throws ZodError when its schema refuses the data; Error for a version without an upcaster
 */
export function clusterEventOf({
  type,
  v: version,
  time,
  data,
}: Pick<Recorded, 'type' | 'v' | 'time' | 'data'>): ClusterEvent | undefined {
  if (!isClusterEventType(type)) return undefined
  const raised = upcast({ type, version, current: clusterEventVersions[type] }, data, undefined)
  return { type, time, data: clusterEventSchemas[type].parse(raised) } as ClusterEvent
}
