import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { auditCommand } from '../../src/cli/audit-command.ts'
import { eraseCommand } from '../../src/cli/erase-command.ts'
import { restoreCommand } from '../../src/cli/restore-command.ts'
import type { ErasureResult } from '../../src/erasure/erasure-store.ts'
import { ExitError } from '../../src/shared/engine-error.ts'
import { leaksOfResources, leaksOfTables } from '../support/leaks.ts'
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
let restored: TestDatabase
let quipu: QuipuProcess
let url: string
let settings: string[]
/** The queries of which the tests erase the data. */
const erased: string[] = []
/** Queries of users whose data stays. */
const kept: string[] = []

beforeAll(async () => {
  database = await createDatabase()
  settings = ['--data-dir', data, '--database-url', database.url]
  // Every two seconds the coordinator moves records to the archive, also while it erases.
  quipu = start(settings, { QUIPU_ARCHIVE_AFTER_MS: '2s' })
  url = await quipu.url
}, 240_000)
afterAll(async () => {
  await database.drop()
  await restored?.drop()
  await folder.remove()
})

function start(settings: readonly string[], env: Readonly<Record<string, string>> = {}): QuipuProcess {
  return spawnQuipu(['start', '--port', '0', ...settings], {
    env: { QUIPU_LOG_LEVEL: 'error', QUIPU_RESTART_BACKOFF_MAX_MS: '200ms', QUIPU_ANCHOR_MS: '500ms', ...env },
  })
}

const command = (...args: string[]) => spawnQuipu([...args, ...settings]).exit

/** Runs a command in this process, which saves the start of another one. */
async function here(
  command: (argv: readonly string[]) => Promise<number>,
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly stdout: string }> {
  const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  // The variables of the test run are not settings.
  for (const name in process.env) if (name.startsWith('QUIPU_TEST_')) vi.stubEnv(name, undefined)
  try {
    const code = await command([...args, '--run-as', userInfo().username])
    return { code, stdout: written.mock.calls.map(([text]) => String(text)).join('') }
  } catch (error) {
    if (error instanceof ExitError) return { code: error.exitCode, stdout: error.message }
    throw error
  } finally {
    vi.unstubAllEnvs()
    written.mockRestore()
  }
}
const statusOf = async (id: string) => (await raw(`${url}/v1/query/${id}`)).status

/** The files below the data folder that contain the value, unpacked if they are packed. */
function leakingFiles(words: RegExp, folderPath = data): string[] {
  return readdirSync(folderPath, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folderPath, entry.name)
    if (entry.isDirectory()) return leakingFiles(words, path)
    if (!entry.isFile() || statSync(path).size > 64 << 20) return []
    const bytes = readFileSync(path)
    return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('latin1').match(words) ? [path] : []
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

async function runAsBob(sql: string): Promise<void> {
  kept.push((await run(url, sql, { ...trinoHeaders, 'x-trino-user': 'bob' })).id)
}

async function rowsOf<T extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []): Promise<T[]> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    return (await client.query<T>(text, [...values])).rows
  } finally {
    await client.end()
  }
}

/** Runs statements, which let the archive grow, until it has all records of the log that match the condition. */
async function archived(condition: string, values: readonly unknown[] = []): Promise<void> {
  await waitUntil(`the archive has the records with ${condition}`, async () => {
    await runAsBob(`SELECT 'zerlina'`)
    return (await rowsOf(`select from quipu_log.events where ${condition} limit 1`, values)).length === 0
  })
}

it('quipu erase removes a value from a running server and from its archive; the proof finds nothing', async () => {
  const ids = await runCases()
  await runAsBob('SELECT name FROM tpch.tiny.nation ORDER BY name')
  await archived('stream = any($1)', [ids])
  expect(leakingFiles(WORDS, join(data, 'archive'))).not.toEqual([])
  const erase = (...args: string[]) => here(eraseCommand, '--value', VALUE, ...args, ...settings)
  expect((await erase('--preview')).stdout).toContain(`queries whose data would be removed: ${ids.length}\n`)
  expect(await erase()).toMatchObject({ code: 64 })
  expect(await erase('--yes', '--reason', `asked by ${VALUE}`)).toMatchObject({ code: 64 })
  for (const id of ids) expect(await statusOf(id)).toBe(200)

  const done = await command('erase', '--value', VALUE, '--yes', '--json', '--reason', 'request 7', '--by', 'officer')
  expect(done).toMatchObject({ code: 0, stderr: '' })
  const { result } = JSON.parse(done.stdout) as { result: ErasureResult }
  expect(result).toMatchObject({ queries: ids.length, remains: [], waiting: [] })
  for (const id of ids) expect(await statusOf(id)).toBe(410)
  for (const id of kept) expect(await statusOf(id)).toBe(200)
  expect(await leaksOfTables(database.url, WORDS)).toEqual([])
  await expect.poll(() => leakingFiles(WORDS), { timeout: 60_000, interval: 200 }).toEqual([])
  const { rows } = await run(url, `SELECT "user", kind, reason, queries, remains FROM system.history.erasures`)
  expect(rows).toEqual([['officer', 'value', 'request 7', ids.length, '[]']])
  expect((await raw(`${url}/metrics`)).text).toContain('quipu_erasures_total{result="complete"} 1')
  erased.push(...ids)
}, 240_000)

it('the next coordinator completes an erasure whose coordinator was killed', async () => {
  const ids = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => (await run(url, `SELECT '${VALUE}', ${index}`)).id),
  )
  const working = async (): Promise<{ id: string }[]> =>
    rowsOf(`select id from quipu_log.erasures where ended_at is null and (working <> '[]' or progress is not null)`)
  const asking = command('erase', '--value', VALUE, '--yes')
  let id: string | undefined
  await waitUntil('the erasure has begun', async () => ((id = (await working())[0]?.id), id !== undefined))
  process.kill(processesOf(data).children[0]!, 'SIGKILL')
  // The command waits for the next coordinator.
  expect(await asking).toMatchObject({ code: 0, stdout: expect.stringContaining(`Queries: ${ids.length},`) })
  const ended = async () =>
    (await rowsOf<{ result: ErasureResult | null }>('select result from quipu_log.erasures where id = $1', [id]))[0]
      ?.result
  await waitUntil('the next coordinator ended it', async () => !!(await ended()))
  expect(await ended()).toMatchObject({ queries: ids.length, remains: [] })
  expect(await leaksOfTables(database.url, WORDS)).toEqual([])
  for (const id of ids) expect(await statusOf(id)).toBe(410)
  erased.push(...ids)
}, 240_000)

/** All that a server shows of the queries of other users, now and at every moment of their past. */
async function shownOf(base: string, ids: readonly string[]): Promise<readonly unknown[]> {
  const shown: unknown[] = []
  for (const id of ids)
    for (const path of ['', '/events?limit=1000', '?asOf=1', '?asOf=2', '?asOf=3']) {
      const { status, text } = await raw(`${base}/v1/query/${id}${path}`)
      // The answers and the events have the addresses of the servers.
      shown.push([status, text.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, '')])
    }
  const { rows } = await run(
    base,
    `SELECT query_id, query, state, output_rows, created FROM system.history.queries
     WHERE query_id IN (${ids.map((id) => `'${id}'`).join(', ')}) ORDER BY 1`,
    trinoHeaders,
  )
  return [...shown, rows]
}

it('a restore from the archive brings nothing erased back, and everything of others', async () => {
  const { id: olga } = await run(url, `SELECT 'olga.berg@example.com'`)
  await runAsBob('SELECT regionkey, count(*) FROM tpch.tiny.nation GROUP BY regionkey')
  const others = [...kept.slice(0, 2), kept.at(-1)!, olga]
  await archived('stream = $1 or data like $2', [olga, '%"DataForgotten"%'])
  const before = await shownOf(url, others)
  quipu.signal('SIGTERM')
  expect((await quipu.exit).code).toBe(0)

  restored = await createDatabase()
  // The anchors after the last archived period are lost with its records, so the copy has only their key.
  const fresh = join(folder.path, 'fresh')
  execFileSync('cp', ['-a', data, fresh])
  for (const name of readdirSync(fresh))
    if (!/^archive$|^anchor-key/.test(name)) rmSync(join(fresh, name), { recursive: true })
  const there = ['--data-dir', fresh, '--database-url', restored.url]
  expect(await here(restoreCommand, '--into', restored.url, '--data-dir', fresh)).toMatchObject({ code: 0 })
  const next = start(there)
  const base = await next.url
  expect(await shownOf(base, others)).toEqual(before)
  for (const id of erased) expect((await raw(`${base}/v1/query/${id}`)).status).toBe(410)
  expect(await leaksOfResources(base, erased, WORDS)).toEqual([])
  expect(await leaksOfTables(restored.url, WORDS)).toEqual([])
  const named = erased.map((id) => `'${id}'`).join(', ')
  const { rows } = await run(base, `SELECT count(*) FROM system.history.queries WHERE query_id IN (${named})`)
  expect(rows).toEqual([[0]])
  expect((await here(auditCommand, 'verify', '--read-models', ...there)).stdout).toMatch(/^Nothing found in /)
  expect(await here(eraseCommand, 'verify', '--value', VALUE, ...there)).toMatchObject({ code: 0 })
  next.signal('SIGTERM')
  expect((await next.exit).code).toBe(0)
}, 240_000)

it('quipu erase works without a running server', async () => {
  // The result of the query of the history contains the value too.
  expect(await here(eraseCommand, '--value', 'olga.berg@example.com', '--yes', ...settings)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Queries: 2,'),
  })
  expect(await leaksOfTables(database.url, /olga\.berg/g)).toEqual([])
  expect(leakingFiles(/olga\.berg/g)).toEqual([])
  expect((await here(auditCommand, 'verify', '--read-models', ...settings)).stdout).toMatch(/^Nothing found in /)
}, 240_000)
