import { FairQueue, type SlotOwner } from './fair-queue.ts'

/** The event loop as the slices use it. */
export interface LoopClock {
  /** Milliseconds, monotonic. */
  now(): number
  /** Calls in the next pass of the loop, after ready events were handled. */
  nextLoopPass(call: () => void): void
  /** Calls after everything that is resolved now has done its immediate work. */
  afterThis(call: () => void): void
}

const realLoop: LoopClock = {
  now: () => performance.now(),
  nextLoopPass: (call) => void setImmediate(call),
  afterThis: (call) => queueMicrotask(() => process.nextTick(call)),
}

/**
 * Slices of the event loop for work in many pieces. However many pieces are ready at once, they are begun for only some
 * milliseconds. Then all other work runs: running requests, the log, new connections. Waiting pieces are begun in turns
 * of their owners, so that a piece of one owner waits for few pieces of an owner with thousands.
 */
export class EventLoopSlices {
  readonly #waiting = new FairQueue<() => void>()
  readonly #sliceMs: number
  readonly #loop: LoopClock
  /** When the slice's first piece was begun; undefined if none was. */
  #began: number | undefined

  /** @param sliceMs length of one slice, once each pass of the loop; at least one piece is begun in each */
  constructor(sliceMs: number, loop: LoopClock = realLoop) {
    this.#sliceMs = sliceMs
    this.#loop = loop
  }

  /** Whether a piece may begin now without overtaking a waiting piece. */
  isFree(): boolean {
    return this.#waiting.length === 0 && this.#hasTime()
  }

  /**
   * @param begin called now if there is time and no piece waits, else when it is the owner's turn; it must not throw
   */
  take(owner: SlotOwner, begin: () => void): void {
    if (this.isFree()) {
      this.#waiting.passed(owner)
      this.#run(begin)
    } else this.#waiting.push(owner, begin)
  }

  #hasTime(): boolean {
    return this.#began === undefined || this.#loop.now() - this.#began < this.#sliceMs
  }

  #run(begin: () => void): void {
    if (this.#began === undefined) {
      this.#began = this.#loop.now()
      this.#loop.nextLoopPass(() => {
        this.#began = undefined
        this.#goOn()
      })
    }
    begin()
  }

  #goOn(): void {
    if (!this.#hasTime()) return
    const next = this.#waiting.shift()
    if (!next) return
    this.#run(next)
    this.#loop.afterThis(() => this.#goOn())
  }
}
