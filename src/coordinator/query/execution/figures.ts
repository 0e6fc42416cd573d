import { isTaskTerminal, type TaskStats } from '../../../execution/api/task.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { QueryUsage } from '../../dispatch/groups/group-tree.ts'
import type { EndFigures } from '../decider.ts'
import type { QueryAggregate } from '../query-aggregate.ts'
import { isTerminal, type KnownQuery } from '../state.ts'
import { queryTotals, stagesAtEnd, statsOf, type QueryTotals } from '../totals.ts'
import type { Recorder } from './first-append.ts'
import type { OngoingWork } from './ongoing-work.ts'
import type { TaskId } from '../../../shared/ids.ts'

/** At most one QueryProgressed a query in this time, and none for a query that is over sooner. */
const PROGRESS_MS = 1000

interface FiguresPorts {
  readonly clock: Clock
  readonly aggregate: Pick<QueryAggregate, 'intended'>
  readonly work: Pick<OngoingWork, 'suspended'>
  readonly record: Recorder['record']
  readonly wake: () => void
}

/** What the query's tasks have done: newer than the log while they run. */
export class Figures {
  readonly #ports: FiguresPorts
  readonly #live = new Map<TaskId, TaskStats>()
  #progressAt: number

  constructor(ports: FiguresPorts) {
    this.#ports = ports
    this.#progressAt = ports.clock.monotonicMs()
  }

  /** Newest figures of running tasks, by task id. */
  get live(): ReadonlyMap<TaskId, TaskStats> {
    return this.#live
  }

  /** New figures of a running task; the log has them once a second at most, and nobody waits for that. */
  progressed(task: TaskId, stats: TaskStats): void {
    const { clock, work, record, wake } = this.#ports
    this.#live.set(task, stats)
    wake()
    const now = clock.monotonicMs()
    if (now - this.#progressAt < PROGRESS_MS || stats.endTime !== undefined || work.suspended) return
    this.#progressAt = now
    record([
      (query) =>
        query.kind === 'NONE' || isTerminal(query.kind)
          ? []
          : [{ type: 'ReportProgress', data: { tasks: [{ taskId: task, state: 'RUNNING', stats }] } }],
    ]).catch(() => {})
  }

  /** What its resource group counts. */
  usage(): QueryUsage {
    const query = this.#ports.aggregate.intended
    if (query.kind === 'NONE') return { cpuMillis: 0, memoryBytes: 0, scannedBytes: 0 }
    const { cpuNanos, rawInputBytes } = queryTotals(query, this.#live, this.#ports.clock.now())
    let memoryBytes = 0
    for (const task of query.tasks.values())
      if (!isTaskTerminal(task.state)) memoryBytes += statsOf(task, this.#live)?.memoryBytes ?? 0
    return { cpuMillis: cpuNanos / 1e6, memoryBytes, scannedBytes: rawInputBytes }
  }

  totals(): QueryTotals | undefined {
    const query = this.#ports.aggregate.intended
    return query.kind === 'NONE' ? undefined : queryTotals(query, this.#live, this.#ports.clock.now())
  }

  /** As the event of the query's end has them. */
  atEnd(query: KnownQuery, end: 'FINISHED' | 'FAILED' | 'CANCELED'): EndFigures {
    const now = this.#ports.clock.now()
    const executionStartedAt = query.planned?.executionStartedAt
    return {
      stages: [...stagesAtEnd(query, end, new Date(now).toISOString())],
      totals: queryTotals(query, this.#live, now),
      ...(executionStartedAt === undefined ? {} : { executionStartedAt }),
    }
  }
}
