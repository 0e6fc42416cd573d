import { readFileSync } from 'node:fs'

/** A beat is late only after this time, milliseconds. */
const LATE_MS = 1_000

/**
 * How long a process's main thread has waited for a processor so far, milliseconds; 0 when the operating system does
 * not say.
 */
export function waitedForCpuMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

/**
 * The last beat of a process, from lines with resident bytes, whether its thread is held, and CPU milliseconds: `123456
 * held 789`.
 */
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

  /** Takes bytes as they arrive: possibly several lines, of which the last counts. */
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
   * Monotonic milliseconds of the last beat; of the start before the first beat. The time that the process has waited
   * for a processor since then is added: on a busy machine it is starved, not silent.
   */
  last(): number {
    if (performance.now() - this.#last < LATE_MS) return this.#last
    return this.#last + Math.max(0, this.#waitedMs() - this.#waitedAtLast)
  }

  /** Resident bytes. */
  bytes(): number {
    return this.#bytes
  }

  /** CPU time so far, all threads, milliseconds. */
  cpuMs(): number {
    return this.#cpuMs
  }

  /** Whether a function in JavaScript held the thread that runs statements. */
  isHeld(): boolean {
    return this.#held
  }
}
