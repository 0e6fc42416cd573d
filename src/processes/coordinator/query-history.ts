import { createEndedStreams, type EndedStreams } from '../../coordinator/recovery/ended-streams.ts'
import type { StreamsOfLog } from '../../coordinator/recovery/streams-of-log.ts'
import { withStreams } from '../../coordinator/recovery/with-streams.ts'
import type { EventAppender, EventHistory, EventLog, LogBeginning, LogEnd, LogFeed } from '../../events/event-log.ts'

/** The log from which queries are served. It reads streams wherever they are stored. */
export type QueryHistory = EventHistory & LogBeginning & LogEnd & LogFeed & EventAppender

export interface WiredHistory {
  readonly history: QueryHistory
  /** The positions of streams that no index finds. */
  readonly endedStreams: EndedStreams
  /** Keeps streams that were read from the log itself in memory until the promise settles. */
  keepStreams(streams: StreamsOfLog, until: Promise<void>): void
}

export function wireHistory(log: EventLog): WiredHistory {
  let streams: StreamsOfLog | undefined
  const endedStreams = createEndedStreams(log)
  return {
    history: {
      ...withStreams(log, () => streams, endedStreams),
      append: log.append.bind(log),
      read: log.read.bind(log),
      subscribe: log.subscribe.bind(log),
      start: log.start.bind(log),
      tip: log.tip.bind(log),
    },
    endedStreams,
    keepStreams(found, until) {
      streams = found
      void until.then(() => (streams = undefined))
    },
  }
}
