import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { DuckDBInstance, DuckDBTypeId, type DuckDBConnection } from '@duckdb/node-api'
import { repository } from '../support/repository.ts'
import { statementOf, statements, type StatementName } from './statements.ts'

export interface RightAnswer {
  /** Each row as JSON text, in the order of the statement if it has one. */
  readonly rows: readonly string[]
  /** How often each row occurs. */
  readonly counts: ReadonlyMap<string, number>
  readonly ordered: boolean
  /** `rows:sum` over the MD5 of the rows, independent of their order, as the Python client prints it. */
  readonly digest: string
}

const TABLES = ['lineitem', 'orders', 'customer', 'nation', 'part']
const WHOLE_NUMBERS = new Set([DuckDBTypeId.BIGINT, DuckDBTypeId.HUGEINT, DuckDBTypeId.UBIGINT])

/** Runs each statement of the mix in plain DuckDB over the same files. */
export async function rightAnswers(): Promise<ReadonlyMap<StatementName, RightAnswer>> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '2' })
  const connection = await instance.connect()
  for (const table of TABLES) {
    const file = join(repository, 'etc', 'tpch', 'tiny', `${table}.parquet`)
    await connection.run(
      `CREATE VIEW ${table} AS SELECT COLUMNS('^[a-z]+_(.*)$') AS '\\1' FROM read_parquet('${file}')`,
    )
  }
  const answers = new Map<StatementName, RightAnswer>()
  for (const name of Object.keys(statements) as StatementName[]) {
    const { sql, check, error, anyRows, ordered } = statementOf(name)
    if (error !== undefined || anyRows) continue
    answers.set(name, answerOf(await rowsOf(connection, check ?? sql), ordered === true))
  }
  connection.closeSync()
  instance.closeSync()
  return answers
}

function answerOf(rows: readonly string[], ordered: boolean): RightAnswer {
  const counts = new Map<string, number>()
  let sum = 0n
  for (const row of rows) {
    counts.set(row, (counts.get(row) ?? 0) + 1)
    sum += BigInt(`0x${createHash('md5').update(row).digest('hex')}`)
  }
  const digest = `${rows.length}:${(sum % 2n ** 128n).toString(16).padStart(32, '0')}`
  return { rows, counts, ordered, digest }
}

async function rowsOf(connection: DuckDBConnection, sql: string): Promise<string[]> {
  const reader = await connection.runAndReadAll(sql)
  const whole = reader.columnTypes().map((type) => WHOLE_NUMBERS.has(type.typeId))
  return reader
    .getRowsJson()
    .map((row) => JSON.stringify(row.map((value, index) => (whole[index] && value !== null ? Number(value) : value))))
}

/**
 * Compares the rows of a client with the right answer. Returns the first difference, or undefined.
 * @param whole whether the statement finished. If so, no row may be missing; otherwise each row must be in the answer.
 */
export function wrongRows(rows: readonly string[], right: RightAnswer, whole: boolean): string | undefined {
  if (whole && rows.length !== right.rows.length) return `${rows.length} rows in place of ${right.rows.length}`
  if (right.ordered) {
    const at = rows.findIndex((row, index) => row !== right.rows[index])
    return at < 0 ? undefined : `row ${at} is ${rows[at]} in place of ${right.rows[at] ?? 'none'}`
  }
  const seen = new Map<string, number>()
  for (const row of rows) {
    const count = (seen.get(row) ?? 0) + 1
    seen.set(row, count)
    const most = right.counts.get(row) ?? 0
    if (count > most) return most === 0 ? `row ${row} is not of the answer` : `row ${row} came ${count} times`
  }
  return undefined
}
