import { afterAll, beforeAll, expect, it } from 'vitest'
import { endOf, patient, startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { post, raw, run, type RawAnswer } from '../support/statement-client.ts'

/*
 * The coordinator is killed while statements with secrets are open. No secret is kept: statements that can continue
 * without it do, the others fail with an error, and no client gets a result made from the placeholder of a secret.
 */
let server: KillableServer

beforeAll(async () => {
  server = await startKillableServer()
  expect((await run(server.url, 'CREATE SCHEMA memory.s')).error).toBeUndefined()
}, 240_000)
afterAll(() => server.close())

const RESTARTED = { state: 'FAILED', error: { errorName: 'COORDINATOR_RESTARTED' } }

async function killedBefore(type: 'TaskFinished' | 'WriteCommitted', sql: string): Promise<RawAnswer> {
  await server.appends.block(type)
  const first = await post(server.url, sql)
  // A statement that changes something begins with its first GET.
  void raw(first.json.nextUri!).catch(() => {})
  await server.appends.reached()
  server.kill()
  await server.appends.letThrough()
  return first
}

async function stateIs(id: string, state: string): Promise<void> {
  await waitUntil(`${id} is ${state}`, async () => {
    const { text } = await raw(`${server.url}/v1/query/${id}`)
    return (JSON.parse(text) as { readonly state: string }).state === state
  })
}

it(
  'a task with a secret that runs on its worker continues after a kill of the coordinator',
  { timeout: 240_000 },
  async () => {
    const sql = "SELECT count(*) FROM nation n(a, password, c, d) WHERE password = 'CANADA'"
    expect(await endOf(await killedBefore('TaskFinished', sql))).toMatchObject({ state: 'FINISHED', data: [[1]] })
  },
)

it('a CREATE TABLE AS with a secret completes after a kill of the coordinator', { timeout: 240_000 }, async () => {
  const sql = "CREATE TABLE memory.s.t AS SELECT c FROM nation n(a, password, c, d) WHERE password = 'CANADA'"
  expect(await endOf(await killedBefore('WriteCommitted', sql))).toMatchObject({ state: 'FINISHED' })
  expect((await run(server.url, 'SELECT count(*) FROM memory.s.t')).rows).toEqual([[1]])
})

it('a view that was created before the kill keeps its text with the secret', { timeout: 240_000 }, async () => {
  const sql = "CREATE VIEW memory.s.v AS SELECT name FROM region WHERE 'password=hunter2' <> name"
  expect(await endOf(await killedBefore('WriteCommitted', sql))).toMatchObject({ state: 'FINISHED' })
  expect((await run(server.url, 'SELECT count(*) FROM memory.s.v')).rows).toEqual([[5]])
  expect(String((await run(server.url, 'SHOW CREATE VIEW memory.s.v')).rows)).toContain('password=hunter2')
})

it('a session never gets the placeholder of a secret', { timeout: 240_000 }, async () => {
  const sql = "PREPARE p FROM SELECT * FROM nation n(a, password, c, d) WHERE password = 'hunter2'"
  const planned = await post(server.url, sql)
  await stateIs(planned.json.id, 'STARTING')
  const ended = await post(server.url, sql)
  const last = await raw(ended.json.nextUri!)
  expect(decodeURIComponent(String(last.headers['x-trino-added-prepare']).replaceAll('+', ' '))).toContain("'hunter2'")
  server.kill()
  expect(await endOf(planned)).toMatchObject(RESTARTED)
  // The answer may have been lost: a client that repeats the request does not get a part of it.
  const again = await patient(ended.json.nextUri!)
  expect(again.json.error).toMatchObject(RESTARTED.error)
  expect(again.headers['x-trino-added-prepare']).toBeUndefined()
})

it('a SELECT of literals with a secret returns no placeholder after a kill', { timeout: 240_000 }, async () => {
  const first = await killedBefore('TaskFinished', "SELECT concat('password=hunter2', CAST(now() AS varchar))")
  const end = await patient(first.json.nextUri!).then(endOf, () => undefined)
  // Its only append may have become valid or not; if not, the server does not know the query.
  expect(JSON.stringify(end?.data ?? [])).not.toContain('***')
})
