import { WaitList } from '../../shared/wait-list.ts'

/** The worker's version: every change that a coordinator may want to know has one, and who waits for it is told. */
export class TaskNews {
  readonly #readers = new WaitList()
  #version: number

  /** @param first versions of a restarted worker must not repeat those of its former process: they begin at its time */
  constructor(first: number) {
    this.#version = first
  }

  get version(): number {
    return this.#version
  }

  next(): number {
    return ++this.#version
  }

  /** Tells who waits; all that changes in one turn is told in one answer. */
  wake(): void {
    if (!this.#readers.isEmpty) setImmediate(this.#readers.take())
  }

  /** Resolves once there is something newer than `since`, or the time is over. */
  wait(since: number, millis: number): Promise<void> {
    if (this.#version > since || millis <= 0) return Promise.resolve()
    return this.#readers.wait(millis)
  }

  /** Nobody waits any more. */
  stop(): void {
    this.#readers.wake()
  }
}
