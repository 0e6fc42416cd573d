import type { FileQuestion } from '../../connectors/spi/table-source.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { EngineLost, type EngineResult, type EngineSettings, type EngineStatement } from './engine.ts'
import { faultOf } from './engine-texts.ts'
import type { Attempt, Outcome, RunningEngine, Work } from './running-engine.ts'

/** A statement from its arrival to its answer, over one or two attempts. */
export interface EngineJob {
  readonly done: Promise<{ readonly result: EngineResult; readonly body: Buffer }>
  /** Which engines may run it now. */
  lane(): 'shared' | 'dedicated'
  runIn(engine: RunningEngine): void
  /** Answers at once; the engine is idle soon after. */
  cancel(): void
  reject(error: Error): void
}

export type JobStatement =
  | EngineStatement
  /** A connector's question: its planning has the whole time. */
  | { readonly id: string; readonly question: FileQuestion }

export interface EngineJobDeps {
  readonly settings: EngineSettings
  memoryLimit(role: 'shared' | 'dedicated'): number
  /** Puts the job at the end of its lane's queue. */
  enqueue(job: EngineJob): void
  dequeue(job: EngineJob): void
  isStopping(): boolean
}

const METADATA_TIMEOUT_MS = 30_000
/** Timers fire at once above it. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export function createEngineJob(statement: JobStatement, deps: EngineJobDeps): EngineJob {
  const { settings } = deps
  const isQuestion = 'question' in statement
  const work: Work = {
    id: statement.id,
    asks: isQuestion
      ? { kind: 'files', question: statement.question }
      : {
          kind: 'rows',
          query: statement.query,
          output: statement.output,
          cachePrepared: statement.cachePrepared,
          profile: statement.profile,
        },
    prepareDeadlineMs: isQuestion ? METADATA_TIMEOUT_MS : settings.prepareDeadlineMs,
  }
  // A risky statement is prepared, and then run, in an engine of its own: bound once, and no neighbour can suffer.
  let lane: 'shared' | 'dedicated' =
    isQuestion || (statement.placement === 'shared' && !statement.risky) ? 'shared' : 'dedicated'
  let retried = false
  let settled = false
  let attempt: Attempt | undefined

  let resolveDone!: (value: { result: EngineResult; body: Buffer }) => void
  let rejectDone!: (error: Error) => void
  const done = new Promise<{ result: EngineResult; body: Buffer }>((resolve, reject) => {
    resolveDone = resolve
    rejectDone = reject
  })

  const settle = (): boolean => {
    if (settled) return false
    settled = true
    clearTimeout(deadline)
    return true
  }

  const reject = (error: Error): void => {
    if (settle()) rejectDone(error)
  }

  /** Answers with the error and ends whatever is being done for the statement. */
  const abandon = (error: Error): void => {
    if (settled) return
    reject(error)
    if (attempt) attempt.cancel()
    else deps.dequeue(job)
  }

  const remaining = isQuestion ? METADATA_TIMEOUT_MS : statement.remainingMillis
  const deadline =
    remaining === undefined
      ? undefined
      : setTimeout(
          () => abandon(timeLimit('Query exceeded its maximum run time limit')),
          Math.min(Math.max(0, remaining), LONGEST_TIMER_MS),
        )

  /** Once more, alone in an engine. */
  const again = (orElse: () => Error): void => {
    if (retried) return reject(orElse())
    retried = true
    lane = 'dedicated'
    deps.enqueue(job)
  }

  const memoryExceeded = (): EngineError =>
    new EngineError(
      'EXCEEDED_LOCAL_MEMORY_LIMIT',
      `Query exceeded per-node memory limit of ${Math.round(deps.memoryLimit(lane) / 2 ** 20)}MB`,
    )

  const onError = (
    { text, broken, refused, alone, delivered }: Extract<Outcome, { kind: 'error' }>,
    engine: RunningEngine,
  ): void => {
    if (refused) {
      settings.onEvent?.({ type: 'refused', statement: statement.id, message: text })
      return reject(new EngineError('GENERIC_INTERNAL_ERROR', text))
    }
    const fault = faultOf(text) ?? (broken ? 'broken before' : undefined)
    switch (fault) {
      case undefined:
        return reject(settings.translateError(text))
      case 'memory':
        // Neighbours may have taken the memory: only alone is it known whose it was.
        if (alone || delivered) return reject(memoryExceeded())
        return again(memoryExceeded)
      case 'spill':
        return reject(
          new EngineError(
            'EXCEEDED_SPILL_LIMIT',
            `Query exceeded local spill limit of ${Math.round(settings.maxSpillBytes / 2 ** 20)}MB`,
          ),
        )
      case 'disk':
        return reject(new EngineError('OUT_OF_SPILL_SPACE', 'No space left on the disk of the engine'))
      case 'broken':
        engine.kill('crash')
        return reject(settings.translateError(text))
      case 'broken before': {
        engine.kill('crash')
        const lost = (): EngineLost => new EngineLost('crash', 'The engine was broken by another statement')
        return delivered ? reject(lost()) : again(lost)
      }
      default:
        unreachable(fault)
    }
  }

  const onLost = ({ reason, alone, culprit, delivered }: Extract<Outcome, { kind: 'lost' }>): void => {
    if (deps.isStopping()) return reject(new EngineError('SERVER_SHUTTING_DOWN', 'The engines are stopping'))
    if (reason === 'memory' && alone) return reject(memoryExceeded())
    if (reason === 'deadline' && culprit) return reject(timeLimit('Query exceeded the maximum planning time limit'))
    const lost = (): EngineLost => new EngineLost(reason, `The engine ended (${reason}) while the statement ran`)
    if (delivered) return reject(lost())
    again(lost)
  }

  const onOutcome = (outcome: Outcome, engine: RunningEngine): void => {
    attempt = undefined
    if (settled) return
    switch (outcome.kind) {
      case 'result':
        if (!settle()) return
        settings.onEvent?.({
          type: 'statement',
          kind: isQuestion ? 'metadata' : 'fragment',
          milliseconds: outcome.result.wallNanos / 1e6,
          spilledBytes: outcome.result.spilledBytes,
        })
        resolveDone(outcome)
        return
      case 'error':
        return onError(outcome, engine)
      case 'refused':
        return reject(outcome.error instanceof Error ? outcome.error : new Error(String(outcome.error)))
      case 'lost':
        return onLost(outcome)
      case 'canceled':
        return reject(canceled())
      default:
        unreachable(outcome)
    }
  }

  const job: EngineJob = {
    done,
    lane: () => lane,
    runIn(engine) {
      attempt = engine.execute(work)
      void attempt.outcome.then((outcome) => onOutcome(outcome, engine))
    },
    cancel: () => abandon(canceled()),
    reject,
  }
  return job
}

function canceled(): EngineError {
  return new EngineError('USER_CANCELED', 'Query was canceled')
}

function timeLimit(message: string): EngineError {
  return new EngineError('EXCEEDED_TIME_LIMIT', message)
}
