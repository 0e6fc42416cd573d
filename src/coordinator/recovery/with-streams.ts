import { isBelow, type StreamReader } from '../../events/event-log.ts'
import type { EndedStreams } from './ended-streams.ts'
import type { StreamsOfLog } from './streams-of-log.ts'

/**
 * Reads streams from memory while they are there, those of queries that the read models do not know yet from where they
 * lie in the log, and all others through the log.
 */
export function withStreams(
  log: StreamReader,
  streams: () => Pick<StreamsOfLog, 'get'> | undefined,
  ended?: Pick<EndedStreams, 'has' | 'read'>,
): StreamReader {
  return {
    async *readStream(stream, after = 0, until) {
      const known = streams()?.get(stream) ?? (ended?.has(stream) ? await ended.read(stream) : undefined)
      if (!known) return yield* log.readStream(stream, after, until)
      for (const event of known) {
        if (until && !isBelow(event.position, until)) return
        if (event.sequence > after) yield event
      }
    },
  }
}
