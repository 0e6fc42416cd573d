/** The logarithm by which buckets grow. Each is 5 % wider than the one before, so a quantile is exact to 2.5 %. */
const GROWTH = Math.log(1.05)
/** A shorter duration counts as this one. */
const LEAST_MS = 0.01

/** Durations in buckets. The memory depends on the spread of the durations, not on their number. */
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
