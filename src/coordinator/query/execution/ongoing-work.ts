import { Suspended } from './suspended.ts'
import { Signal } from '../../../shared/quipu-error.ts'

/** Thrown in the work of a query that has already ended. It needs no report. */
export class Ended extends Signal {}

/** Work that a query has under way outside this process: a run in an engine, a task on a worker. */
export interface RunningWork {
  /** Stops the work, whose rows are no longer needed. Never throws, and does nothing for work that has ended. */
  cancel(): void
  /**
   * Whether the work continues while no coordinator follows it. When this process stops, it leaves such work to its
   * successor, and cancels all other work.
   */
  readonly outlivesCoordinator: boolean
  /** Present for work in batches that may end early: makes a stage's work begin no further batch. */
  readonly batches?: { readonly stage: number; readonly dropPending: () => Promise<void> }
}

/** The running work of a query. The end of the query, or of this process, stops it. */
export class OngoingWork {
  readonly #abort = new AbortController()
  readonly #running = new Set<RunningWork>()
  #suspended = false

  /** Aborted when the query ends early, and when this process stops. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Whether this process stops and a successor continues the query. */
  get suspended(): boolean {
    return this.#suspended
  }

  /**
   * Registers work that begins now; if the query has ended meanwhile, cancels it at once.
   * @returns a function to call when the work has ended
   */
  add(work: RunningWork): () => void {
    if (this.signal.aborted) this.#cancel([work])
    else this.#running.add(work)
    return () => void this.#running.delete(work)
  }

  /** Drops the pending batches of the work of these stages; undefined when none has batches that may be dropped. */
  dropPending(stages: ReadonlySet<number>): Promise<void> | undefined {
    const found = [...this.#running].flatMap(({ batches }) => (batches && stages.has(batches.stage) ? [batches] : []))
    if (found.length === 0) return undefined
    return Promise.all(found.map(({ dropPending }) => dropPending())).then(() => {})
  }

  /** Stops all work of the query; no new work begins. */
  stop(): void {
    this.#end(new Ended())
  }

  /** Stops the work of this process. Work that outlives the coordinator continues without it. */
  suspend(): void {
    this.#suspended = true
    this.#end(new Suspended())
  }

  #end(reason: Ended | Suspended): void {
    // A copy: work that listens to the signal removes itself from the set during the abort.
    const running = [...this.#running]
    this.#abort.abort(reason)
    this.#cancel(running)
  }

  #cancel(running: readonly RunningWork[]): void {
    for (const work of running) if (!this.#suspended || !work.outlivesCoordinator) work.cancel()
  }
}
