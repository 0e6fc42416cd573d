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
export function createCpuBudget(milliseconds: number, exceeded: () => Error): CpuBudget {
  let spentMs = 0
  /** By the clock, in runs that have ended since the event loop turned. */
  let heldBeforeMs = 0
  const held = (heldMs: number): void => {
    if (heldBeforeMs === 0) setImmediate(() => (heldBeforeMs = 0)).unref()
    heldBeforeMs += heldMs
  }
  return {
    run(work) {
      const outer = current
      const startedAt = performance.now()
      const cpuBefore = cpuAt(startedAt)
      const wallMs = (): number => performance.now() - startedAt
      // The process has other threads, and the machine other processes: it was no more than the lesser of the two.
      const usedMs = (): number => {
        const heldMs = wallMs()
        if (heldMs <= SHORT_RUN_MS) return heldMs
        const { user, system } = process.cpuUsage(cpuBefore)
        return Math.min(heldMs, (user + system) / 1000)
      }
      current = {
        check() {
          const heldMs = wallMs()
          if (heldBeforeMs + heldMs >= Math.max(milliseconds, LONGEST_HOLD_MS)) throw exceeded()
          if (spentMs + heldMs >= milliseconds && spentMs + usedMs() >= milliseconds) throw exceeded()
        },
      }
      try {
        return work()
      } finally {
        spentMs += usedMs()
        const heldMs = wallMs()
        if (heldMs > SHORT_RUN_MS) held(heldMs)
        current = outer
      }
    },
  }
}
