/** What a process said of itself last, in lines of bytes held, whether its thread is held, and milliseconds of CPU: `123456 held 789`. */
export class EngineBeats {
  #last = performance.now()
  #bytes = 0
  #held = false
  #cpuMs = 0

  /** As they come: some lines at once, of which the last counts. */
  take(lines: Buffer): void {
    this.#last = performance.now()
    const text = lines.toString('latin1').trimEnd()
    const [bytes, thread, cpuMs] = text.slice(text.lastIndexOf('\n') + 1).split(' ')
    this.#bytes = Number(bytes) || this.#bytes
    this.#held = thread === 'held'
    this.#cpuMs = Number(cpuMs) || this.#cpuMs
  }

  /** Monotonic milliseconds of the last beat; of the start before there is one. */
  last(): number {
    return this.#last
  }

  /** Resident bytes. */
  bytes(): number {
    return this.#bytes
  }

  /** CPU that it has used so far, all threads, milliseconds. */
  cpuMs(): number {
    return this.#cpuMs
  }

  /** Was the thread that runs statements held by a function in JavaScript? */
  isHeld(): boolean {
    return this.#held
  }
}
