import { EngineError } from '../../shared/engine-error.ts'
import type { TableChange } from '../spi/table-writer.ts'
import type { TableColumn, TableContent } from './manifest.ts'
import { countRows } from './removals.ts'
import { fileColumns, physicalName } from './table-columns.ts'

type AlterColumns = Extract<TableChange, { kind: 'alterColumns' }>
type Alteration = AlterColumns['alteration']

/**
 * The table with altered columns. Files keep the columns that they have: readers find them by their ids.
 * @throws EngineError COLUMN_NOT_FOUND, COLUMN_ALREADY_EXISTS, NOT_SUPPORTED
 */
export function alterColumns(
  table: TableContent,
  change: AlterColumns,
  duckdbType: (type: string) => string,
): TableContent {
  const { alteration } = change
  if (table.adopted) {
    const why = 'has files that Quipu did not write; create it anew with CREATE OR REPLACE TABLE … AS SELECT'
    throw new EngineError('NOT_SUPPORTED', `Columns cannot be changed: the table ${why}`)
  }
  switch (alteration.kind) {
    case 'add':
      return addColumn(table, alteration, `${change.schema}.${change.table}`, duckdbType)
    case 'drop': {
      const dropped = columnOf(table, alteration.column)
      const columns = table.columns.filter((column) => column !== dropped)
      if (columns.length === 0) throw new EngineError('NOT_SUPPORTED', 'Cannot drop the only column in a table')
      const names = [...(table.dropped ?? []), { id: dropped.id, name: dropped.name }]
      return withFileSchema({ ...table, columns, dropped: names })
    }
    case 'rename': {
      columnOf(table, alteration.column)
      checkNew(table, alteration.to)
      return { ...table, columns: replaced(table, alteration.column, { name: alteration.to }) }
    }
    case 'setType': {
      const column = columnOf(table, alteration.column)
      const { type } = alteration
      if (!isWidening(column.type, type)) {
        throw new EngineError('NOT_SUPPORTED', `Cannot change type from ${column.type} to ${type}`)
      }
      return withFileSchema({ ...table, columns: replaced(table, column.name, { type, duckdbType: duckdbType(type) }) })
    }
    case 'dropNotNull': {
      const column = columnOf(table, alteration.column)
      if (column.nullable) throw new EngineError('NOT_SUPPORTED', 'Column is already nullable')
      return { ...table, columns: replaced(table, column.name, { nullable: true }) }
    }
  }
}

function addColumn(
  table: TableContent,
  { column, position }: Extract<Alteration, { kind: 'add' }>,
  tableName: string,
  duckdbType: (type: string) => string,
): TableContent {
  checkNew(table, column.name)
  if (!column.nullable && countRows(table) > 0) {
    const message = `Unable to add NOT NULL column '${column.name}' for non-empty table: ${tableName}`
    throw new EngineError('NOT_SUPPORTED', message)
  }
  const added: TableColumn = {
    ...column,
    id: table.nextColumn,
    physical: physicalName(table, column.name),
    duckdbType: duckdbType(column.type),
  }
  const columns = [...table.columns]
  if (position === undefined) columns.push(added)
  else if ('first' in position) columns.unshift(added)
  else columns.splice(columns.indexOf(columnOf(table, position.after)) + 1, 0, added)
  return withFileSchema({ ...table, columns, nextColumn: table.nextColumn + 1 })
}

/** The table with a new schema for new files. */
function withFileSchema(table: TableContent): TableContent {
  const id = Math.max(...table.schemas.map((schema) => schema.id)) + 1
  return { ...table, schemas: [...table.schemas, { id, columns: fileColumns(table.columns) }], fileSchema: id }
}

function columnOf({ columns }: TableContent, name: string): TableColumn {
  const column = columns.find((candidate) => candidate.name === name)
  if (!column) throw new EngineError('COLUMN_NOT_FOUND', `Column '${name}' does not exist`)
  return column
}

function checkNew({ columns }: TableContent, name: string): void {
  if (columns.some((column) => column.name === name)) {
    throw new EngineError('COLUMN_ALREADY_EXISTS', `Column '${name}' already exists`)
  }
}

function replaced({ columns }: TableContent, name: string, fields: Partial<TableColumn>): TableColumn[] {
  return columns.map((column) => (column.name === name ? { ...column, ...fields } : column))
}

const WHOLE = ['tinyint', 'smallint', 'integer', 'bigint']
const DECIMAL = /^decimal\((\d+), ?(\d+)\)$/
const TEXT = /^varchar(?:\((\d+)\))?$/

/** Whether every value of a type is a value of the other, in the same form. */
function isWidening(from: string, to: string): boolean {
  if (from === to || (from === 'real' && to === 'double')) return true
  if (WHOLE.includes(from)) return WHOLE.indexOf(to) > WHOLE.indexOf(from)
  const [decimal, wider] = [DECIMAL.exec(from), DECIMAL.exec(to)]
  if (decimal && wider) return decimal[2] === wider[2] && Number(wider[1]) >= Number(decimal[1])
  const [text, longer] = [TEXT.exec(from), TEXT.exec(to)]
  return text !== null && longer !== null && Number(longer[1] ?? Infinity) >= Number(text[1] ?? Infinity)
}
