import {
  anchorCheckpoint,
  exportAnchor,
  makeAnchor,
  type Anchor,
  type AnchorKey,
  type ExportedAnchor,
  type Head,
} from '../../events/audit/anchor.ts'
import { beginning, type Checkpoint, type Recorded, type Subscription, type LogFeed } from '../../events/event-log.ts'
import type { SystemJournal } from './system-journal.ts'

export interface AnchorerOptions {
  readonly log: LogFeed
  readonly partitions: number
  readonly journal: SystemJournal
  readonly key: AnchorKey
  /** The last anchor of the log. */
  readonly previous: Anchor | undefined
  readonly everyMs: number
  readonly everyEvents: number
  /** Called with each anchor once it is valid. */
  readonly onAnchored: (anchor: ExportedAnchor) => void
  /**
   * Called when no more anchors are made: the log differs from what the last one signed, or this process may not write
   * any more.
   */
  readonly onEnd: (error: unknown) => void
}

export interface Anchorer {
  /** Makes a last anchor if events came since the last one, then no more. */
  stop(): Promise<void>
}

/**
 * Signs the content of the log every `everyMs` or `everyEvents`, whichever comes first, and only when an event other
 * than an anchor came. It reads the log like any subscriber, so nothing waits for it.
 */
export function startAnchorer(options: AnchorerOptions): Anchorer {
  const { log, journal, key, everyMs, everyEvents, onAnchored, onEnd } = options
  const start = options.previous ? anchorCheckpoint(options.previous) : beginning(options.partitions)
  let previous = options.previous
  let checkpoint: Checkpoint = start
  let heads = new Map<string, Head>()
  /** Events since the last anchor, anchors not counted. */
  let changes = 0
  let ended = false
  let making: Promise<void> = Promise.resolve()

  const anchor = (): Promise<void> => (making = making.then(make))

  async function make(): Promise<void> {
    if (changes === 0 || ended) return
    const taken = { heads, changes }
    const made = makeAnchor(checkpoint, heads, previous, key)
    heads = new Map()
    changes = 0
    try {
      const { events } = await journal.record('LogAnchored', { ...made, at: [...made.at] })
      previous = made
      onAnchored(exportAnchor(made, events[0]!.time, key.public))
    } catch (error) {
      // Refused before it was sent, or by a log that this process has lost: the taken events still have no anchor.
      heads = new Map([...taken.heads, ...heads])
      changes += taken.changes
      end(error)
    }
  }

  function end(error: unknown): void {
    if (ended) return
    ended = true
    clearInterval(timer)
    onEnd(error)
  }

  async function take(batch: readonly Recorded[], next: Checkpoint): Promise<void> {
    for (const { stream, sequence, hash, type } of batch) {
      heads.set(stream, { sequence, hash })
      if (type !== 'LogAnchored') changes++
    }
    checkpoint = next
    if (changes >= everyEvents) await anchor()
  }

  const timer = setInterval(() => void anchor(), everyMs)
  timer.unref()
  const subscription: Subscription = log.subscribe(start, take)
  subscription.done.catch(end)
  return {
    async stop() {
      clearInterval(timer)
      await subscription.stop()
      await anchor()
      ended = true
    },
  }
}
