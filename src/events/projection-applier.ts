import { isBelow, type Checkpoint, type EventLog, type Recorded } from './event-log.ts'
import { eventKey, type DeadLetter, type Folded, type Projection } from './projection.ts'
import { eventsBelow, sqlStateOf, type ProjectionStore, type StatementTold } from './projection-store.ts'

export interface ApplierOptions {
  readonly store: ProjectionStore
  readonly projection: Projection
  readonly log: Pick<EventLog, 'read'>
  /** Events in one transaction at most. */
  readonly maxBatch: number
  readonly onDeadLetter?: (letter: DeadLetter) => void
  /** After each commit, with the events it held. */
  /** @param milliseconds from folding to the commit's answer */
  readonly onCommitted?: (
    committed: Checkpoint,
    events: readonly Recorded[],
    milliseconds: number,
    statements: readonly StatementTold[],
  ) => void
}

/**
 * Brings events into a projection's tables, a batch a transaction, and knows how far it came. An event that the database
 * refuses is found by halving its batch and becomes a dead letter; any other error is thrown, and then nothing of the
 * batch was written.
 */
export class ProjectionApplier {
  readonly #options: ApplierOptions
  /** When the batch in work began to be folded, monotonic milliseconds. */
  #foldedAt = 0
  #committed: Checkpoint
  #revision: bigint
  #parked: ReadonlySet<string>
  #deadLetters: number

  private constructor(options: ApplierOptions, progress: Awaited<ReturnType<ProjectionStore['load']>>) {
    this.#options = options
    this.#committed = progress.checkpoint
    this.#revision = progress.revision
    this.#parked = progress.parked
    this.#deadLetters = progress.deadLetters
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

  /** @param events all that is valid from the checkpoint, or from before it, to `next` */
  async apply(events: readonly Recorded[], next: Checkpoint): Promise<void> {
    const fresh = events.filter((event) => !isBelow(event.position, this.#committed))
    if (fresh.length > this.#options.maxBatch) return this.readOn(eventsBelow(next))
    try {
      await this.#fold(fresh, next)
    } catch (error) {
      if (!isDataError(error)) throw error
      if (fresh.length === 1) await this.#bury(fresh[0]!, error, next)
      else await this.readOn(eventsBelow(next), Math.floor(fresh.length / 2))
    }
  }

  /**
   * Reads from the log until the tables hold a number of events, or the log ends.
   * @param firstLimit events of the first batch; grows to the most allowed as batches succeed
   */
  async readOn(untilEvents: number, firstLimit: number = this.#options.maxBatch, stopped = () => false): Promise<void> {
    const { log, maxBatch } = this.#options
    let limit = firstLimit
    let ahead: ReturnType<EventLog['read']> | undefined
    while (!stopped()) {
      const missing = untilEvents - eventsBelow(this.#committed)
      if (missing <= 0) break
      const { events, next } = await (ahead ?? log.read(this.#committed, Math.min(limit, missing)))
      ahead = undefined
      if (events.length === 0) break
      // The next batch is read while the database writes this one.
      if (missing > events.length && limit === maxBatch) {
        ahead = log.read(next, Math.min(limit, missing - events.length))
        ahead.catch(() => undefined)
      }
      try {
        await this.#fold(events, next)
        limit = Math.min(limit * 2, maxBatch)
      } catch (error) {
        if (!isDataError(error)) throw error
        ahead = undefined
        if (events.length === 1) await this.#bury(events[0]!, error, next)
        else limit = Math.floor(events.length / 2)
      }
    }
  }

  /** Keeps the event as a dead letter, with what else can be written of it. */
  async #bury(event: Recorded, error: unknown, next: Checkpoint): Promise<void> {
    try {
      await this.#fold([event], next, new Map([[eventKey(event), error]]))
    } catch (second) {
      if (!isDataError(second)) throw second
      await this.#commit([event], { writes: [], dead: [{ kind: 'failed', event, error }], keep: () => undefined }, next)
    }
  }

  async #fold(events: readonly Recorded[], next: Checkpoint, refused = new Map<string, unknown>()): Promise<void> {
    const { projection, store } = this.#options
    this.#foldedAt = performance.now()
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
    onCommitted?.(next, events, performance.now() - this.#foldedAt, store.told)
  }
}

/** What no repetition mends: the data itself does not fit. */
function isDataError(error: unknown): boolean {
  return /^2[23]/.test(sqlStateOf(error) ?? '')
}
