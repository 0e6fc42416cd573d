import { isTaskTerminal, type TaskStats } from '../../../execution/api/task.ts'
import type { QueryEventOf } from '../stream/events.ts'
import type { KnownQuery, TaskRecord } from '../stream/state.ts'
import { resultStage } from '../../../planner/query-plan.ts'
import { ROOT_STAGE, type TaskId } from '../../../shared/ids.ts'

export type QueryTotals = QueryEventOf<'QueryFinished'>['data']['totals']
type PlannedStage = QueryEventOf<'QueryPlanned'>['data']['stages'][number]
export type StageTimes = QueryEventOf<'QueryFinished'>['data']['stages'][number]

/**
 * The figures of a query: sums over its tasks. Input counts the tasks of leaf stages only. Output counts the task of
 * the root where it has one, otherwise the tasks of the stage that the root relays, so that no row counts twice.
 * @param live newer figures of running tasks, by task id
 * @param now milliseconds since the epoch; taken as the end of tasks that still run
 */
export function queryTotals(query: KnownQuery, live: ReadonlyMap<TaskId, TaskStats>, now: number): QueryTotals {
  const planned = query.planned
  const tasks = [...query.tasks.values()].map((task) => ({ task, stats: statsOf(task, live) }))
  const leaves = new Set(planned?.stages.filter((stage) => stage.inputs.length === 0).map((stage) => stage.id))
  const outputStage = tasks.some(({ task }) => task.stage === ROOT_STAGE)
    ? ROOT_STAGE
    : planned && resultStage(planned.stages)?.id
  const all = { ...NO_WORK }
  const input = { ...NO_INPUT }
  const output = { ...NO_OUTPUT }
  for (const { task, stats } of tasks) {
    if (!stats) continue
    addTo(all, stats)
    if (leaves.has(task.stage)) addTo(input, stats)
    if (task.stage === outputStage) addTo(output, stats)
  }
  const ended = query.kind === 'FINISHED' || query.kind === 'FAILED' ? Date.parse(query.endedAt) : now
  return {
    elapsedNanos: Math.max(0, ended - Date.parse(query.createdAt)) * 1e6,
    queuedNanos: query.admitted?.queuedNanos ?? waitedNanos(query, ended),
    analysisNanos: (planned?.parseNanos ?? 0) + (planned?.analysisNanos ?? 0),
    planningNanos: planned?.planningNanos ?? 0,
    scheduledNanos: all.scheduledNanos,
    cpuNanos: all.cpuNanos,
    blockedNanos: all.blockedNanos,
    wallNanos: all.wallNanos,
    peakMemoryBytes: all.peakMemoryBytes,
    spilledBytes: all.spilledBytes,
    ...input,
    ...output,
    totalTasks: tasks.length,
    totalDrivers: all.totalDrivers,
    completedDrivers: all.completedDrivers,
    totalSplits: all.totalSplits,
    completedSplits: all.completedSplits,
  }
}

/** How long a query that is not admitted has waited for its resource group. @param until milliseconds since the epoch */
function waitedNanos({ queued }: KnownQuery, until: number): number {
  return queued ? Math.max(0, until - Date.parse(queued.at)) * 1e6 : 0
}

/** Summed over all tasks. */
const NO_WORK = {
  scheduledNanos: 0,
  cpuNanos: 0,
  blockedNanos: 0,
  wallNanos: 0,
  peakMemoryBytes: 0,
  spilledBytes: 0,
  totalDrivers: 0,
  completedDrivers: 0,
  totalSplits: 0,
  completedSplits: 0,
}
/** Summed over the tasks of leaf stages. */
const NO_INPUT = { rawInputPositions: 0, rawInputBytes: 0, processedInputPositions: 0, processedInputBytes: 0 }
/** Summed over the tasks of the stage whose rows are the result. */
const NO_OUTPUT = { outputPositions: 0, outputBytes: 0 }

function addTo<K extends string>(sums: Record<K, number>, stats: Readonly<Record<NoInfer<K>, number>>): void {
  for (const figure in sums) sums[figure] += stats[figure]
}

/** A task's newest figures: final ones win over live ones. */
export function statsOf(task: TaskRecord, live: ReadonlyMap<TaskId, TaskStats>): TaskStats | undefined {
  return isTaskTerminal(task.state) ? task.stats : (live.get(task.taskId) ?? task.stats)
}

/** The stages' states and times, derived from those of their tasks and of the query. */
export function stageTimes(query: KnownQuery): readonly StageTimes[] {
  if (query.kind === 'FINISHED') return query.finished.stages
  if (query.kind === 'FAILED' && query.failed.stages.length > 0) return query.failed.stages
  return (query.planned?.stages ?? []).map((stage) => stageNow(query, stage))
}

/** The stages' states if the query ends now, for its terminal event. */
export function stagesAtEnd(
  query: KnownQuery,
  end: 'FINISHED' | 'FAILED' | 'CANCELED',
  at: string,
): readonly StageTimes[] {
  return (query.planned?.stages ?? []).map((stage) => {
    const now = stageNow(query, stage)
    const done =
      now.state === 'FINISHED' || now.state === 'FAILED' || now.state === 'CANCELED' || now.state === 'ABORTED'
    if (done) return now
    return { endedAt: at, ...now, state: end === 'FAILED' ? 'ABORTED' : end }
  })
}

function stageNow(query: KnownQuery, { id, inputs }: PlannedStage): StageTimes {
  const tasks = [...query.tasks.values()].filter((task) => task.stage === id)
  const scheduledAt = query.planned?.executionStartedAt ?? query.plannedAt
  const started = tasks.map((task) => task.stats?.startTime ?? task.createdAt).sort()[0]
  const base = { id, ...(scheduledAt ? { scheduledAt } : {}), ...(started ? { startedAt: started } : {}) }
  // A retried task replaces the one before.
  const retried = new Set(tasks.map((task) => task.retryOf).filter((one) => one !== undefined))
  const current = tasks.filter((task) => !retried.has(task.taskId))
  if (current.length === 0) {
    // A root without a task of its own runs as soon as the stage that it relays runs.
    const relays =
      id === ROOT_STAGE &&
      (query.kind === 'RUNNING' ||
        query.kind === 'FINISHING' ||
        [...query.tasks.values()].some((task) => inputs.includes(task.stage)))
    return { state: relays ? 'RUNNING' : 'SCHEDULED', ...base }
  }
  const endTimes = current.map((task) => task.endedAt ?? '')
  const endedAt = endTimes.every((end) => end !== '') ? endTimes.sort().at(-1) : undefined
  const end = endedAt === undefined ? {} : { endedAt }
  if (current.some((task) => task.state === 'FAILED')) return { state: 'FAILED', ...base, ...end }
  if (current.some((task) => task.state === 'CANCELED')) return { state: 'CANCELED', ...base, ...end }
  if (current.some((task) => task.state === 'ABORTED')) return { state: 'ABORTED', ...base, ...end }
  if (current.every((task) => task.state === 'FINISHED')) return { state: 'FINISHED', ...base, ...end }
  return { state: 'RUNNING', ...base }
}
