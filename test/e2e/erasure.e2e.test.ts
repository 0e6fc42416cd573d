import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ErasureResult } from '../../src/erasure/erasure-store.ts'
import { leaksOfLog, leaksOfTables } from '../support/leaks.ts'
import { createDatabase, type TestDatabase } from '../support/postgres.ts'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { raw, run, trinoHeaders } from '../support/statement-client.ts'

const VALUE = 'eva.lund@example.com'
const WORDS = /eva\.lund/g

/** Statements of which each leaves the value in another part of a query. */
const cases: Readonly<
  Record<string, { readonly sql: string; readonly headers?: Readonly<Record<string, string>>; readonly error?: string }>
> = {
  text: { sql: `SELECT name FROM tpch.tiny.nation WHERE name = '${VALUE}'` },
  parameter: {
    sql: `EXECUTE p USING '${VALUE}'`,
    headers: { 'x-trino-prepared-statement': 'p=SELECT+name+FROM+tpch.tiny.nation+WHERE+name+%3D+%3F' },
  },
  message: { sql: `SELECT CAST(concat('eva.lund', '@example.com') AS integer)`, error: 'INVALID_CAST_ARGUMENT' },
  comment: { sql: `/* {"app": "dbt", "user": "${VALUE}"} */ SELECT 1` },
  property: { sql: 'SELECT 2', headers: { 'x-trino-client-info': VALUE } },
  result: { sql: `SELECT concat('eva', '.', 'lund', '@example.com')` },
  escaped: { sql: `SELECT 'it''s "${VALUE}"'` },
}

const folder = temporaryFolder()
const data = join(folder.path, 'data')
let database: TestDatabase
let quipu: QuipuProcess
let url: string
let settings: string[]

beforeAll(async () => {
  database = await createDatabase()
  settings = ['--data-dir', data, '--database-url', database.url]
  await start()
}, 240_000)
afterAll(async () => {
  await database.drop()
  await folder.remove()
})

async function start(): Promise<void> {
  const env = { QUIPU_LOG_LEVEL: 'error', QUIPU_RESTART_BACKOFF_MAX_MS: '200ms', QUIPU_ANCHOR_MS: '500ms' }
  quipu = spawnQuipu(['start', '--port', '0', ...settings], { env })
  url = await quipu.url
}

const command = (...args: string[]) => spawnQuipu([...args, ...settings]).exit
const statusOf = async (id: string) => (await raw(`${url}/v1/query/${id}`)).status

/** The files below the data folder that contain the value. */
function leakingFiles(folderPath = data): string[] {
  return readdirSync(folderPath, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folderPath, entry.name)
    if (entry.isDirectory()) return leakingFiles(path)
    if (!entry.isFile() || statSync(path).size > 64 << 20) return []
    return readFileSync(path, 'latin1').match(WORDS) ? [path] : []
  })
}

async function runCases(): Promise<readonly string[]> {
  const ids: string[] = []
  for (const [name, { sql, headers, error }] of Object.entries(cases)) {
    const ran = await run(url, sql, { ...trinoHeaders, ...headers })
    expect({ name, error: ran.error?.errorName }).toEqual({ name, error })
    ids.push(ran.id)
  }
  return ids
}

it('quipu erase removes a value from a running server; the proof finds nothing, and the audit finds no fault', async () => {
  const ids = await runCases()
  const { id: other } = await run(url, `SELECT 'zerlina'`, { ...trinoHeaders, 'x-trino-user': 'bob' })
  expect((await command('erase', '--value', VALUE, '--preview')).stdout).toContain(
    `queries whose data would be removed: ${ids.length}\n`,
  )
  expect(await command('erase', '--value', VALUE)).toMatchObject({ code: 64 })
  expect(await command('erase', '--value', VALUE, '--yes', '--reason', `asked by ${VALUE}`)).toMatchObject({ code: 64 })
  for (const id of ids) expect(await statusOf(id)).toBe(200)

  const erased = await command('erase', '--value', VALUE, '--yes', '--json', '--reason', 'request 7', '--by', 'officer')
  expect(erased).toMatchObject({ code: 0, stderr: '' })
  const { result } = JSON.parse(erased.stdout) as { result: ErasureResult }
  expect(result).toMatchObject({ queries: ids.length, remains: [], waiting: [] })
  for (const id of ids) expect(await statusOf(id)).toBe(410)
  expect(await statusOf(other)).toBe(200)
  expect(await leaksOfLog(database.url, WORDS)).toEqual([])
  expect(await leaksOfTables(database.url, WORDS)).toEqual([])
  await expect.poll(() => leakingFiles(), { timeout: 60_000, interval: 200 }).toEqual([])
  const { rows } = await run(url, `SELECT "user", kind, reason, queries, remains FROM system.history.erasures`)
  expect(rows).toEqual([['officer', 'value', 'request 7', ids.length, '[]']])
  expect((await command('rebuild')).code).toBe(0)
  expect(await command('erase', 'verify', '--value', VALUE)).toMatchObject({ code: 0 })
  expect((await command('audit', 'verify', '--read-models')).stdout).toMatch(/^Nothing found in /)
  expect((await raw(`${url}/metrics`)).text).toContain('quipu_erasures_total{result="complete"} 1')
}, 240_000)

it('the next coordinator completes an erasure whose coordinator was killed', async () => {
  const ids = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => (await run(url, `SELECT '${VALUE}', ${index}`)).id),
  )
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    const working = async (): Promise<string[]> =>
      (
        await client.query<{ id: string }>(
          `select id from quipu_log.erasures where ended_at is null and (working <> '[]' or progress is not null)`,
        )
      ).rows.map(({ id }) => id)
    const asking = command('erase', '--value', VALUE, '--yes')
    let id: string | undefined
    await waitUntil('the erasure has begun', async () => ([id] = await working()) && id !== undefined)
    process.kill(processesOf(data).children[0]!, 'SIGKILL')
    // The command waits for the next coordinator.
    expect(await asking).toMatchObject({ code: 0, stdout: expect.stringContaining(`Queries: ${ids.length},`) })
    const ended = async () =>
      (
        await client.query<{ result: ErasureResult | null }>('select result from quipu_log.erasures where id = $1', [
          id,
        ])
      ).rows[0]?.result
    await waitUntil('the next coordinator ended it', async () => !!(await ended()))
    expect(await ended()).toMatchObject({ queries: ids.length, remains: [] })
  } finally {
    await client.end()
  }
  expect(await leaksOfTables(database.url, WORDS)).toEqual([])
  for (const id of ids) expect(await statusOf(id)).toBe(410)
}, 240_000)

it('quipu erase works without a running server', async () => {
  const { id } = await run(url, `SELECT '${VALUE}'`)
  quipu.signal('SIGTERM')
  expect((await quipu.exit).code).toBe(0)
  expect(await command('erase', '--value', VALUE, '--yes')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Queries: 1,'),
  })
  expect(await leaksOfTables(database.url, WORDS)).toEqual([])
  expect((await command('audit', 'verify', '--read-models')).stdout).toMatch(/^Nothing found in /)
  await start()
  expect(await statusOf(id)).toBe(410)
  quipu.signal('SIGTERM')
  expect((await quipu.exit).code).toBe(0)
}, 240_000)
