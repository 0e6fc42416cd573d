import type { TaskBounds } from '../../../execution/api/task.ts'
import type { Clock } from '../../../shared/clock.ts'
import { EngineError, failureOf, type Failure } from '../../../shared/engine-error.ts'
import type { Quantity } from '../../../shared/quantities.ts'
import type { QueryEventOf } from '../stream/events.ts'
import {
  cpuFailure,
  memoryFailure,
  queryLimits,
  scanFailure,
  taskBounds,
  type QueryLimits,
  type ServerBounds,
} from './query-limits.ts'
import type { Figures } from './figures.ts'

/** The limits of a server for its queries. */
export interface LimitSettings {
  readonly bounds: ServerBounds
  readonly maxAttempts: number
}

interface LimitDeps {
  readonly clock: Clock
  readonly settings: LimitSettings
  /** The session properties of the query when it was created. */
  readonly properties: Readonly<Record<string, string>>
  /** The time of QueryCreated, milliseconds since the epoch. */
  readonly createdMillis: number
  readonly figures: Pick<Figures, 'usage'>
  readonly fail: (failure: Failure) => Promise<void>
}

/** Node's timers fire at once for longer delays. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
/** How much longer a worker lets a task run, so that the coordinator's own error comes first, unless it is gone. */
const GRACE_MS = 5_000

/** When each time limit of a query began to run, by the monotonic clock; undefined while it does not run. */
type Began = Partial<Record<'runTime' | 'executionTime' | 'planningTime', number | undefined>>

/** The time limit of a query that expires first, and when. */
interface Due {
  readonly at: number
  readonly time: keyof Began
}

/**
 * Ends the query when it exceeds its limits. Times are enforced here, from their recorded beginnings on, also after a
 * restart. CPU, memory and bytes read are enforced where the task runs, and also here as far as tasks report them.
 */
export class HeldLimits {
  readonly #deps: LimitDeps
  #limits: QueryLimits
  #began: Began = {}
  #timer: NodeJS.Timeout | undefined
  /** When the timer fires, by the monotonic clock. */
  #timerAt = Infinity
  #over = false

  constructor(deps: LimitDeps) {
    this.#deps = deps
    this.#limits = this.#limitsWith({})
  }

  /** How many times a task may be begun. */
  get attempts(): number {
    return this.#limits.attempts
  }

  /**
   * Starts the time limits that run from the query's beginning.
   * @param planned the plan of a query that an earlier coordinator planned
   */
  begin(planned?: QueryEventOf<'QueryPlanned'>['data']): void {
    this.#began.runTime = this.#monotonic(this.#deps.createdMillis)
    if (planned?.sessionProperties) this.#limits = this.#limitsWith(planned.sessionProperties)
    if (planned) {
      const { executionStartedAt, parseNanos, analysisNanos, planningNanos } = planned
      const plannedAt = executionStartedAt === undefined ? this.#deps.clock.now() : Date.parse(executionStartedAt)
      this.#began.executionTime = this.#monotonic(plannedAt - (parseNanos + analysisNanos + planningNanos) / 1e6)
    }
    this.#arm()
  }

  /** Starts the limit for planning. @param beforeMs how long earlier coordinators have planned the query */
  planning(beforeMs = 0): void {
    const began = this.#deps.clock.monotonicMs() - beforeMs
    this.#began.planningTime = began
    this.#began.executionTime ??= began
    this.#arm()
  }

  /** Applies the properties that the statement sets for itself: WITH SESSION. */
  narrow(properties: Readonly<Record<string, string>>): void {
    if (Object.keys(properties).length === 0) return
    this.#limits = this.#limitsWith(properties)
    this.#arm()
  }

  /**
   * Ends the limit for planning.
   * @throws EngineError EXCEEDED_TIME_LIMIT when planning blocked the event loop past its limit
   */
  planned(): void {
    const { planningTime: since } = this.#began
    if (since === undefined) return
    delete this.#began.planningTime
    if (this.#dueAt(since, this.#limits.planningTime) <= this.#deps.clock.monotonicMs())
      throw new EngineError('EXCEEDED_TIME_LIMIT', words.planningTime(this.#limits.planningTime))
    this.#arm()
  }

  /** The limits that are sent with a task, beside its fragment. */
  forTask(): { readonly remainingMillis: number; readonly bounds?: TaskBounds } {
    const bounds = taskBounds(this.#limits, this.#deps.figures.usage())
    const next = this.#next()
    const remaining = next ? Math.max(0, next.at - this.#deps.clock.monotonicMs()) : 0
    return { remainingMillis: remaining + GRACE_MS, ...(bounds && { bounds }) }
  }

  /** Checks the limits again: tasks have reported their usage. */
  check(): void {
    const { cpuTime, memory, scan } = this.#limits
    if (this.#over || (!cpuTime && !memory && !scan)) return
    const { cpuMillis, memoryBytes, scannedBytes } = this.#deps.figures.usage()
    if (cpuTime && cpuMillis * 1e6 > cpuTime.amount) this.#fail(cpuFailure(cpuTime))
    else if (memory && memoryBytes > memory.amount) this.#fail(memoryFailure(memory))
    else if (scan && scannedBytes > scan.amount) this.#fail(scanFailure(scan))
  }

  /** Stops all limits: the query has ended, or continues on another coordinator. */
  dispose(): void {
    this.#over = true
    clearTimeout(this.#timer)
  }

  #limitsWith(properties: Readonly<Record<string, string>>): QueryLimits {
    const { settings, properties: ofSession } = this.#deps
    return queryLimits({ properties: { ...ofSession, ...properties } }, settings.bounds, settings.maxAttempts)
  }

  /** Converts to monotonic time. The wall clock is read once, so later changes of it move nothing. */
  #monotonic(millis: number): number {
    const { clock } = this.#deps
    return clock.monotonicMs() - Math.max(0, clock.now() - millis)
  }

  #dueAt(since: number, limit: Quantity): number {
    return since + limit.amount / 1e6
  }

  #next(): Due | undefined {
    let next: Due | undefined
    for (const time of TIMES) {
      const since = this.#began[time]
      if (since === undefined) continue
      const at = this.#dueAt(since, this.#limits[time])
      if (!next || at < next.at) next = { at, time }
    }
    return next
  }

  /**
   * Sets the timer for the next limit, and replaces it only for a nearer time. A timer that fires too early checks
   * again: most queries end before theirs fires.
   */
  #arm(): void {
    const next = this.#next()
    if (!next || this.#over || next.at >= this.#timerAt) return
    clearTimeout(this.#timer)
    const now = this.#deps.clock.monotonicMs()
    const wait = Math.min(Math.ceil(Math.max(0, next.at - now)), LONGEST_TIMER_MS)
    this.#timerAt = now + wait
    this.#timer = setTimeout(() => {
      this.#timerAt = Infinity
      const due = this.#next()
      if (!due || due.at > this.#deps.clock.monotonicMs()) return this.#arm()
      const { time } = due
      this.#fail({ errorName: 'EXCEEDED_TIME_LIMIT', message: words[time](this.#limits[time]) })
    }, wait)
  }

  #fail({ errorName, message }: Pick<Failure, 'errorName' | 'message'>): void {
    this.dispose()
    // If the failure cannot be recorded, the recorder reports it.
    this.#deps.fail(failureOf(errorName, message)).catch(() => {})
  }
}

const TIMES = ['runTime', 'executionTime', 'planningTime'] as const

/** Trino's messages. */
const words: Readonly<Record<(typeof TIMES)[number], (limit: Quantity) => string>> = {
  runTime: ({ shown }) => `Query exceeded maximum time limit of ${shown}`,
  executionTime: ({ shown }) => `Query exceeded the maximum execution time limit of ${shown}`,
  planningTime: ({ shown }) => `Query exceeded the maximum planning time limit of ${shown}`,
}
