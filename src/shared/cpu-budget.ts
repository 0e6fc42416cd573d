import { Signal } from './quipu-error.ts'

/**
 * A limit on the CPU time of work that holds the event loop. The work calls `tick` in its loops, and ends with an error
 * when its time is used up. Waiting does not count. Time that other programs on a busy machine take does not count
 * either, up to a limit: a process that is silent for long is taken for dead, whatever the reason.
 *
 *   const budget = createCpuBudget(3_000, () => new EngineError(…))
 *   const parsed = budget.run(() => parse(text))      // parse calls tick()
 *   const known = await lookUp(parsed)                // not counted
 *   const analyzed = budget.run(() => analyze(known)) // the time of parse counts too
 */
export interface CpuBudget {
  /**
   * Runs `work`, which must not wait. Throws once all runs together have used up the time; each further run throws
   * soon.
   */
  run<T>(work: () => T): T
}

/** Thrown when work has held the event loop for as long as it may. The caller starts the work again in a thread. */
export class HoldsLoop extends Signal {}

export interface CpuBudgetOptions {
  /**
   * Work that has held the event loop for this elapsed time, milliseconds, throws `HoldsLoop`. Work that got less than
   * half of that as CPU time continues, because it would take as long in a thread. Absent: only the budget ends work.
   */
  readonly holdMs?: number | undefined
  /** CPU time of the calling thread, milliseconds. Given in a thread whose event loop serves nothing else. */
  readonly threadCpuMs?: (() => number) | undefined
  /** Work for the same purpose that another budget has paid for: it counts as if this budget had run it. */
  readonly before?: WorkTimes | undefined
}

/** How long a piece of work took, milliseconds. */
export interface WorkTimes {
  /** Elapsed time, milliseconds. */
  readonly heldMs: number
  /** CPU time, milliseconds. */
  readonly usedMs: number
}

/**
 * The longest elapsed time in which runs may hold the event loop, if the loop makes no pass between them. A budget of
 * more than this may hold it for the whole budget.
 */
const LONGEST_HOLD_MS = 6_000

/** How many rounds pass between two looks at the clock. */
const ROUNDS = 128

/** A shorter run counts with its elapsed time: reading the CPU time takes as long as parsing a small statement. */
const SHORT_RUN_MS = 1

/** Runs that begin within this time share one reading of the process's CPU time. */
const SHARED_LOOK_MS = 5

/** The last reading of the process's CPU time, used for at most `SHARED_LOOK_MS`. */
let looked: { readonly at: number; readonly cpu: NodeJS.CpuUsage } | undefined

function cpuAt(now: number): NodeJS.CpuUsage {
  if (looked === undefined || now < looked.at || now - looked.at > SHARED_LOOK_MS)
    looked = { at: now, cpu: process.cpuUsage() }
  return looked.cpu
}

/** The clock of the work that runs now. `run` sets it, so that the parts of the work need not pass it on. */
let current: Clock | undefined
let rounds = 0

/** Counts one round of work whose length depends on its input: a node, a token, a column. */
export function tick(): void {
  if (current !== undefined && ++rounds % ROUNDS === 0) current.check()
}

/**
 * Runs a part of the work of a budget and measures it.
 * @returns the result, and the time that it took; outside of a run, its CPU time is not measured and is 0
 */
export function measureWork<T>(work: () => T): { readonly value: T; readonly times: WorkTimes } {
  const clock = current
  const startedAt = performance.now()
  const before = clock?.usedMs() ?? 0
  const value = work()
  return { value, times: { heldMs: performance.now() - startedAt, usedMs: (clock?.usedMs() ?? 0) - before } }
}

interface Clock {
  check(): void
  /** CPU time of the run so far, milliseconds. */
  usedMs(): number
}

/** @param exceeded makes the error that ends the work */
export function createCpuBudget(
  milliseconds: number,
  exceeded: () => Error,
  { holdMs = Infinity, threadCpuMs, before }: CpuBudgetOptions = {},
): CpuBudget {
  const longestHoldMs = threadCpuMs ? Infinity : Math.max(milliseconds, LONGEST_HOLD_MS)
  let spentMs = before?.usedMs ?? 0
  /** The elapsed time of the runs that have ended since the last pass of the event loop. */
  let heldBeforeMs = 0
  /** The CPU time of the same runs. */
  let usedBeforeMs = 0
  const held = (heldMs: number, usedMs: number): void => {
    if (heldBeforeMs === 0) setImmediate(() => (heldBeforeMs = usedBeforeMs = 0)).unref()
    heldBeforeMs += heldMs
    usedBeforeMs += usedMs
  }
  if (before && before.heldMs > SHORT_RUN_MS) held(before.heldMs, before.usedMs)
  return {
    run(work) {
      const outer = current
      const startedAt = performance.now()
      const threadBeforeMs = threadCpuMs?.() ?? 0
      const cpuBefore = threadCpuMs ? undefined : cpuAt(startedAt)
      const wallMs = (): number => performance.now() - startedAt
      // The process has other threads and the machine other processes, so the run used at most the smaller of the two
      // times.
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
        usedMs,
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
