import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { endOf, patient, startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { post, raw, trinoHeaders, type RawAnswer } from '../support/statement-client.ts'

/*
 * Statements under a file of resource groups. While the worker is stopped, a statement that reads a table keeps its
 * slot.
 */

const own = { name: '${USER}', hardConcurrencyLimit: 1, maxQueued: 2 }
const ranked = { name: 'ranked', hardConcurrencyLimit: 1, maxQueued: 9, schedulingPolicy: 'query_priority' }
const forAll = { name: 'all', hardConcurrencyLimit: 4, maxQueued: 20 }
const selectors = [
  { source: 'ranked', group: 'all.ranked' },
  { user: 'ana|ben', group: 'all.${USER}' },
]
const rules = { rootGroups: [{ ...forAll, subGroups: [own, ranked] }], selectors }

const folder = temporaryFolder()
const file = join(folder.path, 'groups.json')
let server: KillableServer

function writeRules(text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o644 })
  renameSync(`${file}.new`, file)
}

beforeAll(async () => {
  writeRules(JSON.stringify(rules))
  const patience = { QUIPU_WORKER_FAILED_MS: '10m', QUIPU_WORKER_WAIT_MS: '10m' }
  server = await startKillableServer({ QUIPU_RESOURCE_GROUPS_FILE: file, ...patience })
}, 240_000)
afterAll(async () => {
  await server.close()
  await folder.remove()
})

const LONG = 'SELECT count(*) FROM nation'

const as = (user: string, more: Readonly<Record<string, string>> = {}) => ({
  ...trinoHeaders,
  'x-trino-user': user,
  ...more,
})

/** Posts a query that runs as long as the worker is stopped. */
async function running(user: string, more?: Readonly<Record<string, string>>): Promise<RawAnswer> {
  const posted = await post(server.url, LONG, as(user, more))
  await waitUntil('it runs', async () => (await eventsOf(posted, 'task.created')).length === 1)
  return posted
}

async function waiting(user: string, more?: Readonly<Record<string, string>>): Promise<RawAnswer> {
  const posted = await post(server.url, LONG, as(user, more))
  await waitUntil('it waits', async () => (await eventsOf(posted, 'query.queued')).length === 1)
  return posted
}

interface GroupEvent {
  readonly type: string
  readonly time: string
  readonly data: { readonly resourceGroup?: string; readonly reason?: string }
}

async function eventsOf({ json }: RawAnswer, type = ''): Promise<readonly GroupEvent[]> {
  const answer = await patient(`${server.url}/v1/query/${json.id}/events`)
  return (answer.json as unknown as readonly GroupEvent[]).filter((event) => event.type.startsWith(`quipu.${type}`))
}

async function groupsOf(of: RawAnswer, type: string): Promise<readonly unknown[]> {
  return (await eventsOf(of, type)).map(({ data }) => data.resourceGroup)
}

async function queryOf({ json }: RawAnswer): Promise<Record<string, unknown>> {
  return (await patient(`${server.url}/v1/query/${json.id}`)).json as unknown as Record<string, unknown>
}

async function admittedInOrder(of: readonly RawAnswer[]): Promise<void> {
  const times = await Promise.all(of.map(async (one) => (await eventsOf(one, 'query.admitted')).at(-1)!.time))
  expect(times.toSorted()).toEqual(times)
}

it(
  'queries run and wait by the limits of their groups, and a queued query names its limit',
  { timeout: 240_000 },
  async () => {
    server.signalWorker('SIGSTOP')
    const ana = await running('ana')
    const ben = await running('ben')
    const second = await waiting('ana')
    const third = await waiting('ana')
    expect(await queryOf(second)).toMatchObject({
      state: 'QUEUED',
      resourceGroupId: ['all', 'ana'],
      queuedReason: 'resource group "all.ana" runs 1, its hardConcurrencyLimit is 1; position 1',
    })
    expect((await endOf(await post(server.url, LONG, as('ana')))).error).toMatchObject({
      errorName: 'QUERY_QUEUE_FULL',
      message: 'Too many queued queries for "all.ana"',
    })
    expect((await endOf(await post(server.url, 'SELECT 1', as('zoe')))).error).toMatchObject({
      errorName: 'QUERY_REJECTED',
      errorType: 'USER_ERROR',
      message: 'No matching resource group found with the configured selection rules',
    })
    const state = async (path: string) =>
      (await raw(`${server.url}/v1/resourceGroupState${path}`)).json as unknown as Record<string, unknown>
    expect(await state('')).toMatchObject([{ id: ['all'], numRunningQueries: 2, numQueuedQueries: 2 }])
    expect(await state('/all')).toMatchObject({
      state: 'CAN_RUN',
      hardConcurrencyLimit: 4,
      maxQueuedQueries: 20,
      softMemoryLimit: expect.stringMatching(/^[1-9].*B$/),
      subGroups: [
        { id: ['all', 'ana'], state: 'FULL', numRunningQueries: 1, numQueuedQueries: 2 },
        { id: ['all', 'ben'], state: 'CAN_QUEUE', numRunningQueries: 1, numQueuedQueries: 0 },
      ],
    })
    expect(await state('/all/ben')).toMatchObject({
      runningQueries: [{ queryId: ben.json.id, resourceGroupId: ['all', 'ben'], user: 'ben' }],
    })
    expect((await raw(`${server.url}/v1/resourceGroupState/all%2Fben`)).status).toBe(404)
    server.signalWorker('SIGCONT')
    for (const one of [ana, ben, second, third]) expect((await endOf(one)).error).toBeUndefined()
    await admittedInOrder([second, third])
  },
)

it('queries of one group start in the order of query_priority', { timeout: 240_000 }, async () => {
  server.signalWorker('SIGSTOP')
  const source = { 'x-trino-source': 'ranked' }
  const first = await running('zoe', source)
  const low = await waiting('zoe', source)
  const high = await waiting('zoe', { ...source, 'x-trino-session': 'query_priority=7' })
  server.signalWorker('SIGCONT')
  for (const one of [first, low, high]) expect((await endOf(one)).error).toBeUndefined()
  await admittedInOrder([high, low])
})

it(
  'groups, order and slots survive a take-over, and a changed file moves waiting queries to new groups',
  { timeout: 240_000 },
  async () => {
    server.signalWorker('SIGSTOP')
    const taken = await running('ana')
    const waited = [await waiting('ana'), await waiting('ana')]
    server.kill()
    await waitUntil('all are taken over', async () => (await eventsOf(taken, 'query.recovered')).length === 1)
    for (const one of waited) expect(await groupsOf(one, 'query.queued')).toEqual(['all.ana'])
    // The running query still has the only slot of the group.
    expect(await queryOf(waited[0]!)).toMatchObject({ state: 'QUEUED', resourceGroupId: ['all', 'ana'] })

    writeRules('{ "rootGroups": [],\n "selectors": [{}] }')
    await waitUntil('the file is known to be broken', async () => {
      const { text } = await raw(`${server.url}/metrics`)
      return text.includes('quipu_files_broken{file="resource_groups"} 1')
    })
    expect(await queryOf(waited[1]!)).toMatchObject({ state: 'QUEUED' })

    const team = { name: 'team', hardConcurrencyLimit: 1, maxQueued: 0 }
    const changed = { rootGroups: [{ ...forAll, subGroups: [team] }], selectors: [{ user: 'ana', group: 'all.team' }] }
    writeRules(JSON.stringify(changed))
    for (const one of waited)
      await waitUntil('it is in the new group', async () => (await groupsOf(one, 'query.queued')).at(-1) === 'all.team')
    await waitUntil('the first has its place', async () => (await groupsOf(waited[0]!, 'query.admitted')).length === 1)
    expect(await groupsOf(waited[0]!, 'query.admitted')).toEqual(['all.team'])
    expect(await queryOf(taken)).toMatchObject({ resourceGroupId: ['all', 'ana'] })
    server.signalWorker('SIGCONT')
    // The end of the running query is not checked here: its worker was stopped while its coordinator ended.
    const [, ...endings] = await Promise.all([taken, ...waited].map(endOf))
    expect(endings.map(({ error }) => error)).toEqual([undefined, undefined])
    await admittedInOrder(waited)
  },
)
