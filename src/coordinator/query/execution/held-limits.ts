import type { TaskBounds } from '../../../execution/api/task.ts'
import type { Clock } from '../../../shared/clock.ts'
import { EngineError, failureOf, type Failure } from '../../../shared/engine-error.ts'
import type { Quantity } from '../../../shared/quantities.ts'
import type { QueryEventOf } from '../events.ts'
import {
  cpuFailure,
  memoryFailure,
  queryLimits,
  scanFailure,
  taskBounds,
  type QueryLimits,
  type ServerBounds,
} from '../query-limits.ts'
import type { Figures } from './figures.ts'

/** What bounds the queries of a server. */
export interface LimitSettings {
  readonly bounds: ServerBounds
  readonly maxAttempts: number
}

interface LimitPorts {
  readonly clock: Clock
  readonly settings: LimitSettings
  /** As the query was created. */
  readonly properties: Readonly<Record<string, string>>
  /** Of QueryCreated, milliseconds since the epoch. */
  readonly createdMillis: number
  readonly figures: Pick<Figures, 'usage'>
  readonly fail: (failure: Failure) => Promise<void>
}

/** Timers fire at once above it. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
/** By how much a worker lets a task run longer: the coordinator's own words come first, unless it is gone. */
const GRACE_MS = 5_000

/** Of the times that bound a query: since when each runs, by the monotonic clock; undefined while it does not. */
type Began = Partial<Record<'runTime' | 'executionTime' | 'planningTime', number | undefined>>

/** The time of a query that is over first, and when. */
interface Due {
  readonly at: number
  readonly time: keyof Began
}

/**
 * Ends the query when it takes more than it may. Times are held here, from their recorded beginnings on, also after a
 * restart; CPU, memory and what is read where the task runs, and as far as tasks tell of them here too.
 */
export class HeldLimits {
  readonly #ports: LimitPorts
  #limits: QueryLimits
  #began: Began = {}
  #timer: NodeJS.Timeout | undefined
  /** When it fires, by the monotonic clock. */
  #timerAt = Infinity
  #over = false

  constructor(ports: LimitPorts) {
    this.#ports = ports
    this.#limits = this.#limitsWith({})
  }

  /** Times that a task may be begun. */
  get attempts(): number {
    return this.#limits.attempts
  }

  /** Those that go on from their beginning. @param planned of a query that the coordinator before planned */
  begin(planned?: QueryEventOf<'QueryPlanned'>['data']): void {
    this.#began.runTime = this.#monotonic(this.#ports.createdMillis)
    if (planned?.sessionProperties) this.#limits = this.#limitsWith(planned.sessionProperties)
    if (planned) {
      const { executionStartedAt, parseNanos, analysisNanos, planningNanos } = planned
      const plannedAt = executionStartedAt === undefined ? this.#ports.clock.now() : Date.parse(executionStartedAt)
      this.#began.executionTime = this.#monotonic(plannedAt - (parseNanos + analysisNanos + planningNanos) / 1e6)
    }
    this.#arm()
  }

  /** @param beforeMs for how long coordinators before have planned it */
  planning(beforeMs = 0): void {
    const began = this.#ports.clock.monotonicMs() - beforeMs
    this.#began.planningTime = began
    this.#began.executionTime ??= began
    this.#arm()
  }

  /** What the statement itself sets for itself: WITH SESSION. */
  narrow(properties: Readonly<Record<string, string>>): void {
    if (Object.keys(properties).length === 0) return
    this.#limits = this.#limitsWith(properties)
    this.#arm()
  }

  /** @throws EngineError EXCEEDED_TIME_LIMIT, where planning has held the event loop for longer than it may */
  planned(): void {
    const { planningTime: since } = this.#began
    if (since === undefined) return
    delete this.#began.planningTime
    if (this.#dueAt(since, this.#limits.planningTime) <= this.#ports.clock.monotonicMs())
      throw new EngineError('EXCEEDED_TIME_LIMIT', words.planningTime(this.#limits.planningTime))
    this.#arm()
  }

  /** What a task is told, beside its fragment. */
  forTask(): { readonly remainingMillis: number; readonly bounds?: TaskBounds } {
    const bounds = taskBounds(this.#limits, this.#ports.figures.usage())
    const next = this.#next()
    const remaining = next ? Math.max(0, next.at - this.#ports.clock.monotonicMs()) : 0
    return { remainingMillis: remaining + GRACE_MS, ...(bounds && { bounds }) }
  }

  /** Tasks told of what they have taken. */
  check(): void {
    const { cpuTime, memory, scan } = this.#limits
    if (this.#over || (!cpuTime && !memory && !scan)) return
    const { cpuMillis, memoryBytes, scannedBytes } = this.#ports.figures.usage()
    if (cpuTime && cpuMillis * 1e6 > cpuTime.amount) this.#fail(cpuFailure(cpuTime))
    else if (memory && memoryBytes > memory.amount) this.#fail(memoryFailure(memory))
    else if (scan && scannedBytes > scan.amount) this.#fail(scanFailure(scan))
  }

  /** The query has ended, or goes on elsewhere. */
  dispose(): void {
    this.#over = true
    clearTimeout(this.#timer)
  }

  #limitsWith(properties: Readonly<Record<string, string>>): QueryLimits {
    const { settings, properties: ofSession } = this.#ports
    return queryLimits({ properties: { ...ofSession, ...properties } }, settings.bounds, settings.maxAttempts)
  }

  /** The clock of the wall is asked once: what it does later moves nothing. */
  #monotonic(millis: number): number {
    const { clock } = this.#ports
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

  /** A timer that fires too soon looks again: most queries end before theirs, and it is made anew for a nearer time alone. */
  #arm(): void {
    const next = this.#next()
    if (!next || this.#over || next.at >= this.#timerAt) return
    clearTimeout(this.#timer)
    const now = this.#ports.clock.monotonicMs()
    const wait = Math.min(Math.ceil(Math.max(0, next.at - now)), LONGEST_TIMER_MS)
    this.#timerAt = now + wait
    this.#timer = setTimeout(() => {
      this.#timerAt = Infinity
      const due = this.#next()
      if (!due || due.at > this.#ports.clock.monotonicMs()) return this.#arm()
      const { time } = due
      this.#fail({ errorName: 'EXCEEDED_TIME_LIMIT', message: words[time](this.#limits[time]) })
    }, wait)
  }

  #fail({ errorName, message }: Pick<Failure, 'errorName' | 'message'>): void {
    this.dispose()
    // What cannot be recorded is told by who records.
    this.#ports.fail(failureOf(errorName, message)).catch(() => {})
  }
}

const TIMES = ['runTime', 'executionTime', 'planningTime'] as const

/** Trino's. */
const words: Readonly<Record<(typeof TIMES)[number], (limit: Quantity) => string>> = {
  runTime: ({ shown }) => `Query exceeded maximum time limit of ${shown}`,
  executionTime: ({ shown }) => `Query exceeded the maximum execution time limit of ${shown}`,
  planningTime: ({ shown }) => `Query exceeded the maximum planning time limit of ${shown}`,
}
