import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Connector, ConnectorTable } from '../../src/connectors/spi/connector.ts'
import { quoteName } from '../../src/connectors/spi/duckdb-text.ts'
import type {
  ConnectorWriter,
  PreparedWrite,
  StoredColumn,
  TableChange,
} from '../../src/connectors/spi/table-writer.ts'
import { duckdbTypeOf } from '../../src/processes/connector-factories.ts'
import type { openDuckDb, Rows } from './duckdb.ts'
import { scanText } from '../../src/execution/engine/scan-text.ts'
import { parseQueryId, type QueryId } from '../../src/shared/ids.ts'

type DuckDb = Awaited<ReturnType<typeof openDuckDb>>

/** Writes and reads through a connector as coordinator and worker do, with a DuckDB in the process of the test. */
export interface TableWrites {
  readonly writer: ConnectorWriter
  /** A new query id. */
  nextQuery(): QueryId
  /** Runs a write up to the data of WritePrepared. `rows` is a SELECT of DuckDB in the order of the columns. */
  prepare(change: TableChange, rows?: string, queryId?: QueryId): Promise<PreparedWrite>
  /** Runs the whole write. */
  write(change: TableChange, rows?: string): Promise<void>
  table(schema: string, table: string): Promise<ConnectorTable | undefined>
  /** All rows of a table at present, or as of an earlier lookup. */
  read(schema: string, table: string | ConnectorTable): Promise<Rows>
  /** The text of a scan of a table as it was looked up, with `$file` and `$row` behind its columns. */
  scanWithIds(table: ConnectorTable): Promise<string>
  /** Runs EXECUTE optimize. */
  rewrite(schema: string, table: string): Promise<void>
}

let counter = 0

export function tableWrites(connector: Connector, duckdb: DuckDb): TableWrites {
  const writer = connector.writer!
  const nextQuery = (): QueryId => parseQueryId(`20260101_000000_${String(counter++).padStart(5, '0')}_tests`)

  const writes: TableWrites = {
    writer,
    nextQuery,
    async prepare(change, rows, queryId = nextQuery()) {
      const target = await writer.begin(queryId, change)
      if (rows === undefined) return writer.prepare(target, [])
      const attempt = `${queryId}.1.0-1`
      const folder = await writer.openAttempt(target, attempt)
      const path = join(folder, 'data_0.parquet')
      const list = target.columns.map(
        ({ name, physical = name, type }, i) => `CAST(c${i} AS ${duckdbTypeOf(type)}) AS ${quoteName(physical)}`,
      )
      const names = target.columns.map((_, i) => `c${i}`).join(', ')
      await duckdb.run(
        `COPY (SELECT ${list.join(', ')} FROM (${rows}) q(${names})) TO '${path.replaceAll("'", "''")}' (FORMAT parquet)`,
      )
      const [counted] = await duckdb.query(
        `SELECT count(*)::INTEGER AS n FROM read_parquet('${path.replaceAll("'", "''")}')`,
      )
      const file = { path, rows: counted!.n as number, bytes: statSync(path).size }
      return writer.prepare(target, await writer.sealAttempt(target, attempt, [file]))
    },
    async write(change, rows) {
      await writer.commit(await writes.prepare(change, rows))
    },
    table: (schema, table) => connector.getTable(schema, table),
    async read(schema, table) {
      const found = typeof table === 'string' ? await connector.getTable(schema, table) : table
      if (!found) throw new Error(`no table ${schema}.${String(table)}`)
      const splits = await connector.listSplits(found.handle)
      const names = found.columns.map(({ name }) => name)
      const rows = await duckdb.query(`FROM (${scanText(await connector.tableSource(splits, names))}) ORDER BY ALL`)
      await connector.verifySplits(splits)
      return rows
    },
    async scanWithIds({ handle, columns }) {
      const names = columns.map(({ name }) => name)
      const source = await connector.tableSource(await connector.listSplits(handle), names, { rowIds: true })
      return `(${scanText(source)})`
    },
    async rewrite(schema, table) {
      const found = (await connector.getTable(schema, table))!
      const splits = await connector.listSplits({ ...found.handle, rewrite: true })
      const names = found.columns.map(({ name }) => name)
      const rows = scanText(await connector.tableSource(splits, names))
      await writes.write({ kind: 'rewriteTable', schema, table, version: found.version }, rows)
    },
  }
  return writes
}

export function column(name: string, type: string): StoredColumn {
  return { name, type, nullable: true }
}

/** The relative paths of all files below a folder, sorted. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
}
