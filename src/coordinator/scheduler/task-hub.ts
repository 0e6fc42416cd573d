import type { TaskStatus } from '../../execution/api/task.ts'
import type { WorkerClient } from './worker-client.ts'
import type { WorkerDirectory } from './workers.ts'

/** Who waits for news of one task. */
export interface TaskListener {
  /** Statuses come in the worker's order; pages are those closed since the last one told. */
  onStatus(status: TaskStatus): void
  /** The worker does not have the task any more, or has not answered for too long. */
  onLost(reason: string): void
}

/**
 * One long poll a worker brings the news of all its tasks (states, closed pages); no polling interval lies on the way
 * of a small query.
 */
export interface TaskHub {
  listen(nodeUrl: string, taskId: string, listener: TaskListener): void
  forget(nodeUrl: string, taskId: string): void
  stop(): void
}

interface WorkerFeed {
  readonly listeners: Map<string, TaskListener>
  readonly abort: AbortController
  lastAnswer: number
}

export interface TaskHubOptions {
  /** Silence after which a worker's tasks count as lost, milliseconds. */
  readonly lostAfterMs: number
  readonly monotonicMs: () => number
}

export function createTaskHub(client: WorkerClient, workers: WorkerDirectory, options: TaskHubOptions): TaskHub {
  const feeds = new Map<string, WorkerFeed>()
  let stopped = false

  async function follow(nodeUrl: string, feed: WorkerFeed): Promise<void> {
    let version: string | undefined
    let pause = 20
    while (!stopped && !feed.abort.signal.aborted) {
      try {
        const full = version === undefined
        // A listener that comes while the request is under way is not in its answer: it must not count as lost.
        const asked = [...feed.listeners.keys()]
        const news = await client.taskNews(nodeUrl, version, feed.abort.signal)
        feed.lastAnswer = options.monotonicMs()
        pause = 20
        version = news.version
        for (const status of news.tasks) feed.listeners.get(status.taskId)?.onStatus(status)
        if (full) {
          const there = new Set(news.tasks.map((task) => task.taskId))
          for (const taskId of asked)
            if (!there.has(taskId)) lose(feed, taskId, `worker ${nodeUrl} has no task ${taskId}`)
        }
      } catch {
        if (stopped || feed.abort.signal.aborted) return
        // The worker may have been replaced by a new process: ask for everything again.
        version = undefined
        const silence = options.monotonicMs() - feed.lastAnswer
        if (silence > options.lostAfterMs || (silence > 1000 && !workers.byUrl(nodeUrl)))
          for (const taskId of feed.listeners.keys()) lose(feed, taskId, `no answer from worker ${nodeUrl}`)
        await new Promise((resolve) => setTimeout(resolve, pause))
        pause = Math.min(500, pause * 2)
      }
      if (feed.listeners.size === 0 && feed.abort.signal.aborted) return
    }
  }

  function lose(feed: WorkerFeed, taskId: string, reason: string): void {
    const listener = feed.listeners.get(taskId)
    feed.listeners.delete(taskId)
    listener?.onLost(reason)
  }

  return {
    listen(nodeUrl, taskId, listener) {
      let feed = feeds.get(nodeUrl)
      if (!feed) {
        feed = { listeners: new Map(), abort: new AbortController(), lastAnswer: options.monotonicMs() }
        feeds.set(nodeUrl, feed)
        void follow(nodeUrl, feed)
      }
      if (feed.listeners.size === 0) feed.lastAnswer = options.monotonicMs()
      feed.listeners.set(taskId, listener)
    },
    forget: (nodeUrl, taskId) => void feeds.get(nodeUrl)?.listeners.delete(taskId),
    stop() {
      stopped = true
      for (const feed of feeds.values()) feed.abort.abort()
    },
  }
}
