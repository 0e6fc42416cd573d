import { setTimeout as sleep } from 'node:timers/promises'
import { LogUnavailable, type Checkpoint, type ReadFrom, type Recorded, type Subscription } from './event-log.ts'
import type { LogReader } from './log-reader.ts'
import type { RecentEvents } from './recent-events.ts'
import type { LogPosition, RecordStore } from './record-store.ts'

export interface SubscriptionParts {
  readonly store: RecordStore
  readonly reader: LogReader
  /** One a log partition. */
  readonly recent: readonly RecentEvents[]
  /** Whether this process writes the log: then news come from its memory. */
  readonly isWriter: () => boolean
  readonly onPlace: (partition: number, position: LogPosition) => void
  readonly onTrouble: (error: Error) => void
  /** Handed over at once. */
  readonly mostEvents: number | undefined
}

/** Events handed over at once, where the subscriber does not say. */
const MOST_EVENTS = 2000
/** A writer's own followers look at the log itself this often: it may have been fenced while it slept. */
const LOOK_AGAIN_MS = 1000

/** Follows the log in a loop that waits for its callback; ends at the first error that waiting cannot mend. */
export function startSubscription(
  parts: SubscriptionParts,
  from: ReadFrom,
  on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>,
): Subscription {
  const stopping = new AbortController()
  const follower = new Follower(parts, on, stopping.signal)
  const done = follower.run(from)
  // Whoever does not look at `done` must not be ended by an unhandled rejection.
  done.catch(() => {})
  return {
    get checkpoint() {
      return follower.checkpoint ?? (from as Checkpoint)
    },
    done,
    async stop() {
      stopping.abort()
      await done.catch(() => {})
    },
  }
}

class Follower {
  checkpoint: Checkpoint | undefined
  readonly #parts: SubscriptionParts
  readonly #on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>
  readonly #signal: AbortSignal
  readonly #most: number
  #lastLook = 0
  #wake: () => void = () => {}

  constructor(
    parts: SubscriptionParts,
    on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>,
    signal: AbortSignal,
  ) {
    this.#parts = parts
    this.#on = on
    this.#most = parts.mostEvents ?? MOST_EVENTS
    this.#signal = signal
    signal.addEventListener('abort', () => this.#wake())
  }

  async run(from: ReadFrom): Promise<void> {
    for (let delay = 50; !this.#signal.aborted;) {
      try {
        this.checkpoint ??= await this.#parts.reader.begin(from)
        if (!(await this.#round())) await this.#wait()
        delay = 50
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error
        this.#parts.onTrouble(error)
        await sleep(delay, undefined, { signal: this.#signal }).catch(() => {})
        delay = Math.min(delay * 2, 1000)
      }
    }
  }

  /** @returns whether anything was read */
  async #round(): Promise<boolean> {
    let moved = false
    for (let partition = 0; partition < this.checkpoint!.at.length && !this.#signal.aborted; partition++) {
      const position = this.checkpoint!.at[partition]!
      const news =
        this.#parts.recent[partition]!.after(position, this.#most) ?? (await this.#check(partition, position))
      if (!news || news.position.offset === position.offset) continue
      moved = true
      await this.#deliver(partition, news)
    }
    return moved
  }

  async #check(
    partition: number,
    position: LogPosition,
  ): Promise<{ events: Recorded[]; position: LogPosition } | undefined> {
    const { isWriter, recent, reader, onPlace } = this.#parts
    const now = performance.now()
    if (isWriter() && recent[partition]!.endsAt(position) && now - this.#lastLook < LOOK_AGAIN_MS) return undefined
    const folded = await reader.step(partition, position, this.#most)
    this.#lastLook = now
    onPlace(partition, folded.position)
    return folded
  }

  async #deliver(partition: number, news: { events: Recorded[]; position: LogPosition }): Promise<void> {
    const { at, logId } = this.checkpoint!
    const next = this.#parts.reader.trust({
      logId: logId || (await this.#parts.reader.logId()),
      at: at.map((each, index) => (index === partition ? news.position : each)),
    })
    if (news.events.length > 0) await this.#on(news.events, next)
    this.checkpoint = next
  }

  async #wait(): Promise<void> {
    // Stopped during the round: nobody would wake this any more.
    if (this.#signal.aborted) return
    const { recent, isWriter, store } = this.#parts
    // A writer waits at each event: with a timer alone, since aborting what sleeps makes an error and its stack.
    const elsewhere = isWriter() ? undefined : new AbortController()
    const releases: (() => void)[] = []
    let again: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        this.#wake = resolve
        for (const each of recent) releases.push(each.onAdd(resolve))
        if (elsewhere) {
          const offsets = this.checkpoint!.at.map((position) => position.offset)
          store.awaitMore(offsets, elsewhere.signal).then(resolve, reject)
        } else again = setTimeout(resolve, LOOK_AGAIN_MS)
      })
    } finally {
      clearTimeout(again)
      elsewhere?.abort()
      for (const release of releases) release()
    }
  }
}
