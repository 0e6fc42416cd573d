import type { TaskStats } from '../../../execution/api/task.ts'
import { splitsOfStatement } from '../../../execution/api/fragment.ts'
import { EngineLost, type EngineResult, type EngineRun } from '../../../execution/engine/engine.ts'
import type { RenderedQuery } from '../../../planner/planned-statement.ts'
import { ROW_PLAN, type Stage } from '../../../planner/query-plan.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { NO_ROWS, type PageDigest, type RowDigester } from '../../../shared/row-digest.ts'
import { connectorOf, connectorSplit } from '../../dispatch/catalog-metadata.ts'
import { coordinatorTaskStats, cutPages, toPublish, type MadePage } from './coordinator-stage.ts'
import type { QueryCommand } from '../stream/decider.ts'
import type { PlanFacts } from '../stream/planned-data.ts'
import type { ExecutionDeps } from './execution-deps.ts'
import type { RunContext } from './run-context.ts'
import { publishOwnResult } from './publish-pages.ts'

export type CoordinatorRunDeps = Pick<
  ExecutionDeps,
  'log' | 'clock' | 'catalogs' | 'engine' | 'nodeId' | 'selfUrl' | 'digester' | 'limits'
>

/** The plan of a statement that runs no stage. */
export const NO_STAGES = {
  tables: [],
  planningNanos: 0,
} satisfies Partial<PlanFacts>

/**
 * Runs a stage in the coordinator's engine and publishes its result.
 * @param plan to record first; undefined when it is recorded
 */
export async function runOnCoordinator(
  deps: CoordinatorRunDeps,
  run: RunContext,
  stage: Stage,
  plan: QueryCommand | undefined,
): Promise<void> {
  const { fragment } = stage
  if (!fragment) throw new Error('a stage in the coordinator has a fragment')
  const splits = await run.splitsOf(stage)
  const scans = await Promise.all(
    fragment.scans.map((scan, index) =>
      connectorOf(deps.catalogs, scan.catalog).tableSource(
        splits.filter((split) => split.scan === index).map(connectorSplit),
        scan.columns,
      ),
    ),
  )
  // No await between here and the engine: a cancel either finds the run or comes before it.
  run.signal.throwIfAborted()
  const createdAt = deps.clock.now()
  const engineRun = deps.engine.run({
    id: run.queryId,
    query: { sql: fragment.sql, scans, row: { kind: 'json', values: fragment.output.map(({ wire }) => wire) } },
    placement: 'shared',
    risky: fragment.risky,
    profile: false,
    cachePrepared: fragment.scans.length === 0,
    output: { kind: 'inline', maxBytes: deps.limits.inlineBytes },
    ...run.limits.forTask(),
  })
  registerRun(run, engineRun)
  const planned = plan ? recordedSoon(run, plan) : Promise.resolve()
  const result = await wholeResult(deps, run, engineRun)
  const pages = cutPages(result.inline, result.rows, deps.limits.pageBytes)
  const bytes = pages.reduce((sum, page) => sum + page.bytes.length, 0)
  const stats = coordinatorTaskStats({
    createdAt,
    endedAt: deps.clock.now(),
    rows: result.rows,
    bytes,
    splits: splitsOfStatement(stage.fragment, stage.splits).length,
    source: 'ValuesOperator',
    engine: result,
  })
  await Promise.all([publishMade(deps, run, pages, stats), planned])
}

/** Registers a run in the coordinator's engine, which ends with this process. */
function registerRun(run: RunContext, engineRun: EngineRun): void {
  const forget = run.onWork({ outlivesCoordinator: false, cancel: () => engineRun.cancel() })
  engineRun.done.then(forget, forget)
}

/**
 * The whole result of a run in the coordinator's engine.
 * @throws EngineError when the engine is lost, or the result is too large
 */
async function wholeResult(
  { limits }: Pick<CoordinatorRunDeps, 'limits'>,
  run: RunContext,
  engineRun: EngineRun,
): Promise<EngineResult & { readonly inline: Buffer }> {
  const result = await engineRun.done.catch((error: unknown) => {
    // The pool has already tried it twice.
    if (error instanceof EngineLost)
      throw new EngineError(
        'REMOTE_TASK_ERROR',
        `The engine of the coordinator was lost (${error.reason}) while the statement ran`,
      )
    throw error
  })
  run.signal.throwIfAborted()
  if (result.overflow)
    throw new EngineError(
      'EXCEEDED_LOCAL_MEMORY_LIMIT',
      `The result of a statement that needs no worker is larger than ${limits.inlineBytes} bytes`,
    )
  return { ...result, inline: result.inline ?? Buffer.alloc(0) }
}

/** The only row of a query that reads no table, in wire format: values that a statement is carried out with. */
export async function valuesInEngine(
  deps: CoordinatorRunDeps,
  run: RunContext,
  { sql, wire, risky }: Pick<RenderedQuery, 'sql' | 'wire' | 'risky'>,
): Promise<string> {
  run.signal.throwIfAborted()
  const engineRun = deps.engine.run({
    id: run.queryId,
    query: { sql, scans: [], row: { kind: 'json', values: wire } },
    placement: 'shared',
    risky,
    profile: false,
    cachePrepared: true,
    output: { kind: 'inline', maxBytes: deps.limits.inlineBytes },
    ...run.limits.forTask(),
  })
  registerRun(run, engineRun)
  return (await wholeResult(deps, run, engineRun)).inline.toString('utf8')
}

/**
 * Records a command together with the next ones. If the log refuses it, the caller learns this when it awaits the
 * result.
 */
function recordedSoon(run: RunContext, command: QueryCommand): Promise<void> {
  const recorded = run.recordSoon([command])
  recorded.catch(() => {})
  return recorded
}

/** Publishes one row that is made here, without an engine: EXPLAIN, literals. */
export async function makeRow(
  deps: CoordinatorRunDeps,
  run: RunContext,
  row: string,
  facts: Omit<PlanFacts, 'plan' | keyof typeof NO_STAGES>,
): Promise<void> {
  const planned = recordedSoon(run, run.planned({ ...NO_STAGES, plan: ROW_PLAN, ...facts }))
  await Promise.all([publishRow(deps, run, row, 'ValuesOperator'), planned])
}

/**
 * @param row its JSON
 * @param source the operator that the figures name as the row's source
 */
export async function publishRow(
  deps: CoordinatorRunDeps,
  run: RunContext,
  row: string,
  source: string,
): Promise<void> {
  const createdAt = deps.clock.now()
  const text = Buffer.from(row)
  const pages = cutPages(text, 1, deps.limits.pageBytes)
  const endedAt = deps.clock.now()
  const stats = coordinatorTaskStats({ createdAt, endedAt, rows: 1, bytes: text.length, splits: 1, source })
  await publishMade(deps, run, pages, stats)
}

async function publishMade(
  deps: CoordinatorRunDeps,
  run: RunContext,
  pages: readonly MadePage[],
  stats: TaskStats,
): Promise<void> {
  // Held until the log has taken the pages; from then on they can be read there.
  const giveBack = run.hold(pages.reduce((sum, page) => sum + page.bytes.length, 0))
  try {
    const digests = chainedDigests(deps.digester, pages)
    const unpublished = pages.map((page, index) => ({ ...toPublish(page, index), digest: digests[index] }))
    await publishOwnResult(deps, run, { pages: unpublished, stats })
  } finally {
    giveBack()
  }
}

/** Digests of the pages, chained; none without a digester. Results that are made here are small. */
function chainedDigests(digester: RowDigester | undefined, pages: readonly MadePage[]): readonly PageDigest[] {
  if (!digester) return []
  let before = NO_ROWS
  return pages.map(({ bytes }) => {
    const digest = digester.digest(bytes, before)
    before = digest.chain ?? before
    return digest
  })
}
