import type { DuckDBConnection } from '@duckdb/node-api'
import { integer, joined, literal, plainName, sql, toText, type Sql } from '../duckdb/text/sql.ts'

export interface SentColumn {
  readonly name: string
  /** Trino's type: `decimal(10,2)`. */
  readonly type: string
}

/** A result as a table of DuckDB: the column `place`, then `c0`, `c1` … with the texts that were sent. */
export interface ScratchResult {
  readonly table: Sql
  readonly columns: readonly SentColumn[]
  readonly rows: number
}

const MEMORY = '512MB'

/** The table's column for a column of the result, counted from 0. */
export function cellsOf(index: number): Sql {
  return sql`c${integer(index)}`
}

/**
 * Keeps results for comparison in an engine of this process. Results that do not fit into its memory are in `folder`.
 */
export interface ScratchResults {
  readonly connection: DuckDBConnection
  /** Begins a result that is read page by page. */
  begin(): ResultReader
  /** The whole number in a result of one row and one column. */
  countIn(result: ScratchResult): Promise<bigint>
  close(): void
}

export interface ResultReader {
  /**
   * @param answer the whole answer as the server sent it, so that numbers which JavaScript cannot hold stay exact
   * @param columns of the result, as soon as they are known
   */
  add(answer: string, columns: readonly SentColumn[]): Promise<void>
  end(columns: readonly SentColumn[]): Promise<ScratchResult>
  drop(): Promise<void>
}

/** @param folder for what does not fit into memory; used by nothing else, and removed by the caller */
export async function openScratch(folder: string): Promise<ScratchResults> {
  const { DuckDBInstance } = await import('../shared/duckdb.ts')
  const instance = await DuckDBInstance.create(':memory:', {
    temp_directory: folder,
    memory_limit: MEMORY,
    threads: '2',
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
  })
  const connection = await instance.connect()
  let tables = 0
  return {
    connection,
    begin: () => createReader(connection, plainName(`r${tables++}`)),
    async countIn({ table }) {
      const [row] = (await connection.runAndReadAll(toText(sql`SELECT CAST(c0 AS BIGINT) FROM ${table}`))).getRowsJS()
      return BigInt(String(row?.[0] ?? 0))
    },
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}

function createReader(connection: DuckDBConnection, table: Sql): ResultReader {
  let rows = 0
  let made: Promise<void> | undefined
  const make = async (columns: readonly SentColumn[]): Promise<void> => {
    const fields = columns.map((_, i) => sql`, ${cellsOf(i)} VARCHAR`)
    await connection.run(toText(sql`CREATE TABLE ${table} (place BIGINT${joined(fields, '')})`))
  }
  return {
    async add(answer, columns) {
      await (made ??= make(columns))
      const paths = columns.map((_, i) => literal(`$[${i}]`))
      const cells = columns.map((_, i) => sql`, cells[${integer(i + 1)}]`)
      const statement = sql`INSERT INTO ${table}
        WITH page AS MATERIALIZED (SELECT unnest(list) AS line, generate_subscripts(list, 1) AS number
          FROM (SELECT json_extract($answer, '$.data[*]') AS list)),
        line AS (SELECT number, json_extract_string(line, [${joined(paths, ', ')}]) AS cells FROM page)
        SELECT $before + number${joined(cells, '')} FROM line`
      const { rowsChanged } = await connection.run(toText(statement), { answer, before: rows })
      rows += rowsChanged
    },
    async end(columns) {
      await (made ??= make(columns))
      return { table, columns, rows }
    },
    async drop() {
      await made?.catch(() => {})
      await connection.run(toText(sql`DROP TABLE IF EXISTS ${table}`))
    },
  }
}
