import { isEnded, type KnownQuery, type TaskRecord } from '../../coordinator/query/stream/state.ts'
import { stageTimes, statsOf, type StageTimes } from '../../coordinator/query/statistics/totals.ts'
import { isTaskTerminal, type TaskStats } from '../../execution/api/task.ts'
import { splitBytes } from '../../execution/worker/batches.ts'
import type { PlannedPlan } from '../../execution/worker/planned-pipelines.ts'
import { knownSum } from '../../shared/known-sum.ts'
import { formatSize } from '../../shared/durations.ts'
import { ROOT_STAGE, stageId, type TaskId } from '../../shared/ids.ts'
import type { StageInfo } from '../info/schemas/query.ts'
import type { TaskInfo } from '../info/schemas/task.ts'
import { taskInfo } from '../task/task-info.ts'
import { sumOfWork, workFigures } from '../task/work-figures.ts'
import type { LiveQueryView } from './live-queries.ts'

/** The stages of a query, from the root down. @returns undefined while there is no plan */
export function stageTree(view: LiveQueryView, baseUri: string): StageInfo | undefined {
  const times = new Map(stageTimes(view.query).map((stage) => [stage.id, stage]))
  const hasRoot = view.query.planned?.stages.some((stage) => stage.id === ROOT_STAGE)
  return hasRoot ? stageInfo(view, baseUri, ROOT_STAGE, times) : undefined
}

function stageInfo(
  view: LiveQueryView,
  baseUri: string,
  id: number,
  times: ReadonlyMap<number, StageTimes>,
): StageInfo {
  const { query } = view
  const stage = query.planned!.stages.find((one) => one.id === id)!
  const now = times.get(id)
  const state = now?.state ?? 'PLANNED'
  const tasks = [...query.tasks.values()].filter((task) => task.stage === id)
  const stats = tasks.flatMap((task) => statsOf(task, view.liveStats) ?? [])
  return {
    stageId: stageId(query.queryId, id),
    state,
    done: isStageDone(state),
    self: `${baseUri}/v1/stage/${stageId(query.queryId, id)}`,
    distribution: stage.distribution,
    types: stage.fragment?.output.map((column) => column.type) ?? query.planned!.columns.map((column) => column.type),
    stageStats: {
      ...(now?.scheduledAt === undefined ? {} : { schedulingComplete: now.scheduledAt }),
      ...(now?.startedAt === undefined ? {} : { startTime: now.startedAt }),
      ...(now?.endedAt === undefined ? {} : { endTime: now.endedAt }),
      ...taskCounts(tasks),
      ...figures(stats),
    },
    tasks: tasks.map((task) => taskInfoOf(query, task, statsOf(task, view.liveStats), baseUri)),
    subStages: stage.inputs.map((input) => stageInfo(view, baseUri, input, times)),
  }
}

function isStageDone(state: StageTimes['state']): boolean {
  return state === 'FINISHED' || state === 'CANCELED' || state === 'ABORTED' || state === 'FAILED'
}

function taskCounts(tasks: readonly TaskRecord[]) {
  return {
    totalTasks: tasks.length,
    runningTasks: tasks.filter((task) => task.state === 'RUNNING' || task.state === 'FLUSHING').length,
    completedTasks: tasks.filter((task) => isTaskTerminal(task.state)).length,
  }
}

function figures(stats: readonly TaskStats[]) {
  const sum = (pick: (one: TaskStats) => number): number => stats.reduce((total, one) => total + pick(one), 0)
  return {
    totalSplits: sum((one) => one.totalSplits),
    queuedSplits: sum((one) => one.queuedSplits),
    runningSplits: sum((one) => one.runningSplits),
    completedSplits: sum((one) => one.completedSplits),
    ...workFigures(sumOfWork(stats)),
    totalMemoryReservation: formatSize(sum((one) => one.memoryBytes)),
  }
}

/** Task info from the query's events; for a running task with the newest figures, where there are any. */
export function taskInfoOf(
  query: KnownQuery,
  task: TaskRecord,
  stats: TaskStats | undefined,
  baseUri: string,
): TaskInfo {
  const done = isTaskTerminal(task.state)
  // The root relays the pages of the stage that it reads: the whole result is its output.
  const isOutput = (page: { readonly taskId: TaskId }): boolean =>
    task.stage === ROOT_STAGE || page.taskId === task.taskId
  const pages = query.pages.filter(isOutput).length
  // A worker's pages are published after the coordinator fetched them, so they count as sent. Pages of the root wait for
  // the client.
  const sent =
    query.kind === 'FINISHED' || task.stage !== ROOT_STAGE
      ? pages
      : query.pages.filter((page, token) => isOutput(page) && token <= query.delivered).length
  return taskInfo(
    {
      taskId: task.taskId,
      version: 1 + (done ? 1 : 0),
      state: task.state,
      lastHeartbeat: task.endedAt ?? query.updatedAt,
      bufferState: done ? (task.state === 'FAILED' ? 'FAILED' : 'FINISHED') : 'OPEN',
      noMoreSplits: done ? ['0'] : [],
      batchesDone: [],
      batchesTotal: stats?.totalSplits ?? 0,
      pagesSent: sent,
      bufferedPages: isEnded(query) ? 0 : pages - sent,
      ...(task.failure ? { failure: task.failure } : {}),
      stats: stats ?? noStats(task),
    },
    `${task.stage === ROOT_STAGE ? baseUri : task.nodeUrl}/v1/task/${task.taskId}`,
    plannedPlan(query, task.stage),
  )
}

/** The plan that shows the operators of a task that was not profiled. */
function plannedPlan({ planned }: KnownQuery, stage: number): PlannedPlan | undefined {
  const work = planned?.stages.find(({ id }) => id === stage)
  if (!planned?.outline || !work?.fragment) return undefined
  // The recorded outline is that of the whole statement: in a plan of several fragments no stage runs all of it.
  if (planned.stages.some((other) => other !== work && other.fragment)) return undefined
  const scans = work.fragment.scans.flatMap(({ catalog, schema, table, columns, ofRule }, index) => {
    if (ofRule) return []
    const splits = work.splits.filter(({ scan }) => scan === index)
    const rows = knownSum(splits.map((split) => split.rows))
    const bytes = splits.reduce((sum, split) => sum + splitBytes(split, columns), 0)
    return [{ table: `${catalog}:${schema}:${table}`, rows, bytes }]
  })
  return { outline: planned.outline, scans }
}

function noStats(task: TaskRecord): TaskStats {
  return {
    createTime: task.createdAt,
    ...(task.endedAt === undefined ? {} : { endTime: task.endedAt }),
    elapsedNanos: 0,
    queuedNanos: 0,
    totalDrivers: 0,
    queuedDrivers: 0,
    runningDrivers: 0,
    completedDrivers: 0,
    totalSplits: 0,
    queuedSplits: 0,
    runningSplits: 0,
    completedSplits: 0,
    memoryBytes: 0,
    peakMemoryBytes: 0,
    spilledBytes: 0,
    scheduledNanos: 0,
    cpuNanos: 0,
    cpuExact: true,
    wallNanos: 0,
    blockedNanos: 0,
    rawInputBytes: 0,
    rawInputPositions: 0,
    processedInputBytes: 0,
    processedInputPositions: 0,
    outputBytes: 0,
    outputPositions: 0,
    profiled: false,
    pipelines: [],
  }
}
