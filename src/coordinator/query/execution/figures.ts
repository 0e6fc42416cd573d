import { isTaskTerminal, type TaskStats } from '../../../execution/api/task.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { QueryUsage } from '../../dispatch/groups/group-tree.ts'
import type { EndFigures, QueryCommand } from '../stream/decider.ts'
import type { QueryAggregate } from '../stream/query-aggregate.ts'
import { isTerminal, type KnownQuery } from '../stream/state.ts'
import { queryTotals, stagesAtEnd, statsOf, type QueryTotals } from '../statistics/totals.ts'
import type { Recorder } from '../stream/recorder.ts'
import type { OngoingWork } from './ongoing-work.ts'
import type { TaskId } from '../../../shared/ids.ts'

/**
 * How long the first QueryProgressed of a query waits, and how long each later one waits after the one before, in
 * milliseconds; after the end of this list every wait is as long as the last. The events stay in the log for ever: an
 * hour costs 36 of them. Readers of open queries get newer figures from memory.
 */
const WAITS_MS = [1, 2, 5, 10, 20, 30, 60, 120].map((seconds) => 1000 * seconds)

interface FiguresDeps {
  readonly clock: Clock
  readonly aggregate: Pick<QueryAggregate, 'intended'>
  readonly work: Pick<OngoingWork, 'suspended'>
  readonly record: Recorder['record']
  readonly wake: () => void
}

/** The figures of the query's tasks: newer than the log while they run. */
export class Figures {
  readonly #deps: FiguresDeps
  readonly #live = new Map<TaskId, TaskStats>()
  #progressAt: number
  /** How many of the waits have passed, those under earlier coordinators included. */
  #recorded: number

  constructor(deps: FiguresDeps) {
    this.#deps = deps
    this.#progressAt = deps.clock.monotonicMs()
    this.#recorded = waitsPassed(deps.aggregate.intended, deps.clock.now())
  }

  /** Newest figures of running tasks, by task id. */
  get live(): ReadonlyMap<TaskId, TaskStats> {
    return this.#live
  }

  /** Takes new figures of a running task. The log gets those of all tasks from time to time; this is not awaited. */
  progressed(task: TaskId, stats: TaskStats): void {
    const { clock, work, record, wake } = this.#deps
    this.#live.set(task, stats)
    wake()
    const now = clock.monotonicMs()
    const wait = WAITS_MS[Math.min(this.#recorded, WAITS_MS.length - 1)]!
    if (now - this.#progressAt < wait || stats.endTime !== undefined || work.suspended) return
    this.#progressAt = now
    this.#recorded++
    record([
      (query) =>
        query.kind === 'NONE' || isTerminal(query.kind)
          ? []
          : [{ type: 'ReportProgress', data: { tasks: runningTasks(query, this.#live) } }],
    ]).catch(() => {})
  }

  /** The usage that the query's resource group counts. */
  usage(): QueryUsage {
    const query = this.#deps.aggregate.intended
    if (query.kind === 'NONE') return { cpuMillis: 0, memoryBytes: 0, scannedBytes: 0 }
    const { cpuNanos, rawInputBytes } = queryTotals(query, this.#live, this.#deps.clock.now())
    let memoryBytes = 0
    for (const task of query.tasks.values())
      if (!isTaskTerminal(task.state)) memoryBytes += statsOf(task, this.#live)?.memoryBytes ?? 0
    return { cpuMillis: cpuNanos / 1e6, memoryBytes, scannedBytes: rawInputBytes }
  }

  totals(): QueryTotals | undefined {
    const query = this.#deps.aggregate.intended
    return query.kind === 'NONE' ? undefined : queryTotals(query, this.#live, this.#deps.clock.now())
  }

  /** The figures for the event of the query's end. */
  atEnd(query: KnownQuery, end: 'FINISHED' | 'FAILED' | 'CANCELED'): EndFigures {
    const now = this.#deps.clock.now()
    const executionStartedAt = query.planned?.executionStartedAt
    return {
      stages: [...stagesAtEnd(query, end, new Date(now).toISOString())],
      totals: queryTotals(query, this.#live, now),
      ...(executionStartedAt === undefined ? {} : { executionStartedAt }),
    }
  }
}

/**
 * How many of the waits have passed for a query that an earlier coordinator ran, so that restarts add no extra events.
 */
function waitsPassed(query: QueryAggregate['intended'], now: number): number {
  const startedAt = query.kind === 'NONE' || query.recoveries === 0 ? undefined : query.planned?.executionStartedAt
  if (startedAt === undefined) return 0
  let left = now - Date.parse(startedAt)
  return WAITS_MS.filter((wait) => (left -= wait) >= 0).length
}

type ProgressedTask = Extract<QueryCommand, { type: 'ReportProgress' }>['data']['tasks'][number]

function runningTasks(query: KnownQuery, live: ReadonlyMap<TaskId, TaskStats>): ProgressedTask[] {
  return [...live]
    .filter(([taskId, stats]) => {
      const known = query.tasks.get(taskId)
      return known && !isTaskTerminal(known.state) && stats.endTime === undefined
    })
    .map(([taskId, stats]) => ({ taskId, state: 'RUNNING', stats }))
}
