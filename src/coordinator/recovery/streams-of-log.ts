import { memoryOf } from '../../events/envelope.ts'
import type { EventReader, LogBeginning, Position, ReadFrom, Recorded } from '../../events/event-log.ts'
import { isQueryId, type QueryId } from '../../shared/ids.ts'
import type { StreamSpan } from './ended-streams.ts'

/** Streams of queries read from the log alone, for as long as the read models are not ready. */
export interface StreamsOfLog {
  /** Queries without an end, in the order of their creation. */
  readonly open: readonly QueryId[]
  /** Events of an open query, or of a query that ended lately, if they are in memory. */
  get(stream: string): readonly Recorded[] | undefined
}

export interface StreamsOfLogOptions {
  /** ISO time; streams that ended before are left out. */
  readonly endedSince: string
  /** The limit for events in memory, all streams together. @default 64 MB */
  readonly maxBytes?: number
  /** Called with the place in the log of a stream whose events had no room. */
  readonly onLeftOut: (stream: QueryId, span: StreamSpan) => void
}

const EVENTS_AT_ONCE = 5000
const MAX_BYTES = 64 * 1024 * 1024

interface Stream {
  /** Undefined once the events had no room. */
  events: Recorded[] | undefined
  bytes: number
  readonly first: Position
  last: Position
  ended: boolean
}

/**
 * Reads the log, without its archive. It needs no index by stream, and keeps only queries that clients may still ask
 * for, up to `maxBytes`. Events of ended queries leave memory first, then those of the oldest.
 */
export async function readStreamsOfLog(
  log: EventReader & LogBeginning,
  { endedSince, maxBytes = MAX_BYTES, onLeftOut }: StreamsOfLogOptions,
): Promise<StreamsOfLog> {
  const streams = new Map<QueryId, Stream>()
  let bytes = 0

  function leave(stream: Stream): void {
    bytes -= stream.bytes
    stream.events = undefined
    stream.bytes = 0
  }

  function makeRoom(): void {
    for (const onlyEnded of [true, false])
      for (const stream of streams.values()) {
        // Frees a little more than needed, so that the next event does not search all streams again.
        if (bytes <= maxBytes * 0.9) return
        if (stream.events && (stream.ended || !onlyEnded)) leave(stream)
      }
  }

  function add(event: Recorded & { readonly stream: QueryId }): Stream | undefined {
    const { stream: queryId, position, sequence } = event
    let stream = streams.get(queryId)
    if (!stream) {
      if (sequence !== 1) return undefined
      stream = { events: [], bytes: 0, first: position, last: position, ended: false }
      streams.set(queryId, stream)
    }
    stream.last = position
    if (!stream.events) return stream
    const size = memoryOf(event)
    stream.events.push(event)
    stream.bytes += size
    bytes += size
    return stream
  }

  for (let from: ReadFrom = await log.start(); ;) {
    const { events, next } = await log.read(from, EVENTS_AT_ONCE)
    if (events.length === 0) break
    from = next
    for (const event of events) {
      if (!isQueryId(event.stream)) continue
      const stream = add({ ...event, stream: event.stream })
      if (stream && (event.type === 'QueryFinished' || event.type === 'QueryFailed')) {
        stream.ended = true
        if (event.time < endedSince) {
          leave(stream)
          streams.delete(event.stream)
        }
      }
      if (bytes > maxBytes) makeRoom()
    }
  }
  for (const [queryId, { events, first, last }] of streams) if (!events) onLeftOut(queryId, { first, last })
  return {
    open: [...streams].filter(([, { ended }]) => !ended).map(([queryId]) => queryId),
    get: (stream) => (isQueryId(stream) ? streams.get(stream)?.events : undefined),
  }
}
