import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { chmod, open, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { QueryRows } from '../../events/projection.ts'
import {
  restoredColumn,
  returnedColumn,
  sentColumn,
  typeInFile,
  type ArchivedName,
  type ArchivedTable,
} from './archived-tables.ts'
import type { ParquetEngine } from './parquet-engine.ts'
import { fileOf, type PeriodFile } from './query-periods.ts'

/** Number of a table's rows, and the sum of their hashes as Postgres computes them. */
export type Content = Pick<PeriodFile, 'rows' | 'sum'>

const ROWS_AT_ONCE = 100
/** Number of returned rows to compare at once. */
const COMPARED_AT_ONCE = 500
/** Rows in a row group of a file; an id lies in one group, or two. */
const ROW_GROUP = 8192
/**
 * When a group is larger, the file's groups have only as many rows as DuckDB reads at once: a reader holds a whole
 * group in memory.
 */
const GROUP_BYTES = 32 << 20
const FEW_ROWS = 32

/** Count and hash sum of a table's rows for some queries. Times are texts in UTC, the connection's time zone. */
export const CONTENT = `count(*)::text as rows, coalesce(sum(hashtextextended(t::text, 0)::numeric), 0)::text as sum`

export function contentOf(row: Readonly<Record<string, unknown>> | undefined): Content {
  return { rows: Number(row?.['rows']), sum: String(row?.['sum']) }
}

/** Selects rows of a table: those of some queries, the first of which was created at `since`. */
export interface OfQueries {
  readonly ids: readonly string[]
  readonly since: string
}

/** A condition on `t` with two parameters; events are partitioned by time. */
export function whereOf(table: ArchivedTable): string {
  const own = `t."${table.id}" = any($1)`
  return table.name === 'query_events'
    ? `${own} and t."time" >= $2::timestamptz`
    : `${own} and $2::timestamptz is not null`
}

/**
 * Copies rows from Postgres into a file of a folder; holds only some rows in memory.
 * @param query on a connection that sees one moment, in UTC
 */
export async function copyRows(
  { query, engine, folder }: { readonly query: QueryRows; readonly engine: ParquetEngine; readonly folder: string },
  table: ArchivedTable,
  of: OfQueries,
): Promise<void> {
  const lines = join(folder, `${table.name}.jsonl`)
  const columns = Object.keys(table.columns)
  const listed = columns.map((column) => sentColumn(table, column)).join(', ')
  const order = table.order.map((column) => `t."${column}"${column === table.id ? ' collate "C"' : ''}`).join(', ')
  await query(
    `declare archived no scroll cursor for select row_to_json(s)::text as line from (
       select ${listed} from ${table.name} t where ${whereOf(table)} order by ${order}) s`,
    [of.ids, of.since],
  )
  let longest = 0
  let isLong = false
  let group = { rows: 0, bytes: 0 }
  const file = await open(lines, 'wx', 0o600)
  try {
    for (;;) {
      const rows = await query(`fetch forward ${ROWS_AT_ONCE} from archived`, [])
      if (rows.length === 0) break
      const bytes = rows.map(({ line }) => Buffer.from(`${String(line)}\n`))
      for (const { length } of bytes) {
        longest = Math.max(longest, length)
        group = { rows: group.rows + 1, bytes: group.bytes + length }
        isLong ||= group.bytes > GROUP_BYTES
        if (group.rows === ROW_GROUP) group = { rows: 0, bytes: 0 }
      }
      await file.writeFile(Buffer.concat(bytes))
    }
    await query('close archived', [])
  } finally {
    await file.close()
  }
  const types = columns.map((column) => `"${column}": '${typeInFile(table, column)}'`).join(', ')
  const derived = Object.entries(table.derived).map(([name, text]) => `, ${text} as ${name}`)
  await engine.run(
    `copy (select *${derived.join('')} from read_json($1, columns = {${types}}, format = 'newline_delimited',
       maximum_object_size = ${2 * longest + 1024})) to $2 (format parquet, compression zstd, row_group_size ${isLong ? FEW_ROWS : ROW_GROUP})`,
    [lines, join(folder, fileOf(table.name))],
  )
  await unlink(lines)
}

/**
 * Rewrites a file, in small groups, without the rows of some queries; in the file of events only their data is removed.
 */
export async function copyWithout(
  engine: ParquetEngine,
  name: ArchivedName,
  { from, to }: { readonly from: string; readonly to: string },
  forgotten: readonly string[],
): Promise<void> {
  const kept =
    name === 'query_events'
      ? `select * replace (case when list_contains($3, stream) then '' else data end as data,
           forgotten or list_contains($3, stream) as forgotten)`
      : 'select *'
  const where = name === 'query_events' ? '' : 'where not list_contains($3, query_id)'
  await engine.run(
    `copy (${kept} from read_parquet($1) ${where}) to $2 (format parquet, compression zstd, row_group_size ${FEW_ROWS})`,
    [join(from, fileOf(name)), join(to, fileOf(name)), forgotten],
  )
}

/** Reads a file back from the disk, row by row into Postgres, which computes count and hash sum. */
export async function contentOfFile(
  query: QueryRows,
  engine: ParquetEngine,
  folder: string,
  table: ArchivedTable,
): Promise<Content> {
  const columns = Object.keys(table.columns)
  const listed = columns.map((column) => `"${column}"`).join(', ')
  const physical = await physicalColumns(query, table)
  const restored = physical.map((column) => restoredColumn(table, column)).join(', ')
  const came = columns.map((column) => returnedColumn(table, column)).join(', ')
  const text = `select count(*)::text as rows,
      coalesce(sum(hashtextextended((row(${restored})::${table.name})::text, 0)::numeric), 0)::text as sum
    from json_to_recordset($1::json) as r (${came})`
  let rows = 0
  let sum = 0n
  const file = join(folder, fileOf(table.name))
  for await (const chunk of engine.rows(`select to_json(t) from (select ${listed} from read_parquet($1)) t`, [file]))
    for (let from = 0; from < chunk.length; from += COMPARED_AT_ONCE) {
      const lines = chunk.slice(from, from + COMPARED_AT_ONCE).map(([line]) => String(line))
      const content = contentOf((await query(text, [`[${lines.join(',')}]`]))[0])
      rows += content.rows
      sum += BigInt(content.sum)
    }
  return { rows, sum: String(sum) }
}

/** The columns in the order in which a row's text has them. */
async function physicalColumns(query: QueryRows, table: ArchivedTable): Promise<string[]> {
  const rows = await query(
    `select attname from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
    [table.name],
  )
  const names = rows.map(({ attname }) => String(attname))
  const unknown = names.find((name) => !Object.hasOwn(table.columns, name))
  if (unknown !== undefined || names.length !== Object.keys(table.columns).length)
    throw new Error(`Table ${table.name} has other columns than are archived`)
  return names
}

/** Flushes a file to the disk and makes it readable by its owner only. */
export async function sealFile(path: string): Promise<Pick<PeriodFile, 'bytes' | 'sha256'>> {
  await chmod(path, 0o600)
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
  return { bytes: (await stat(path)).size, sha256: await digestOf(path) }
}

/** SHA-256 of a file. */
export async function digestOf(path: string): Promise<string> {
  const digest = createHash('sha256')
  await pipeline(createReadStream(path), digest)
  return digest.digest('hex')
}
