/**
 * What was asked for, if it comes in time.
 * @param ms below 0 is none
 * @throws what `late` makes when the time is over; what was asked goes on, and nobody is told of its failure
 */
export async function withDeadline<T>(asked: Promise<T>, ms: number, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), Math.max(0, ms))
  })
  try {
    return await Promise.race([asked, over])
  } finally {
    clearTimeout(timer)
  }
}

/** True when the promise settled well within `ms`; its rejection passes through. */
export async function settlesWithin(promise: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), Math.max(0, ms))
  })
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

/** A signal that ends when a time is over, or with another one; `clear` lets go of both. */
export interface TimeLimit {
  readonly signal: AbortSignal
  isOver(): boolean
  clear(): void
}

/**
 * Not `AbortSignal.any` of an `AbortSignal.timeout`: that one Node 20 collects as garbage when nobody else holds it, and its
 * time is never over.
 */
export function endingAfter(ms: number, until: AbortSignal): TimeLimit {
  const ending = new AbortController()
  let over = false
  const end = (): void => ending.abort(until.reason)
  const timer = setTimeout(() => {
    over = true
    ending.abort(new DOMException(`Not within ${ms} ms`, 'TimeoutError'))
  }, ms)
  until.addEventListener('abort', end)
  if (until.aborted) end()
  return {
    signal: ending.signal,
    isOver: () => over,
    clear() {
      clearTimeout(timer)
      until.removeEventListener('abort', end)
    },
  }
}

/** Runs something under a signal that ends when its time is over, or with another one. */
export async function endedAfter<T>(
  ms: number,
  until: AbortSignal,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = endingAfter(ms, until)
  try {
    until.throwIfAborted()
    return await run(limit.signal)
  } finally {
    limit.clear()
  }
}
