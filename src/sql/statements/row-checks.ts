import type { Identifier } from '../syntax/ast-node.ts'
import type { Delete, Insert, Merge, TableExecute, TruncateTable, Update } from '../syntax/ast-statements.ts'
import { canInsertAll } from '../types/coercion.ts'
import { parseTypeText } from '../types/type-names.ts'
import { typeNames } from '../types/type-text.ts'
import { columnNamed, OWNERSHIP, type ObjectChecks } from './object-checks.ts'
import { checkStorableName, type QueryColumns } from './table-checks.ts'

export async function checkInsert(
  checks: ObjectChecks,
  node: Insert,
  queryColumns: () => Promise<QueryColumns>,
): Promise<void> {
  await checks.noView(node.target, 'Inserting into views is not supported')
  const query = await queryColumns()
  const table = (await checks.table(node.target, false, ['INSERT', 'insert into table']))!
  if (checks.policies(node.target).masks) {
    throw checks.error('NOT_SUPPORTED', 'Insert into table with column masks is not supported')
  }
  for (const column of table.columns) checkStorableName(checks, column.name)
  const names = new Set<string>()
  for (const column of node.columns ?? []) {
    const name = column.value.toLowerCase()
    if (columnNamed(table, column) === undefined) {
      throw checks.error('COLUMN_NOT_FOUND', `Insert column name does not exist in target table: ${name}`)
    }
    if (names.has(name)) {
      throw checks.error('DUPLICATE_COLUMN_NAME', `Insert column name is specified more than once: ${name}`)
    }
    names.add(name)
  }
  const columns =
    node.columns?.map((column) => columnNamed(table, column)!) ??
    table.columns.filter((column) => column.hidden !== true)
  const types = columns.map((column) => parseTypeText(column.type))
  const written = query.map((each) => each.type)
  if (canInsertAll(written, types)) return
  const lists = `Table: [${typeNames(types)}], Query: [${typeNames(written)}]`
  throw checks.error('TYPE_MISMATCH', `Insert query has mismatched column types: ${lists}`)
}

// Trino makes the checks of row changes in two steps. These are the first: then it asks whether the connector can
// change rows, and then it analyzes conditions and values.

export async function checkUpdate(checks: ObjectChecks, node: Update): Promise<void> {
  await checks.noView(node.table, 'Updating views is not supported')
  const table = await checks.table(node.table, false)
  for (const { name } of node.assignments) {
    if (columnNamed(table, name) !== undefined) continue
    throw checks.error('COLUMN_NOT_FOUND', `The UPDATE SET target column ${name.value} doesn't exist`, name)
  }
  mayUpdate(checks, node, node.table)
  const { filter, masks } = checks.policies(node.table)
  if (filter) throw checks.error('NOT_SUPPORTED', 'Updating a table with a row filter is not supported')
  if (masks) throw checks.error('NOT_SUPPORTED', 'Updating a table with column masks is not supported')
}

function mayUpdate(
  checks: ObjectChecks,
  { assignments }: { readonly assignments: readonly { readonly name: Identifier }[] },
  table: Update['table'],
): void {
  const columns = new Set(assignments.map(({ name }) => name.value.toLowerCase()))
  if (columns.size === 0) return
  checks.may(checks.named(table), 'UPDATE', `update columns [${[...columns].join(', ')}] in table`)
}

export async function checkDelete(checks: ObjectChecks, node: Delete): Promise<void> {
  await checks.noView(node.table, 'Deleting from views is not supported')
  await checks.table(node.table, false, ['DELETE', 'delete from table'])
  if (checks.policies(node.table).masks) throw checks.error('NOT_SUPPORTED', 'Delete from table with column mask')
}

/** The rights that MERGE needs follow from its cases. */
export async function checkMerge(checks: ObjectChecks, node: Merge): Promise<void> {
  await checks.noView(node.target, 'Merging into views is not supported')
  await checks.table(node.target, false)
  const name = checks.named(node.target)
  const kinds = new Set(node.cases.map(({ kind }) => kind))
  if (kinds.has('MergeInsert')) checks.may(name, 'INSERT', 'insert into table')
  if (kinds.has('MergeDelete')) checks.may(name, 'DELETE', 'delete from table')
  const assignments = node.cases.flatMap((one) => (one.kind === 'MergeUpdate' ? one.assignments : []))
  mayUpdate(checks, { assignments }, node.target)
  if (checks.policies(node.target).filter) {
    throw checks.error('NOT_SUPPORTED', 'Cannot merge into a table with row filters')
  }
}

export async function checkTruncate(checks: ObjectChecks, node: TruncateTable): Promise<void> {
  await checks.noView(node.table, 'Cannot truncate a view')
  await checks.table(node.table, false, ['DELETE', 'truncate table'])
}

export async function checkTableExecute(checks: ObjectChecks, node: TableExecute): Promise<void> {
  await checks.noView(node.table, 'ALTER TABLE EXECUTE is not supported for views')
  const procedure = node.procedure.value.toUpperCase()
  await checks.table(node.table, false, [OWNERSHIP, `execute table procedure ${procedure} on`])
  const { filter, masks } = checks.policies(node.table)
  if (filter) throw checks.error('NOT_SUPPORTED', 'ALTER TABLE EXECUTE is not supported for table with row filter')
  if (masks) throw checks.error('NOT_SUPPORTED', 'ALTER TABLE EXECUTE is not supported for table with column masks')
}
