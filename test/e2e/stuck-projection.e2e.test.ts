import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { endOf, patient, startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { post, raw, run } from '../support/statement-client.ts'

/*
 * Writes to the read models fail as on a full disk, so nothing is projected. With the log in Postgres no statement
 * may be affected, also no write after the coordinator was replaced.
 */

let server: KillableServer
let database: pg.Client

beforeAll(async () => {
  server = await startKillableServer()
  database = new pg.Client(server.database)
  await database.connect()
}, 240_000)
afterAll(async () => {
  await database?.end()
  await server?.close()
})

interface Status {
  readonly ready: boolean
  readonly epoch: number
  readonly lag?: { readonly events: number; readonly oldestMillis: number }
  readonly projection?: { readonly state: string; readonly since?: string; readonly reason?: string }
}

async function status(): Promise<Status> {
  return JSON.parse((await patient(`${server.url}/v1/status`)).text) as Status
}

it(
  'statements and writes succeed while the projection is stuck, also over a kill, and the status shows it',
  { timeout: 240_000 },
  async () => {
    expect(await run(server.url, 'CREATE TABLE memory.default.t AS SELECT 1 x')).toMatchObject({ error: undefined })
    const { epoch } = await status()
    await database.query(
      `create function m.refuse() returns trigger language plpgsql as
     $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$`,
    )
    await database.query(
      'create trigger refuse before insert on m.query_events for each statement execute function m.refuse()',
    )

    server.signalWorker('SIGSTOP')
    const open = await post(server.url, 'SELECT count(*) FROM lineitem')
    const write = await post(server.url, 'INSERT INTO memory.default.t SELECT 2')
    server.kill()
    await waitUntil('another coordinator writes', async () => {
      const answer = await raw(`${server.url}/v1/status`).catch(() => undefined)
      return answer?.status === 200 && (JSON.parse(answer.text) as Status).epoch > epoch
    })
    server.signalWorker('SIGCONT')
    expect((await endOf(open)).data).toEqual([[60175]])
    expect(await endOf(write)).toMatchObject({ state: 'FINISHED', error: undefined })
    expect(await run(server.url, 'INSERT INTO memory.default.t SELECT 3')).toMatchObject({ error: undefined })
    expect((await run(server.url, 'SELECT x FROM memory.default.t ORDER BY 1')).rows).toEqual([[1], [2], [3]])

    await waitUntil('the projection tries in vain', async () => (await status()).projection?.state === 'retrying')
    const stuck = await status()
    expect(stuck).toMatchObject({ ready: true, projection: { state: 'retrying', reason: 'SQLSTATE 53100' } })
    expect(stuck.lag!.events).toBeGreaterThan(10)
    expect(stuck.lag!.oldestMillis).toBeGreaterThan(0)
    const metrics = (await patient(`${server.url}/metrics`)).text
    expect(metrics).toMatch(/quipu_projection_stopped\{[^}]*\} 0/)
    expect(Number(/quipu_projection_lag_seconds\{[^}]*\} (\S+)/.exec(metrics)![1])).toBeGreaterThan(0)

    await database.query('drop trigger refuse on m.query_events')
    await waitUntil('the projection follows again', async () => {
      const { projection, lag } = await status()
      return projection?.state === 'following' && lag?.events === 0
    })
    const { rows } = await database.query(`select count(*) from m.queries where ended_at is null`)
    expect(rows).toEqual([{ count: '0' }])
  },
)
