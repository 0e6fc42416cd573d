import { planQuery } from '../../../planner/plan-query.ts'
import type { PlannedStatement, RenderedQuery } from '../../../planner/planned-statement.ts'
import { resultLineage } from '../stream/planned-data.ts'
import { makeRow, type CoordinatorRunDeps } from './coordinator-run.ts'
import type { RunContext } from './run-context.ts'
import { runPlan } from './run-plan.ts'
import type { WorkerStageDeps } from './worker-stage.ts'

type PlannedQuery = Extract<PlannedStatement, { kind: 'query' }>

/**
 * Runs a statement with rows: literals here at once, tables that only the coordinator has in its engine, others on a
 * worker.
 */
export async function runQuery(
  deps: CoordinatorRunDeps & WorkerStageDeps,
  run: RunContext,
  analyzed: PlannedQuery,
  analysisNanos: number,
): Promise<void> {
  const { queryType, columns, warnings, properties } = analyzed
  const { literalRow, outline, ordered } = analyzed.query
  if (literalRow !== undefined)
    return makeRow(deps, run, literalRow, { queryType, columns, warnings, outline, properties, analysisNanos })
  const planStart = deps.clock.monotonicMs()
  const input = await run.listSplits(analyzed.query)
  run.signal.throwIfAborted()
  const plan = planQuery(analyzed.query, columns, input)
  const planned = run.planned({
    queryType,
    plan,
    columns,
    tables: tablesRead(analyzed.query),
    views: viewsRead(analyzed.query),
    analysisNanos,
    planningNanos: Math.round((deps.clock.monotonicMs() - planStart) * 1e6),
    warnings,
    ordered,
    outline,
    properties,
    lineage: resultLineage(analyzed.lineage, columns),
  })
  await runPlan(deps, run, plan, planned)
}

export function tablesRead({ reads }: Pick<RenderedQuery, 'reads'>) {
  return reads.map(({ paths, ...read }) => ({
    ...read,
    columns: [...read.columns],
    mode: 'READ' as const,
    ...(paths && { paths: paths.map(({ views, columns }) => ({ views: [...views], columns: [...columns] })) }),
  }))
}

export function viewsRead({ views }: Pick<RenderedQuery, 'views'>) {
  return views.map((view) => ({ ...view, columns: [...view.columns], via: [...view.via] }))
}
