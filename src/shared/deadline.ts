/**
 * Waits for a promise, up to a time limit.
 * @param ms below 0 counts as 0
 * @throws the error that `late` makes when the time is over; the work behind the promise continues, and its failure is
 * ignored
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

/** Whether the promise settles within `ms`. Passes its rejection on. */
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

/** A signal that aborts after some time, or when another signal does. `clear` ends both waits. */
export interface TimeLimit {
  readonly signal: AbortSignal
  isOver(): boolean
  clear(): void
}

/**
 * Makes a signal that aborts after `ms`, or when `until` does. Not `AbortSignal.any` of an `AbortSignal.timeout`: Node
 * 20 collects that one as garbage if nothing else refers to it, and it never fires.
 */
export function endingAfter(ms: number, until: AbortSignal): TimeLimit {
  const ending = new AbortController()
  let over = false
  const end = (): void => ending.abort(until.reason)
  const timer = setTimeout(() => {
    over = true
    ending.abort(new DOMException(`No result within ${ms} ms`, 'TimeoutError'))
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

/** Runs something with a signal that aborts after `ms`, or when `until` does. */
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
