import type { Asker, ConnectorSplit, ConnectorTable, SchemaTableName } from '../spi/connector.ts'
import type { ScanQuestion } from '../spi/scan-question.ts'
import type { TableSource } from '../spi/table-source.ts'
import { answeredColumns, historyTables, type HistoryTable } from './history-tables.ts'
import type { SystemColumns } from './information-schema-tables.ts'
import { connectorColumns } from './information-schema.ts'
import { boundedRows, rowsSource, type SystemValue } from './rows-source.ts'

/** The source of the rows of `system.history`. */
export interface HistorySource {
  /**
   * The answer to a question, limited to the rows that the user may see: values in the order of the columns, a page at
   * a time. Columns are the table's, or those of the question's groups.
   * @throws EngineError when the history cannot be read
   */
  read(
    table: HistoryTable,
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
export function historySchema(catalog: string, source: () => HistorySource) {
  return {
    name: NAME,
    tables: (): SchemaTableName[] =>
      Object.keys(historyTables).map((table) => ({ schema: NAME, table, kind: 'TABLE' as const })),
    table(table: string): ConnectorTable | undefined {
      if (!isTable(table)) return undefined
      return {
        schema: NAME,
        table,
        kind: 'TABLE',
        handle: { schema: NAME, table },
        columns: connectorColumns(historyTables[table]),
        answers: answeredColumns(table),
      }
    },
    split: (table: string, question: ScanQuestion = EVERYTHING): ConnectorSplit => ({
      catalog,
      data: { schema: NAME, table, question },
    }),
    async load(data: ConnectorSplit['data'], wanted: readonly string[], asker: Asker): Promise<ConnectorSplit> {
      const { table, question } = data as { table: string; question: ScanQuestion }
      if (!isTable(table)) throw new Error(`The history has no table ${JSON.stringify(table)}`)
      const rows = await boundedRows(source().read(table, question, wanted, asker))
      const types = typesOf(table, question)
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

function isTable(table: string): table is HistoryTable {
  return Object.hasOwn(historyTables, table)
}

function typesOf(table: HistoryTable, { groups }: ScanQuestion): SystemColumns {
  if (!groups) return historyTables[table]
  return Object.fromEntries([...groups.keys, ...groups.measures].map(({ name, type }) => [name, type]))
}
