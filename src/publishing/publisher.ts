import { setTimeout as sleep } from 'node:timers/promises'
import type { Checkpoint, LogFeed, Recorded, StreamReader, Subscription } from '../events/event-log.ts'
import { howToRetry } from '../shared/quipu-error.ts'
import type { PublishedCheckpoints } from './published-checkpoints.ts'
import type { Destination, Message, Publication } from './publication.ts'
import { FactKeeper } from './query-facts.ts'

export interface PublisherDeps {
  /** The name of the publisher's checkpoint. */
  readonly name: string
  readonly log: LogFeed & StreamReader
  /** Where publishing begins if nothing of this log was published yet. */
  readonly begin: Checkpoint
  readonly checkpoints: PublishedCheckpoints
  readonly publication: Publication
  readonly destination: Destination
  /** Called with the outcome of messages. `retried` counts attempts. */
  readonly onOutcome: (outcome: 'sent' | 'refused' | 'retried', count: number) => void
  /** Called with the reason when a message is tried again, or left out. */
  readonly onTrouble: (what: 'again' | 'left_out', reason: unknown) => void
  /** Called when publishing has ended because the log does not match its checkpoint. */
  readonly onEnd: (error: unknown) => void
}

export interface Publisher {
  /**
   * Age of the oldest event that was read and not published, 0 if there is none. After publishing has ended, the time
   * since then.
   */
  lagMillis(): number
  /** Stops. Messages in progress are given up; the next publisher sends them again. */
  stop(): Promise<void>
}

/** The maximum number of events in memory. Nothing more is read while they are not published. */
const MOST_EVENTS = 200
/** Size of a batch, which is held until it is accepted. A single message may be longer. */
const ENOUGH_CHARACTERS = 2 << 20
/** Pause between two saves of the checkpoint. After a crash, messages since the last save are sent again. */
const SAVE_AFTER_MS = 500
const LAST_SAVE_MS = 1_000
/** After this long, the event loop is free for other work. */
const SLICE_MS = 4
const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 30_000

/**
 * Publishes a log to another system, in its order and at least once: the checkpoint is saved after messages are
 * accepted. It reads like any other subscriber, so nothing waits for it, and events that are not published yet stay in
 * the log.
 */
export function startPublisher(deps: PublisherDeps): Publisher {
  const running = new RunningPublisher(deps)
  const done = running.run()
  done.catch(deps.onEnd)
  return {
    lagMillis: () => running.lagMillis(),
    async stop() {
      await running.stop()
      await done.catch(() => {})
    },
  }
}

class RunningPublisher {
  readonly #deps: PublisherDeps
  readonly #facts: FactKeeper
  readonly #stopping = new AbortController()
  #subscription: Subscription | undefined
  #saved: Checkpoint | undefined
  #reported: Checkpoint | undefined
  #timer: NodeJS.Timeout | undefined
  /** The time of the oldest event in memory. */
  #oldest: number | undefined

  constructor(deps: PublisherDeps) {
    this.#deps = deps
    this.#facts = new FactKeeper(deps.log)
  }

  async run(): Promise<void> {
    const { log, begin, checkpoints, name } = this.#deps
    const from = await this.#persist(() => checkpoints.load(name, begin))
    if (from === undefined) return
    this.#saved = this.#reported = from
    this.#subscription = log.subscribe(from, (batch, next) => this.#take(batch, next), MOST_EVENTS)
    if (this.#stopping.signal.aborted) await this.#subscription.stop()
    try {
      await this.#subscription.done
    } catch (error) {
      this.#oldest ??= Date.now()
      throw error
    }
  }

  lagMillis(): number {
    return this.#oldest === undefined ? 0 : Math.max(0, Date.now() - this.#oldest)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    clearTimeout(this.#timer)
    await this.#deps.destination.close()
    await this.#subscription?.stop()
    clearTimeout(this.#timer)
    await Promise.race([this.#save().catch(() => {}), sleep(LAST_SAVE_MS, undefined, { ref: false })])
  }

  async #take(batch: readonly Recorded[], next: Checkpoint): Promise<void> {
    let messages: Message[] = []
    let characters = 0
    let begun = performance.now()
    for (const event of batch) {
      if (messages.length === 0) this.#oldest = Date.parse(event.time)
      const message = await this.#publishMessage(event, this.#deps.publication)
      if (message !== undefined) {
        messages.push(message)
        characters += message.text.length
      }
      if (characters >= ENOUGH_CHARACTERS) {
        if (!(await this.#deliver(messages))) return
        messages = []
        characters = 0
      }
      if (performance.now() - begun < SLICE_MS) continue
      await new Promise((resolve) => setImmediate(resolve))
      begun = performance.now()
    }
    if (!(await this.#deliver(messages))) return
    this.#oldest = undefined
    this.#reported = next
    this.#timer ??= this.#saveSoon()
  }

  /**
   * Makes the message of an event. An event without a possible message is left out and reported: it must not block all
   * others.
   */
  async #publishMessage(event: Recorded, publication: Publication): Promise<Message | undefined> {
    try {
      const facts = this.#facts.take(event)
      if (!publication.types.has(event.type)) return undefined
      return await this.#persist(() => publication.messageOf(event, facts))
    } catch (error) {
      this.#leaveOut(error)
      return undefined
    }
  }

  #leaveOut(reason: unknown): void {
    this.#deps.onOutcome('refused', 1)
    this.#deps.onTrouble('left_out', reason)
  }

  /** @returns false if the publisher was stopped before all messages were accepted */
  async #deliver(messages: readonly Message[]): Promise<boolean> {
    const { destination, onOutcome, onTrouble } = this.#deps
    let pause = FIRST_PAUSE_MS
    for (let rest = messages; rest.length > 0;) {
      if (this.#stopping.signal.aborted) return false
      const { taken, refused, trouble } = await destination.deliver(rest)
      if (this.#stopping.signal.aborted && taken < rest.length) return false
      if (taken > refused.length) onOutcome('sent', taken - refused.length)
      for (const reason of refused) this.#leaveOut(reason)
      rest = rest.slice(taken)
      if (taken > 0) pause = FIRST_PAUSE_MS
      if (rest.length === 0) break
      onOutcome('retried', 1)
      onTrouble('again', trouble)
      await this.#pause(pause)
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
    }
    return true
  }

  /** Retries while a dependency is away. @returns undefined once the publisher was stopped */
  async #persist<T>(ask: () => Promise<T>): Promise<T | undefined> {
    for (let pause = FIRST_PAUSE_MS; !this.#stopping.signal.aborted; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        return await ask()
      } catch (error) {
        if (howToRetry(error) === 'never') throw error
        this.#deps.onTrouble('again', error)
      }
      await this.#pause(pause)
    }
    return undefined
  }

  async #pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { ref: false, signal: this.#stopping.signal }).catch(() => {})
  }

  async #trySave(): Promise<void> {
    await this.#save().catch((error: unknown) => this.#deps.onTrouble('again', error))
    const isBehind = this.#reported !== this.#saved && !this.#stopping.signal.aborted
    this.#timer = isBehind ? this.#saveSoon() : undefined
  }

  #saveSoon(): NodeJS.Timeout {
    return setTimeout(() => void this.#trySave(), SAVE_AFTER_MS).unref()
  }

  async #save(): Promise<void> {
    const reported = this.#reported
    if (reported === undefined || reported === this.#saved) return
    await this.#deps.checkpoints.save(this.#deps.name, reported)
    this.#saved = reported
  }
}
