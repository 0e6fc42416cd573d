import type { Clock } from '../../shared/clock.ts'
import type { WorkerClient } from './worker-client.ts'
import type { WorkerDirectory } from './workers.ts'
import { howToRetry } from '../../shared/quipu-error.ts'
import type { TaskId, NodeId } from '../../shared/ids.ts'

/** Deletes tasks of ended queries from their workers, many in one request, when their pages are no longer needed. */
export interface TaskCleaner {
  /** @param afterMs how long clients may still ask for the pages */
  release(tasks: readonly UnneededTask[], afterMs: number): void
  stop(): void
}

export interface UnneededTask {
  readonly nodeId: NodeId
  readonly nodeUrl: string
  readonly taskId: TaskId
}

interface Due {
  readonly task: UnneededTask
  /** Times of the monotonic clock. */
  readonly at: number
  readonly until: number
}

const EVERY_MS = 1000
const AT_ONCE = 1000
/** A worker that did not answer is asked again, for as long as workers keep tasks without a coordinator. */
const AGAIN_MS = 5_000
const GIVE_UP_MS = 10 * 60_000

export function createTaskCleaner(
  client: Pick<WorkerClient, 'deleteTasks'>,
  workers: Pick<WorkerDirectory, 'byId'>,
  clock: Clock,
): TaskCleaner {
  let due: Due[] = []
  const timer = setInterval(() => void clean(), EVERY_MS)
  timer.unref()
  let cleaning = false

  async function clean(): Promise<void> {
    if (cleaning || due.length === 0) return
    cleaning = true
    try {
      const now = clock.monotonicMs()
      const byWorker = new Map<string, Due[]>()
      const later: Due[] = []
      for (const one of due) {
        const url = workers.byId(one.task.nodeId)?.url ?? one.task.nodeUrl
        const ofWorker = byWorker.get(url)
        if (one.at > now) later.push(one)
        else if (ofWorker) ofWorker.push(one)
        else byWorker.set(url, [one])
      }
      due = later
      for (const [url, ofWorker] of byWorker)
        for (let from = 0; from < ofWorker.length; from += AT_ONCE)
          await remove(url, ofWorker.slice(from, from + AT_ONCE))
    } finally {
      cleaning = false
    }
  }

  async function remove(url: string, some: readonly Due[]): Promise<void> {
    try {
      await client.deleteTasks(
        url,
        some.map(({ task }) => task.taskId),
      )
    } catch (error) {
      if (howToRetry(error) === 'never') return
      // A restarted worker still has the tasks; a worker that is away for long has dropped them.
      const at = clock.monotonicMs() + AGAIN_MS
      for (const one of some) if (at < one.until) due.push({ ...one, at })
    }
  }

  return {
    release(tasks, afterMs) {
      const at = clock.monotonicMs() + afterMs
      for (const task of tasks) due.push({ task, at, until: at + GIVE_UP_MS })
    },
    stop: () => clearInterval(timer),
  }
}
