import type pg from 'pg'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../shared/clock.ts'
import type { Service } from '../shared/service.ts'
import {
  beginning,
  hasReached,
  isBelow,
  type Checkpoint,
  type EventLog,
  type Position,
  type Recorded,
  type Subscription,
} from './event-log.ts'
import type { DeadLetter, Projection, ProjectionLag } from './projection.ts'
import { ProjectionApplier } from './projection-applier.ts'
import { CheckpointMoved, ProjectionStore, eventsBelow, type StatementTold } from './projection-store.ts'
import { WaitHeap } from './wait-heap.ts'

export interface ProjectionRunnerOptions {
  readonly log: EventLog
  readonly projection: Projection
  readonly database: pg.ClientConfig
  /** Schema of the read models. @default 'm' */
  readonly schema?: string
  readonly clock: Clock
  /**
   * How long a batch waits for more events when nobody waits for it, in milliseconds: a transaction costs the same for
   * one event and for fifty. @default 75
   */
  readonly lingerMs?: number
  /** Events that end the lingering. @default 500 */
  readonly enough?: number
  /** Events in one transaction at most. @default 2000 */
  readonly maxBatch?: number
  /** Things an operator should know; the loop goes on by itself. */
  readonly onTrouble?: (trouble: ProjectionTrouble) => void
  /** A read had to wait for its writes. */
  readonly onWait?: (wait: { readonly passed: boolean; readonly milliseconds: number }) => void
  /** After each commit. */
  readonly onBatch?: (batch: ProjectedBatch) => void
}

export interface ProjectedBatch {
  readonly events: number
  readonly recorded: readonly Recorded[]
  /** From folding to the commit's answer. */
  readonly milliseconds: number
  /** From the arrival of its first events: they waited for company. */
  readonly waitedMillis: number
  readonly statements: readonly StatementTold[]
}

export type ProjectionTrouble =
  | { readonly kind: 'dead_letter'; readonly letter: DeadLetter }
  /** Tried again after a pause. */
  | { readonly kind: 'retry'; readonly error: unknown }
  /** The log is not what the checkpoint says; nothing more is applied. */
  | { readonly kind: 'stopped'; readonly error: unknown }

export interface ProjectionRunner extends Service {
  /** What is in the read models. */
  readonly committed: Checkpoint
  /** Events that could not be applied and wait to be mended. */
  readonly deadLetters: number
  /** Called after each commit with what is now in the read models. @returns a function that ends it */
  onCommitted(listener: (committed: Checkpoint) => void): () => void
  /**
   * Waits, without polling, until the read models hold everything up to a position (the event at it included) or below
   * a checkpoint. @returns false when the time is over first
   */
  waitFor(target: Position | Checkpoint, timeoutMs: number): Promise<boolean>
  /**
   * Waits until the read models hold all that is valid now, whoever wrote it: asks the log where it ends.
   * @returns false when the time is over first, or the log does not answer
   */
  barrier(timeoutMs: number): Promise<boolean>
  /** Never rejects: with a log that is away, what was delivered counts. */
  lag(): Promise<ProjectionLag>
}

interface Delivery {
  readonly events: readonly Recorded[]
  readonly next: Checkpoint
  /** Monotonic time of its arrival, milliseconds. */
  readonly at: number
}

interface TipQuestion {
  readonly asked: Promise<Checkpoint>
  next?: Promise<Checkpoint>
}

/** For figures the log is not waited for long: without it the events at hand are counted. */
const LAG_WAIT_MS = 1000
const RETRY_MIN_MS = 20
const RETRY_MAX_MS = 2000

export function createProjectionRunner(options: ProjectionRunnerOptions): ProjectionRunner {
  return new Runner(options)
}

class Runner implements ProjectionRunner {
  readonly #options: Required<Pick<ProjectionRunnerOptions, 'lingerMs' | 'enough' | 'maxBatch' | 'schema'>> &
    ProjectionRunnerOptions
  readonly #listeners = new Set<(committed: Checkpoint) => void>()
  /** By log partition: offsets for positions, numbers of valid events for checkpoints. */
  readonly #offsetWaiters: WaitHeap[] = []
  readonly #countWaiters: WaitHeap[] = []
  #committed: Checkpoint = beginning()
  #applier: ProjectionApplier | undefined
  #store: ProjectionStore | undefined
  #subscription: Subscription | undefined
  #deliveries: Delivery[] = []
  #delivered = 0
  #wake: () => void = () => undefined
  #room: () => void = () => undefined
  #tip: TipQuestion | undefined
  /** The batch being applied, and the time of its oldest event. */
  #applying: { readonly events: number; readonly time: string; readonly waited: number } | undefined
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #loop: Promise<void> | undefined
  #stopped = false
  #receiving = false

  constructor(options: ProjectionRunnerOptions) {
    this.#options = { lingerMs: 75, enough: 500, maxBatch: 2000, schema: 'm', ...options }
  }

  get committed(): Checkpoint {
    return this.#committed
  }

  get deadLetters(): number {
    return this.#applier?.deadLetters ?? 0
  }

  /** Resolves when the checkpoint is known; catching up is the loop's business. */
  start(): Promise<void> {
    return (this.#starting ??= this.#open().then(
      () => {
        this.#loop = this.#run()
      },
      (error: unknown) => {
        // The database may be there the next time.
        this.#starting = undefined
        throw error
      },
    ))
  }

  stop(): Promise<void> {
    return (this.#stopping ??= this.#stop())
  }

  onCommitted(listener: (committed: Checkpoint) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async waitFor(target: Position | Checkpoint, timeoutMs: number): Promise<boolean> {
    const waits = this.#waitsFor(target, timeoutMs)
    if (waits.length === 0) return true
    const { clock, onWait } = this.#options
    const started = clock.monotonicMs()
    this.#wake()
    const passed = (await Promise.all(waits)).every(Boolean)
    onWait?.({ passed, milliseconds: clock.monotonicMs() - started })
    return passed
  }

  #waitsFor(target: Position | Checkpoint, timeoutMs: number): Promise<boolean>[] {
    if ('offset' in target)
      return isBelow(target, this.#committed)
        ? []
        : [heapAt(this.#offsetWaiters, target.partition).wait(target.offset + 1n, timeoutMs)]
    // Counted, not by offset: the log may end with records that do not count, which nobody delivers.
    return target.at.flatMap((place, partition) =>
      place.state.count <= countAt(this.#committed, partition)
        ? []
        : [heapAt(this.#countWaiters, partition).wait(BigInt(place.state.count), timeoutMs)],
    )
  }

  async barrier(timeoutMs: number): Promise<boolean> {
    const started = this.#options.clock.monotonicMs()
    const tip = await this.#tipWithin(timeoutMs)
    if (!tip) return false
    return this.waitFor(tip, Math.max(0, timeoutMs - (this.#options.clock.monotonicMs() - started)))
  }

  async lag(): Promise<ProjectionLag> {
    const tip = await this.#tipWithin(LAG_WAIT_MS)
    const oldest = this.#applying?.time ?? this.#deliveries[0]?.events[0]?.time
    const events = tip
      ? Math.max(0, eventsBelow(tip) - eventsBelow(this.#committed))
      : this.#delivered + (this.#applying?.events ?? 0)
    return {
      events,
      oldestMillis: events > 0 && oldest ? Math.max(0, this.#options.clock.now() - Date.parse(oldest)) : 0,
    }
  }

  /** @returns undefined when the log does not say within the time */
  async #tipWithin(timeoutMs: number): Promise<Checkpoint | undefined> {
    const timer = new AbortController()
    const over = sleep(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined)
    try {
      return await Promise.race([this.#askTip().catch(() => undefined), over])
    } finally {
      timer.abort()
    }
  }

  /** One question to the log serves all who ask while it runs; who comes during one shares the next, which begins later. */
  #askTip(): Promise<Checkpoint> {
    const ask = (): Promise<Checkpoint> => {
      const current: TipQuestion = {
        asked: this.#options.log.tip().finally(() => {
          if (this.#tip === current && !current.next) this.#tip = undefined
        }),
      }
      this.#tip = current
      return current.asked
    }
    const current = this.#tip
    if (!current) return ask()
    return (current.next ??= current.asked.then(ask, ask))
  }

  async #open(): Promise<void> {
    const { database, schema, projection, log, maxBatch, onTrouble, onBatch } = this.#options
    this.#store = await ProjectionStore.connect(database, schema, projection)
    this.#applier = await ProjectionApplier.open({
      store: this.#store,
      projection,
      log,
      maxBatch,
      onDeadLetter: (letter) => onTrouble?.({ kind: 'dead_letter', letter }),
      onCommitted: (committed, recorded, milliseconds, statements) => {
        onBatch?.({
          events: recorded.length,
          recorded,
          milliseconds,
          waitedMillis: this.#applying?.waited ?? 0,
          statements,
        })
        this.#settle(committed)
      },
    })
    this.#deliveries = []
    this.#delivered = 0
    this.#settle(this.#applier.committed)
    this.#receiving = true
    const subscription = log.subscribe(this.#applier.committed, (events, next) => this.#receive(events, next))
    this.#subscription = subscription
    subscription.done.catch((error: unknown) => {
      onTrouble?.({ kind: 'stopped', error })
      this.#stopped = true
      this.#wake()
    })
  }

  async #close(): Promise<void> {
    this.#receiving = false
    this.#deliveries = []
    this.#room()
    await this.#subscription?.stop().catch(() => undefined)
    await this.#store?.close()
    this.#store = undefined
  }

  async #stop(): Promise<void> {
    await this.#starting?.catch(() => undefined)
    this.#stopped = true
    this.#receiving = false
    this.#wake()
    this.#room()
    await this.#loop
    await this.#close()
    for (const heap of [...this.#offsetWaiters, ...this.#countWaiters]) heap?.abandon()
  }

  /** The subscription waits while a full batch is waiting here, so memory is bounded. */
  async #receive(events: readonly Recorded[], next: Checkpoint): Promise<void> {
    if (!this.#receiving) return
    this.#deliveries.push({ events, next, at: this.#options.clock.monotonicMs() })
    this.#delivered += events.length
    this.#wake()
    if (this.#delivered >= this.#options.maxBatch) await new Promise<void>((resolve) => (this.#room = resolve))
  }

  async #run(): Promise<void> {
    let pause = RETRY_MIN_MS
    while (!this.#stopped) {
      try {
        await this.#linger()
        if (this.#stopped) return
        await this.#applyWaiting()
        pause = RETRY_MIN_MS
      } catch (error) {
        // Whatever was cached may be wrong now, and a lost connection leaves a commit's outcome open: begin again from
        // what the database has.
        if (!(error instanceof CheckpointMoved)) {
          this.#options.onTrouble?.({ kind: 'retry', error })
          await sleep(pause)
          pause = Math.min(pause * 2, RETRY_MAX_MS)
        }
        await this.#reopen()
      }
    }
  }

  async #reopen(): Promise<void> {
    let pause = RETRY_MIN_MS
    while (!this.#stopped) {
      await this.#close()
      try {
        await this.#open()
        return
      } catch (error) {
        this.#options.onTrouble?.({ kind: 'retry', error })
        await sleep(pause)
        pause = Math.min(pause * 2, RETRY_MAX_MS)
      }
    }
  }

  async #linger(): Promise<void> {
    const { clock, lingerMs, enough } = this.#options
    while (!this.#stopped) {
      const first = this.#deliveries[0]
      const left = first ? lingerMs - (clock.monotonicMs() - first.at) : Infinity
      if (first && (left <= 0 || this.#delivered >= enough || this.#someoneWaits())) return
      await this.#woken(left)
    }
  }

  #woken(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = timeoutMs === Infinity ? undefined : setTimeout(resolve, timeoutMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #someoneWaits(): boolean {
    return [...this.#offsetWaiters, ...this.#countWaiters].some((heap) => heap && heap.size > 0)
  }

  /** Takes one batch of what was delivered. */
  async #applyWaiting(): Promise<void> {
    const { maxBatch, clock } = this.#options
    const events: Recorded[] = []
    const arrived = this.#deliveries[0]?.at ?? clock.monotonicMs()
    let next: Checkpoint | undefined
    for (let delivery = this.#deliveries[0]; delivery; delivery = this.#deliveries[0]) {
      if (next && events.length + delivery.events.length > maxBatch) break
      this.#deliveries.shift()
      this.#delivered -= delivery.events.length
      events.push(...delivery.events)
      next = delivery.next
    }
    if (this.#delivered < maxBatch) this.#room()
    if (!next || hasReached(this.#committed, next)) return
    const waited = clock.monotonicMs() - arrived
    this.#applying = events[0] && { events: events.length, time: events[0].time, waited }
    try {
      await this.#applier!.apply(events, next)
    } finally {
      this.#applying = undefined
    }
  }

  #settle(committed: Checkpoint): void {
    this.#committed = committed
    committed.at.forEach((place, partition) => {
      this.#offsetWaiters[partition]?.release(place.offset)
      this.#countWaiters[partition]?.release(BigInt(place.state.count))
    })
    for (const listener of this.#listeners) listener(committed)
  }
}

function heapAt(heaps: WaitHeap[], partition: number): WaitHeap {
  return (heaps[partition] ??= new WaitHeap())
}

function countAt(checkpoint: Checkpoint, partition: number): number {
  return checkpoint.at[partition]?.state.count ?? 0
}
