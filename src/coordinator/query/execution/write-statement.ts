import type { Catalogs } from '../../../connectors/spi/catalogs.ts'
import {
  changedRows,
  type CommittedWrite,
  type ConnectorWriter,
  type PreparedWrite,
  type TableChange,
  type WriteTarget,
  type WrittenFile,
} from '../../../connectors/spi/table-writer.ts'
import { EngineError, failureOf } from '../../../shared/engine-error.ts'
import { howToRetry } from '../../../shared/quipu-error.ts'
import { planWrite } from '../../../planner/plan-query.ts'
import { resultStage, ROW_PLAN, type QueryPlan, type Stage } from '../../../planner/query-plan.ts'
import type { PlannedStatement, PlanNode } from '../../../planner/planned-statement.ts'
import { duckdbTypeText } from '../../../sql/types/duckdb-representation.ts'
import { parseTypeText } from '../../../sql/types/type-names.ts'
import { connectorOf, listSplits } from '../../dispatch/catalog-metadata.ts'
import { writeOutline } from '../explain/write-outline.ts'
import { coordinatorTaskStats, cutPages, toPublish } from './coordinator-stage.ts'
import type { QueryCommand } from '../stream/decider.ts'
import type { QueryEventOf } from '../stream/events.ts'
import type { PlanFacts } from '../stream/planned-data.ts'
import { recordedPlan, writtenLineage } from '../stream/planned-data.ts'
import type { QueryStep } from '../stream/query-aggregate.ts'
import type { KnownQuery } from '../stream/state.ts'
import { isRedacted } from '../secrets/query-secrets.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { RunContext } from './run-context.ts'
import { publishOwnResult } from './publish-pages.ts'
import { secretsNotKept } from '../secrets/secrets-not-kept.ts'
import { tablesRead, viewsRead } from './query-statement.ts'
import { runOnWorkers } from './run-plan.ts'
import { finishTask, type FinishedTask } from './task-outcome.ts'
import type { WorkerStageDeps } from './worker-stage.ts'

type PlannedWrite = Extract<PlannedStatement, { kind: 'write' }>
type Planned = QueryEventOf<'QueryPlanned'>['data']

export type WriteDeps = WorkerStageDeps &
  Pick<ExecutionDeps, 'catalogs' | 'guard' | 'nodeId' | 'selfUrl' | 'onInternalError'>

/** A statement as it was analyzed. */
export interface AnalyzedWrite {
  readonly analyzed: PlannedWrite
  readonly analysisNanos: number
  /** Analyzes the statement again, on the present versions of its tables. */
  again(): Promise<PlannedWrite>
}

/**
 * Carries out a statement that changes something, exactly once. WritePrepared is the decision: before it the change is
 * invisible, after it the query can only finish.
 */
export async function carryOutWrite(deps: WriteDeps, run: RunContext, write: AnalyzedWrite): Promise<void> {
  const { catalog, change, settled } = write.analyzed
  if (settled || !countsRows(change)) return planAndDecide(deps, run, write, deps.guard)
  const leave = await deps.guard.enter(catalog, change, run.signal)
  return planAndDecide(deps, run, write, ENTERED).finally(leave)
}

/**
 * Whether the rows of the change name rows of a version of the table. No other change of these rows may come between:
 * the change enters the guard before it is planned.
 */
function countsRows({ kind }: TableChange): boolean {
  return kind === 'changeRows' || kind === 'rewriteTable' || kind === 'refreshMaterializedView'
}

/** For a change that has entered the guard already. */
const ENTERED: Pick<WriteDeps['guard'], 'enter'> = { enter: () => Promise.resolve(() => {}) }

async function planAndDecide(
  deps: WriteDeps,
  run: RunContext,
  { analyzed: first, analysisNanos, again }: AnalyzedWrite,
  guard: Pick<WriteDeps['guard'], 'enter'>,
): Promise<void> {
  const planStart = deps.clock.monotonicMs()
  const facts = (analyzed: PlannedWrite, plan: QueryPlan | undefined, outline?: PlanNode): PlanFacts => {
    const made = analyzed.defines ?? analyzed.source
    return {
      queryType: analyzed.queryType,
      plan,
      columns: analyzed.columns,
      tables: tablesOf(analyzed),
      views: analyzed.source ? viewsRead(analyzed.source.query) : [],
      analysisNanos,
      planningNanos: Math.round((deps.clock.monotonicMs() - planStart) * 1e6),
      updateType: analyzed.updateType,
      warnings: analyzed.warnings,
      write: analyzed.tolerated === undefined ? {} : { tolerated: analyzed.tolerated },
      ...(outline && { outline }),
      lineage: made && writtenLineage(made.lineage, made.columns),
    }
  }
  const withoutWorker = (): QueryCommand => run.planned(facts(first, first.columns.length > 0 ? ROW_PLAN : undefined))
  if (first.settled) return changeNothing(deps, run, [withoutWorker()])

  let begun: Begun | undefined
  try {
    begun = await begin(deps, run, first, again)
  } catch (error) {
    if (!isTolerated(error, first.tolerated)) throw error
    return changeNothing(deps, run, [withoutWorker()])
  }
  run.signal.throwIfAborted()
  if (!begun) return changeNothing(deps, run, [withoutWorker()])
  const { target, analyzed } = begun
  const { source } = analyzed
  if (!source) {
    const written = { target, files: [], before: [withoutWorker()] }
    return decide(deps, run, written, { tolerated: analyzed.tolerated, guard })
  }

  const input = await listSplits(deps.catalogs, source.query)
  run.signal.throwIfAborted()
  const duckdbTypes = target.columns.map(({ type }) => duckdbTypeText(parseTypeText(type)))
  const plan = planWrite(source.query, source.columns, input, { target, duckdbTypes })
  const planned = run.planned(facts(analyzed, plan, writeOutline(analyzed, source.query.outline)))
  const written = await writeRows(deps, run, plan, planned)
  return decide(deps, run, writtenBy(target, written), { tolerated: analyzed.tolerated, guard })
}

interface Begun {
  readonly target: WriteTarget
  /** The analysis on which the target is based. */
  readonly analyzed: PlannedWrite
}

/** How often a statement is analyzed whose table changes between its analysis and its beginning. */
const MOST_ANALYSES = 3

/** @returns undefined when another statement has done it meanwhile */
async function begin(
  deps: WriteDeps,
  run: RunContext,
  first: PlannedWrite,
  again: AnalyzedWrite['again'],
): Promise<Begun | undefined> {
  let analyzed = first
  for (let analyses = 1; ; analyses++) {
    try {
      const writer = writerOf(deps.catalogs, analyzed.catalog)
      return { target: await writer.begin(run.queryId, analyzed.change, analyzed.analyzedTable), analyzed }
    } catch (error) {
      if (analyses === MOST_ANALYSES || howToRetry(error) !== 'anew' || !analyzed.source) throw error
      run.signal.throwIfAborted()
      analyzed = await again()
      if (analyzed.settled) return undefined
    }
  }
}

/**
 * Continues a write that an earlier coordinator planned.
 * @returns 'analyze' when the write has no rows and was not decided: then the caller carries it out from the beginning
 */
export function resumeWrite(deps: WriteDeps, run: RunContext, planned: Planned): Promise<void> | 'analyze' {
  const query = run.aggregate.intended
  if (query.kind === 'NONE') throw new Error('a planned query has a state')
  if (query.write) {
    const { prepared } = query.write
    // Registered before the first await: no new change of the object may be checked until this one is carried out.
    const leave = deps.guard.resume(prepared.catalog, prepared.change)
    const outcome = isRedacted(query.created, prepared.change) ? 'found' : 'rolledForward'
    return commitAndFinish(deps, run, prepared, outcome).finally(leave)
  }
  const plan = recordedPlan(planned)
  const target = plan && targetOf(resultStage(plan.stages))
  if (!target) return 'analyze'
  // A change that names rows was planned while it held the guard. It takes the guard again before new changes can.
  const entered = countsRows(target.change) ? deps.guard.resume(target.catalog, target.change) : undefined
  return (async () => {
    if (isRedacted(query.created, target.change)) throw secretsNotKept()
    const written = await writeRows(deps, run, plan, undefined)
    const guard = entered ? ENTERED : deps.guard
    await decide(deps, run, writtenBy(target, written), { tolerated: planned.write?.tolerated, guard })
  })().finally(entered)
}

function targetOf(stage: Stage | undefined): WriteTarget | undefined {
  return stage?.fragment?.write?.target ?? stage?.withheld?.target
}

/** The parts of a change that exist before it is decided. */
interface Written {
  readonly target: WriteTarget
  readonly files: readonly WrittenFile[]
  /** Commands to record together with the decision. */
  readonly before: readonly QueryCommand[]
}

const writtenBy = (target: WriteTarget, task: FinishedTask): Written => ({
  target,
  files: filesOf(task),
  before: [finishTask(task)],
})

/** Carries out the change from the check of names to the end; conflicting changes wait. */
async function decide(
  deps: WriteDeps,
  run: RunContext,
  { target, files, before }: Written,
  {
    tolerated,
    guard,
  }: { readonly tolerated: PlannedWrite['tolerated']; readonly guard: Pick<WriteDeps['guard'], 'enter'> },
): Promise<void> {
  const leave = await guard.enter(target.catalog, target.change, run.signal)
  try {
    run.signal.throwIfAborted()
    let prepared: PreparedWrite
    try {
      prepared = await writerOf(deps.catalogs, target.catalog).prepare(target, files)
    } catch (error) {
      if (isTolerated(error, tolerated)) return await changeNothing(deps, run, before)
      await run.record(before)
      throw error
    }
    run.signal.throwIfAborted()
    const { catalog, change } = prepared
    await run.record([
      ...before,
      {
        type: 'PrepareWrite',
        data: {
          catalog,
          schema: change.schema,
          ...('table' in change && { table: change.table }),
          operation: change.kind,
          rows: changedRows(files),
          bytes: files.reduce((sum, file) => sum + file.bytes, 0),
          prepared,
        },
      },
    ])
    // A cancel was recorded first: the write was not decided, and there is nothing to commit.
    if (known(run).write === undefined) return
    await commitAndFinish(deps, run, prepared, 'committed')
  } finally {
    leave()
  }
}

/** Commits until the commit is known to be done, reports the number of rows, and ends the query. */
async function commitAndFinish(
  deps: WriteDeps,
  run: RunContext,
  prepared: PreparedWrite,
  outcome: 'committed' | 'rolledForward' | 'found',
): Promise<void> {
  const before = known(run).committed
  if (before && before.outcome !== 'impossible') return finish(deps, run, [], countOf(run))
  const committed = before ? impossible() : await commit(deps, run, prepared, outcome === 'found')
  if (committed instanceof EngineError) {
    await run.record([{ type: 'CommitWrite', data: { outcome: 'impossible' } }])
    throw committed
  }
  await finish(
    deps,
    run,
    [
      {
        type: 'CommitWrite',
        data: { version: committed.version, outcome: outcome === 'found' ? 'rolledForward' : outcome },
      },
    ],
    countOf(run),
  )
}

/** The number of rows that the client learns; undefined if it learns none. */
function countOf(run: RunContext): number | undefined {
  const { write } = known(run)
  const kind = write?.prepared.change.kind
  return kind === 'rewriteTable' || kind === 'expireVersions' ? undefined : (write?.rows ?? 0)
}

/** Runs the plan of the rows. @returns the task that wrote them */
async function writeRows(
  deps: WriteDeps,
  run: RunContext,
  plan: QueryPlan,
  planned: QueryCommand | undefined,
): Promise<FinishedTask> {
  const finished = await runOnWorkers(deps, run, plan, planned)
  if (!finished) throw new Error('a plan that writes ends with the task that wrote the rows')
  return finished
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 5_000

/**
 * Commits the prepared change, and retries for as long as the cause may go away.
 * @param found true: the change's text is not kept, so the commit can only find a change that is already made
 * @returns the error that makes the change impossible: mostly a conflict with a change made outside of the event log
 */
async function commit(
  deps: WriteDeps,
  run: RunContext,
  prepared: PreparedWrite,
  found: boolean,
): Promise<CommittedWrite | EngineError> {
  const writer = writerOf(deps.catalogs, prepared.catalog)
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(LONGEST_PAUSE_MS, pause * 2)) {
    try {
      return found ? ((await writer.find(prepared)) ?? secretsNotKept()) : await writer.commit(prepared)
    } catch (error) {
      if (error instanceof EngineError && error.retry === 'never') return error
      // The disk is full or unreachable, or its owner can repair the cause: the decision stands, so the coordinator
      // tries until the change is made.
      deps.onInternalError(run.queryId, error)
    }
    await new Promise((resolve) => setTimeout(resolve, pause))
    run.signal.throwIfAborted()
  }
}

function impossible(): EngineError {
  return new EngineError('TRANSACTION_CONFLICT', 'The table was changed from outside while the statement committed')
}

/** Finishes a statement with IF [NOT] EXISTS whose condition makes it change nothing. */
function changeNothing(deps: WriteDeps, run: RunContext, before: readonly QueryStep[]): Promise<void> {
  return finish(deps, run, before, 0)
}

/**
 * Ends the query. If the statement has a result, its result is one row with the number of changed rows.
 * @param rows undefined: the result has no row
 */
async function finish(
  deps: WriteDeps,
  run: RunContext,
  before: readonly QueryStep[],
  rows: number | undefined,
): Promise<void> {
  const createdAt = deps.clock.now()
  // Statements of definitions have no rows, not even a count.
  const hasCount = (columns: Planned['columns'] | undefined): boolean => columns !== undefined && columns.length > 0
  const query = run.aggregate.intended
  const counted =
    (query.kind !== 'NONE' && hasCount(query.planned?.columns)) ||
    before.some((step) => typeof step === 'object' && step.type === 'PlanQuery' && hasCount(step.data.columns))
  if (!counted) return run.record([...before, run.finish()])
  const pages = rows === undefined ? [] : cutPages(Buffer.from(JSON.stringify([rows])), 1, Infinity)
  const stats = coordinatorTaskStats({
    createdAt,
    endedAt: deps.clock.now(),
    rows: pages.length,
    bytes: pages.reduce((sum, { bytes }) => sum + bytes.length, 0),
    splits: 1,
    source: 'TableFinishOperator',
  })
  await publishOwnResult(
    deps,
    run,
    { pages: pages.map(toPublish), stats },
    { before, finish: run.finish(rows === undefined ? {} : { updateCount: rows }) },
  )
}

function known(run: RunContext): KnownQuery {
  const { intended } = run.aggregate
  if (intended.kind === 'NONE') throw new Error('a query that writes has a state')
  return intended
}

function writerOf(catalogs: Catalogs, catalog: string): ConnectorWriter {
  const { writer } = connectorOf(catalogs, catalog)
  if (!writer) throw new EngineError('NOT_SUPPORTED', `Catalog '${catalog}' cannot be written`)
  return writer
}

function isTolerated(error: unknown, tolerated: PlannedWrite['tolerated']): boolean {
  return tolerated !== undefined && error instanceof EngineError && error.errorName === tolerated
}

function filesOf({ taskId, status }: FinishedTask): readonly WrittenFile[] {
  if (status.written) return status.written.files
  const { message } = failureOf('REMOTE_TASK_ERROR', `Task ${taskId} does not report its written files`)
  throw new EngineError('REMOTE_TASK_ERROR', message)
}

function tablesOf({ catalog, change, source, writes }: PlannedWrite): Planned['tables'] {
  const reads = source ? tablesRead(source.query) : []
  if (!('table' in change)) return reads
  const written = [change, ...('to' in change ? [change.to] : [])]
  return [
    ...reads,
    ...written.map(({ schema, table }) => ({
      catalog,
      schema,
      table,
      columns: [...writes],
      mode: 'WRITE' as const,
    })),
  ]
}
