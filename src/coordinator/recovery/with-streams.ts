import type { EventLog } from '../../events/event-log.ts'
import type { EndedStreams } from './ended-streams.ts'
import type { StreamsOfLog } from './streams-of-log.ts'

/**
 * The log, whose streams are read from memory as long as they are there, and those of queries that the read models do
 * not know yet where they lie.
 */
export function withStreams(
  log: EventLog,
  streams: () => StreamsOfLog | undefined,
  ended?: Pick<EndedStreams, 'has' | 'read'>,
): EventLog {
  return {
    open: () => log.open(),
    claim: (as) => log.claim(as),
    append: (...one) => log.append(...one),
    read: (...one) => log.read(...one),
    async *readStream(stream, after = 0) {
      const known = streams()?.get(stream) ?? (ended?.has(stream) ? await ended.read(stream) : undefined)
      if (!known) return yield* log.readStream(stream, after)
      for (const event of known) if (event.sequence > after) yield event
    },
    keepPages: (...one) => log.keepPages(...one),
    readPage: (...one) => log.readPage(...one),
    forgettable: (stream) => log.forgettable(stream),
    forget: (...one) => log.forget(...one),
    subscribe: (...one) => log.subscribe(...one),
    tip: () => log.tip(),
    fenced: log.fenced,
    close: () => log.close(),
  }
}
