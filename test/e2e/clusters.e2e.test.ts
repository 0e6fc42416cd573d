import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { clusterInfoSchema } from '../../src/protocol/info/schemas/server.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { freePort, type TestDatabase } from '../support/postgres.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { startStandInCluster, type StandInCluster } from '../support/stand-in-cluster.ts'
import {
  CLUSTER_SECRET,
  rolesOf,
  startStandbyCluster,
  writes,
  type ClusterNode,
  type StandbyCluster,
} from '../support/standby-cluster.ts'
import { raw } from '../support/statement-client.ts'

/*
 * Two coordinators on one log. Behind them are two clusters: another Quipu, and a server that answers its checks only.
 */

const folder = temporaryFolder()
/** The folder of cluster files. The programs run as a user of their own, and that user must be able to list it. */
const files = join(folder.path, 'clusters')
let database: TestDatabase
let behind: QuipuProcess
let port: number
let standIn: StandInCluster
let gateways: StandbyCluster
let writer: ClusterNode
let other: ClusterNode

function startBehind(): QuipuProcess {
  const data = join(folder.path, 'behind')
  const args = ['start', '--port', String(port), '--workers', '0', '--data-dir', data, '--database-url', database.url]
  return spawnQuipu(args, { env: { QUIPU_LOG_LEVEL: 'error' } })
}

function writeFile(name: string, content: unknown): void {
  const path = join(files, `${name}.json`)
  writeFileSync(`${path}.new`, typeof content === 'string' ? content : JSON.stringify(content), { mode: 0o644 })
  renameSync(`${path}.new`, path)
}

beforeAll(async () => {
  mkdirSync(files, { mode: 0o755 })
  database = await createMigratedDatabase()
  port = await freePort()
  behind = startBehind()
  standIn = await startStandInCluster()
  writeFile('quipu-b', { url: `http://127.0.0.1:${port}`, group: 'big', maxRunning: 4, catalogs: ['tpch', 'hive'] })
  writeFile('stand-in', { url: standIn.url, group: 'small' })
  gateways = await startStandbyCluster({ QUIPU_CLUSTERS_DIR: files, QUIPU_CLUSTERS_BEAT_MS: '500ms' })
  ;({ writer, other } = await rolesOf(gateways))
  await behind.url
}, 240_000)

afterAll(async () => {
  await gateways.stop()
  behind.signal('SIGTERM')
  await behind.exit
  await standIn.close()
  await database.drop()
  await folder.remove()
})

async function clusterAt(node: ClusterNode, name: string) {
  const { status, text } = await raw(`${node.url}/v1/cluster/${name}`)
  expect(status, text).toBe(200)
  return clusterInfoSchema.parse(JSON.parse(text))
}

const isNow = (name: string, condition: string): Promise<void> =>
  waitUntil(`${name} is ${condition}`, async () => {
    const { status, text } = await raw(`${writer.url}/v1/cluster/${name}`)
    const { state, health } = status === 200 ? clusterInfoSchema.parse(JSON.parse(text)) : {}
    return `${state} ${health}` === condition
  })

interface EventJson {
  readonly type: string
  readonly subject: string
  readonly data: Readonly<Record<string, unknown>>
}

async function eventsOf(name: string, node = writer): Promise<readonly EventJson[]> {
  return (await raw(`${node.url}/v1/cluster/${name}/events`)).json as unknown as readonly EventJson[]
}

const typesOf = async (name: string): Promise<string[]> =>
  (await eventsOf(name)).map(({ type }) => type.replace(/^quipu\.cluster\.?/, '').replace(/\.v1$/, ''))

function command(
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const env = {
    QUIPU_SHARED_SECRET: CLUSTER_SECRET,
    QUIPU_CLUSTERS_DIR: files,
    DATABASE_URL: gateways.databaseUrl,
  }
  return spawnQuipu(args, { env }).exit
}

const change = (action: string, name: string, ...more: readonly string[]) =>
  command('cluster', action, name, '--by', 'kim', '--data-dir', join(folder.path, 'command'), ...more)

it('both coordinators list the clusters, with what the writer knows of them', async () => {
  await isNow('quipu-b', 'ACTIVE HEALTHY')
  await isNow('stand-in', 'ACTIVE HEALTHY')
  const cluster = await clusterAt(other, 'quipu-b')
  expect(cluster).toMatchObject({
    name: 'quipu-b',
    group: 'big',
    url: `http://127.0.0.1:${port}`,
    reason: 'ready',
    running: 0,
    waiting: 0,
    maxRunning: 4,
    weight: 1,
    catalogs: ['hive'],
    mirrors: [],
    refusedCatalogs: ['tpch'],
    lastCheck: { result: 'ready' },
  })
  expect((await clusterAt(other, 'stand-in')).version).toBe('476')
  expect((await raw(`${other.url}/v1/cluster`)).json).toHaveLength(2)
  // Under load its health may have changed again.
  expect((await typesOf('quipu-b')).slice(0, 2)).toEqual(['found', 'health.changed'])
  expect((await eventsOf('quipu-b', other)).slice(0, 2)).toEqual((await eventsOf('quipu-b')).slice(0, 2))
  for (const path of ['nobody', 'nobody/events', 'No.Name'])
    expect((await raw(`${writer.url}/v1/cluster/${path}`)).status).toBe(404)
  expect((await raw(`${writer.url}/v1/cluster/quipu-b/events?limit=0`)).status).toBe(400)
})

it('quipu cluster drains a cluster, lists it with the reason, and says what is wrong with a file', async () => {
  expect(await change('drain', 'quipu-b', '--reason', 'an upgrade')).toMatchObject({
    code: 0,
    stdout: 'quipu-b is DRAINING\n',
  })
  expect((await change('drain', 'quipu-b')).code).toBe(0)
  const { code, stdout } = await command('cluster', 'list', '--server', other.url)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^quipu-b +\| big +\| DRAINING \| HEALTHY +\| +0 \| +0 \| .* \| an upgrade$/m)
  expect((await eventsOf('quipu-b')).at(-1)).toMatchObject({
    type: 'quipu.clusterstate.asked.v1',
    subject: 'cluster/quipu-b',
    data: { before: 'ACTIVE', after: 'DRAINING', reason: 'an upgrade', by: 'kim' },
  })
  expect((await typesOf('quipu-b')).filter((type) => type === 'state.asked')).toHaveLength(1)
  expect(await change('activate', 'nobody')).toMatchObject({
    code: 64,
    stderr: 'quipu: The coordinator refused: There is no such cluster\n',
  })
  expect((await command('cluster', 'drain')).code).toBe(64)
  const checked = await command('cluster', 'check')
  expect(checked).toMatchObject({ code: 0 })
  expect(checked.stdout).toMatch(/^stand-in +\| small \| .* \| ready +\| 476$/m)
  standIn.is = 'wrong'
  expect(await command('cluster', 'check')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('GET /v1/info answered 503') as unknown,
  })
  standIn.is = 'ready'
})

it('a caller without the key of the cluster puts no cluster into a state', async () => {
  const body = JSON.stringify({ state: 'INACTIVE', by: 'eve' })
  for (const { url } of [writer, other])
    expect((await raw(`${url}/v1/cluster/stand-in/state`, { method: 'PUT', body })).status).toBe(401)
  expect(await clusterAt(writer, 'stand-in')).toMatchObject({ state: 'ACTIVE' })
})

it('a broken file changes nothing, and is reported, until it is mended', async () => {
  const isBroken = async (broken: 0 | 1): Promise<boolean> =>
    (await raw(`${writer.url}/metrics`)).text.includes(`quipu_files_broken{file="clusters"} ${broken}`)
  writeFile('third', '{\n  "url": "http://127.0.0.1:9",\n  "gruop": "big"\n}')
  await waitUntil('it is reported', () => isBroken(1))
  expect((await raw(`${writer.url}/v1/cluster`)).json).toHaveLength(2)
  writeFile('third', { url: 'http://127.0.0.1:9', group: 'big' })
  await isNow('third', 'ACTIVE UNHEALTHY')
  expect(await isBroken(0)).toBe(true)
  // The reason is in the event, which is recorded a moment after the health is known.
  const reasonOf = async (): Promise<string> => String((await clusterAt(writer, 'third')).reason)
  await waitUntil('its reason is recorded', async () => /^no_answer: .*ECONNREFUSED/.test(await reasonOf()))
  rmSync(join(files, 'third.json'))
  await waitUntil('it is gone', async () => (await raw(`${writer.url}/v1/cluster/third`)).status === 404)
  await waitUntil('its end is recorded', async () => (await typesOf('third')).at(-1) === 'gone')
})

it('the metrics have the health, the state and the checks of each cluster', async () => {
  const { text } = await raw(`${writer.url}/metrics`)
  for (const line of [
    'quipu_cluster_health{cluster="stand-in",health="HEALTHY"} 1',
    'quipu_cluster_health{cluster="stand-in",health="UNHEALTHY"} 0',
    'quipu_cluster_state{cluster="quipu-b",state="DRAINING"} 1',
    'quipu_clusters_open{group="small"} 1',
    'quipu_cluster_running{cluster="quipu-b"} 0',
    'quipu_cluster_waiting{group="big"} 0',
  ])
    expect(text).toContain(line)
  expect(text).toMatch(/^quipu_cluster_checks_total\{cluster="stand-in",result="ready"\} [1-9]/m)
  expect((await raw(`${other.url}/metrics`)).text).not.toMatch(/^quipu_cluster_health\{/m)
})

it('the next writer knows states and health from the log, and sees when a cluster goes and comes back', async () => {
  const before = await eventsOf('quipu-b')
  await writer.kill()
  await waitUntil('the other one writes', () => writes(other), 120_000)
  const dead = writer
  ;[writer, other] = [other, dead]
  await isNow('quipu-b', 'DRAINING HEALTHY')
  expect(await clusterAt(writer, 'quipu-b')).toMatchObject({ reason: 'an upgrade', by: 'kim' })
  expect(await eventsOf('quipu-b')).toEqual(before)
  expect((await change('activate', 'quipu-b')).code).toBe(0)
  behind.signal('SIGTERM')
  await behind.exit
  await isNow('quipu-b', 'ACTIVE UNHEALTHY')
  behind = startBehind()
  await isNow('quipu-b', 'ACTIVE HEALTHY')
  const news = (await eventsOf('quipu-b')).slice(before.length)
  expect(news.map(({ data }) => data['after'])).toEqual(
    expect.arrayContaining(['ACTIVE', 'UNHEALTHY', 'PENDING', 'HEALTHY']),
  )
  await dead.start()
  await waitUntil('it follows', async () => (await raw(`${other.url}/v1/cluster/quipu-b`)).status === 200)
  expect(await command('audit', 'verify', '--data-dir', writer.dataDir)).toMatchObject({ code: 0 })
})
