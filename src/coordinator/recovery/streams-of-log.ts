import type { EventLog, Recorded } from '../../events/event-log.ts'
import { beginning } from '../../events/event-log.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'

/** Streams of queries as the log alone has them, for as long as the read models cannot say. */
export interface StreamsOfLog {
  /** Of queries without an end, in the order of their creation. */
  readonly open: readonly QueryId[]
  /** Events of an open query, or of one that ended lately. */
  get(stream: string): readonly Recorded[] | undefined
}

const EVENTS_AT_ONCE = 5000

/**
 * Reads the whole log: no index by stream is needed, and no memory but for queries that somebody may still ask for.
 * @param endedSince ISO time; streams that ended before are left out
 */
export async function readStreamsOfLog(log: Pick<EventLog, 'read' | 'tip'>, endedSince: string): Promise<StreamsOfLog> {
  const streams = new Map<QueryId, Recorded[]>()
  const ended = new Set<QueryId>()
  for (let from = beginning((await log.tip()).at.length); ;) {
    const { events, next } = await log.read(from, EVENTS_AT_ONCE)
    if (events.length === 0) break
    from = next
    for (const event of events) {
      const { stream, type, time } = event
      if (!isQueryId(stream)) continue
      const known = streams.get(stream)
      if (known) known.push(event)
      else if (event.sequence === 1) streams.set(stream, [event])
      if (type !== 'QueryFinished' && type !== 'QueryFailed') continue
      if (time < endedSince) streams.delete(stream)
      else ended.add(stream)
    }
  }
  return {
    open: [...streams.keys()].filter((stream) => !ended.has(stream)),
    get: (stream) => (isQueryId(stream) ? streams.get(stream) : undefined),
  }
}
