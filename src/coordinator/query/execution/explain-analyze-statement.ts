import { planForFigures } from '../../../planner/plan-query.ts'
import { stageOf } from '../../../planner/query-plan.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import type { PlannedStatement } from '../../../planner/planned-statement.ts'
import { explainAnalyzeText } from '../explain/explain-analyze.ts'
import { routeLine } from '../stream/route-text.ts'
import { publishRow, type CoordinatorRunDeps } from './coordinator-run.ts'
import { tablesRead, viewsRead } from './query-statement.ts'
import type { RunContext } from './run-context.ts'
import { runOnWorkers } from './run-plan.ts'
import { finishTask } from './task-outcome.ts'
import type { WorkerStageDeps } from './worker-stage.ts'

/**
 * Runs the statement, reports the figures of each operator, and discards the rows.
 * @throws EngineError the failure of a task. A lost task is not retried, because the figures must be those of one run.
 */
export async function runExplainAnalyze(
  deps: CoordinatorRunDeps & WorkerStageDeps,
  run: RunContext,
  analyzed: Extract<PlannedStatement, { kind: 'explain' }>,
  analysisNanos: number,
): Promise<void> {
  const inner = analyzed.statement
  if (inner.kind !== 'query')
    throw new EngineError('NOT_SUPPORTED', 'EXPLAIN ANALYZE of a statement that changes something is not supported')
  const planStart = deps.clock.monotonicMs()
  const input = await run.listSplits(inner.query)
  const plan = planForFigures(inner.query, inner.columns, input)
  const planningNanos = Math.round((deps.clock.monotonicMs() - planStart) * 1e6)
  const planned = run.planned({
    queryType: 'EXPLAIN',
    plan,
    columns: analyzed.columns,
    tables: tablesRead(inner.query),
    views: viewsRead(inner.query),
    analysisNanos,
    planningNanos,
  })
  const finished = await runOnWorkers(deps, run, plan, planned)
  if (!finished) throw new Error('a plan for figures ends with the task that has them')
  await run.record([finishTask(finished)])
  const figures = { stage: stageOf(plan.stages, finished.stage), stats: finished.status.stats }
  const text = explainAnalyzeText(figures, { analysisNanos, planningNanos }, analyzed.verbose)
  const row = run.routed ? `${routeLine(run.routed)}\n${text}` : text
  await publishRow(deps, run, JSON.stringify([row]), 'ExplainAnalyzeOperator')
}
