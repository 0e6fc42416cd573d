import type { TaskStats } from '../../../execution/api/task.ts'
import type { Warning } from '../../../sql/front-end.ts'
import { subtreeOf } from '../../../planner/query-plan.ts'
import { Fenced, LogUnavailable, LogWentBackwards, NotTaken, TooLarge } from '../../../events/event-log.ts'
import { EngineError, failureOf, toFailure, type Failure } from '../../../shared/engine-error.ts'
import type { HeldMemory } from '../../dispatch/statement-memory.ts'
import type { TaskCleaner } from '../../scheduler/task-cleaner.ts'
import type { EndedBy, QueryEventOf } from '../stream/events.ts'
import type { QueryAggregate, QueryStep } from '../stream/query-aggregate.ts'
import { isDecided, isTerminal, resultSize, servingTasks, type QueryState } from '../stream/state.ts'
import type { Figures } from './figures.ts'
import type { Recorder } from '../stream/recorder.ts'
import { resultDigest } from '../results/result-digest.ts'
import { Ended, type OngoingWork } from './ongoing-work.ts'
import { ROOT_STAGE, type TaskId, type QueryId } from '../../../shared/ids.ts'

interface CompletionDeps {
  readonly aggregate: Pick<QueryAggregate, 'queryId' | 'state' | 'intended'>
  readonly record: Recorder['record']
  readonly work: Pick<OngoingWork, 'suspended' | 'stop' | 'dropPending'>
  readonly figures: Pick<Figures, 'live' | 'atEnd'>
  readonly held: HeldMemory
  readonly cleaner: Pick<TaskCleaner, 'release'>
  /** How long clients may ask for the pages of a finished query. */
  readonly answersKeptMs: number
  /** The name of the key of digests; undefined where digests are switched off. */
  readonly digestsBy: string | undefined
  readonly onInternalError: (queryId: QueryId, error: unknown) => void
  readonly onUnrecorded: (queryId: QueryId) => void
}

/** Ends the query, finished or failed, and then releases what it holds. */
export class Completion {
  readonly #deps: CompletionDeps
  #endedBytes: number | undefined
  #released = false
  #partial = false
  readonly #warnings: Warning[] = []

  constructor(deps: CompletionDeps) {
    this.#deps = deps
  }

  /** Adds a warning that was found after the plan was made. The answers have it from the end of the query on. */
  warn(warning: Warning): void {
    this.#warnings.push(warning)
  }

  // --- finished ----------------------------------------------------------------------------------------------------
  /** QueryFinished; its figures are taken after everything before it in the same append is counted. */
  finishStep(extra: Partial<QueryEventOf<'QueryFinished'>['data']> = {}): QueryStep {
    return (query) => {
      if (query.kind === 'NONE') return []
      const planned = query.planned
      const ordered = planned?.ordered ?? false
      const digest =
        this.#deps.digestsBy === undefined || !planned?.columns.length || planned.route === 'delegated'
          ? undefined
          : resultDigest(query.pages, ordered, this.#deps.digestsBy)
      const data = {
        ordered,
        ...resultSize(query.pages),
        ...(digest && { digest }),
        responseHeaders: [],
        warnings: [...(planned?.warnings ?? []), ...this.#warnings],
        partial: this.#partial,
        ...(planned?.updateType === undefined ? {} : { updateType: planned.updateType }),
        ...this.#deps.figures.atEnd(query, 'FINISHED'),
        ...extra,
      }
      return [{ type: 'FinishQuery', data }]
    }
  }

  /** Finishes the query: the client has received the last page. Resolves when the end is valid. */
  async finish(): Promise<void> {
    if (isTerminal(this.#deps.aggregate.state.kind)) return
    await this.#deps.record([this.finishStep()])
  }

  /**
   * Drops the batches of a stage, and of the stages that it reads, that have not begun. The query finishes with the rows
   * that it has.
   */
  async stopStage(stage: number): Promise<void> {
    const { aggregate, work } = this.#deps
    const query = aggregate.intended
    if (query.kind === 'NONE' || isTerminal(query.kind)) return
    const dropped = work.dropPending(subtreeOf(query.planned?.stages ?? [], stage))
    if (!dropped) return
    this.#partial = true
    await dropped
  }

  /** Records in the end of the query that its result may lack rows. */
  markPartial(): void {
    this.#partial = true
  }

  // --- failed ------------------------------------------------------------------------------------------------------
  /**
   * Fails the query. Resolves when the failure is valid; at once when the query has ended, or can only finish.
   * @param endedBy the user that ends it from outside
   */
  async fail(thrown: Failure, endedBy?: EndedBy): Promise<void> {
    const { aggregate, work, figures, record } = this.#deps
    const { intended } = aggregate
    if (work.suspended || isTerminal(intended.kind) || (intended.kind !== 'NONE' && isDecided(intended))) return
    work.stop()
    const end = { failure: boundedFailure(thrown), endedBy }
    await record(this.#failSteps(end, figures.live)).catch((error: unknown) => {
      if (!(error instanceof NotTaken)) throw error
      // The end itself always fits into the log; the figures of the tasks may not.
      return record(this.#failSteps(end, new Map()))
    })
  }

  #failSteps(
    end: { readonly failure: Failure; readonly endedBy: EndedBy | undefined },
    live: ReadonlyMap<TaskId, TaskStats>,
  ): readonly QueryStep[] {
    const canceled = end.failure.errorName === 'USER_CANCELED'
    return [
      (query) =>
        query.kind === 'NONE'
          ? []
          : [...query.tasks.keys()].map((task) => {
              const stats = live.get(task)
              return {
                type: 'CancelTask',
                data: { taskId: task, reason: canceled ? 'canceled' : 'aborted', ...(stats ? { stats } : {}) },
              }
            }),
      (query) =>
        query.kind === 'NONE'
          ? []
          : [
              {
                type: 'FailQuery',
                ...end,
                figures: this.#deps.figures.atEnd(query, canceled ? 'CANCELED' : 'FAILED'),
              },
            ],
    ]
  }

  /**
   * Turns an error of the execution into the query's failure, unless the query had ended or continues on another
   * coordinator.
   */
  async failFor(error: unknown): Promise<void> {
    const { aggregate, work, onInternalError } = this.#deps
    if (work.suspended || error instanceof Ended) return
    if (!(error instanceof EngineError || error instanceof NotTaken)) onInternalError(aggregate.queryId, error)
    await this.fail(error instanceof NotTaken ? notTaken(error) : toFailure(error))
  }

  /** Handles that the log did not take the failure. */
  unrecorded(error: unknown): void {
    const { aggregate, work, onInternalError, onUnrecorded } = this.#deps
    if (work.suspended) return
    onInternalError(aggregate.queryId, error)
    // The log itself reports these errors. A query that no client has seen needs no end.
    const notOurs = error instanceof Fenced || error instanceof LogWentBackwards
    const unseen = (error instanceof LogUnavailable || error instanceof NotTaken) && aggregate.state.kind === 'NONE'
    if (!notOurs && !unseen) onUnrecorded(aggregate.queryId)
  }

  // --- given back --------------------------------------------------------------------------------------------------
  /** Bytes of this process's memory that the query holds, about; after its end, the bytes that it held until then. */
  get bytes(): number {
    return this.#endedBytes ?? this.#deps.held.bytes
  }

  /** Releases the query's memory: an ended query is counted by the registry that keeps it. */
  releaseMemory(): void {
    this.#endedBytes ??= this.#deps.held.bytes
    this.#deps.held.release()
  }

  /**
   * Deletes tasks whose pages are all kept beside the log; other tasks serve their pages as long as answers are kept.
   */
  releaseTasks(): void {
    const { aggregate, cleaner, answersKeptMs } = this.#deps
    const query: QueryState = aggregate.state
    if (this.#released || query.kind === 'NONE') return
    this.#released = true
    const serving = servingTasks(query)
    // The relay ends the tasks at clusters.
    const tasks = [...query.tasks.values()].filter((task) => task.stage !== ROOT_STAGE && !task.remote)
    const needed = query.kind === 'FINISHED'
    cleaner.release(
      tasks.filter((task) => needed && serving.has(task.taskId)),
      answersKeptMs,
    )
    cleaner.release(
      tasks.filter((task) => !(needed && serving.has(task.taskId))),
      0,
    )
  }
}

/** In characters. A failure is part of an event, of rows of the read models and of every answer, so it is bounded. */
const MAX_MESSAGE = 8 * 1024

function boundedFailure(failure: Failure): Failure {
  if (failure.message.length <= MAX_MESSAGE) return failure
  return { ...failure, message: `${failure.message.slice(0, MAX_MESSAGE).replace(/[\uD800-\uDBFF]$/, '')}…` }
}

function notTaken(error: NotTaken): Failure {
  const message =
    error instanceof TooLarge
      ? `The event about the statement has ${error.bytes} bytes; the event log accepts at most ${error.maxBytes} bytes`
      : 'The event log refuses the event about the statement'
  return failureOf('GENERIC_INSUFFICIENT_RESOURCES', message)
}
