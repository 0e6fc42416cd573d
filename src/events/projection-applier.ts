import { isBelow, type Checkpoint, type EventLog, type Recorded, type EventReader } from './event-log.ts'
import { eventKey, type DeadLetter, type Folded, type Projection } from './projection.ts'
import { eventsBelow, type ProjectionStore, type StatementReport } from './projection-store.ts'
import { isNeverTaken } from './postgres/database-error.ts'

export interface ApplierOptions {
  readonly store: ProjectionStore
  readonly projection: Projection
  readonly log: EventReader
  /** Most events in one transaction. */
  readonly maxBatch: number
  readonly onDeadLetter?: (letter: DeadLetter) => void
  /**
   * Called after each commit, with its events.
   * @param milliseconds from the start of folding to the answer of the commit
   */
  readonly onCommitted?: (
    committed: Checkpoint,
    events: readonly Recorded[],
    milliseconds: number,
    statements: readonly StatementReport[],
  ) => void
}

/**
 * Applies events to a projection's tables, one batch per transaction, and knows how far it got. It finds an event that
 * the database refuses by halving the batch, and records it as a dead letter. It throws any other error, and then
 * nothing of the batch was written.
 */
export class ProjectionApplier {
  readonly #options: ApplierOptions
  /** When folding of the current batch began, monotonic milliseconds. */
  #foldedAt = 0
  #committed: Checkpoint
  #revision: bigint
  #parked: ReadonlySet<string>
  #deadLetters: number
  /** Most events in the next transaction; smaller while it searches for an event that the database refuses. */
  #limit: number
  #tried = 0

  private constructor(options: ApplierOptions, progress: Awaited<ReturnType<ProjectionStore['load']>>) {
    this.#options = options
    this.#committed = progress.checkpoint
    this.#revision = progress.revision
    this.#parked = progress.parked
    this.#deadLetters = progress.deadLetters
    this.#limit = options.maxBatch
  }

  static async open(options: ApplierOptions): Promise<ProjectionApplier> {
    options.projection.reset()
    return new ProjectionApplier(options, await options.store.load())
  }

  get committed(): Checkpoint {
    return this.#committed
  }

  get deadLetters(): number {
    return this.#deadLetters
  }

  /** Number of events in the last transaction, whether it succeeded or not. */
  get tried(): number {
    return this.#tried
  }

  /** Applies events. @param events all that are valid from the checkpoint, or from before it, to `next` */
  async apply(events: readonly Recorded[], next: Checkpoint): Promise<void> {
    const fresh = events.filter((event) => !isBelow(event.position, this.#committed))
    if (fresh.length > this.#limit) return this.readOn(eventsBelow(next))
    if (!(await this.#take(fresh, next))) await this.readOn(eventsBelow(next))
  }

  /** Reads from the log until the tables hold a number of events, or the log ends. */
  async readOn(untilEvents: number): Promise<void> {
    const { log, maxBatch } = this.#options
    let ahead: ReturnType<EventLog['read']> | undefined
    for (;;) {
      const missing = untilEvents - eventsBelow(this.#committed)
      if (missing <= 0) break
      const { events, next } = await (ahead ?? log.read(this.#committed, Math.min(this.#limit, missing)))
      ahead = undefined
      if (events.length === 0) break
      // The next batch is read while the database writes this one.
      if (missing > events.length && this.#limit === maxBatch) {
        ahead = log.read(next, Math.min(maxBatch, missing - events.length))
        ahead.catch(() => undefined)
      }
      if (!(await this.#take(events, next))) ahead = undefined
    }
  }

  /** Applies one batch. @returns false when the batch must be smaller: nothing of it was written */
  async #take(events: readonly Recorded[], next: Checkpoint): Promise<boolean> {
    try {
      await this.#fold(events, next)
      this.#limit = Math.min(this.#limit * 2, this.#options.maxBatch)
      return true
    } catch (error) {
      if (!isNeverTaken(error)) throw error
      if (events.length > 1) {
        this.#limit = Math.floor(events.length / 2)
        return false
      }
      // A batch without events has no event to set aside.
      if (events.length === 0) throw error
      await this.#bury(events[0]!, error, next)
      return true
    }
  }

  /**
   * Records the event as a dead letter, with whatever else of it can be written: its rows, or the event alone, or
   * nothing.
   */
  async #bury(event: Recorded, error: unknown, next: Checkpoint): Promise<void> {
    const { projection } = this.#options
    const dead: DeadLetter[] = [{ kind: 'failed', event, error }]
    const attempts = [
      () => this.#fold([event], next, new Map([[eventKey(event), error]])),
      () => this.#commit([event], { writes: projection.eventAlone(event), dead, keep: () => undefined }, next),
      () => this.#commit([event], { writes: [], dead, keep: () => undefined }, next),
    ]
    for (const attempt of attempts) {
      try {
        return await attempt()
      } catch (again) {
        if (!isNeverTaken(again) || attempt === attempts.at(-1)) throw again
      }
    }
  }

  async #fold(events: readonly Recorded[], next: Checkpoint, refused = new Map<string, unknown>()): Promise<void> {
    const { projection, store } = this.#options
    this.#foldedAt = performance.now()
    this.#tried = events.length
    const folded = await projection.fold(events, { query: store.query, parked: this.#parked, refused })
    await this.#commit(events, folded, next)
  }

  async #commit(events: readonly Recorded[], folded: Folded, next: Checkpoint): Promise<void> {
    const { store, onDeadLetter, onCommitted } = this.#options
    this.#revision = await store.commit({ writes: folded.writes, dead: folded.dead, next }, this.#revision)
    folded.keep()
    this.#committed = next
    if (folded.dead.length > 0) {
      this.#parked = new Set([...this.#parked, ...folded.dead.map((letter) => letter.event.stream)])
      this.#deadLetters += folded.dead.filter((letter) => letter.kind === 'failed').length
      for (const letter of folded.dead) onDeadLetter?.(letter)
    }
    onCommitted?.(next, events, performance.now() - this.#foldedAt, store.reported)
  }
}
