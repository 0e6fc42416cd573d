import { Signal } from './quipu-error.ts'

/**
 * A bound on the CPU time of work that holds the event loop: it counts itself (`tick`) where it goes round, and is ended when
 * it has had its time. Waiting takes nothing of it, nor does the time that other programs of a busy machine take, up to a
 * bound: whoever is silent for long is taken for dead, whatever the reason.
 *
 *   const budget = createCpuBudget(3_000, () => new EngineError(…))
 *   const parsed = budget.run(() => parse(text))      // parse calls tick()
 *   const known = await lookUp(parsed)                // not counted
 *   const analyzed = budget.run(() => analyze(known)) // what parse took counts
 */
export interface CpuBudget {
  /** Runs `work`, which does not wait. Throws once all that ran together has had its time; each further run throws soon. */
  run<T>(work: () => T): T
}

/** Work has held the event loop for as long as it may: whoever began it begins it anew in a thread. */
export class HoldsLoop extends Signal {}

export interface CpuBudgetOptions {
  /**
   * Work that has held the event loop for so many milliseconds of the clock throws `HoldsLoop`; not where it had less than
   * half of that as CPU time, since it would take no less elsewhere. Absent: only the budget ends work.
   */
  readonly holdMs?: number | undefined
  /** CPU time that the calling thread has had, milliseconds. Given in a thread whose event loop nobody waits for. */
  readonly threadCpuMs?: (() => number) | undefined
}

/** Runs between which the event loop does not turn may hold it so long by the clock, or for all their time where that is more. */
const LONGEST_HOLD_MS = 6_000

/** So many rounds between two looks at the clock. */
const ROUNDS = 128

/** A run that took no longer by the clock counts by it: what the system says of CPU takes as long as a small statement's parse. */
const SHORT_RUN_MS = 1

/** Runs that begin within so long share one look at the CPU that the process has had. */
const SHARED_LOOK_MS = 5

/** The CPU that the process had at some time, no more than `SHARED_LOOK_MS` before it is used. */
let looked: { readonly at: number; readonly cpu: NodeJS.CpuUsage } | undefined

function cpuAt(now: number): NodeJS.CpuUsage {
  if (looked === undefined || now < looked.at || now - looked.at > SHARED_LOOK_MS)
    looked = { at: now, cpu: process.cpuUsage() }
  return looked.cpu
}

/** Whose work runs now: set while `run` does, so that no part of the work has to hand it to the next. */
let current: Clock | undefined
let rounds = 0

/** One round of work that goes on for as long as what it works on: a node, a token, a column. */
export function tick(): void {
  if (current !== undefined && ++rounds % ROUNDS === 0) current.check()
}

interface Clock {
  check(): void
}

/** @param exceeded makes the error that ends the work */
export function createCpuBudget(
  milliseconds: number,
  exceeded: () => Error,
  { holdMs = Infinity, threadCpuMs }: CpuBudgetOptions = {},
): CpuBudget {
  const longestHoldMs = threadCpuMs ? Infinity : Math.max(milliseconds, LONGEST_HOLD_MS)
  let spentMs = 0
  /** By the clock, in runs that have ended since the event loop turned. */
  let heldBeforeMs = 0
  /** As CPU time. */
  let usedBeforeMs = 0
  const held = (heldMs: number, usedMs: number): void => {
    if (heldBeforeMs === 0) setImmediate(() => (heldBeforeMs = usedBeforeMs = 0)).unref()
    heldBeforeMs += heldMs
    usedBeforeMs += usedMs
  }
  return {
    run(work) {
      const outer = current
      const startedAt = performance.now()
      const threadBeforeMs = threadCpuMs?.() ?? 0
      const cpuBefore = threadCpuMs ? undefined : cpuAt(startedAt)
      const wallMs = (): number => performance.now() - startedAt
      // The process has other threads, and the machine other processes: it was no more than the lesser of the two.
      const usedMs = (): number => {
        const heldMs = wallMs()
        if (heldMs <= SHORT_RUN_MS) return heldMs
        if (threadCpuMs) return threadCpuMs() - threadBeforeMs
        const { user, system } = process.cpuUsage(cpuBefore)
        return Math.min(heldMs, (user + system) / 1000)
      }
      current = {
        check() {
          const heldMs = wallMs()
          if (heldBeforeMs + heldMs >= longestHoldMs) throw exceeded()
          if (spentMs + heldMs >= milliseconds && spentMs + usedMs() >= milliseconds) throw exceeded()
          if (heldBeforeMs + heldMs >= holdMs && usedBeforeMs + usedMs() >= holdMs / 2) throw new HoldsLoop()
        },
      }
      try {
        return work()
      } finally {
        const used = usedMs()
        spentMs += used
        const heldMs = wallMs()
        if (heldMs > SHORT_RUN_MS) held(heldMs, used)
        current = outer
      }
    },
  }
}
