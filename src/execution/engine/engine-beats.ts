import { readFileSync } from 'node:fs'

/** No beat is late before. */
const LATE_MS = 1_000

/** How long a process's main thread has waited for a processor so far, milliseconds; 0 where the system does not tell. */
export function waitedForCpuMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

/** What a process said of itself last, in lines of bytes held, whether its thread is held, and milliseconds of CPU: `123456 held 789`. */
export class EngineBeats {
  #last = performance.now()
  #bytes = 0
  #held = false
  #cpuMs = 0
  readonly #waitedMs: () => number
  #waitedAtLast = 0

  /** @param waitedMs how long the thread that beats has waited for a processor so far, milliseconds */
  constructor(waitedMs: () => number = () => 0) {
    this.#waitedMs = waitedMs
  }

  /** As they come: some lines at once, of which the last counts. */
  take(lines: Buffer): void {
    this.#last = performance.now()
    this.#waitedAtLast = this.#waitedMs()
    const text = lines.toString('latin1').trimEnd()
    const [bytes, thread, cpuMs] = text.slice(text.lastIndexOf('\n') + 1).split(' ')
    this.#bytes = Number(bytes) || this.#bytes
    this.#held = thread === 'held'
    this.#cpuMs = Number(cpuMs) || this.#cpuMs
  }

  /**
   * Monotonic milliseconds of the last beat; of the start before there is one. Later by what the process has waited for a
   * processor since: on a busy machine it is starved, not silent.
   */
  last(): number {
    if (performance.now() - this.#last < LATE_MS) return this.#last
    return this.#last + Math.max(0, this.#waitedMs() - this.#waitedAtLast)
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
