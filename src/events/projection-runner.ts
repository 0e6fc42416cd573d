import type pg from 'pg'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from '../shared/clock.ts'
import type { Service } from '../shared/service.ts'
import {
  beginning,
  EventLogError,
  hasReached,
  isBelow,
  type Checkpoint,
  type Position,
  type Recorded,
  type Subscription,
  type EventReader,
  type LogFeed,
  type LogEnd,
} from './event-log.ts'
import { memoryOf } from './envelope.ts'
import type { DeadLetter, Projection, ProjectionCondition, ProjectionLag } from './projection.ts'
import { ProjectionApplier } from './projection-applier.ts'
import { CheckpointMoved, ProjectionStore, eventsBelow, type StatementReport } from './projection-store.ts'
import { sqlStateOf } from './postgres/database-error.ts'
import { WaitHeap } from './wait-heap.ts'

export interface ProjectionRunnerOptions {
  readonly log: EventReader & LogFeed & LogEnd
  readonly projection: Projection
  readonly database: pg.ClientConfig
  /** Schema of the read models. @default 'm' */
  readonly schema?: string
  readonly clock: Clock
  /**
   * How long a batch waits for more events when no read waits for it, in milliseconds: a transaction costs the same for
   * one event and for fifty. @default 75
   */
  readonly lingerMs?: number
  /** Number of events that end this wait. @default 500 */
  readonly enough?: number
  /** Events in one transaction at most. @default 2000 */
  readonly maxBatch?: number
  /** Called when an operator should know something; the loop continues by itself. */
  readonly onTrouble?: (trouble: ProjectionTrouble) => void
  /** Called when a read had to wait for its writes. */
  readonly onWait?: (wait: { readonly passed: boolean; readonly milliseconds: number }) => void
  /** Called after each commit. */
  readonly onBatch?: (batch: ProjectedBatch) => void
}

export interface ProjectedBatch {
  readonly events: number
  readonly recorded: readonly Recorded[]
  /** From the start of folding to the answer of the commit. */
  readonly milliseconds: number
  /** From the arrival of the first events: how long they waited for more. */
  readonly waitedMillis: number
  readonly statements: readonly StatementReport[]
}

type ProjectionTrouble =
  | { readonly kind: 'dead_letter'; readonly letter: DeadLetter }
  /** The batch is tried again after a pause. */
  | { readonly kind: 'retry'; readonly error: unknown }
  /** The log does not match the checkpoint; nothing more is applied. */
  | { readonly kind: 'stopped'; readonly error: unknown }

export interface ProjectionRunner extends Service {
  /** The end of the events that are in the read models. */
  readonly committed: Checkpoint
  /** Events that could not be applied and wait to be repaired. */
  readonly deadLetters: number
  /** Whether the projection follows the log, retries, or has stopped. */
  readonly condition: ProjectionCondition
  /**
   * Registers a listener that is called after each commit with the new checkpoint.
   * @returns a function that removes the listener
   */
  onCommitted(listener: (committed: Checkpoint) => void): () => void
  /**
   * Waits, without polling, until the read models hold everything up to a position (the event at it included) or below
   * a checkpoint.
   * @returns false when the time is over first
   */
  waitFor(target: Position | Checkpoint, timeoutMs: number): Promise<boolean>
  /**
   * Waits until the read models hold all events that are valid now, from any writer: asks the log where it ends.
   * @returns false when the time is over first, or the log does not answer
   */
  barrier(timeoutMs: number): Promise<boolean>
  /** How far the read models are behind. Never rejects: without the log it counts the delivered events. */
  lag(): Promise<ProjectionLag>
}

interface Delivery {
  readonly events: readonly Recorded[]
  readonly next: Checkpoint
  /** Memory of its events. */
  readonly bytes: number
  /** Monotonic time of its arrival, milliseconds. */
  readonly at: number
}

/** Limit of delivered events in memory; further events wait in the log. */
const MAX_WAITING_BYTES = 32 << 20
/** Limit of one transaction: its rows are built at once. */
const MAX_BATCH_BYTES = 4 << 20

interface TipQuestion {
  readonly asked: Promise<Checkpoint>
  next?: Promise<Checkpoint>
}

/** Waiting time for the log's end in `lag`; without it the delivered events are counted. */
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
  /**
   * By log partition: the first waits for offsets (positions), the second for numbers of valid events (checkpoints).
   */
  readonly #offsetWaiters: WaitHeap[] = []
  readonly #countWaiters: WaitHeap[] = []
  #committed: Checkpoint = beginning()
  #applier: ProjectionApplier | undefined
  #store: ProjectionStore | undefined
  #subscription: Subscription | undefined
  #deliveries: Delivery[] = []
  #delivered = 0
  #deliveredBytes = 0
  #wake: () => void = () => undefined
  #room: () => void = () => undefined
  #tip: TipQuestion | undefined
  /** Most events in a transaction. Smaller after a failed one, which may have taken the database too long. */
  #mostAtOnce: number
  /** The batch being applied, and the time of its oldest event. */
  #applying: { readonly events: number; readonly time: string; readonly waited: number } | undefined
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #loop: Promise<void> | undefined
  #stopped = false
  #receiving = false
  #condition: ProjectionCondition = { kind: 'following' }

  constructor(options: ProjectionRunnerOptions) {
    this.#options = { lingerMs: 75, enough: 500, maxBatch: 2000, schema: 'm', ...options }
    this.#mostAtOnce = this.#options.maxBatch
  }

  get committed(): Checkpoint {
    return this.#committed
  }

  get deadLetters(): number {
    return this.#applier?.deadLetters ?? 0
  }

  get condition(): ProjectionCondition {
    return this.#condition
  }

  /** Resolves when the checkpoint is known; the loop then catches up. */
  start(): Promise<void> {
    return (this.#starting ??= this.#open().then(
      () => {
        this.#loop = this.#run()
      },
      (error: unknown) => {
        // The database may be available at the next start.
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
    // Compares counts, not offsets: the log may end with records that do not count, and those are never delivered.
    return target.at.flatMap((position, partition) =>
      position.state.count <= countAt(this.#committed, partition)
        ? []
        : [heapAt(this.#countWaiters, partition).wait(BigInt(position.state.count), timeoutMs)],
    )
  }

  async barrier(timeoutMs: number): Promise<boolean> {
    const started = this.#options.clock.monotonicMs()
    const tip = await this.#within(timeoutMs, () => this.#askTip())
    if (!tip) return false
    return this.waitFor(tip, Math.max(0, timeoutMs - (this.#options.clock.monotonicMs() - started)))
  }

  async lag(): Promise<ProjectionLag> {
    const tip = await this.#within(LAG_WAIT_MS, () => this.#askTip())
    const events = tip
      ? Math.max(0, eventsBelow(tip) - eventsBelow(this.#committed))
      : this.#delivered + (this.#applying?.events ?? 0)
    if (events === 0 && this.#condition.kind !== 'stopped') return { events, oldestMillis: 0 }
    const oldest = (await this.#oldestWaiting()) ?? (this.#condition.kind === 'following' ? '' : this.#condition.since)
    return { events, oldestMillis: oldest === '' ? 0 : Math.max(0, this.#options.clock.now() - Date.parse(oldest)) }
  }

  /** Time of the first event that is not in the read models; between two attempts only the log has it. */
  async #oldestWaiting(): Promise<string | undefined> {
    const here = this.#applying?.time ?? this.#deliveries[0]?.events[0]?.time
    if (here !== undefined) return here
    const read = await this.#within(LAG_WAIT_MS, () => this.#options.log.read(this.#committed, 1))
    return read?.events[0]?.time
  }

  /** Awaits an answer. @returns undefined when there is none within the time, or it fails */
  async #within<T>(timeoutMs: number, ask: () => Promise<T>): Promise<T | undefined> {
    const timer = new AbortController()
    const over = sleep(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined)
    try {
      return await Promise.race([ask().catch(() => undefined), over])
    } finally {
      timer.abort()
    }
  }

  /**
   * Asks the log for its end. A caller during a running question shares the next one with others: it begins after the
   * call, and so covers all events that were valid then.
   */
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
    const { database, schema, projection, log, onTrouble, onBatch } = this.#options
    this.#store = await ProjectionStore.connect(database, schema, projection)
    this.#applier = await ProjectionApplier.open({
      store: this.#store,
      projection,
      log,
      maxBatch: this.#mostAtOnce,
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
    this.#deliveredBytes = 0
    // Another process applied the batch that failed here.
    if (eventsBelow(this.#applier.committed) > eventsBelow(this.#committed)) this.#moves()
    this.#settle(this.#applier.committed)
    this.#receiving = true
    const subscription = log.subscribe(this.#applier.committed, (events, next) => this.#receive(events, next))
    this.#subscription = subscription
    subscription.done.catch((error: unknown) => {
      onTrouble?.({ kind: 'stopped', error })
      this.#condition = { kind: 'stopped', since: this.#now(), reason: reasonOf(error) }
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

  #now(): string {
    return new Date(this.#options.clock.now()).toISOString()
  }

  #moves(): void {
    if (this.#condition.kind !== 'stopped') this.#condition = { kind: 'following' }
  }

  /** Reports a failure. `since` stays the time of the first of several failures. */
  #fails(error: unknown): void {
    this.#options.onTrouble?.({ kind: 'retry', error })
    const since = this.#condition.kind === 'retrying' ? this.#condition.since : this.#now()
    if (this.#condition.kind !== 'stopped') this.#condition = { kind: 'retrying', since, reason: reasonOf(error) }
  }

  /** Receives a batch. The subscription waits while a full batch waits here, so memory is bounded. */
  async #receive(events: readonly Recorded[], next: Checkpoint): Promise<void> {
    if (!this.#receiving) return
    const bytes = events.reduce((sum, event) => sum + memoryOf(event), 0)
    this.#deliveries.push({ events, next, bytes, at: this.#options.clock.monotonicMs() })
    this.#delivered += events.length
    this.#deliveredBytes += bytes
    this.#wake()
    if (this.#isFull()) await new Promise<void>((resolve) => (this.#room = resolve))
  }

  #isFull(): boolean {
    return this.#delivered >= this.#options.maxBatch || this.#deliveredBytes >= MAX_WAITING_BYTES
  }

  async #run(): Promise<void> {
    let pause = RETRY_MIN_MS
    while (!this.#stopped) {
      try {
        await this.#linger()
        if (this.#stopped) return
        if (await this.#applyWaiting()) this.#moves()
        pause = RETRY_MIN_MS
      } catch (error) {
        // Cached state may be wrong now, and after a lost connection the outcome of a commit is unknown: begin again
        // from what the database has.
        if (!(error instanceof CheckpointMoved)) {
          this.#fails(error)
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
        this.#fails(error)
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

  /**
   * Applies one batch of the delivered events.
   * @returns whether there was one
   */
  async #applyWaiting(): Promise<boolean> {
    const { maxBatch, clock } = this.#options
    const events: Recorded[] = []
    const arrived = this.#deliveries[0]?.at ?? clock.monotonicMs()
    let bytes = 0
    let next: Checkpoint | undefined
    for (let delivery = this.#deliveries[0]; delivery; delivery = this.#deliveries[0]) {
      const tooMuch = events.length + delivery.events.length > maxBatch || bytes + delivery.bytes > MAX_BATCH_BYTES
      if (next && tooMuch) break
      this.#deliveries.shift()
      this.#delivered -= delivery.events.length
      this.#deliveredBytes -= delivery.bytes
      bytes += delivery.bytes
      events.push(...delivery.events)
      next = delivery.next
    }
    if (!this.#isFull()) this.#room()
    if (!next || hasReached(this.#committed, next)) return false
    const waited = clock.monotonicMs() - arrived
    this.#applying = events[0] && { events: events.length, time: events[0].time, waited }
    try {
      await this.#applier!.apply(events, next)
      this.#mostAtOnce = Math.min(this.#mostAtOnce * 2, maxBatch)
      return true
    } catch (error) {
      this.#mostAtOnce = Math.max(1, Math.ceil(this.#applier!.tried / 4))
      throw error
    } finally {
      this.#applying = undefined
    }
  }

  #settle(committed: Checkpoint): void {
    this.#committed = committed
    committed.at.forEach((position, partition) => {
      this.#offsetWaiters[partition]?.release(position.offset)
      this.#countWaiters[partition]?.release(BigInt(position.state.count))
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

/** A reason that any user may see: messages of a database quote the data that it refuses. */
function reasonOf(error: unknown): string {
  if (error instanceof EventLogError) return error.message
  const state = sqlStateOf(error)
  if (state !== undefined) return `SQLSTATE ${state}`
  return error instanceof Error ? error.name : 'unknown'
}
