import { changeColumns, type TableChange } from '../../connectors/spi/table-writer.ts'
import type { QueryAnalysis } from '../analyzer/analyze.ts'
import { lineageOf } from '../analyzer/lineage.ts'
import { changedTableOf, type RowChange, type RowStatement } from '../analyzer/row-changes.ts'
import { boundRows, resultColumn } from '../bound-rows.ts'
import type { StatementInput } from '../statement-input.ts'
import type { Merge, Statement } from '../syntax/ast-statements.ts'
import { BIGINT } from '../types/sql-type.ts'
import { allow, asAnalyzed, definition, findObject, type BoundWrite, type NeededAbility } from './bound-write.ts'
import { analyzeTableProcedure, type RowAnalysis } from './table-procedures.ts'

const OPERATIONS = { Delete: 'DELETE', Update: 'UPDATE', Merge: 'MERGE' } as const
const CHANGES_ROWS: NeededAbility = { ability: 'rowChanges', doing: 'modifying table rows' }

export function isRowStatement(node: Statement): node is RowStatement {
  return node.kind === 'TableExecute' || Object.hasOwn(OPERATIONS, node.kind)
}

/**
 * The change of a checked statement.
 * @param rows finds the rows that the statement writes
 * @throws EngineError NOT_SUPPORTED the connector cannot; AUTOCOMMIT_WRITE_CONFLICT a transaction is open; errors of
 * procedures, conditions and values
 */
export async function analyzeRowWrite(
  input: StatementInput,
  node: RowStatement,
  rows: RowAnalysis,
): Promise<BoundWrite> {
  return node.kind === 'TableExecute' ? analyzeTableProcedure(input, node, rows) : change(input, node, rows)
}

async function change(input: StatementInput, node: RowChange, rows: RowAnalysis): Promise<BoundWrite> {
  const { name, found } = await findObject(input, changedTableOf(node))
  allow(input, name.catalog, CHANGES_ROWS)
  const operation = OPERATIONS[node.kind]
  const changed: TableChange = {
    kind: 'changeRows',
    schema: name.schema,
    table: name.table,
    operation,
    ...(found?.version !== undefined && { version: found.version }),
  }
  const analysis = await rows(node)
  const writes = writtenColumns(node, analysis)
  const source = input.budget.run(() => boundRows(analysis, input.session))
  const lineage = lineageOf(analysis)
  return {
    ...definition(name.catalog, operation, changed, {}),
    queryType: operation,
    ...(found && { analyzedTable: asAnalyzed(found) }),
    columns: [resultColumn('rows', BIGINT, input.session)],
    writes,
    warnings: analysis.warnings,
    // One task reads all splits of the table in their order: row ids count files.
    source: { ...source, query: { ...source.query, wholeTable: true } },
    defines: {
      columns: writes.map((column) => ({ name: column })),
      lineage: {
        columns: writes.map((column) => lineage.columns[analysis.columns.findLastIndex((one) => one.name === column)]!),
        rows: lineage.rows,
      },
    },
  }
}

/** The columns that the statement assigns, in the table's order. */
function writtenColumns(node: RowChange, { columns }: QueryAnalysis): readonly string[] {
  const all = columns.slice(changeColumns.length).map(({ name }) => name!)
  const assigned = new Set(assignedColumns(node)?.map((name) => name.toLowerCase()) ?? all)
  return all.filter((name) => assigned.has(name.toLowerCase()))
}

/** Undefined for all columns. */
function assignedColumns(node: RowChange): readonly string[] | undefined {
  switch (node.kind) {
    case 'Delete':
      return []
    case 'Update':
      return node.assignments.map(({ name }) => name.value)
    case 'Merge':
      return insertsWhole(node) ? undefined : node.cases.flatMap(namesOfCase)
  }
}

function insertsWhole({ cases }: Merge): boolean {
  return cases.some((one) => one.kind === 'MergeInsert' && one.columns.length === 0)
}

function namesOfCase(one: Merge['cases'][number]): readonly string[] {
  switch (one.kind) {
    case 'MergeDelete':
      return []
    case 'MergeUpdate':
      return one.assignments.map(({ name }) => name.value)
    case 'MergeInsert':
      return one.columns.map(({ value }) => value)
  }
}
