import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reservedCodeBytes } from '../../../src/execution/engine/code-range.ts'
import { processMemoryLimit } from '../../../src/execution/engine/sandbox.ts'
import { openTestPool, type TestPool } from '../../support/engines.ts'

let engines: TestPool
let outside: string
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

describe('files', () => {
  it('inside the allowed folders can be read', async () => {
    const sql = `SELECT json_array(x)::VARCHAR FROM read_csv('${engines.data}inside.csv')`
    expect(await engines.rows(sql)).toEqual([[42]])
  })

  it.each([
    ['read_csv', () => `SELECT * FROM read_csv('${outside}')`],
    ['read_text', () => `SELECT content FROM read_text('${outside}')`],
    ['a bare name', () => `SELECT * FROM '${outside}'`],
    ['a path with ..', () => `SELECT * FROM read_csv('${engines.data}../outside.csv')`],
    ['a link', () => `SELECT * FROM read_csv('${engines.data}link.csv')`],
    ['file://', () => `SELECT * FROM read_csv('file://${outside}')`],
    ['https', () => `SELECT * FROM read_csv('https://localhost/x.csv')`],
    ['/proc', () => `SELECT content FROM read_text('/proc/self/environ')`],
  ])('outside are refused: %s', async (_way, sql) => {
    const refusal = 'file system operations are disabled by configuration'
    await expect(engines.run(sql()).done).rejects.toThrow(refusal)
    await expect(engines.stream(sql(), { placement: 'shared' })).rejects.toThrow(refusal)
    await expect(engines.pool.query(sql())).rejects.toThrow(refusal)
  })

  it('outside are not written, attached or loaded by trusted statements either', async () => {
    await expect(engines.pool.query(`COPY (SELECT 1) TO '${outside}.copy'`)).rejects.toThrow('disabled')
    await expect(engines.pool.query(`ATTACH '${outside}.db'`)).rejects.toThrow('disabled')
    await expect(engines.pool.query(`INSTALL httpfs`)).rejects.toThrow('disabled')
    await expect(engines.pool.query(`LOAD '${outside}'`)).rejects.toThrow('disabled')
    expect(existsSync(`${outside}.copy`)).toBe(false)
  })
})

describe('statements', () => {
  it('that are no SELECT are refused, and leave nothing behind', async () => {
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
    ]
    for (const sql of others) {
      await expect(engines.run(sql).done, sql).rejects.toThrow('Not a SELECT')
      await expect(engines.stream(sql, { placement: 'shared' }), sql).rejects.toThrow('Parser Error')
    }
    expect(await engines.rows('SELECT json_array(abs(-1))::VARCHAR')).toEqual([[1]])
    expect(await engines.pool.query('SELECT table_name FROM duckdb_tables()')).toEqual([])
    expect(await engines.pool.query('SELECT database_name FROM duckdb_databases() WHERE NOT internal')).toHaveLength(1)
    expect(existsSync(`${engines.data}copy`)).toBe(false)
  })

  it('of which there are two in a text are refused', async () => {
    await expect(engines.run('SELECT 1; SELECT 2').done).rejects.toThrow('multiple statements')
  })
})

describe('settings', () => {
  it.each([`SET memory_limit = '10GB'`, 'SET threads = 8', 'RESET memory_limit', 'SET lock_configuration = false'])(
    'are locked even for trusted statements: %s',
    async (sql) => {
      await expect(engines.pool.query(sql)).rejects.toThrow('locked')
    },
  )

  it('are those of the sandbox on every connection', async () => {
    const settings = await engines.pool.query(
      `SELECT name, value FROM duckdb_settings() WHERE name IN
       ('TimeZone', 'threads', 'preserve_insertion_order', 'max_expression_depth', 'enable_external_access')`,
    )
    expect(Object.fromEntries(settings.map(({ name, value }) => [name, value]))).toEqual({
      TimeZone: 'UTC',
      enable_external_access: 'false',
      max_expression_depth: '250',
      preserve_insertion_order: 'false',
      threads: '1',
    })
  })
})

describe.runIf(process.platform === 'linux')('the process', () => {
  it('has an empty environment, a limit of data memory, and goes first when memory ends', async () => {
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
