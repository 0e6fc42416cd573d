import type { EngineRun } from '../../../execution/engine/engine.ts'
import { Suspended } from './suspended.ts'
import { Signal } from '../../../shared/quipu-error.ts'

/** Thrown in work of a query that has ended meanwhile: it needs no report. */
export class Ended extends Signal {}

/** The query's work in this process, so that the end of the query, or of the process, can stop it. */
export class OngoingWork {
  readonly #abort = new AbortController()
  #engineRun: Pick<EngineRun, 'cancel'> | undefined
  #dropPending: (() => Promise<void>) | undefined
  #suspended = false

  /** Aborted when the query ends early, and when this process stops. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Whether this process stops and a successor continues the query. */
  get suspended(): boolean {
    return this.#suspended
  }

  runsInEngine(run: Pick<EngineRun, 'cancel'>): void {
    this.#engineRun = run
  }

  /** @param dropPending makes the running task begin no further batch */
  runsAsTask(dropPending: () => Promise<void>): void {
    this.#dropPending = dropPending
  }

  /** Drops the pending batches of the running task; undefined when there is nothing to drop. */
  get dropPending(): (() => Promise<void>) | undefined {
    return this.#dropPending
  }

  /** Stops all work of the query; no new work begins. */
  stop(): void {
    this.#abort.abort(new Ended())
    this.#engineRun?.cancel()
  }

  /** Stops this process's part; the tasks continue without it. */
  suspend(): void {
    this.#suspended = true
    this.#abort.abort(new Suspended())
    this.#engineRun?.cancel()
  }
}
