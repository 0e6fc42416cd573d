import type { EngineRun } from '../../../execution/engine/engine.ts'
import { Suspended } from './suspended.ts'
import { Signal } from '../../../shared/quipu-error.ts'

/** Thrown in work of a query that has ended meanwhile: it needs no report. */
export class Ended extends Signal {}

/** The query's work in this process, so that the end of the query, or of the process, can stop it. */
export class OngoingWork {
  readonly #abort = new AbortController()
  #engineRun: Pick<EngineRun, 'cancel'> | undefined
  /** By stage. */
  readonly #droppers = new Map<number, () => Promise<void>>()
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

  /** @param dropPending makes the task that the stage runs now begin no further batch */
  runsAsTask(stage: number, dropPending: () => Promise<void>): void {
    this.#droppers.set(stage, dropPending)
  }

  /** Drops the pending batches of the tasks of these stages; undefined when they have no task. */
  dropPending(stages: ReadonlySet<number>): Promise<void> | undefined {
    const droppers = [...stages].flatMap((stage) => this.#droppers.get(stage) ?? [])
    if (droppers.length === 0) return undefined
    return Promise.all(droppers.map((drop) => drop())).then(() => {})
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
