import { queryEventsTable } from '../query-events/table.ts'
import {
  columnsReadTable,
  operatorsTable,
  queriesTable,
  stagesTable,
  tableAccessTable,
  tasksTable,
} from '../queries/tables.ts'
import { splitColumn, type Columns } from '../table.ts'

/** A table whose rows are archived with their query. */
export interface ArchivedTable {
  readonly name: ArchivedName
  readonly columns: Columns
  /** The column with the query's id. */
  readonly id: string
  /** Order of the rows, by id first: the rows of an id lie in few row groups. */
  readonly order: readonly string[]
  /**
   * Additional columns, as DuckDB expressions over the table's columns; without them readers would extract the values
   * from JSON.
   */
  readonly derived: Readonly<Record<string, string>>
}

export type ArchivedName =
  | 'queries'
  | 'stages'
  | 'tasks'
  | 'operators'
  | 'table_access'
  | 'columns_read'
  | 'query_events'

const ofQuery = (name: ArchivedName, columns: Columns, ...order: string[]): ArchivedTable => ({
  name,
  columns,
  id: 'query_id',
  order: ['query_id', ...order],
  derived: {},
})

/** All tables with rows of a query. */
export const archivedTables: readonly ArchivedTable[] = [
  {
    ...ofQuery('queries', queriesTable.columns),
    derived: { original_user: `(details->'session'->>'originalUser')` },
  },
  ofQuery('stages', stagesTable.columns, 'stage_id'),
  ofQuery('tasks', tasksTable.columns, 'stage_id', 'task_number'),
  ofQuery('operators', operatorsTable.columns, 'task_id', 'pipeline_id', 'operator_id'),
  ofQuery('table_access', tableAccessTable.columns, 'ordinal'),
  ofQuery('columns_read', columnsReadTable.columns, 'ordinal'),
  { name: 'query_events', columns: queryEventsTable.columns, id: 'stream', order: ['stream', 'sequence'], derived: {} },
]

export function isArchivedName(name: string): name is ArchivedName {
  return archivedTables.some((table) => table.name === name)
}

/** DuckDB's types; times are UTC, JSON is text. */
const TYPES = {
  text: 'VARCHAR',
  bigint: 'BIGINT',
  integer: 'INTEGER',
  'double precision': 'DOUBLE',
  boolean: 'BOOLEAN',
  timestamptz: 'TIMESTAMP',
  jsonb: 'VARCHAR',
} as const

export function typeInFile(table: ArchivedTable, column: string): string {
  return TYPES[splitColumn(table.columns[column]!).type]
}

/** A column on its way to a file: a member of a JSON object. */
export function sentColumn(table: ArchivedTable, column: string): string {
  switch (splitColumn(table.columns[column]!).type) {
    case 'timestamptz':
      return `(t."${column}" at time zone 'UTC')::text as "${column}"`
    case 'jsonb':
      return `t."${column}"::text as "${column}"`
    default:
      return `t."${column}"`
  }
}

/** Name and type of a column that comes back from a file, for `json_to_recordset`. */
export function returnedColumn(table: ArchivedTable, column: string): string {
  const { type } = splitColumn(table.columns[column]!)
  return `"${column}" ${type === 'timestamptz' || type === 'jsonb' ? 'text' : type}`
}

/** Converts a column that came back to its type in the table. */
export function restoredColumn(table: ArchivedTable, column: string): string {
  switch (splitColumn(table.columns[column]!).type) {
    case 'timestamptz':
      return `(r."${column}"::timestamp at time zone 'UTC')`
    case 'jsonb':
      return `r."${column}"::jsonb`
    default:
      return `r."${column}"`
  }
}
