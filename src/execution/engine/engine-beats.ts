/** What a process said of itself last, in lines of bytes held and whether its thread is held: `123456 held`. */
export class EngineBeats {
  #last = performance.now()
  #bytes = 0
  #held = false

  /** As they come: some lines at once, of which the last counts. */
  take(lines: Buffer): void {
    this.#last = performance.now()
    const text = lines.toString('latin1').trimEnd()
    const [bytes, thread] = text.slice(text.lastIndexOf('\n') + 1).split(' ')
    this.#bytes = Number(bytes) || this.#bytes
    this.#held = thread === 'held'
  }

  /** Monotonic milliseconds of the last beat; of the start before there is one. */
  last(): number {
    return this.#last
  }

  /** Resident bytes. */
  bytes(): number {
    return this.#bytes
  }

  /** Was the thread that runs statements held by a function in JavaScript? */
  isHeld(): boolean {
    return this.#held
  }
}
