/** A list of callers that wait for something to happen, each with its own timeout. */
export class WaitList {
  readonly #waiting = new Set<() => void>()

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** Resolves when it happens next, or after this number of milliseconds. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const woken = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(woken)
        resolve()
      }
      const timer = setTimeout(woken, ms)
      this.#waiting.add(woken)
    })
  }

  /** Wakes all waiting callers. */
  wake(): void {
    this.take()()
  }

  /**
   * Takes all callers that wait now. The returned function wakes them together. Later callers wait for the next time.
   */
  take(): () => void {
    const taken = [...this.#waiting]
    this.#waiting.clear()
    return () => {
      for (const woken of taken) woken()
    }
  }
}
