import type { TaskStatus } from '../../execution/api/task.ts'
import type { TaskId } from '../../shared/ids.ts'
import type { WorkerClient } from './worker-client.ts'
import { WorkerLost, WorkerRefused, type WorkerError } from './worker-error.ts'
import type { WorkerDirectory } from './workers.ts'

/** Receives the news of one task. */
export interface TaskListener {
  /** Statuses arrive in the worker's order; their pages are those closed since the previous status. */
  onStatus(status: TaskStatus): void
  /** Its worker no longer has the task, has not answered for too long, or refuses to report its tasks. */
  onLost(error: WorkerError): void
}

/**
 * One long poll per worker brings the news of all its tasks (states, closed pages), so that a small query waits for no
 * polling interval. A worker that does not answer is asked for as long as there is a listener for a task of it.
 */
export interface TaskHub {
  listen(nodeUrl: string, taskId: TaskId, listener: TaskListener): void
  forget(nodeUrl: string, taskId: TaskId): void
  /** The number of tasks with a listener. */
  followed(): number
  stop(): void
}

export interface TaskHubOptions {
  /** Silence after which a worker's tasks count as lost, milliseconds. */
  readonly lostAfterMs: number
  readonly monotonicMs: () => number
}

export function createTaskHub(
  client: Pick<WorkerClient, 'taskNews'>,
  workers: Pick<WorkerDirectory, 'byUrl'>,
  options: TaskHubOptions,
): TaskHub {
  const feeds = new Map<string, WorkerFeed>()
  let stopped = false

  function follow(nodeUrl: string): WorkerFeed {
    const feed = new WorkerFeed({ nodeUrl, client, workers, options })
    feeds.set(nodeUrl, feed)
    void feed.follow().then(() => {
      if (feeds.get(nodeUrl) === feed) feeds.delete(nodeUrl)
    })
    return feed
  }

  return {
    listen(nodeUrl, taskId, listener) {
      if (stopped) return
      const feed = feeds.get(nodeUrl)
      const live = feed && !feed.ended ? feed : follow(nodeUrl)
      live.listen(taskId, listener)
    },
    forget: (nodeUrl, taskId) => feeds.get(nodeUrl)?.forget(taskId),
    followed: () => [...feeds.values()].reduce((sum, feed) => sum + feed.followed, 0),
    stop() {
      stopped = true
      for (const feed of feeds.values()) feed.stop()
    },
  }
}

interface FeedDeps {
  readonly nodeUrl: string
  readonly client: Pick<WorkerClient, 'taskNews'>
  readonly workers: Pick<WorkerDirectory, 'byUrl'>
  readonly options: TaskHubOptions
}

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 500
/** Even a worker that has left may only be a little late. */
const LEFT_AFTER_MS = 1000

/** The news of one worker, from the first listener until the worker does not answer and there is no listener. */
class WorkerFeed {
  readonly #deps: FeedDeps
  readonly #listeners = new Map<TaskId, TaskListener>()
  readonly #abort = new AbortController()
  /** The worker's version up to which its news are known; undefined asks for everything. */
  #version: string | undefined
  #lastAnswer: number
  #ended = false

  constructor(deps: FeedDeps) {
    this.#deps = deps
    this.#lastAnswer = deps.options.monotonicMs()
  }

  get ended(): boolean {
    return this.#ended
  }

  listen(taskId: TaskId, listener: TaskListener): void {
    if (this.#listeners.size === 0) this.#lastAnswer = this.#deps.options.monotonicMs()
    this.#listeners.set(taskId, listener)
  }

  forget(taskId: TaskId): void {
    this.#listeners.delete(taskId)
  }

  get followed(): number {
    return this.#listeners.size
  }

  stop(): void {
    this.#ended = true
    this.#abort.abort()
  }

  /**
   * Polls from now on, synchronously at first: a later listener may only now be creating its task. Resolves when the
   * feed has ended.
   */
  async follow(): Promise<void> {
    let pause = FIRST_PAUSE_MS
    while (!this.#ended) {
      try {
        await this.#ask()
        pause = FIRST_PAUSE_MS
      } catch (error) {
        if (this.#ended) return
        // The worker may have been replaced by a new process: ask for everything again.
        this.#version = undefined
        this.#giveUp(error)
        if (this.#listeners.size === 0) {
          this.#ended = true
          return
        }
        await new Promise((resolve) => setTimeout(resolve, pause))
        pause = Math.min(LONGEST_PAUSE_MS, pause * 2)
      }
    }
  }

  async #ask(): Promise<void> {
    const { nodeUrl, client, options } = this.#deps
    const full = this.#version === undefined
    // The answer does not cover a listener that comes during the request: its task must not count as lost.
    const asked = [...this.#listeners.keys()]
    const news = await client.taskNews(nodeUrl, this.#version, this.#abort.signal)
    this.#lastAnswer = options.monotonicMs()
    this.#version = news.version
    for (const status of news.tasks) this.#listeners.get(status.taskId)?.onStatus(status)
    if (!full) return
    const there = new Set(news.tasks.map((task) => task.taskId))
    for (const taskId of asked)
      if (!there.has(taskId)) this.#lose(taskId, new WorkerLost(`worker ${nodeUrl} has no task ${taskId}`))
  }

  /** After a failed request: reports the tasks as lost when the worker refuses, or is silent for too long. */
  #giveUp(error: unknown): void {
    const { nodeUrl, workers, options } = this.#deps
    if (error instanceof WorkerRefused) return this.#loseAll(error)
    const silence = options.monotonicMs() - this.#lastAnswer
    if (silence > options.lostAfterMs || (silence > LEFT_AFTER_MS && !workers.byUrl(nodeUrl)))
      this.#loseAll(new WorkerLost(`no answer from worker ${nodeUrl}`))
  }

  #loseAll(error: WorkerError): void {
    for (const taskId of this.#listeners.keys()) this.#lose(taskId, error)
  }

  #lose(taskId: TaskId, error: WorkerError): void {
    const listener = this.#listeners.get(taskId)
    this.#listeners.delete(taskId)
    listener?.onLost(error)
  }
}
