/** Each bucket is this much wider than the one before: a quantile is exact to 2.5 %. */
const GROWTH = Math.log(1.05)
/** Shorter durations count as this. */
const LEAST_MS = 0.01

/** Durations in buckets. Memory depends on how far they spread, not on how many there are. */
export class DurationHistogram {
  readonly #buckets = new Map<number, number>()
  #count = 0

  add(ms: number): void {
    const bucket = Math.round(Math.log(Math.max(ms, LEAST_MS)) / GROWTH)
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + 1)
    this.#count++
  }

  get count(): number {
    return this.#count
  }

  /** The duration that this share of all durations does not exceed, milliseconds; undefined if there are none. */
  quantile(share: number): number | undefined {
    let left = Math.max(1, Math.ceil(share * this.#count))
    for (const [bucket, count] of [...this.#buckets].toSorted(([a], [b]) => a - b)) {
      left -= count
      if (left <= 0) return Math.exp(bucket * GROWTH)
    }
    return undefined
  }
}
