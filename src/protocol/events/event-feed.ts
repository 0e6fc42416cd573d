import type { ServerResponse } from 'node:http'
import { setImmediate as nextLoopPass } from 'node:timers/promises'
import type { SeesEnder } from '../../coordinator/query/stream/ending.ts'
import { shownCloudEvent } from '../../coordinator/query/stream/shown-event.ts'
import { LogUnavailable, type Recorded, type LogFeed } from '../../events/event-log.ts'
import type { AcceptEvent } from './feed-filter.ts'
import { formatFeedId } from './feed-position.ts'

export interface EventFeedDeps {
  readonly log: LogFeed
  readonly logId: string
  /** By log partition, the first offset that was not read yet. */
  readonly from: readonly bigint[]
  /** By log partition, the end of the log when the reader came. */
  readonly endOffsets: readonly bigint[]
  readonly accept: AcceptEvent
  readonly seesEnder: SeesEnder
  readonly response: ServerResponse
  /** Something is written at least once in this many milliseconds, since proxies cut silent connections. */
  readonly keepAliveMs: number
  readonly onError?: ((error: unknown) => void) | undefined
}

/** One reader's server-sent events. */
export interface EventFeed {
  /** Resolves when the reader is gone or its answer was ended. */
  readonly closed: Promise<void>
  /** Resolves when the reader has received the events that existed when it came, or is gone. */
  readonly caughtUp: Promise<void>
  /** Ends the answer after the current event. The reader reconnects with the last id that it has. */
  end(): void
}

/** Characters written at once. The next write waits until the socket is empty. */
const CHUNK = 64 * 1024
/** Events held for a reader that does not read: 2,000 of them took 11 MB. */
const EVENTS_AT_ONCE = 250
/** The event loop is released after this many events of one batch. */
const EVENTS_PER_PASS = 256
/** The time that a client waits before it connects again, milliseconds. */
const RETRY_MS = 1000
/** Milliseconds after which the connection is cut when the reader does not receive the rest of an ended answer. */
const LINGER_MS = 1000

/**
 * Sends the log to one reader at the reader's speed: the subscription waits for the socket. So memory holds one batch
 * and one chunk, however slow the reader is.
 */
export function startEventFeed(deps: EventFeedDeps): EventFeed {
  const { response, accept, logId } = deps
  const source = `/quipu/${logId}`
  const next = [...deps.from]
  let ended = false
  let busy = false
  let sendCaughtUp = (): void => {}
  const caughtUp = new Promise<void>((resolve) => (sendCaughtUp = resolve))

  // Sent at once: a reader that is cut off before the first event reconnects at this position.
  response.write(`retry: ${RETRY_MS}\nid: ${formatFeedId(next)}\n\n`)

  async function deliver(batch: readonly Recorded[]): Promise<void> {
    let text = ''
    for (const [index, event] of batch.entries()) {
      if (index % EVENTS_PER_PASS === EVENTS_PER_PASS - 1) await nextLoopPass()
      if (ended) return
      next[event.position.partition] = event.position.offset + 1n
      if (!(await accept(event))) continue
      const data = JSON.stringify(shownCloudEvent(event, source, deps.seesEnder))
      text += `id: ${formatFeedId(next)}\nevent: ${event.type}\ndata: ${data}\n\n`
      if (text.length < CHUNK) continue
      await send(text)
      text = ''
    }
    if (text !== '' && !ended) await send(text)
    if (next.every((offset, partition) => offset >= deps.endOffsets[partition]!)) sendCaughtUp()
  }

  async function send(text: string): Promise<void> {
    if (response.write(text) || response.destroyed) return
    await new Promise<void>((resolve) => {
      const go = (): void => {
        response.off('drain', go).off('close', go)
        resolve()
      }
      response.once('drain', go).once('close', go)
    })
  }

  const take = async (batch: readonly Recorded[]): Promise<void> => {
    busy = true
    try {
      await deliver(batch)
    } catch (error) {
      // Throwing this on would make the subscription deliver the whole batch again, part of which was sent.
      fail(error)
    } finally {
      busy = false
    }
  }
  const from = { logId, at: deps.from.map((offset) => ({ offset })) }
  const subscription = deps.log.subscribe(from, take, EVENTS_AT_ONCE)
  subscription.done.then(end, fail)

  // The id is sent too, so that a reader whose filter passes little need not scan the same events again.
  const keepAlive = setInterval(() => {
    if (!busy && !response.writableNeedDrain) response.write(`: keep-alive\nid: ${formatFeedId(next)}\n\n`)
  }, deps.keepAliveMs)

  function fail(error: unknown): void {
    if (!ended && !(error instanceof LogUnavailable)) deps.onError?.(error)
    end()
  }

  function end(): void {
    if (ended) return
    ended = true
    clearInterval(keepAlive)
    void subscription.stop()
    response.end()
    setTimeout(() => response.destroy(), LINGER_MS).unref()
  }

  const closed = new Promise<void>((resolve) => response.once('close', resolve))
  void closed.then(end)
  void closed.then(sendCaughtUp)
  if (response.destroyed) end()
  return { closed, caughtUp, end }
}
