import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { TableSource } from '../../../src/connectors/spi/table-source.ts'
import { reservedCodeBytes } from '../../../src/execution/engine/code-range.ts'
import { processMemoryLimit } from '../../../src/execution/engine/sandbox.ts'
import { openTestPool, type TestPool } from '../../support/engines.ts'
import { csvPart, jsonPart } from '../../support/text-parts.ts'

let engines: TestPool
let outside: string
const refusal = 'file system operations are disabled by configuration'
beforeAll(async () => {
  engines = await openTestPool()
  mkdirSync(engines.data, { recursive: true })
  outside = join(dirname(engines.data), 'outside.csv')
  writeFileSync(outside, 'secret\n1\n')
  writeFileSync(`${engines.data}inside.csv`, 'x\n42\n')
  symlinkSync(outside, `${engines.data}link.csv`)
})
afterAll(async () => {
  await engines[Symbol.asyncDispose]()
})

describe('File access in the engine sandbox', () => {
  it('allows a statement to read files inside the allowed folders', async () => {
    const sql = `SELECT json_array(x)::VARCHAR FROM read_csv('${engines.data}inside.csv')`
    expect(await engines.rows(sql)).toEqual([[42]])
  })

  it.each([
    ['read_csv', () => `SELECT * FROM read_csv('${outside}')`],
    ['read_text', () => `SELECT content FROM read_text('${outside}')`],
    ['a path with ..', () => `SELECT * FROM read_csv('${engines.data}../outside.csv')`],
    ['a link', () => `SELECT * FROM read_csv('${engines.data}link.csv')`],
    ['file://', () => `SELECT * FROM read_csv('file://${outside}')`],
    ['https', () => `SELECT * FROM read_csv('https://localhost/x.csv')`],
    ['/proc', () => `SELECT content FROM read_text('/proc/self/environ')`],
  ])('refuses to read files outside the allowed folders: %s', async (_name, sql) => {
    await expect(engines.run(sql()).done).rejects.toThrow(refusal)
    await expect(engines.stream(sql(), { placement: 'shared' })).rejects.toThrow(refusal)
  })

  it('refuses scans and questions of connectors to files outside the allowed folders', async () => {
    const columns = [{ name: 'x', source: 'secret' }]
    const scans: TableSource[] = [
      [csvPart(outside, columns)],
      [jsonPart(`${engines.data}../outside.csv`, columns)],
      [{ kind: 'parquet', ranges: [{ path: outside, firstRow: 0, rows: 1, fileRows: 1 }], columns }],
    ]
    for (const scan of scans) {
      const query = { sql: 'SELECT x AS c0 FROM "$s0"', scans: [scan], row: { kind: 'json', values: ['c0'] } } as const
      await expect(engines.run('', { query }).done).rejects.toThrow(refusal)
    }
    const paths = [outside]
    await expect(engines.pool.inspect({ kind: 'columns', paths, unionByName: false })).rejects.toThrow(refusal)
    for (const path of [outside, `${engines.data}../outside.csv`, `${engines.data}link.csv`]) {
      await expect(engines.pool.inspect({ kind: 'csvShape', path, declared: {} })).rejects.toThrow(refusal)
      await expect(engines.pool.inspect({ kind: 'jsonShape', path })).rejects.toThrow(refusal)
    }
    await expect(engines.pool.inspect({ kind: 'footers', paths })).rejects.toThrow(refusal)
  })

  it('refuses to write files outside the allowed folders', async () => {
    const folder = `${outside}.parquet`
    await expect(engines.run('SELECT 1 AS c0', { output: { kind: 'parquet', folder } }).done).rejects.toThrow(refusal)
    expect(existsSync(folder)).toBe(false)
  })
})

describe('Statements in the engine sandbox', () => {
  it('are refused if they are not a SELECT, and a refused statement changes nothing', async () => {
    const others = [
      `COPY (SELECT 1) TO '${engines.data}copy'`,
      `ATTACH ':memory:' AS other`,
      'CREATE MACRO abs(x) AS 0',
      'CREATE TABLE t (a INTEGER)',
      'BEGIN',
      'INSTALL httpfs',
      'CALL enable_profiling()',
      'PRAGMA enable_verification',
      `SET memory_limit = '10GB'`,
      'SET lock_configuration = false',
      'SELECT 1; SELECT 2',
    ]
    for (const sql of others) {
      await expect(engines.run(sql).done, sql).rejects.toThrow('The statement was refused')
      await expect(engines.stream(sql, { placement: 'shared' }), sql).rejects.toThrow('The statement was refused')
    }
    expect(await engines.rows('SELECT json_array(abs(-1))::VARCHAR')).toEqual([[1]])
    expect(await engines.rows('SELECT json_array(count(*))::VARCHAR FROM duckdb_tables()')).toEqual([[0]])
    expect(
      await engines.rows('SELECT json_array(count(*))::VARCHAR FROM duckdb_databases() d0 WHERE NOT d0.internal'),
    ).toEqual([[1]])
    expect(existsSync(`${engines.data}copy`)).toBe(false)
  })
})

describe('The settings of the engine sandbox', () => {
  it('have the restricted values, and the configuration is locked', async () => {
    const settings = await engines.rows(
      `SELECT json_array(name, value)::VARCHAR FROM duckdb_settings() WHERE name IN
       ('TimeZone', 'threads', 'preserve_insertion_order', 'max_expression_depth', 'enable_external_access',
        'lock_configuration')`,
    )
    expect(Object.fromEntries(settings as [string, string][])).toEqual({
      TimeZone: 'UTC',
      enable_external_access: 'false',
      lock_configuration: 'true',
      max_expression_depth: '250',
      preserve_insertion_order: 'false',
      threads: '1',
    })
  })
})

describe.runIf(process.platform === 'linux')('The engine process', () => {
  it('creates files that only its own user can access', () => {
    const { pid } = engines.pool.children()[0]!
    expect(/^Umask:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]).toBe('0077')
  })

  it('has a minimal environment and a data memory limit, and the OOM killer selects it first', async () => {
    const { pid } = engines.pool.children()[0]!
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter(Boolean)
    expect(environment.map((entry) => entry.split('=')[0]).toSorted()).toEqual(['PATH', 'PWD', 'UV_THREADPOOL_SIZE'])
    const limits = readFileSync(`/proc/${pid}/limits`, 'utf8')
    const shared = engines.settings.memoryLimitBytes / 4
    const kilobytes = Math.floor((processMemoryLimit(shared) + reservedCodeBytes()) / 1024)
    expect(/Max data size\s+(\d+)/.exec(limits)?.[1]).toBe(String(kilobytes * 1024))
    expect(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim()).toBe('1000')
  })
})
