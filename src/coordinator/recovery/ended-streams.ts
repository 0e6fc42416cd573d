import {
  LogUnavailable,
  type Checkpoint,
  type EventLog,
  type Position,
  type Recorded,
  type EventReader,
  type LogEnd,
} from '../../events/event-log.ts'

/** The range of the log that holds all events of a stream. */
export interface StreamSpan {
  readonly first: Position
  readonly last: Position
}

/**
 * Ended queries that have left memory before the read models knew them: for each, only where its events lie. In a log
 * without an index by stream they are read there.
 */
export interface EndedStreams {
  /** May drop the oldest of them: readers of those wait for the read models. */
  add(stream: string, span: StreamSpan): void
  has(stream: string): boolean
  /** @throws LogUnavailable where too many events of other streams lie between its own */
  read(stream: string): Promise<readonly Recorded[]>
  /** Drops the streams that the read models now have: those are read from there. */
  projected(isBelow: (position: Position) => boolean): void
}

/** About a hundred bytes each. */
const MOST_STREAMS = 100_000
const EVENTS_AT_ONCE = 1000
/** Bounds the read of a query that ran for hours on a busy server: a poll does not read all of that range. */
const MOST_EVENTS = 100_000

export function createEndedStreams(log: EventReader & LogEnd, most = MOST_STREAMS): EndedStreams {
  const spans = new Map<string, StreamSpan>()

  /** Reads only the stream's log partition: the others start at their end. */
  async function start({ first }: StreamSpan): Promise<{ logId: string; at: { offset: bigint }[] }> {
    const { logId, at } = await log.tip()
    return {
      logId,
      at: at.map(({ offset }, partition) => ({ offset: partition === first.partition ? first.offset : offset })),
    }
  }

  return {
    add(stream, span) {
      spans.set(stream, span)
      if (spans.size > most) spans.delete(spans.keys().next().value!)
    },
    has: (stream) => spans.has(stream),
    async read(stream) {
      const span = spans.get(stream)
      if (!span) return []
      const { partition, offset: end } = span.last
      const found: Recorded[] = []
      let passed = 0
      let next: Parameters<EventLog['read']>[0] | Checkpoint = await start(span)
      while (next.at[partition]!.offset <= end) {
        const read = await log.read(next, EVENTS_AT_ONCE)
        if (read.next.at[partition]!.offset === next.at[partition]!.offset) break
        next = read.next
        passed += read.events.length
        for (const event of read.events) if (event.stream === stream && event.position.offset <= end) found.push(event)
        if (passed > MOST_EVENTS) throw new LogUnavailable(`The events of ${stream} are too far apart in the log`)
      }
      return found
    },
    projected(isBelow) {
      // Nearly in the order of their ends: the first stream that is not projected yet ends the loop.
      for (const [stream, { last }] of spans) {
        if (!isBelow(last)) return
        spans.delete(stream)
      }
    },
  }
}
