import { readFileSync } from 'node:fs'
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads'
import { EngineError } from '../../shared/engine-error.ts'
import { FairQueue, type SlotOwner } from '../../shared/fair-queue.ts'
import { hasCode } from '../../shared/node-error.ts'
import { programUrl } from '../../shared/programs.ts'
import type { FrontEndTimes } from '../../sql/front-end.ts'
import { packError, unpackError } from './thread-errors.ts'
import type {
  AnsweredNow,
  AskedLater,
  AskedNow,
  FromThread,
  ThreadAnswers,
  ThreadData,
  FrontEndTask,
  ToThread,
} from './thread-messages.ts'

/** Answers the questions that a task asks the process. */
export interface ThreadHost {
  later(asked: AskedLater): Promise<unknown>
  now?(asked: AskedNow): unknown
  onTimes?(times: FrontEndTimes): void
  onRuleFault?(message: string): void
}

/** The owner of a task, and the signal that ends it early. */
export interface ThreadCaller {
  readonly owner: SlotOwner
  readonly signal?: AbortSignal | undefined
}

export interface FrontEndThreadsOptions {
  /** The most threads at once. @default 2 */
  readonly most?: number
  /** Memory of one thread, megabytes. @default 512 */
  readonly megabytes?: number
  /**
   * A thread is ended after this much CPU time of one task, milliseconds: a task normally ends much earlier.
   * @default 8,000
   */
  readonly cpuMs?: number
  /** A thread ends when it has no task for this long, milliseconds. @default 60,000 */
  readonly idleMs?: number
}

const WATCH_MS = 250
/**
 * Wall time that a task may work without a message, where the system does not report CPU times, or gives the thread no
 * CPU.
 */
const SILENT_MS = 120_000

/**
 * Threads that parse and analyse statements which would block the event loop for too long. A thread is started when
 * there is work for it, and has one task at a time; other tasks wait, and their owners take turns. The thread of a task
 * is ended when the task takes too much memory or time, or its caller gives up.
 */
export class FrontEndThreads {
  readonly #options: Required<FrontEndThreadsOptions>
  readonly #waiting = new FairQueue<() => void>()
  readonly #idle: FrontEndThread[] = []
  readonly #all = new Set<FrontEndThread>()
  #busy = 0
  #stopped = false

  constructor({ most = 2, megabytes = 512, cpuMs = 8_000, idleMs = 60_000 }: FrontEndThreadsOptions = {}) {
    this.#options = { most, megabytes, cpuMs, idleMs }
  }

  /**
   * Carries out a task in a thread.
   * @throws EngineError the error of the statement: also EXCEEDED_TIME_LIMIT, and EXCEEDED_LOCAL_MEMORY_LIMIT when it
   * needs more memory than a thread has; or the reason of the caller's signal
   */
  async run<T extends FrontEndTask>(
    task: T,
    host: ThreadHost,
    { owner, signal }: ThreadCaller,
  ): Promise<ThreadAnswers[T['kind']]> {
    await this.#takeSlot(owner, signal)
    const thread = this.#idle.pop() ?? this.#begin()
    try {
      return (await thread.run(task, host, signal)) as ThreadAnswers[T['kind']]
    } finally {
      this.#leave(thread)
    }
  }

  /** Ends all threads; their tasks fail. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all([...this.#all].map((thread) => thread.end(new Error('The coordinator is stopping'))))
  }

  #begin(): FrontEndThread {
    const thread: FrontEndThread = new FrontEndThread(this.#options, () => {
      this.#all.delete(thread)
      const at = this.#idle.indexOf(thread)
      if (at >= 0) this.#idle.splice(at, 1)
    })
    this.#all.add(thread)
    return thread
  }

  async #takeSlot(owner: SlotOwner, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (this.#busy < this.#options.most) {
      this.#waiting.passed(owner)
      this.#busy++
      return
    }
    await new Promise<void>((resolve, reject) => {
      const givenUp = (): void => {
        leave()
        reject(signal!.reason as Error)
      }
      const leave = this.#waiting.push(owner, () => {
        signal?.removeEventListener('abort', givenUp)
        resolve()
      })
      signal?.addEventListener('abort', givenUp, { once: true })
    })
  }

  /** Gives the slot to the next waiting task. */
  #leave(thread: FrontEndThread): void {
    if (thread.isUsable && !this.#stopped) {
      this.#idle.push(thread)
      thread.rest(this.#options.idleMs)
    }
    const next = this.#waiting.shift()
    if (next) next()
    else this.#busy--
  }
}

interface RunningTask {
  readonly host: ThreadHost
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  /** The number of questions without an answer so far. */
  questions: number
  /** Errors that were sent as answers, by the number of the question. */
  readonly refused: Map<number, unknown>
  silentMs: number
  readonly cpuBeforeMs: number | undefined
}

/** One thread, and its task. */
class FrontEndThread {
  readonly #worker: Worker
  readonly #answers: MessagePort
  readonly #answered = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  readonly #cpuMs: number
  readonly #onGone: () => void
  /** The system's id of the thread, once known. */
  #id: string | undefined
  #task: RunningTask | undefined
  #idleTimer: NodeJS.Timeout | undefined
  #gone = false

  constructor({ megabytes, cpuMs }: { readonly megabytes: number; readonly cpuMs: number }, onGone: () => void) {
    this.#cpuMs = cpuMs
    this.#onGone = onGone
    const { port1, port2 } = new MessageChannel()
    this.#answers = port1
    this.#worker = new Worker(programUrl('coordinator/front-end-threads/front-end-thread'), {
      workerData: { answers: port2, answered: this.#answered } satisfies ThreadData,
      transferList: [port2],
      env: {},
      // The tree of a long statement lives as long as its task: a small young generation would copy it again and again.
      resourceLimits: { maxOldGenerationSizeMb: megabytes, maxYoungGenerationSizeMb: 192 },
    })
    this.#worker.unref()
    port1.unref()
    this.#worker.on('message', (message: FromThread) => this.#take(message))
    this.#worker.on(
      'error',
      (error) => void this.end(hasCode(error, 'ERR_WORKER_OUT_OF_MEMORY') ? outOf(megabytes) : error),
    )
    this.#worker.on('exit', () => void this.end(new Error('A thread of the front end ended by itself')))
  }

  get isUsable(): boolean {
    return !this.#gone
  }

  async run(task: FrontEndTask, host: ThreadHost, signal: AbortSignal | undefined): Promise<unknown> {
    clearTimeout(this.#idleTimer)
    const givenUp = (): void => void this.end(signal!.reason)
    const watch = setInterval(() => this.#watch(), WATCH_MS)
    try {
      return await new Promise((resolve, reject) => {
        const cpuBeforeMs = this.#usedMs()
        this.#task = { host, resolve, reject, questions: 0, refused: new Map(), silentMs: 0, cpuBeforeMs }
        signal?.addEventListener('abort', givenUp, { once: true })
        this.#send({ type: 'task', task })
      })
    } finally {
      clearInterval(watch)
      signal?.removeEventListener('abort', givenUp)
      this.#task = undefined
    }
  }

  /** Ends the thread when it gets no task for this long. */
  rest(milliseconds: number): void {
    this.#idleTimer = setTimeout(() => void this.end(undefined), milliseconds).unref()
  }

  /** Ends the thread; its task fails with the reason. */
  async end(reason: unknown): Promise<void> {
    if (this.#gone) return
    this.#gone = true
    clearTimeout(this.#idleTimer)
    this.#onGone()
    this.#task?.reject(reason)
    this.#answers.close()
    await this.#worker.terminate()
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  #take(message: FromThread): void {
    const task = this.#task
    if (message.type === 'started') this.#id = message.id
    if (task === undefined || this.#gone) return
    task.silentMs = 0
    switch (message.type) {
      case 'started':
        return
      case 'ask':
        return void this.#answer(task, message.number, message.asked)
      case 'askNow':
        return this.#answerNow(task, message.asked)
      case 'times':
        return task.host.onTimes?.(message.times)
      case 'ruleFault':
        return task.host.onRuleFault?.(message.message)
      case 'done':
        return task.resolve(message.value)
      case 'failed': {
        const { error } = message
        return task.reject(error.kind === 'asked' ? task.refused.get(error.number) : unpackError(error))
      }
    }
  }

  async #answer(task: RunningTask, number: number, asked: AskedLater): Promise<void> {
    task.questions++
    let message: ToThread
    try {
      message = { type: 'answer', number, value: await task.host.later(asked) }
    } catch (error) {
      task.refused.set(number, error)
      message = { type: 'refused', number, error: packError(error) }
    }
    task.questions--
    if (this.#task === task && !this.#gone) this.#send(message)
  }

  #answerNow(task: RunningTask, asked: AskedNow): void {
    let answer: AnsweredNow
    try {
      answer = { value: task.host.now?.(asked) }
    } catch (error) {
      answer = { error: packError(error) }
    }
    this.#answers.postMessage(answer)
    Atomics.add(this.#answered, 0, 1)
    Atomics.notify(this.#answered, 0)
  }

  #watch(): void {
    const task = this.#task
    if (task === undefined || task.questions > 0) return
    task.silentMs += WATCH_MS
    const usedMs = this.#usedMs()
    const overCpu = usedMs !== undefined && usedMs - (task.cpuBeforeMs ?? 0) > this.#cpuMs
    if (!overCpu && task.silentMs < SILENT_MS) return
    void this.end(
      new EngineError('EXCEEDED_TIME_LIMIT', `Query exceeded the maximum planning CPU time of ${this.#cpuMs} ms`),
    )
  }

  /** CPU time that the thread has used, milliseconds; undefined where unknown. */
  #usedMs(): number | undefined {
    if (this.#id === undefined) return undefined
    try {
      return Number(readFileSync(`/proc/self/task/${this.#id}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e6
    } catch {
      return undefined
    }
  }
}

function outOf(megabytes: number): EngineError {
  return new EngineError(
    'EXCEEDED_LOCAL_MEMORY_LIMIT',
    `Planning the statement takes more than ${megabytes} MB of memory; write it shorter, or read the values from a table`,
  )
}
