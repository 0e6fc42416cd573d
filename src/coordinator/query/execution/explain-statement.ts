import { planForFigures, planQuery } from '../../../planner/plan-query.ts'
import type { PlannedStatement } from '../../../planner/planned-statement.ts'
import { explainColumn, explainText } from '../explain/explain-text.ts'
import { writeOutline } from '../explain/write-outline.ts'
import { routeLine } from '../stream/route-text.ts'
import { makeRow, type CoordinatorRunDeps } from './coordinator-run.ts'
import type { RunContext } from './run-context.ts'

type PlannedExplain = Extract<PlannedStatement, { kind: 'explain' }>

/** Runs EXPLAIN: one row with the plan. A plan as text begins with the route, where clusters are configured. */
export async function runExplain(
  deps: CoordinatorRunDeps,
  run: RunContext,
  analyzed: PlannedExplain,
  analysisNanos: number,
): Promise<void> {
  const text = await explain(run, analyzed)
  const columns = analyzed.columns.map((column) => explainColumn(column, text))
  return makeRow(deps, run, JSON.stringify([text]), { queryType: analyzed.queryType, columns, analysisNanos })
}

async function explain(run: RunContext, analyzed: PlannedExplain): Promise<string | boolean> {
  const text = await planText(run, analyzed)
  const { planType, format } = analyzed
  const isText = (planType === 'LOGICAL' || planType === 'DISTRIBUTED') && format === 'TEXT'
  return isText && run.routed ? `${routeLine(run.routed)}\n${text}` : text
}

async function planText(run: RunContext, analyzed: PlannedExplain): Promise<string | boolean> {
  const { statement } = analyzed
  switch (statement.kind) {
    case 'query': {
      const input = await run.listSplits(statement.query)
      return explainText(analyzed, planQuery(statement.query, statement.columns, input).stages)
    }
    case 'write': {
      if (!statement.source) return explainText(analyzed, [])
      const { query, columns } = statement.source
      // The rows of a write are always made on a worker.
      const { stages } = planForFigures(query, columns, await run.listSplits(query))
      const outline = writeOutline(statement, query.outline)
      return explainText(
        analyzed,
        stages.map((stage) => (stage.outline ? { ...stage, outline } : stage)),
      )
    }
    default:
      return explainText(analyzed, [])
  }
}
