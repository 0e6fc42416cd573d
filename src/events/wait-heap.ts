interface Waiter {
  readonly key: bigint
  readonly resolve: (passed: boolean) => void
  readonly timer: NodeJS.Timeout
  done: boolean
}

/**
 * Waiters for a number, nearest first. A release costs the logarithm of the waiters for each released one, and nothing
 * for the rest.
 */
export class WaitHeap {
  #heap: Waiter[] = []
  #live = 0

  /** Number of waiters that are neither released nor timed out. */
  get size(): number {
    return this.#live
  }

  /** Waits for a number. @returns true once `release` was called with `key` or more, false after the time */
  wait(key: bigint, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        key,
        resolve,
        done: false,
        timer: setTimeout(() => {
          waiter.done = true
          this.#live--
          this.#forgetDone()
          resolve(false)
        }, timeoutMs),
      }
      this.#live++
      this.#push(waiter)
    })
  }

  release(upTo: bigint): void {
    for (let first = this.#heap[0]; first && (first.done || first.key <= upTo); first = this.#heap[0]) {
      this.#pop()
      this.#settle(first, true)
    }
  }

  /** Resolves all waiters with false. */
  abandon(): void {
    for (const waiter of this.#heap.splice(0)) this.#settle(waiter, false)
  }

  #settle(waiter: Waiter, passed: boolean): void {
    if (waiter.done) return
    waiter.done = true
    this.#live--
    clearTimeout(waiter.timer)
    waiter.resolve(passed)
  }

  /** Removes waiters that timed out; without releases they would pile up. */
  #forgetDone(): void {
    if (this.#heap.length < 64 || this.#heap.length < this.#live * 2) return
    const live = this.#heap.filter((waiter) => !waiter.done)
    this.#heap = []
    for (const waiter of live) this.#push(waiter)
  }

  #push(waiter: Waiter): void {
    const heap = this.#heap
    let at = heap.push(waiter) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.key <= waiter.key) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = waiter
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.key < heap[child]!.key) child++
      if (heap[child]!.key >= last.key) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}
