import type { Asker, ConnectorSplit, ConnectorTable, SchemaTableName } from '../spi/connector.ts'
import type { ScanQuestion } from '../spi/scan-question.ts'
import type { TableSource } from '../spi/table-source.ts'
import type { SystemColumns } from './information-schema-tables.ts'
import { connectorColumns } from './information-schema.ts'
import { boundedRows, rowsSource, type SystemValue } from './rows-source.ts'

/** A table of the schema `history`. */
export interface HistoryTable {
  readonly columns: SystemColumns
  /** Columns that questions may be about. */
  readonly answers: readonly string[]
  /** The query of a view over the other tables; absent for a table with rows of its own. */
  readonly view?: string
}

/** The tables of the schema `history`, by name. */
export type HistoryTables = ReadonlyMap<string, HistoryTable>

/** The source of the rows of `system.history`. */
export interface HistorySource {
  /**
   * The answer to a question, limited to the rows that the user may see: values in the order of the columns, a page at
   * a time. Columns are the table's, or those of the question's groups.
   * @throws EngineError when the history cannot be read
   */
  read(
    table: string,
    question: ScanQuestion,
    columns: readonly string[],
    asker: Asker,
  ): AsyncIterable<readonly (readonly SystemValue[])[]>
}

const NAME = 'history'
const EVERYTHING: ScanQuestion = { terms: [] }

/**
 * The schema `history` of a catalog: tables that answer questions. A table has one split; its rows are read when a task
 * needs them.
 */
export function historySchema(catalog: string, tables: HistoryTables, source: () => HistorySource) {
  const typesOf = (name: string, { groups }: ScanQuestion): SystemColumns => {
    const table = tables.get(name)
    if (!table) throw new Error(`The history has no table ${JSON.stringify(name)}`)
    if (!groups) return table.columns
    return Object.fromEntries([...groups.keys, ...groups.measures].map(({ name: one, type }) => [one, type]))
  }
  return {
    name: NAME,
    tables: (): SchemaTableName[] =>
      [...tables].map(([table, { view }]) => ({ schema: NAME, table, kind: view === undefined ? 'TABLE' : 'VIEW' })),
    table(table: string): ConnectorTable | undefined {
      const known = tables.get(table)
      if (!known) return undefined
      const { columns, answers, view: sql } = known
      const named = { schema: NAME, table, handle: { schema: NAME, table }, columns: connectorColumns(columns) }
      if (sql === undefined) return { ...named, kind: 'TABLE', answers }
      // The view shows the rows that its reader may see.
      return { ...named, kind: 'VIEW', view: { sql, catalog, schema: NAME, runAsInvoker: true } }
    },
    split: (table: string, question: ScanQuestion = EVERYTHING): ConnectorSplit => ({
      catalog,
      data: { schema: NAME, table, question },
    }),
    async load(data: ConnectorSplit['data'], wanted: readonly string[], asker: Asker): Promise<ConnectorSplit> {
      const { table, question } = data as { table: string; question: ScanQuestion }
      const types = typesOf(table, question)
      const rows = await boundedRows(source().read(table, question, wanted, asker))
      const columns = Object.fromEntries(wanted.map((name) => [name, types[name]]))
      return { catalog, data: { schema: NAME, table, columns, rows }, rows: rows.length }
    },
    source(splits: readonly ConnectorSplit[], wanted: readonly string[]): TableSource {
      const { columns, rows } = splits[0]!.data
      if (!Array.isArray(rows)) throw new Error('Rows of a system table are loaded in the coordinator')
      return rowsSource(columns as SystemColumns, rows as SystemValue[][], wanted)
    },
  }
}
