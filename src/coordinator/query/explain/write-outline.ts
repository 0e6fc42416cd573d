import type { PlannedStatement, PlanNode } from '../../../planner/planned-statement.ts'

type PlannedWrite = Extract<PlannedStatement, { kind: 'write' }>

/** The plan of the rows under the operators that write them. */
export function writeOutline({ catalog, change }: Pick<PlannedWrite, 'catalog' | 'change'>, rows: PlanNode): PlanNode {
  const target = [catalog, change.schema, ...('table' in change ? [change.table] : [])].join(':')
  const name = change.kind === 'changeRows' ? 'MergeWriter' : 'TableWriter'
  const writing: PlanNode = { name, details: {}, layout: ['rows:bigint'], children: [rows] }
  return { name: 'TableCommit', details: { target }, layout: ['rows:bigint'], children: [writing] }
}

/** The outline of a query, or of a write with rows; undefined for other statements. */
export function outlineOf(statement: PlannedStatement): PlanNode | undefined {
  if (statement.kind === 'query') return statement.query.outline
  if (statement.kind !== 'write' || !statement.source) return undefined
  return writeOutline(statement, statement.source.query.outline)
}
