import { setTimeout as sleep } from 'node:timers/promises'
import { LogUnavailable, type Checkpoint, type ReadFrom, type Recorded, type Subscription } from './event-log.ts'
import type { LogReader } from './log-reader.ts'
import type { RecentEvents } from './recent-events.ts'
import type { LogPosition, RecordStore } from './record-store.ts'

export interface SubscriptionDeps {
  readonly store: RecordStore
  readonly reader: LogReader
  /** One for each log partition. */
  readonly recent: readonly RecentEvents[]
  /** Whether this process writes the log: then new events come from its memory. */
  readonly isWriter: () => boolean
  readonly onPosition: (partition: number, position: LogPosition) => void
  readonly onTrouble: (error: Error) => void
  /** Most events in one delivery. */
  readonly mostEvents: number | undefined
}

/** Most events in one delivery, unless the subscriber says otherwise. */
const MOST_EVENTS = 2000
/**
 * How often subscriptions in the writer's process read the log itself: the process may have been fenced while it slept.
 */
const LOOK_AGAIN_MS = 1000

/** Follows the log in a loop that waits for its callback. Ends at the first error that waiting cannot repair. */
export function startSubscription(
  deps: SubscriptionDeps,
  from: ReadFrom,
  on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>,
): Subscription {
  const stopping = new AbortController()
  const follower = new Follower(deps, on, stopping.signal)
  const done = follower.run(from)
  // A caller that ignores `done` must not cause an unhandled rejection.
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
  readonly #deps: SubscriptionDeps
  readonly #on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>
  readonly #signal: AbortSignal
  readonly #most: number
  #lastLook = 0
  #wake: () => void = () => {}

  constructor(
    deps: SubscriptionDeps,
    on: (batch: readonly Recorded[], next: Checkpoint) => Promise<void>,
    signal: AbortSignal,
  ) {
    this.#deps = deps
    this.#on = on
    this.#most = deps.mostEvents ?? MOST_EVENTS
    this.#signal = signal
    signal.addEventListener('abort', () => this.#wake())
  }

  async run(from: ReadFrom): Promise<void> {
    for (let delay = 50; !this.#signal.aborted;) {
      try {
        this.checkpoint ??= await this.#deps.reader.begin(from)
        if (!(await this.#round())) await this.#wait()
        delay = 50
      } catch (error) {
        if (!(error instanceof LogUnavailable)) throw error
        this.#deps.onTrouble(error)
        await sleep(delay, undefined, { signal: this.#signal }).catch(() => {})
        delay = Math.min(delay * 2, 1000)
      }
    }
  }

  /** Reads and delivers each log partition once. @returns whether anything was read */
  async #round(): Promise<boolean> {
    let moved = false
    for (let partition = 0; partition < this.checkpoint!.at.length && !this.#signal.aborted; partition++) {
      const position = this.checkpoint!.at[partition]!
      const news = this.#deps.recent[partition]!.after(position, this.#most) ?? (await this.#check(partition, position))
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
    const { isWriter, recent, reader, onPosition } = this.#deps
    const now = performance.now()
    if (isWriter() && recent[partition]!.endsAt(position) && now - this.#lastLook < LOOK_AGAIN_MS) return undefined
    const folded = await reader.step(partition, position, this.#most)
    this.#lastLook = now
    onPosition(partition, folded.position)
    return folded
  }

  async #deliver(partition: number, news: { events: Recorded[]; position: LogPosition }): Promise<void> {
    const { at, logId } = this.checkpoint!
    const next = this.#deps.reader.trust({
      logId: logId || (await this.#deps.reader.logId()),
      at: at.map((each, index) => (index === partition ? news.position : each)),
    })
    if (news.events.length > 0) await this.#on(news.events, next)
    this.checkpoint = next
  }

  async #wait(): Promise<void> {
    // When stopped during the round, nothing would wake this wait.
    if (this.#signal.aborted) return
    const { recent, isWriter, store } = this.#deps
    // A writer waits at each event, so it uses only a timer: aborting a sleep creates an error with a stack.
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
