import { WaitList } from '../../shared/wait-list.ts'

/** The worker's version: every change of a task gets the next number, and readers that wait are woken. */
export class TaskNews {
  readonly #readers = new WaitList()
  #version: number
  /** The version of the newest change that readers may see. */
  #reported = 0

  /**
   * @param first versions of a restarted worker must not repeat those of its former process: they begin at its start
   * time
   */
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

  /**
   * Lets readers see all changes so far; changes of one turn of the event loop are in one answer. Changes without a
   * call of `wake` wait for the next call.
   */
  wake(): void {
    this.#reported = this.#version
    if (!this.#readers.isEmpty) setImmediate(this.#readers.take())
  }

  /** Resolves once readers may see something newer than `since`, or the time is over. */
  wait(since: number, millis: number): Promise<void> {
    if (this.#reported > since || millis <= 0) return Promise.resolve()
    return this.#readers.wait(millis)
  }

  /** Wakes all readers, for the end of the worker. */
  stop(): void {
    this.#readers.wake()
  }
}
