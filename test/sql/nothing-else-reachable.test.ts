import { readdirSync, readFileSync } from 'node:fs'
import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../src/shared/engine-error.ts'
import { functionKind } from '../../src/sql/functions/resolve-function.ts'
import { openLibraryRunner, type LibraryRunner } from '../support/library-runner.ts'

/** Returns the error name of a refused statement. An error other than an EngineError is a security hole. */
async function refusalOf(runner: LibraryRunner, sql: string): Promise<string> {
  try {
    await runner.analyze(sql)
    return 'accepted'
  } catch (error) {
    return error instanceof EngineError ? error.errorName : `not an EngineError: ${String(error)}`
  }
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

describe('The dialect as a border around DuckDB', () => {
  let runner: LibraryRunner
  let instance: DuckDBInstance
  let connection: DuckDBConnection
  beforeAll(async () => {
    runner = await openLibraryRunner()
    instance = await DuckDBInstance.create(':memory:')
    connection = await instance.connect()
  })
  afterAll(() => {
    runner.close()
    connection.closeSync()
    instance.closeSync()
  })

  const names = async (sql: string): Promise<string[]> =>
    (await connection.runAndReadAll(sql)).getRows().map(([name]) => String(name))

  it('refuses each function of DuckDB that is not in the function table', async () => {
    const functions = await names(
      `SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate', 'macro')`,
    )
    const open: string[] = []
    // NULLIF is syntax of the dialect, like COALESCE and IF. It calls no function of DuckDB.
    for (const name of functions.filter((each) => functionKind(each) === undefined && each !== 'nullif')) {
      for (const args of ['', '1', `'/etc/passwd'`, `'a', 'b'`]) {
        const refusal = await refusalOf(runner, `SELECT ${quoted(name)}(${args})`)
        if (!['FUNCTION_NOT_FOUND', 'SYNTAX_ERROR', 'TYPE_MISMATCH'].includes(refusal))
          open.push(`${name}(${args}): ${refusal}`)
      }
    }
    expect(functions.length).toBeGreaterThan(300)
    expect(open).toEqual([])
  })

  it('refuses each table function of DuckDB', async () => {
    const functions = await names(
      `SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('table', 'table_macro', 'pragma')`,
    )
    const open: string[] = []
    for (const name of functions) {
      for (const from of [
        `TABLE(${quoted(name)}('/etc/passwd'))`,
        `${quoted(name)}('/etc/passwd')`,
        `${quoted(name)}`,
        `TABLE(system.builtin.${quoted(name)}())`,
      ]) {
        const refusal = await refusalOf(runner, `SELECT * FROM ${from}`)
        const known = ['FUNCTION_NOT_FOUND', 'SYNTAX_ERROR', 'TABLE_NOT_FOUND', 'INVALID_ARGUMENTS', 'MISSING_ARGUMENT']
        if (!known.includes(refusal)) open.push(`${from}: ${refusal}`)
      }
      const called = await refusalOf(runner, `CALL ${quoted(name)}('x')`)
      if (called !== 'PROCEDURE_NOT_FOUND') open.push(`CALL ${name}: ${called}`)
    }
    expect(functions.length).toBeGreaterThan(50)
    expect(open).toEqual([])
  })

  it('refuses files, URLs and catalogs of DuckDB as tables', async () => {
    const tables = [
      `'/etc/passwd'`,
      `"/etc/passwd"`,
      `"s3://bucket/a.parquet"`,
      `"https://host/a.csv"`,
      `"file:///etc/passwd"`,
      `duckdb_settings`,
      `"duckdb_secrets()"`,
      `main.duckdb_tables`,
      `memory.main.x`,
      `system.main.duckdb_settings`,
      `temp.information_schema.tables`,
      `pg_catalog.pg_class`,
      `sqlite_master`,
      `"$s0"`,
      `tpch_tiny_nation`,
    ]
    const refusals = await Promise.all(tables.map((table) => refusalOf(runner, `SELECT * FROM ${table}`)))
    const known = ['SYNTAX_ERROR', 'TABLE_NOT_FOUND', 'SCHEMA_NOT_FOUND', 'CATALOG_NOT_FOUND']
    expect(refusals.flatMap((refusal, i) => (known.includes(refusal) ? [] : [`${tables[i]}: ${refusal}`]))).toEqual([])
  })

  it('refuses to change or read each setting of DuckDB', async () => {
    const open: string[] = []
    for (const name of await names('SELECT name FROM duckdb_settings()')) {
      for (const sql of [
        `SET ${name} = 1`,
        `SET GLOBAL ${name} = 1`,
        `SET SESSION ${name} = 1`,
        `RESET SESSION ${name}`,
        `PRAGMA ${name}`,
        `SELECT current_setting('${name}')`,
      ]) {
        const refusal = await refusalOf(runner, sql)
        if (!['SYNTAX_ERROR', 'INVALID_SESSION_PROPERTY', 'FUNCTION_NOT_FOUND'].includes(refusal)) {
          open.push(`${sql}: ${refusal}`)
        }
      }
    }
    expect(open).toEqual([])
  })

  it('refuses the statements that only DuckDB has', async () => {
    const statements = [
      `ATTACH ':memory:' AS x`,
      `DETACH x`,
      `COPY nation TO '/tmp/x'`,
      `COPY (SELECT 1) TO '/tmp/x'`,
      `EXPORT DATABASE '/tmp/x'`,
      `IMPORT DATABASE '/tmp/x'`,
      `INSTALL httpfs`,
      `LOAD httpfs`,
      `PRAGMA enable_profiling`,
      `CALL enable_logging()`,
      `CREATE MACRO abs(x) AS 1`,
      `CREATE SECRET s (TYPE s3)`,
      `CREATE TEMP TABLE t AS SELECT 1 a`,
      `CHECKPOINT`,
      `VACUUM`,
      `BEGIN TRANSACTION`,
      `SET VARIABLE x = 1`,
      `DESCRIBE SELECT 1`,
      `SUMMARIZE nation`,
      `PIVOT nation ON name`,
      `FROM nation`,
      `SELECT * FROM nation; DROP TABLE nation`,
      `SELECT * EXCLUDE (name) FROM nation`,
      `SELECT COLUMNS('n.*') FROM nation`,
      `SELECT * FROM query('SELECT 1')`,
    ]
    const refusals = await Promise.all(statements.map((sql) => refusalOf(runner, sql)))
    const known = ['SYNTAX_ERROR', 'NOT_SUPPORTED', 'PROCEDURE_NOT_FOUND', 'FUNCTION_NOT_FOUND']
    expect(refusals.flatMap((refusal, i) => (known.includes(refusal) ? [] : [`${statements[i]}: ${refusal}`]))).toEqual(
      [],
    )
  })

  it('turns every statement of the corpus into one SELECT', async () => {
    const folder = new URL('../conformance/', import.meta.url)
    const wrong: string[] = []
    for (const file of readdirSync(folder).filter((each) => each.endsWith('.jsonl') && !each.startsWith('extra-'))) {
      for (const line of readFileSync(new URL(file, folder), 'utf8')
        .split('\n')
        .filter((each) => each !== '')) {
        const { sql } = JSON.parse(line) as { sql: string }
        const analyzed = await runner.analyze(sql).catch(() => undefined)
        if (analyzed?.kind !== 'query') continue
        const extracted = await connection.extractStatements(analyzed.query.sql)
        if (extracted.count !== 1 || !/^(WITH|SELECT) /.test(analyzed.query.sql)) wrong.push(sql)
      }
    }
    expect(wrong).toEqual([])
  })
})
