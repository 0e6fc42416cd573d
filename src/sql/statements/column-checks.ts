import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type {
  AddColumn,
  DropColumn,
  DropNotNullConstraint,
  RenameColumn,
  SetColumnType,
} from '../syntax/ast-definitions.ts'
import { columnNamed, OWNERSHIP, type Needed, type ObjectChecks } from './object-checks.ts'
import { checkColumnType, checkStorableName } from './table-checks.ts'

const ALTERS_COLUMN: Needed = [OWNERSHIP, 'alter a column for table']

export async function checkAddColumn(checks: ObjectChecks, node: AddColumn): Promise<void> {
  const isField = node.column.name.parts.length > 1
  const needed: Needed = isField ? ALTERS_COLUMN : [OWNERSHIP, 'add a column to table']
  const table = await checks.table(node.table, node.tableExists, needed)
  if (table === undefined) return
  const name = node.column.name.parts[0]!
  checkColumnType(checks, node.column.type, name, node.column)
  if (isField) return present(checks, table, name, false)
  checkStorableName(checks, name.value, node.column)
  if (columnNamed(table, name) !== undefined && !node.columnNotExists) {
    throw checks.error('COLUMN_ALREADY_EXISTS', `Column '${name.value}' already exists`)
  }
  const { position } = node
  if (position?.position === 'AFTER' && columnNamed(table, position.column) === undefined) {
    // Trino's message ends like this.
    throw checks.error('COLUMN_NOT_FOUND', `Column '${position.column.value}' does not`)
  }
}

export async function checkDropColumn(checks: ObjectChecks, node: DropColumn): Promise<void> {
  const table = await checks.table(node.table, node.tableExists, [OWNERSHIP, 'drop a column from table'])
  const name = node.field.parts[0]!
  present(checks, table, name, node.columnExists)
  if (table === undefined || columnNamed(table, name) === undefined || node.field.parts.length > 1) return
  if (table.columns.filter((column) => column.hidden !== true).length <= 1) {
    throw checks.error('NOT_SUPPORTED', 'Cannot drop the only column in a table')
  }
}

export async function checkRenameColumn(checks: ObjectChecks, node: RenameColumn): Promise<void> {
  const isField = node.source.parts.length > 1
  const needed: Needed = isField ? ALTERS_COLUMN : [OWNERSHIP, 'rename a column in table']
  const table = await checks.table(node.table, node.tableExists, needed)
  const source = node.source.parts[0]!
  present(checks, table, source, node.columnExists)
  if (table === undefined || columnNamed(table, source) === undefined || isField) return
  checkStorableName(checks, node.target.value)
  if (columnNamed(table, node.target) !== undefined) {
    throw checks.error('COLUMN_ALREADY_EXISTS', `Column '${node.target.value.toLowerCase()}' already exists`)
  }
}

export async function checkSetColumnType(checks: ObjectChecks, node: SetColumnType): Promise<void> {
  const table = await checks.table(node.table, node.tableExists, ALTERS_COLUMN)
  if (table === undefined) return
  const name = node.column.parts[0]!
  present(checks, table, name, false)
  checkColumnType(checks, node.type, name, node)
}

export async function checkDropNotNull(checks: ObjectChecks, node: DropNotNullConstraint): Promise<void> {
  const table = await checks.table(node.table, node.tableExists, ALTERS_COLUMN)
  if (table === undefined) return
  present(checks, table, node.column, false)
  if (columnNamed(table, node.column)!.nullable) throw checks.error('NOT_SUPPORTED', 'Column is already nullable')
}

function present(checks: ObjectChecks, table: ConnectorTable | undefined, name: Identifier, ifExists: boolean): void {
  if (table === undefined || ifExists || columnNamed(table, name) !== undefined) return
  throw checks.error('COLUMN_NOT_FOUND', `Column '${name.value.toLowerCase()}' does not exist`)
}
