import { afterAll, beforeAll, expect, it } from 'vitest'
import { endOf, patient, startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { post, trinoHeaders, type RawAnswer } from '../support/statement-client.ts'

/* A coordinator that runs one query at a time: which queries wait, and which one ends the coordinator. */

let server: KillableServer
beforeAll(async () => {
  const patience = { QUIPU_WORKER_FAILED_MS: '10m', QUIPU_WORKER_WAIT_MS: '10m' }
  server = await startKillableServer({ QUIPU_RUNNING_QUERIES: '1', ...patience })
}, 240_000)
afterAll(() => server.close())

/** Starts a query that runs as long as the worker is stopped, and takes the only slot. */
async function takeSlot(): Promise<RawAnswer> {
  server.signalWorker('SIGSTOP')
  const taken = await post(server.url, 'SELECT count(*) FROM nation')
  await waitUntil('it has its place', async () => (await countOf(taken, 'task.created')) === 1)
  return taken
}

async function postWaiting(sql: string): Promise<RawAnswer> {
  const posted = await post(server.url, sql)
  await waitUntil('it waits', async () => (await countOf(posted, 'query.queued')) === 1)
  return posted
}

interface QueryEvent {
  readonly type: string
  readonly time: string
}

async function eventsOf({ json }: RawAnswer): Promise<readonly QueryEvent[]> {
  const answer = await patient(`${server.url}/v1/query/${json.id}/events`)
  return answer.json as unknown as readonly QueryEvent[]
}

async function countOf(of: RawAnswer, type: string): Promise<number> {
  return (await eventsOf(of)).filter((event) => event.type.startsWith(`quipu.${type}.`)).length
}

async function plannedAt(of: RawAnswer): Promise<string> {
  const planned = (await eventsOf(of)).find((event) => event.type.startsWith('quipu.query.planned.'))
  return planned!.time
}

it('waiting queries continue in order after two kills, before new queries', { timeout: 240_000 }, async () => {
  const taken = await takeSlot()
  const waited = [await postWaiting('SHOW CATALOGS'), await postWaiting('SELECT count(*) FROM region')]
  server.kill()
  // A query that only waits cannot have ended a coordinator, so it is taken over as often as needed.
  await waitUntil('all are taken over', async () => (await countOf(taken, 'query.recovered')) === 1)
  server.kill()
  const late = await patient(`${server.url}/v1/statement`, {
    method: 'POST',
    body: 'SHOW SCHEMAS',
    headers: trinoHeaders,
  })
  server.signalWorker('SIGCONT')
  // The end of the running query is not checked here: its worker was stopped while two coordinators ended.
  const [, ...endings] = await Promise.all([taken, ...waited, late].map(endOf))
  expect(endings.map((end) => end.error)).toEqual([undefined, undefined, undefined])
  const order = await Promise.all([...waited, late].map(plannedAt))
  expect(order.toSorted()).toEqual(order)
})

it(
  'a statement during which the coordinator dies twice fails with COORDINATOR_RESTARTED',
  { timeout: 240_000 },
  async () => {
    const taken = await takeSlot()
    const deadly = await postWaiting('SELECT count(*) FROM nation')
    await server.appends.block('QueryPlanned')
    server.signalWorker('SIGCONT')
    expect((await endOf(taken)).error).toBeUndefined()
    await server.appends.reached()
    server.kill()
    await waitUntil('it is tried again', async () => (await countOf(deadly, 'query.recovered')) === 1)
    await server.appends.block('QueryPlanned')
    await server.appends.reached()
    server.kill()
    expect((await endOf(deadly)).error).toMatchObject({ errorName: 'COORDINATOR_RESTARTED' })
    await server.appends.letThrough()
    expect((await endOf(await post(server.url, 'SELECT 1'))).data).toEqual([[1]])
  },
)
