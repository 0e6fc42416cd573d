import type { EngineRun } from '../../../execution/engine/engine.ts'
import { Suspended } from '../suspended.ts'
import { Signal } from '../../../shared/quipu-error.ts'

/** The query has ended while something of it still ran: nobody needs to be told. */
export class Ended extends Signal {}

/** What goes on for the query in this process, as far as its end, or the end of the process, reaches it. */
export class OngoingWork {
  readonly #abort = new AbortController()
  #engineRun: Pick<EngineRun, 'cancel'> | undefined
  #dropPending: (() => Promise<void>) | undefined
  #suspended = false

  /** Aborted when the query ends before its time, and when this process stops. */
  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** This process stops: a successor goes on. */
  get suspended(): boolean {
    return this.#suspended
  }

  runsInEngine(run: Pick<EngineRun, 'cancel'>): void {
    this.#engineRun = run
  }

  /** @param dropPending the task that runs begins no further batch */
  runsAsTask(dropPending: () => Promise<void>): void {
    this.#dropPending = dropPending
  }

  /** Of the task that runs; undefined when nothing can be dropped. */
  get dropPending(): (() => Promise<void>) | undefined {
    return this.#dropPending
  }

  /** Nothing that the query began goes on, nothing new is begun. */
  stop(): void {
    this.#abort.abort(new Ended())
    this.#engineRun?.cancel()
  }

  /** Tasks go on without this process. */
  suspend(): void {
    this.#suspended = true
    this.#abort.abort(new Suspended())
    this.#engineRun?.cancel()
  }
}
