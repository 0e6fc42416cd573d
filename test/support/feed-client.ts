import { parseEventStream, type ServerSentEvent } from '../../src/cli/event-stream.ts'
import type { CloudEvent } from '../../src/events/envelope.ts'
import { waitUntil } from './quipu-process.ts'

/** A reader of `/v1/events` on one connection. */
export interface FeedClient {
  readonly status: number
  readonly headers: Headers
  /** The blocks with data so far. */
  readonly blocks: readonly ServerSentEvent[]
  /** The ids of their CloudEvents: stream and sequence. */
  ids(): string[]
  cloudEvents(): CloudEvent[]
  /** The id of the position at which the feed begins. */
  readonly firstId: string | undefined
  /** The last id of any block. */
  readonly lastId: string | undefined
  /** Waits until this many blocks with data have arrived. */
  received(count: number): Promise<void>
  /** `ended` if the server ended the feed cleanly. */
  readonly end: Promise<'ended' | 'cut'>
  /** Drops the connection. */
  drop(): void
}

export async function openFeed(url: string, headers: Readonly<Record<string, string>> = {}): Promise<FeedClient> {
  const dropping = new AbortController()
  const response = await fetch(url, { headers, signal: dropping.signal })
  const blocks: ServerSentEvent[] = []
  let firstId: string | undefined
  let lastId: string | undefined
  const end = (async () => {
    try {
      for await (const block of parseEventStream(response.body!)) {
        firstId ??= block.id
        lastId = block.id
        if (block.data !== '') blocks.push(block)
      }
      return 'ended' as const
    } catch {
      return 'cut' as const
    }
  })()
  const cloudEvents = (): CloudEvent[] => blocks.map((block) => JSON.parse(block.data) as CloudEvent)
  return {
    status: response.status,
    headers: response.headers,
    blocks,
    cloudEvents,
    ids: () => cloudEvents().map((event) => event.id),
    get firstId() {
      return firstId
    },
    get lastId() {
      return lastId
    },
    received: (count) => waitUntil(`${count} events came, not ${blocks.length}`, () => blocks.length >= count),
    end,
    drop: () => dropping.abort(),
  }
}
