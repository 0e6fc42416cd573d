import type { StreamReader } from '../../events/event-log.ts'
import type { TaskStatus } from '../../execution/api/task.ts'
import { splitTaskId, type QueryId, type TaskId } from '../../shared/ids.ts'
import { readQuery } from '../query/stream/read-query.ts'
import { isTerminal, servingTasks, type QueryState } from '../query/stream/state.ts'
import type { UnneededTask, TaskCleaner } from '../scheduler/task-cleaner.ts'
import type { WorkerClient } from '../scheduler/worker-client.ts'
import type { WorkerDirectory, WorkerNode } from '../scheduler/workers.ts'

export interface LeftTasksDeps {
  readonly client: Pick<WorkerClient, 'taskNews'>
  readonly workers: Pick<WorkerDirectory, 'active' | 'onChange'>
  readonly log: StreamReader
  readonly cleaner: TaskCleaner
  /** The state of a query that this coordinator holds; undefined for any other. */
  readonly held: (queryId: QueryId) => QueryState | undefined
  /** How long clients may still ask for the pages of an ended query, milliseconds. */
  readonly answersKeptMs: number
  /** Milliseconds between seeing a worker and asking for its tasks: recovery comes first. @default 2000 */
  readonly afterMs?: number
  readonly onError?: (error: unknown) => void
}

const DEFAULT_AFTER_MS = 2_000
const ASK_MS = 5_000

/**
 * Deletes, from the workers, tasks that earlier coordinators left there: only those knew when the tasks of their ended
 * queries were no longer needed. Each worker process is asked once, when this coordinator first sees it; this
 * coordinator releases its own tasks itself.
 * @returns a function that stops this
 */
export function releaseLeftTasks(deps: LeftTasksDeps): () => void {
  const seen = new Set<string>()
  const timers = new Set<NodeJS.Timeout>()
  let stopped = false

  function check(): void {
    for (const node of deps.workers.active()) {
      // A restarted worker has another address, and still its pages.
      const key = `${node.nodeId} ${node.url}`
      if (stopped || seen.has(key)) continue
      seen.add(key)
      const timer = setTimeout(() => {
        timers.delete(timer)
        release(node).catch((error: unknown) => {
          // The worker is asked again when it is seen again.
          seen.delete(key)
          deps.onError?.(error)
        })
      }, deps.afterMs ?? DEFAULT_AFTER_MS)
      timer.unref()
      timers.add(timer)
    }
  }

  async function release(node: WorkerNode): Promise<void> {
    const { tasks } = await deps.client.taskNews(node.url, undefined, AbortSignal.timeout(ASK_MS))
    for (const [queryId, left] of byQuery(tasks.filter(holdsSomething))) {
      const held = deps.held(queryId)
      const query = held ?? (await readQuery(deps.log, queryId)).state
      const ofNode = (task: TaskStatus): UnneededTask => ({
        nodeId: node.nodeId,
        nodeUrl: node.url,
        taskId: task.taskId,
      })
      const serving = neededTasks(query)
      const needless = left.filter((task) => isNeedless(query, task.taskId) && !serving.has(task.taskId))
      deps.cleaner.release(needless.map(ofNode), 0)
      // A query that this coordinator saw end releases these tasks itself.
      if (held) continue
      deps.cleaner.release(left.filter((task) => serving.has(task.taskId)).map(ofNode), deps.answersKeptMs)
    }
  }

  deps.workers.onChange(check)
  check()
  return () => {
    stopped = true
    for (const timer of timers) clearTimeout(timer)
  }
}

function byQuery(tasks: readonly TaskStatus[]): ReadonlyMap<QueryId, readonly TaskStatus[]> {
  const groups = new Map<QueryId, TaskStatus[]>()
  for (const task of tasks) {
    const queryId = splitTaskId(task.taskId)?.queryId
    if (queryId === undefined) continue
    const group = groups.get(queryId)
    if (group) group.push(task)
    else groups.set(queryId, [task])
  }
  return groups
}

/**
 * Whether a task still holds data. Deleted tasks are listed for a while, but hold nothing. A task that ended without
 * pages, such as one that writes, still has its folder, although its buffer is FINISHED.
 */
function holdsSomething({ deleted }: TaskStatus): boolean {
  return deleted === undefined
}

/** Tasks with pages that the client of an ended query may ask for again. */
function neededTasks(query: QueryState): ReadonlySet<TaskId> {
  if (query.kind !== 'FINISHED') return new Set()
  return servingTasks(query)
}

/**
 * Whether a task is no longer needed: its query has ended or never existed; or its query is open, but the query's
 * stream does not know the task and its number belongs to an earlier coordinator: each recovery numbers from the next
 * thousand on.
 */
function isNeedless(query: QueryState, taskId: TaskId): boolean {
  if (query.kind === 'NONE' || isTerminal(query.kind)) return true
  const number = splitTaskId(taskId)?.task
  return !query.tasks.has(taskId) && number !== undefined && number < query.recoveries * 1000
}
