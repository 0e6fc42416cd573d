/** Work that a machine can do little of at once: so many run, so many wait, more are told so. */
export interface BoundedWork {
  /** @returns undefined, having begun nothing, when too many wait already */
  run<T>(work: () => Promise<T>): Promise<T> | undefined
}

export function createBoundedWork(atOnce: number, mostWaiting: number): BoundedWork {
  let running = 0
  const waiting: (() => void)[] = []

  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve))
    else running++
    try {
      return await work()
    } finally {
      // Its place goes on to whoever waits longest.
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }

  return {
    run: (work) => (running >= atOnce && waiting.length >= mostWaiting ? undefined : inTurn(work)),
  }
}
