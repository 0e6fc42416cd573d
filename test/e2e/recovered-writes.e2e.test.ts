import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { QueryEventType } from '../../src/coordinator/query/stream/events.ts'
import { endOf, patient, startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { post, run } from '../support/statement-client.ts'

/*
 * The coordinator is killed right before each append of a statement that changes something. A client that follows on
 * gets the same result as in an undisturbed run, and the change is made once. The same holds after a kill of a worker.
 */

let server: KillableServer
beforeAll(async () => {
  server = await startKillableServer()
}, 240_000)
afterAll(() => server.close())

interface Change {
  readonly name: string
  /** Creates the object that the statement changes. */
  readonly before?: string
  readonly sql: string
  /** Reads the result of the change. */
  readonly look: string
  readonly after: string
  /** Events before whose append the coordinator is killed. */
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

const refresh: Change = {
  name: 'REFRESH MATERIALIZED VIEW',
  before: 'CREATE MATERIALIZED VIEW memory.default.t AS SELECT name FROM nation',
  sql: 'REFRESH MATERIALIZED VIEW memory.default.t',
  look: "SELECT count(*), count(DISTINCT t.name), max(freshness) FROM memory.default.t, system.metadata.materialized_views m WHERE m.name = 't'", // prettier-ignore
  after: 'DROP MATERIALIZED VIEW memory.default.t',
  at: ['QueryPlanned', 'TaskFinished', 'WritePrepared', 'WriteCommitted'],
}

const end = async (sql: string): Promise<unknown> => endOf(await post(server.url, sql))

async function must(sql: string | undefined): Promise<void> {
  if (sql === undefined) return
  const { error } = await run(server.url, sql)
  if (error) throw new Error(`${sql}: ${error.message}`)
}

async function seen(sql: string): Promise<unknown> {
  const { rows, error } = await run(server.url, sql)
  return error?.message ?? rows
}

describe.each([...changes, refresh])('$name', ({ before, sql, look, after, at }) => {
  let undisturbed: { readonly said: unknown; readonly seen: unknown }

  it('finishes in an undisturbed run', { timeout: 240_000 }, async () => {
    await must(before)
    undisturbed = { said: await end(sql), seen: await seen(look) }
    await must(after)
    expect(undisturbed.said).toMatchObject({ state: 'FINISHED' })
  })

  it.each(at)(
    'has the same result and one effect if the coordinator is killed before %s',
    { timeout: 240_000 },
    async (type) => {
      await must(before)
      await server.appends.block(type)
      const ending = end(sql)
      ending.catch(() => {})
      await server.appends.reached()
      server.kill()
      await server.appends.letThrough()
      const said = await ending
      expect({ said, seen: await seen(look) }).toEqual(undisturbed)
      await must(after)
    },
  )
})

it.each(['worker', 'engines'] as const)(
  'REFRESH MATERIALIZED VIEW has one effect if the %s is killed while it makes the rows',
  { timeout: 240_000 },
  async (what) => {
    const query = 'SELECT count(*) AS n FROM lineitem a, nation b, nation c, (VALUES 1, 2) d'
    await must(`CREATE MATERIALIZED VIEW memory.default.slow AS ${query}`)
    const first = await post(server.url, 'REFRESH MATERIALIZED VIEW memory.default.slow')
    const ending = endOf(first)
    ending.catch(() => {})
    await waitUntil('it runs', async () => {
      const { state } = (await patient(`${server.url}/v1/query/${first.json.id}`)).json as unknown as { state: string }
      return state === 'RUNNING' || state === 'FINISHED'
    })
    server.killWorkers(what)
    expect(await ending).toMatchObject({ state: 'FINISHED', updateType: 'REFRESH MATERIALIZED VIEW', updateCount: 1 })
    expect(await end('REFRESH MATERIALIZED VIEW memory.default.slow')).toMatchObject({ updateCount: 0 })
    expect(await seen('SELECT n FROM memory.default.slow')).toEqual([[60_175 * 25 * 25 * 2]])
    await must('DROP MATERIALIZED VIEW memory.default.slow')
  },
)
