/** Who waits for something to happen, each for a time of its own. */
export class WaitList {
  readonly #waiting = new Set<() => void>()

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /** Resolves when it happens next, or when so many milliseconds have passed. */
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

  /** It has happened. */
  wake(): void {
    this.take()()
  }

  /** All who wait now, to be woken together; who comes later waits for the next time. */
  take(): () => void {
    const taken = [...this.#waiting]
    this.#waiting.clear()
    return () => {
      for (const woken of taken) woken()
    }
  }
}
