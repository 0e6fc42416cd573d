import { readFileSync } from 'node:fs'

/**
 * How long a thread has waited for a processor since its start, milliseconds; undefined if the system does not report
 * it.
 */
export type WaitedMs = () => number | undefined

/**
 * How long a child has been silent although it could have spoken. Counted in ticks, not by the clock: after a sleep of
 * the machine or of this process the child gets its full time. Time in which the child waits for a processor does not
 * count: on a busy machine it is starved, not hung.
 */
export class Silence {
  readonly #waitedMs: WaitedMs
  #silentMs = 0
  #waitedBefore: number | undefined

  constructor(waitedMs: WaitedMs) {
    this.#waitedMs = waitedMs
  }

  /** Call it when the child has sent a message. */
  broken(): void {
    this.#silentMs = 0
  }

  /** Counts a tick of this length, milliseconds. @returns how long the child has been silent, milliseconds */
  tick(tickMs: number): number {
    const waited = this.#waitedMs()
    const waitedInTick = Math.max(0, (waited ?? 0) - (this.#waitedBefore ?? waited ?? 0))
    this.#waitedBefore = waited
    this.#silentMs += Math.max(0, tickMs - waitedInTick)
    return this.#silentMs
  }
}

/** Reads the waiting time of a process's main thread, which runs its event loop. Only Linux reports it. */
export function waitedForCpu(pid: number | undefined): WaitedMs {
  return () => {
    try {
      return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6
    } catch {
      return undefined
    }
  }
}
