import { existsSync } from 'node:fs'
import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { EngineResult, EngineSettings, EngineStatement } from './engine.ts'
import { timeLimit, verdictOfError, verdictOfLoss, type Attempted, type AttemptVerdict } from './engine-verdicts.ts'
import type { EngineAttempt, Outcome, EngineWork } from './engine-work.ts'
import { pathsOf } from './file-faults.ts'
import type { RunningEngine } from './running-engine.ts'

/** The use of an engine: for many small statements at once, or for one statement at a time. */
export type Role = 'shared' | 'dedicated'

/** A statement from its arrival to its answer, over one or two attempts. */
export interface EngineJob {
  readonly done: Promise<{ readonly result: EngineResult; readonly body: Buffer }>
  /** The role of the engines that may run it now. */
  lane(): Role
  runIn(engine: RunningEngine): void
  /** Rejects `done` at once; the engine is idle soon after. */
  cancel(): void
  reject(error: Error): void
}

export type JobStatement =
  | EngineStatement
  /** A connector's question: its planning may take the question's whole time limit. */
  | { readonly id: string; readonly question: FileQuestion }

export interface EngineJobDeps {
  readonly settings: EngineSettings
  memoryLimit(role: Role): number
  /** Puts the job at the end of its lane's queue. */
  enqueue(job: EngineJob): void
  dequeue(job: EngineJob): void
  isStopping(): boolean
}

const METADATA_TIMEOUT_MS = 30_000
/** For a question that reads a whole file. */
const CHECK_TIMEOUT_MS = 3600_000
/** A timer with a longer time would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export function createEngineJob(statement: JobStatement, deps: EngineJobDeps): EngineJob {
  return new StatementJob(statement, deps)
}

class StatementJob implements EngineJob {
  readonly done: EngineJob['done']
  readonly #deps: EngineJobDeps
  readonly #work: EngineWork
  readonly #deadline: NodeJS.Timeout | undefined
  #resolve!: (value: Awaited<EngineJob['done']>) => void
  #reject!: (error: Error) => void
  #lane: Role
  #retried = false
  #settled = false
  #attempt: EngineAttempt | undefined

  constructor(statement: JobStatement, deps: EngineJobDeps) {
    const isQuestion = 'question' in statement
    this.#deps = deps
    this.#work = workOf(statement, deps.settings)
    // A risky statement is prepared, and then run, in an engine of its own: it is bound once, and no other statement
    // can suffer. So is a statement with a lower memory bound than the shared engine: in a shared engine its own memory
    // could not be measured.
    const { memory } = this.#work.bounds ?? {}
    const alone = !isQuestion && (statement.risky || (memory && memory.most < deps.memoryLimit('shared')))
    this.#lane = isQuestion || (statement.placement === 'shared' && !alone) ? 'shared' : 'dedicated'
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const remaining = isQuestion ? timeoutOf(statement.question) : statement.remainingMillis
    // A limit longer than any timer is longer than an engine lives.
    if (remaining === undefined || remaining > LONGEST_TIMER_MS) return
    this.#deadline = setTimeout(
      () => this.#abandon(timeLimit('Query exceeded its maximum run time limit')),
      Math.max(0, remaining),
    )
  }

  lane(): Role {
    return this.#lane
  }

  runIn(engine: RunningEngine): void {
    this.#attempt = engine.execute(this.#work)
    void this.#attempt.outcome.then((outcome) => this.#onOutcome(outcome, engine))
  }

  cancel(): void {
    this.#abandon(canceled())
  }

  reject(error: Error): void {
    if (this.#settle()) this.#reject(error)
  }

  #settle(): boolean {
    if (this.#settled) return false
    this.#settled = true
    clearTimeout(this.#deadline)
    return true
  }

  /** Rejects with the error and cancels the attempt, or removes the job from the queue. */
  #abandon(error: Error): void {
    if (this.#settled) return
    this.reject(error)
    if (this.#attempt) this.#attempt.cancel()
    else this.#deps.dequeue(this)
  }

  #onOutcome(outcome: Outcome, engine: RunningEngine): void {
    this.#attempt = undefined
    if (this.#settled) return
    switch (outcome.kind) {
      case 'result':
        return this.#answer(outcome)
      case 'error':
        return this.#follow(verdictOfError(outcome, this.#attempted(engine)), engine)
      case 'refused':
        return this.reject(outcome.error instanceof Error ? outcome.error : new Error(String(outcome.error)))
      case 'lost':
        if (this.#deps.isStopping())
          return this.reject(new EngineError('SERVER_SHUTTING_DOWN', 'The engines are stopping'))
        return this.#follow(verdictOfLoss(outcome, this.#attempted(engine)), engine)
      case 'canceled':
        return this.reject(canceled())
      default:
        unreachable(outcome)
    }
  }

  #answer(outcome: Extract<Outcome, { kind: 'result' }>): void {
    if (!this.#settle()) return
    this.#deps.settings.onEvent?.({
      type: 'statement',
      kind: this.#work.asks.kind === 'files' ? 'metadata' : 'fragment',
      milliseconds: outcome.result.wallNanos / 1e6,
      spilledBytes: outcome.result.spilledBytes,
    })
    this.#resolve(outcome)
  }

  #attempted({ child }: RunningEngine): Attempted {
    const { settings, memoryLimit } = this.#deps
    const { id: statement, asks } = this.#work
    const files = () => ({ paths: pathsOf(asks), roots: settings.allowedDirectories, exists: existsSync })
    const isQuestion = asks.kind === 'files'
    return { statement, user: child.user, memoryLimit: memoryLimit(this.#lane), files, isQuestion, settings }
  }

  #follow({ error, again, killEngine, emptyEngine, event }: AttemptVerdict, engine: RunningEngine): void {
    if (event) this.#deps.settings.onEvent?.(event)
    if (killEngine) engine.kill('crash')
    else if (emptyEngine && engine.running() === 0) engine.kill('recycle')
    if (!again || this.#retried) return this.reject(error)
    this.#retried = true
    this.#lane = 'dedicated'
    this.#deps.enqueue(this)
  }
}

function timeoutOf({ kind }: FileQuestion): number {
  return kind === 'csvCheck' || kind === 'jsonCheck' ? CHECK_TIMEOUT_MS : METADATA_TIMEOUT_MS
}

function workOf(statement: JobStatement, { prepareDeadlineMs }: EngineSettings): EngineWork {
  if ('question' in statement) {
    const { id, question } = statement
    return { id, asks: { kind: 'files', question }, prepareDeadlineMs: timeoutOf(question) }
  }
  const { id, query, output, cachePrepared, profile, bounds, onUsage } = statement
  return {
    id,
    asks: { kind: 'rows', query, output, cachePrepared, profile },
    prepareDeadlineMs,
    ...(bounds && { bounds }),
    ...(onUsage && { onUsage }),
  }
}

function canceled(): EngineError {
  return new EngineError('USER_CANCELED', 'Query was canceled')
}
