interface Waiter {
  readonly key: bigint
  readonly resolve: (passed: boolean) => void
  readonly timer: NodeJS.Timeout
  done: boolean
}

/**
 * Those who wait until a number has passed theirs, nearest first: releasing costs the log of the waiters for each one
 * released and nothing for the rest.
 */
export class WaitHeap {
  #heap: Waiter[] = []
  #live = 0

  /** Waiters not yet released or timed out. */
  get size(): number {
    return this.#live
  }

  /** @returns true once `release` was called with `key` or more, false after the time */
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

  /** Lets all go unpassed. */
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

  /** While nothing is released, those that timed out would pile up. */
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
