import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * A value that the runtime tracks through the calls of a piece of work, for code between caller and callee that does not
 * know the value. The tracking is on only while such work runs, because it makes each `await` of the process slower.
 */
export class TrackedValue<V extends object> {
  readonly #storage = new AsyncLocalStorage<V>()
  #running = 0

  /** Runs work with a value, which `current` returns until the promise settles. */
  async during<T>(value: V, work: () => Promise<T>): Promise<T> {
    this.#running++
    try {
      return await this.#storage.run(value, work)
    } finally {
      if (--this.#running === 0) this.#storage.disable()
    }
  }

  /** The value of the work that calls this; undefined outside of such work. */
  get current(): V | undefined {
    return this.#running > 0 ? this.#storage.getStore() : undefined
  }
}
