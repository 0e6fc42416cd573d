import { deferred } from '../../shared/deferred.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { howToRetry } from '../../shared/quipu-error.ts'
import type { EnginePool, EngineResult, EngineRun, EngineStatement } from '../engine/engine.ts'

/** Tries at one batch: it is begun anew while the engine it had is lost through no fault of its own, or until a cancel. */
export class EngineAttempts {
  readonly #engines: Pick<EnginePool, 'run'>
  readonly #most: number
  #current: EngineRun | undefined
  #canceled = false
  /** Never fulfilled: rejects with USER_CANCELED. */
  readonly #cancellation = deferred<never>()

  constructor(engines: Pick<EnginePool, 'run'>, most: number) {
    this.#engines = engines
    this.#most = most
  }

  /** The same, but that a cancel does not wait for it: it goes on, and nobody hears of it. @throws EngineError USER_CANCELED */
  unlessCanceled<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#cancellation.promise])
  }

  /** @param once one attempt; they are numbered from 1 */
  async repeat<T>(once: (attempt: number) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      this.checkCanceled()
      try {
        return await once(attempt)
      } catch (error) {
        if (howToRetry(error) !== 'anew' || this.#canceled || attempt >= this.#most) throw error
      }
    }
  }

  /** @throws EngineError USER_CANCELED */
  checkCanceled(): void {
    if (this.#canceled) throw new EngineError('USER_CANCELED', 'Query was canceled')
  }

  async run(statement: EngineStatement): Promise<EngineResult> {
    const run = this.#engines.run(statement)
    this.#current = run
    if (this.#canceled) run.cancel()
    try {
      return await run.done
    } finally {
      this.#current = undefined
    }
  }

  /**
   * Throws what an engine failed with, unless the files that it read are others by now: that is why, whatever it says.
   * @param verify looks at the files, after an earlier look has ended
   */
  async failed(error: unknown, verify: () => Promise<void>, earlier?: Promise<void>): Promise<never> {
    await earlier
    // A cancel waits for no disk.
    this.checkCanceled()
    await verify()
    throw error
  }

  /** Ends the statement that runs; what comes of that is the attempt's to say. */
  stop(): void {
    this.#current?.cancel()
  }

  cancel(): void {
    this.#canceled = true
    this.#cancellation.reject(new EngineError('USER_CANCELED', 'Query was canceled'))
    this.stop()
  }
}
