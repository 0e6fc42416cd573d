import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { leaksOfLog, leaksOfResources, leaksOfTables } from '../support/leaks.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { type TestDatabase } from '../support/postgres.ts'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { post, raw, run, trinoHeaders } from '../support/statement-client.ts'

/*
 * Runs statements of many kinds, each with a word `mozart<n>word` in its text, session or rows. Then the test forgets
 * all of them, and looks for the words wherever a query leaves data. Log lines and metrics never contain a word.
 */
const WORDS = /mozart\d+word/gi
/** Log lines and metrics contain the name of the user that ran a statement. */
const NAMES = /mozart\d+word|salieri/gi

interface Case {
  readonly sql: (word: string) => string
  readonly headers?: (word: string) => Readonly<Record<string, string>>
  readonly error?: string
}

const cases: Readonly<Record<string, Case>> = {
  literals: { sql: (w) => `SELECT '${w}' AS x /* ${w} */` },
  rows: { sql: (w) => `SELECT name, '${w}' FROM nation WHERE name <> '${w}'` },
  large: { sql: (w) => `SELECT name, lpad('${w}', 100000, 'x') FROM region` },
  session: {
    sql: () => 'SELECT count(*) FROM region',
    headers: (w) => ({
      'x-trino-user': 'salieri',
      'x-trino-source': 'salieri',
      'x-trino-client-info': w,
      'x-trino-client-tags': w,
      'x-trino-trace-token': w,
      'x-trino-prepared-statement': `p=SELECT+%27${w}%27`,
    }),
  },
  prepare: { sql: (w) => `PREPARE p FROM SELECT '${w}'` },
  explain: { sql: (w) => `EXPLAIN SELECT * FROM nation WHERE name = '${w}'` },
  analyze: { sql: (w) => `EXPLAIN ANALYZE SELECT * FROM nation WHERE name = '${w}'` },
  syntax: { sql: (w) => `SELECT FROM FROM ${w}`, error: 'SYNTAX_ERROR' },
  column: { sql: (w) => `SELECT ${w} FROM nation`, error: 'COLUMN_NOT_FOUND' },
  cast: { sql: (w) => `SELECT CAST(concat('${w}', name) AS integer) FROM region`, error: 'INVALID_CAST_ARGUMENT' },
  date: { sql: (w) => `SELECT CAST('${w}' AS date)`, error: 'INVALID_CAST_ARGUMENT' },
  table: { sql: (w) => `CREATE TABLE memory.s.t AS SELECT name, '${w}' AS x FROM region` },
  insert: { sql: (w) => `INSERT INTO memory.s.t VALUES ('${w}', 'x')` },
  system: { sql: (w) => `SELECT count(*), '${w}' FROM system.runtime.queries WHERE query LIKE '%${w}%'` },
}

let folder: ReturnType<typeof temporaryFolder>
let data: string
let database: TestDatabase
let quipu: QuipuProcess
let url: string
let settings: string[]

beforeAll(async () => {
  folder = temporaryFolder()
  data = join(folder.path, 'data')
  database = await createMigratedDatabase()
  settings = ['--data-dir', data, '--database-url', database.url]
  const env = { QUIPU_LOG_LEVEL: 'debug', QUIPU_SLOW_QUERY_MS: '1ms', QUIPU_RESTART_BACKOFF_MAX_MS: '200ms' }
  quipu = spawnQuipu(['start', '--port', '0', ...settings], { env })
  url = await quipu.url
  expect((await run(url, 'CREATE SCHEMA memory.s')).error).toBeUndefined()
}, 240_000)
afterAll(async () => {
  await database.drop()
  await folder.remove()
})

/**
 * Returns the files below the data folder that contain a word. Tables of `memory` are data that a user wrote, so they
 * do not count.
 */
function leakingFiles(folderPath = data): string[] {
  return readdirSync(folderPath, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folderPath, entry.name)
    if (entry.isDirectory()) return path === join(data, 'tables') ? [] : leakingFiles(path)
    if (!entry.isFile() || statSync(path).size > 64 << 20) return []
    const found = readFileSync(path, 'latin1').match(WORDS)
    return found ? [`${found[0]} in ${path.slice(data.length)}`] : []
  })
}

const word = (index: number): string => `mozart${index}word`

it(
  'forget removes a query from log, tables and files; log lines and metrics never contained its text',
  { timeout: 480_000 },
  async () => {
    const ids: string[] = []
    for (const [index, [name, { sql, headers, error }]] of Object.entries(cases).entries()) {
      const ran = await run(url, sql(word(index)), { ...trinoHeaders, ...headers?.(word(index)) })
      expect({ name, error: ran.error?.errorName }).toEqual({ name, error })
      ids.push(ran.id)
    }
    // A user kills one query. Another query runs over a crash, and its client cancels it.
    const killed = await post(
      url,
      `SELECT count(*) FROM lineitem a, lineitem b WHERE a.comment < b.comment || '${word(90)}'`,
    )
    await raw(killed.json.nextUri!)
    await raw(`${url}/v1/query/${killed.json.id}`, { method: 'DELETE', headers: { 'x-trino-user': 'bob' } })
    const crossing = await post(url, `SELECT lpad(name, 100000, '${word(91)}') FROM region`)
    await raw(crossing.json.nextUri!)
    process.kill(processesOf(data).children[0]!, 'SIGKILL')
    await waitUntil(
      'it answers again',
      async () => (await raw(`${url}/v1/status`).catch(() => undefined))?.status === 200,
    )
    await waitUntil(
      'it takes statements again',
      async () => !(await run(url, 'SELECT 1').catch(() => undefined))?.error,
    )
    await raw(crossing.json.nextUri!, { method: 'DELETE' })
    ids.push(killed.json.id, crossing.json.id)
    for (const id of ids)
      await waitUntil(`${id} has ended`, async () => {
        const { text } = await raw(`${url}/v1/query/${id}`)
        return /^(FINISHED|FAILED)$/.test((JSON.parse(text) as { readonly state: string }).state)
      })

    expect(await leaksOfLog(database.url, WORDS)).not.toEqual([])
    expect(await leaksOfTables(database.url, WORDS)).not.toEqual([])
    expect((await raw(`${url}/metrics`)).text).not.toMatch(WORDS)

    for (const id of ids) {
      const forget = await spawnQuipu(['forget', '--query', id, ...settings]).exit
      expect(forget).toMatchObject({ code: 0, stdout: expect.stringContaining('is forgotten') })
    }
    expect(await leaksOfLog(database.url, NAMES)).toEqual([])
    expect(await leaksOfTables(database.url, NAMES)).toEqual([])
    expect((await leaksOfResources(url, ids, NAMES)).filter((leak) => leak !== 'salieri in /metrics')).toEqual([])
    await expect.poll(() => leakingFiles(), { timeout: 60_000, interval: 200 }).toEqual([])

    quipu.signal('SIGTERM')
    const { stdout, stderr } = await quipu.exit
    expect(stdout).toContain('query.slow')
    expect([...new Set((stdout + stderr).match(WORDS))]).toEqual([])
    expect(leakingFiles()).toEqual([])
  },
)
