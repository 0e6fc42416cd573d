import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { QueryEventType } from '../../src/coordinator/query/events.ts'
import { createBlockedAppends, type BlockedAppends } from '../support/blocked-appends.ts'
import { createDatabase, type TestDatabase } from '../support/postgres.ts'
import { processesOf, spawnQuipu, temporaryFolder, type QuipuProcess } from '../support/quipu-process.ts'
import { post, raw, run, type RawAnswer, type StatementJson } from '../support/statement-client.ts'

/*
 * The coordinator is killed right before each append of a statement that changes something. Whoever follows on gets what
 * an undisturbed run gives, and the change is made once.
 */

let folder: ReturnType<typeof temporaryFolder>
let database: TestDatabase
let appends: BlockedAppends
let quipu: QuipuProcess
let url: string

beforeAll(async () => {
  folder = temporaryFolder()
  database = await createDatabase()
  const args = ['--data-dir', join(folder.path, 'data'), '--database-url', database.url]
  const env = { QUIPU_LOG_LEVEL: 'error', QUIPU_RESTART_BACKOFF_MAX_MS: '200ms' }
  quipu = spawnQuipu(['start', '--port', '0', ...args], { env })
  url = await quipu.url
  appends = await createBlockedAppends(database.url)
}, 120_000)
afterAll(async () => {
  await appends.close()
  quipu.signal('SIGTERM')
  await quipu.exit
  await database.drop()
  await folder.remove()
}, 120_000)

/** Goes on through a restart, as clients do. */
async function patient(uri: string): Promise<RawAnswer> {
  for (let tries = 0; ; tries++) {
    const answer = await raw(uri).catch(() => undefined)
    if (answer?.status === 200) return answer
    if (tries > 600) throw new Error(`No answer: ${answer?.text ?? 'connection lost'}`)
    await sleep(50)
  }
}

/** What the last answer says, but for what names the run. */
async function end(sql: string): Promise<unknown> {
  const first = (await post(url, sql)).json
  let last: RawAnswer | undefined
  for (let next = first.nextUri; next !== undefined; next = last.json.nextUri) last = await patient(next)
  const { columns, data, error, warnings, updateType, updateCount, stats } = last!.json as StatementJson &
    Readonly<Record<'warnings' | 'updateType' | 'updateCount', unknown>>
  const { date: _, ...headers } = last!.headers
  return { columns, data, error, warnings, updateType, updateCount, state: stats.state, headers }
}

interface Change {
  readonly name: string
  /** Makes what the statement changes. */
  readonly before?: string
  readonly sql: string
  /** What is there afterwards. */
  readonly look: string
  readonly after: string
  /** Events that an append is stopped at. */
  readonly at: readonly QueryEventType[]
}

const changes: readonly Change[] = [
  {
    name: 'CREATE TABLE AS',
    sql: 'CREATE TABLE memory.default.t AS SELECT nationkey, name FROM nation',
    look: 'SELECT count(*), count(DISTINCT nationkey) FROM memory.default.t',
    after: 'DROP TABLE memory.default.t',
    at: ['QueryPlanned', 'WritePrepared', 'WriteCommitted'],
  },
  {
    name: 'INSERT',
    before: 'CREATE TABLE memory.default.t (n bigint)',
    sql: 'INSERT INTO memory.default.t SELECT nationkey FROM nation',
    look: 'SELECT count(*), count(DISTINCT n) FROM memory.default.t',
    after: 'DROP TABLE memory.default.t',
    at: ['WriteCommitted'],
  },
  {
    name: 'DROP TABLE',
    before: 'CREATE TABLE memory.default.t AS SELECT 1 x',
    sql: 'DROP TABLE memory.default.t',
    look: "SHOW TABLES FROM memory.default LIKE 't'",
    after: 'DROP TABLE IF EXISTS memory.default.t',
    at: ['WritePrepared', 'WriteCommitted'],
  },
  {
    name: 'CREATE VIEW',
    sql: 'CREATE VIEW memory.default.t AS SELECT name FROM region',
    look: 'SELECT count(*) FROM memory.default.t',
    after: 'DROP VIEW memory.default.t',
    at: ['WriteCommitted'],
  },
]

async function must(sql: string | undefined): Promise<void> {
  if (sql === undefined) return
  const { error } = await run(url, sql)
  if (error) throw new Error(`${sql}: ${error.message}`)
}

async function seen(sql: string): Promise<unknown> {
  const { rows, error } = await run(url, sql)
  return error?.message ?? rows
}

describe.each(changes)('$name', ({ before, sql, look, after, at }) => {
  let undisturbed: { readonly said: unknown; readonly seen: unknown }

  it('undisturbed', { timeout: 120_000 }, async () => {
    await must(before)
    undisturbed = { said: await end(sql), seen: await seen(look) }
    await must(after)
    expect(undisturbed.said).toMatchObject({ state: 'FINISHED' })
  })

  it.each(at)('killed before %s', { timeout: 120_000 }, async (type) => {
    await must(before)
    await appends.block(type)
    const ending = end(sql)
    ending.catch(() => {})
    await appends.reached()
    process.kill(processesOf(join(folder.path, 'data')).children[0]!, 'SIGKILL')
    await appends.letThrough()
    const said = await ending
    expect({ said, seen: await seen(look) }).toEqual(undisturbed)
    await must(after)
  })
})
