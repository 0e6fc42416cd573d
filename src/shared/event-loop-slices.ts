import { FairQueue, type SlotOwner } from './fair-queue.ts'

/** The event loop as its turns see it. */
export interface LoopClock {
  /** Milliseconds, monotonic. */
  now(): number
  /** Calls in the next turn of the loop, once what is ready has been looked at. */
  nextLoopPass(call: () => void): void
  /** Calls once what was resolved now has done what it can do at once. */
  afterThis(call: () => void): void
}

const realLoop: LoopClock = {
  now: () => performance.now(),
  nextLoopPass: (call) => void setImmediate(call),
  afterThis: (call) => queueMicrotask(() => process.nextTick(call)),
}

/**
 * Turns of the event loop for work that comes in many pieces. However many are ready at once, they are begun for some
 * milliseconds, then all else has its turn: what is under way, the log, who connects. Those that wait go on in turns of their
 * owners, so that a piece of somebody else waits for few of whoever has thousands.
 */
export class EventLoopSlices {
  readonly #waiting = new FairQueue<() => void>()
  readonly #sliceMs: number
  readonly #loop: LoopClock
  /** When the turn's first piece was begun; undefined: none was. */
  #began: number | undefined

  /** @param sliceMs of one turn of the loop; at least one piece is begun in each */
  constructor(sliceMs: number, loop: LoopClock = realLoop) {
    this.#sliceMs = sliceMs
    this.#loop = loop
  }

  /** May a piece begin now, before nobody? */
  isFree(): boolean {
    return this.#waiting.length === 0 && this.#hasTime()
  }

  /** @param begin called now where there is time and nobody waits, else in its owner's turn; it must not throw */
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
