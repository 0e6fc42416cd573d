import { planStages } from '../../../planner/plan-stages.ts'
import type { BoundStatement } from '../../../sql/front-end.ts'
import { resultLineage } from '../stream/planned-data.ts'
import { makeRow, runOnCoordinator, type CoordinatorRunDeps } from './coordinator-run.ts'
import type { RunContext } from './run-context.ts'
import { runWorkerStage, type WorkerStageDeps } from './worker-stage.ts'

type BoundQuery = Extract<BoundStatement, { kind: 'query' }>

/**
 * Runs a statement with rows: literals here at once, tables that only the coordinator has in its engine, others on a
 * worker.
 */
export async function runQuery(
  deps: CoordinatorRunDeps & WorkerStageDeps,
  run: RunContext,
  analyzed: BoundQuery,
  analysisNanos: number,
): Promise<void> {
  const { queryType, columns, warnings, properties } = analyzed
  const { literalRow, outline, ordered } = analyzed.query
  if (literalRow !== undefined)
    return makeRow(deps, run, literalRow, { queryType, columns, warnings, outline, properties, analysisNanos })
  const planStart = deps.clock.monotonicMs()
  const input = await run.listSplits(analyzed.query)
  run.signal.throwIfAborted()
  const stages = planStages(analyzed.query, columns, input)
  const root = stages[0]!
  const plan = run.planned({
    queryType,
    route: root.fragment ? 'coordinator' : 'local',
    columns,
    tables: tablesRead(analyzed),
    stages,
    analysisNanos,
    planningNanos: Math.round((deps.clock.monotonicMs() - planStart) * 1e6),
    warnings,
    ordered,
    outline,
    properties,
    lineage: resultLineage(analyzed.lineage, columns),
  })
  if (root.fragment) return runOnCoordinator(deps, run, root, plan)
  await runWorkerStage(
    deps,
    run,
    stages.find((stage) => stage.fragment !== undefined)!,
    plan,
  )
}

export function tablesRead({ reads }: Pick<BoundQuery, 'reads'>) {
  return reads.map((read) => ({ ...read, columns: [...read.columns], mode: 'READ' as const }))
}
