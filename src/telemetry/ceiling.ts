/** Allows at most `perSecond` in each second. `monotonicMs`: monotonic clock, milliseconds. */
export function createCeiling(perSecond: number, monotonicMs: () => number): () => boolean {
  let second = Math.floor(monotonicMs() / 1000)
  let taken = 0
  return () => {
    const now = Math.floor(monotonicMs() / 1000)
    if (now !== second) {
      second = now
      taken = 0
    }
    return ++taken <= perSecond
  }
}
