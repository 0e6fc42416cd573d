import type { Clock } from '../../shared/clock.ts'
import type { WorkerClient } from './worker-client.ts'
import type { WorkerDirectory } from './workers.ts'

/** Takes tasks of ended queries off their workers, many in one request, when nobody needs their pages any more. */
export interface TaskCleaner {
  /** @param afterMs how long their pages may still be asked for */
  release(tasks: readonly FinishedTask[], afterMs: number): void
  stop(): void
}

export interface FinishedTask {
  readonly nodeId: string
  readonly nodeUrl: string
  readonly taskId: string
}

const EVERY_MS = 1000
const AT_ONCE = 1000

export function createTaskCleaner(
  client: Pick<WorkerClient, 'deleteTasks'>,
  workers: Pick<WorkerDirectory, 'byId'>,
  clock: Clock,
): TaskCleaner {
  const due: { readonly task: FinishedTask; readonly at: number }[] = []
  const timer = setInterval(() => void clean(), EVERY_MS)
  timer.unref()
  let cleaning = false

  async function clean(): Promise<void> {
    if (cleaning || due.length === 0) return
    cleaning = true
    try {
      const now = clock.monotonicMs()
      const byWorker = new Map<string, string[]>()
      for (let index = due.length - 1; index >= 0; index--) {
        const { task, at } = due[index]!
        if (at > now) continue
        due.splice(index, 1)
        const url = workers.byId(task.nodeId)?.url ?? task.nodeUrl
        byWorker.set(url, [...(byWorker.get(url) ?? []), task.taskId])
      }
      for (const [url, taskIds] of byWorker)
        for (let from = 0; from < taskIds.length; from += AT_ONCE)
          // A worker that is away drops them by itself when it hears no coordinator.
          await client.deleteTasks(url, taskIds.slice(from, from + AT_ONCE)).catch(() => {})
    } finally {
      cleaning = false
    }
  }

  return {
    release(tasks, afterMs) {
      const at = clock.monotonicMs() + afterMs
      for (const task of tasks) due.push({ task, at })
    },
    stop: () => clearInterval(timer),
  }
}
