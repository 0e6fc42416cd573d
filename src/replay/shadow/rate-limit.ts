/**
 * A token bucket, as the generic cell rate algorithm: in any span of `t` seconds it lets at most `perSecond * t + burst`
 * statements pass.
 */
export class RateLimit {
  readonly #intervalMs: number
  readonly #burstMs: number
  /** The time at which the bucket is full again, milliseconds. */
  #fullAt = -Infinity

  /** @param perSecond above 0; may be a fraction, such as 0.1 for one in ten seconds */
  constructor(perSecond: number, burst = Math.max(1, Math.floor(perSecond))) {
    this.#intervalMs = 1000 / perSecond
    this.#burstMs = this.#intervalMs * (burst - 1)
  }

  /** Takes a token. @returns how long the caller must wait before it uses the token, milliseconds */
  reserve(nowMs: number): number {
    const from = Math.max(this.#fullAt, nowMs)
    this.#fullAt = from + this.#intervalMs
    return Math.max(0, from - this.#burstMs - nowMs)
  }

  /** Takes a token if there is one. */
  tryTake(nowMs: number): boolean {
    if (Math.max(this.#fullAt, nowMs) - this.#burstMs > nowMs) return false
    this.reserve(nowMs)
    return true
  }
}
