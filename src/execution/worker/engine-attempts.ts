import { deferred } from '../../shared/deferred.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { howToRetry } from '../../shared/quipu-error.ts'
import type { EnginePool, EngineResult, EngineRun, EngineStatement } from '../engine/engine.ts'

/**
 * Attempts at one batch. The batch starts again when its engine is lost and the statement is not the cause, until a
 * cancel.
 */
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

  /**
   * The result of the work, except that a cancel does not wait for it: the work continues, and its result is ignored.
   * @throws EngineError USER_CANCELED
   */
  unlessCanceled<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#cancellation.promise])
  }

  /** @param once makes one attempt; attempts are numbered from 1 */
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
   * Throws the engine's error, unless the files that it read have changed: then the change is the cause, whatever the
   * error says.
   * @param verify checks the files, after an earlier check has ended
   */
  async failed(error: unknown, verify: () => Promise<void>, earlier?: Promise<void>): Promise<never> {
    await earlier
    // A cancel does not wait for a disk.
    this.checkCanceled()
    await verify()
    throw error
  }

  /** Cancels the statement that runs; the attempt handles its end. */
  stop(): void {
    this.#current?.cancel()
  }

  cancel(): void {
    this.#canceled = true
    this.#cancellation.reject(new EngineError('USER_CANCELED', 'Query was canceled'))
    this.stop()
  }
}
