import type { Catalogs } from '../../../connectors/spi/catalogs.ts'
import { planQuery } from '../../../planner/plan-query.ts'
import type { BoundStatement } from '../../../sql/front-end.ts'
import { listSplits } from '../../dispatch/catalog-metadata.ts'
import { explainColumn, explainText } from '../explain/explain-text.ts'
import { makeRow, type CoordinatorRunDeps } from './coordinator-run.ts'
import type { RunContext } from './run-context.ts'

type BoundExplain = Extract<BoundStatement, { kind: 'explain' }>

/** Runs EXPLAIN: one row with the plan. */
export async function runExplain(
  deps: CoordinatorRunDeps,
  run: RunContext,
  analyzed: BoundExplain,
  analysisNanos: number,
): Promise<void> {
  const text = await explain(deps.catalogs, analyzed)
  const columns = analyzed.columns.map((column) => explainColumn(column, text))
  return makeRow(deps, run, JSON.stringify([text]), { queryType: analyzed.queryType, columns, analysisNanos })
}

async function explain(catalogs: Catalogs, analyzed: BoundExplain): Promise<string | boolean> {
  const inner = analyzed.statement
  if (inner.kind !== 'query') return explainText(analyzed, [])
  const input = await listSplits(catalogs, inner.query)
  return explainText(analyzed, planQuery(inner.query, inner.columns, input).stages)
}
