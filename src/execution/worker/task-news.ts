import { WaitList } from '../../shared/wait-list.ts'

/** The worker's version: every change that a coordinator may want to know has one, and who waits for it is told. */
export class TaskNews {
  readonly #readers = new WaitList()
  #version: number
  /** Of the newest change that is told. */
  #reported = 0

  /** @param first versions of a restarted worker must not repeat those of its former process: they begin at its time */
  constructor(first: number) {
    this.#version = first
    this.#reported = first
  }

  get version(): number {
    return this.#version
  }

  next(): number {
    return ++this.#version
  }

  /** What has changed is told; all that changes in one turn in one answer. What is not told waits for what is. */
  wake(): void {
    this.#reported = this.#version
    if (!this.#readers.isEmpty) setImmediate(this.#readers.take())
  }

  /** Resolves once something newer than `since` is told, or the time is over. */
  wait(since: number, millis: number): Promise<void> {
    if (this.#reported > since || millis <= 0) return Promise.resolve()
    return this.#readers.wait(millis)
  }

  /** Nobody waits any more. */
  stop(): void {
    this.#readers.wake()
  }
}
