import { readdirSync, readFileSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { auditCommand } from '../../src/cli/audit-command.ts'
import { eraseCommand } from '../../src/cli/erase-command.ts'
import type { ErasureResult } from '../../src/erasure/erasure-store.ts'
import { ExitError } from '../../src/shared/engine-error.ts'
import { leaksOfResources, leaksOfTables } from '../support/leaks.ts'
import { createDatabase, type TestDatabase } from '../support/postgres.ts'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil } from '../support/quipu-process.ts'
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
let url: string
let settings: string[]
/** Queries of users whose data stays. */
const kept: string[] = []

beforeAll(async () => {
  database = await createDatabase()
  settings = ['--data-dir', data, '--database-url', database.url]
  // Every two seconds the coordinator moves records to the archive, also while it erases.
  url = await spawnQuipu(['start', '--port', '0', ...settings], {
    env: {
      QUIPU_LOG_LEVEL: 'error',
      QUIPU_RESTART_BACKOFF_MAX_MS: '200ms',
      QUIPU_ANCHOR_MS: '500ms',
      QUIPU_ARCHIVE_AFTER_MS: '2s',
    },
  }).url
}, 240_000)
afterAll(async () => {
  await database.drop()
  await folder.remove()
})

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

/** Runs statements, which let the archive grow, until the records of the queries have left the log. */
async function archived(ids: readonly string[]): Promise<void> {
  const left = async () => {
    await runAsBob(`SELECT 'zerlina'`)
    return rowsOf('select from quipu_log.events where stream = any($1) limit 1', [ids])
  }
  await expect.poll(left, { timeout: 90_000, interval: 250 }).toEqual([])
}

it('quipu erase removes a value from a running server and its archive, also when the coordinator is killed meanwhile', async () => {
  const ids = await runCases()
  await runAsBob('SELECT name FROM tpch.tiny.nation ORDER BY name')
  await archived(ids)
  expect(leakingFiles(WORDS, join(data, 'archive'))).not.toEqual([])
  const erase = (...args: string[]) => here(eraseCommand, '--value', VALUE, ...args, ...settings)
  expect((await erase('--preview')).stdout).toContain(`queries whose data would be removed: ${ids.length}\n`)
  expect(await erase()).toMatchObject({ code: 64 })
  expect(await erase('--yes', '--reason', `asked by ${VALUE}`)).toMatchObject({ code: 64 })
  for (const id of ids) expect(await statusOf(id)).toBe(200)

  const confirmed = ['--yes', '--json', '--reason', 'request 7', '--by', 'officer']
  const asking = spawnQuipu(['erase', '--value', VALUE, ...confirmed, ...settings]).exit
  await waitUntil('the erasure has begun', async () => {
    const begun = await rowsOf(
      `select from quipu_log.erasures where working <> '[]' or progress is not null or result is not null`,
    )
    return begun.length > 0
  })
  process.kill(processesOf(data).children[0]!, 'SIGKILL')
  // The command waits for the next coordinator, which completes the erasure.
  const done = await asking
  expect(done).toMatchObject({ code: 0, stderr: '' })
  const { result } = JSON.parse(done.stdout) as { result: ErasureResult }
  expect(result).toMatchObject({ queries: ids.length, remains: [], waiting: [] })
  for (const id of ids) expect(await statusOf(id)).toBe(410)
  for (const id of kept) expect(await statusOf(id)).toBe(200)
  expect(await leaksOfResources(url, ids, WORDS)).toEqual([])
  expect(await leaksOfTables(database.url, WORDS)).toEqual([])
  await expect.poll(() => leakingFiles(WORDS), { timeout: 60_000, interval: 200 }).toEqual([])
  const { rows } = await run(url, `SELECT "user", kind, reason, queries, remains FROM system.history.erasures`)
  expect(rows).toEqual([['officer', 'value', 'request 7', ids.length, '[]']])
  const audit = await here(auditCommand, 'verify', '--read-models', ...settings)
  expect(audit.stdout).toMatch(/^Nothing found in /)
}, 240_000)
