import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { clusterInfoSchema } from '../../src/protocol/info/schemas/server.ts'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { deferred } from '../../src/shared/deferred.ts'
import { startFakeTrino, type FakeTrino } from '../support/fake-trino.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import {
  CLUSTER_SECRET,
  rolesOf,
  startStandbyCluster,
  type ClusterNode,
  type StandbyCluster,
} from '../support/standby-cluster.ts'
import { follow, post, raw, run, trinoHeaders, type Ran, type StatementJson } from '../support/statement-client.ts'

/*
 * Situations that operators of gateways in front of Trino report. docs/gateway-scenarios.md lists all of them, with
 * the test of each. Two coordinators share a log; the clusters are servers with Trino's protocol in this process.
 */

const folder = temporaryFolder()
const files = join(folder.path, 'clusters')
const rules = join(folder.path, 'rules.json')
/** Accepts connections and never answers. */
let mute: Server
/** `a` and `b` are alike; `solo` runs one statement at a time; `cold` is the only cluster of its group. */
let fakes: Record<'a' | 'b' | 'solo' | 'cold', FakeTrino>
let gateways: StandbyCluster
let writer: ClusterNode
let follower: ClusterNode

const CATALOGS = { a: ['pair'], b: ['pair'], solo: ['solo'], cold: ['cold'] } as const
const PASSWORD = 'the password of the gateway'

function describeCluster(name: string, content: object): void {
  writeFileSync(join(files, `${name}.json`), JSON.stringify(content), { mode: 0o644 })
}

beforeAll(async () => {
  mkdirSync(files, { mode: 0o755 })
  writeFileSync(join(folder.path, 'password'), PASSWORD, { mode: 0o644 })
  const [a, b, solo, cold] = await Promise.all(Array.from({ length: 4 }, startFakeTrino))
  fakes = { a: a!, b: b!, solo: solo!, cold: cold! }
  mute = createServer(() => {})
  await new Promise<void>((resolve) => void mute.listen(0, '127.0.0.1', () => resolve()))
  for (const name of ['a', 'b', 'solo', 'cold'] as const)
    describeCluster(name, {
      url: fakes[name].url,
      group: CATALOGS[name][0],
      catalogs: CATALOGS[name],
      ...(name === 'solo'
        ? { maxRunning: 1, authentication: { type: 'password', user: 'gateway', passwordFile: '../password' } }
        : {}),
    })
  const { port } = mute.address() as AddressInfo
  for (let index = 0; index < 20; index++)
    describeCluster(`mute-${index}`, { url: `http://127.0.0.1:${port}`, group: 'mute', catalogs: ['mute'] })
  writeFileSync(
    rules,
    JSON.stringify({
      rules: [{ name: 'newer', match: { source: 'newer' }, route: { group: 'pair' }, unchecked: true }],
    }),
    { mode: 0o644 },
  )
  gateways = await startStandbyCluster({
    QUIPU_CLUSTERS_DIR: files,
    QUIPU_ROUTING_RULES_FILE: rules,
    QUIPU_CLUSTERS_BEAT_MS: '500ms',
    QUIPU_WORKER_WAIT_MS: '8s',
    QUIPU_CLIENT_ABSENT_MS: '8s',
    QUIPU_HEADER_BYTES: '256kB',
  })
  ;({ writer, other: follower } = await rolesOf(gateways))
}, 240_000)

afterAll(async () => {
  await gateways.stop()
  for (const fake of Object.values(fakes)) await fake.close()
  mute.closeAllConnections()
  mute.close()
  await folder.remove()
})

beforeEach(async () => {
  for (const fake of Object.values(fakes)) {
    fake.is = 'ready'
    fake.resultOf = () => ({})
    fake.before = () => {}
  }
  await areOpen('a', 'b', 'solo', 'cold')
})

afterEach(async () => {
  await waitUntil('no statement has a slot', async () => (await clusters()).every(({ running }) => running === 0))
})

async function clusters(at: ClusterNode = writer) {
  const { text } = await raw(`${at.url}/v1/cluster`)
  return clusterInfoSchema.array().parse(JSON.parse(text))
}

const clusterAt = async (name: string, at?: ClusterNode) => (await clusters(at)).find((one) => one.name === name)!

async function areOpen(...names: readonly (keyof typeof fakes)[]): Promise<void> {
  for (const name of names)
    await waitUntil(`${name} is open`, async () => {
      const { state, health } = await clusterAt(name)
      return state === 'ACTIVE' && health === 'HEALTHY'
    })
}

async function setState(name: string, state: 'ACTIVE' | 'DRAINING' | 'INACTIVE', at = writer): Promise<void> {
  const answer = await raw(`${at.url}/v1/cluster/${name}/state`, {
    method: 'PUT',
    body: JSON.stringify({ state, reason: 'a test', by: 'kim' }),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${internalBearer(CLUSTER_SECRET)}` },
  })
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
}

/** The statements with this text at clusters: those that were posted there. */
function postedAs(sql: string, at: readonly FakeTrino[] = Object.values(fakes)) {
  return at.flatMap(({ statements }) => statements.filter((statement) => statement.sql === sql))
}

let marks = 0
/** A statement over a catalog that no other test uses. */
const readOf = (catalog: string): string => `SELECT * FROM ${catalog}.s.t WHERE mark = ${++marks}`
const insertInto = (catalog: string): string => `INSERT INTO ${catalog}.s.t SELECT ${++marks}`

/** Polls until the condition holds. @returns the answer for which it holds */
async function pollUntil(first: StatementJson, condition: (json: StatementJson) => boolean): Promise<StatementJson> {
  let json = first
  while (!condition(json)) {
    if (json.nextUri === undefined) throw new Error(`ended: ${JSON.stringify(json)}`)
    ;({ json } = await raw(json.nextUri))
  }
  return json
}

const rest = async (json: StatementJson): Promise<Ran> => follow({ status: 200, headers: {}, text: '', json })
const hasRows = ({ data }: StatementJson): boolean => (data?.length ?? 0) > 0

describe('A drain', () => {
  it('lets half-fetched and running statements end at the cluster, and starts none there', async () => {
    for (const fake of [fakes.a, fakes.b]) fake.resultOf = () => ({ pages: 3 })
    const [half, begun] = [readOf('pair'), readOf('pair')]
    const halfFetched = await pollUntil((await post(writer.url, half)).json, hasRows)
    const { json: running } = await raw((await post(writer.url, begun)).json.nextUri!)
    const at = postedAs(half, [fakes.a]).length > 0 ? 'a' : 'b'
    await setState(at, 'DRAINING', follower)
    const later = Array.from({ length: 3 }, () => readOf('pair'))
    // All at once: the clients of the other two must not be absent for long.
    const ran = await Promise.all(later.map((sql) => run(writer.url, sql)))
    for (const { rows } of ran) expect(rows).toEqual([[1], [2], [3]])
    expect(later.flatMap((sql) => postedAs(sql, [fakes[at]]))).toEqual([])
    expect((await rest(halfFetched)).rows).toEqual([[2], [3]])
    expect((await rest(running)).error).toBeUndefined()
    expect(postedAs(half, [fakes[at]])).toMatchObject([{ state: 'FINISHED' }])
    await setState(at, 'ACTIVE')
  })

  it('holds statements of the only cluster, and they run as soon as any coordinator activates it', async () => {
    await setState('cold', 'INACTIVE')
    const sql = readOf('cold')
    const { json } = await raw((await post(follower.url, sql)).json.nextUri!)
    expect(json).toMatchObject({ nextUri: expect.any(String) as unknown })
    expect(postedAs(sql)).toEqual([])
    await setState('cold', 'ACTIVE', follower)
    expect((await rest(json)).rows).toEqual([[1]])
  })
})

describe('A nextUri', () => {
  it('works at another coordinator at once after the POST, and for each page', async () => {
    fakes.solo.resultOf = () => ({ pages: 4 })
    let { json } = await post(writer.url, readOf('solo'))
    const rows: unknown[] = []
    for (let polls = 0; json.nextUri !== undefined; polls++) {
      const base = polls % 2 === 0 ? follower.url : writer.url
      ;({ json } = await raw(base + new URL(json.nextUri).pathname))
      rows.push(...(json.data ?? []))
    }
    expect(json.error).toBeUndefined()
    expect(rows).toEqual([[1], [2], [3], [4]])
  })
})

describe('The health of clusters', () => {
  it('does not change while one of three checks of a cluster fails', async () => {
    const events = async () => (await raw(`${writer.url}/v1/cluster/a/events`)).text
    const before = await events()
    for (let round = 0; round < 3; round++) {
      const { checks } = fakes.a
      fakes.a.is = 'wrong'
      await waitUntil('a check fails', () => fakes.a.checks > checks)
      fakes.a.is = 'ready'
      await waitUntil('two checks succeed', () => fakes.a.checks > checks + 2)
    }
    expect(await events()).toBe(before)
  })

  it('is known beside 20 clusters that do not answer', async () => {
    const all = await clusters()
    expect(all.filter(({ health }) => health === 'HEALTHY').map(({ name }) => name)).toEqual(['a', 'b', 'cold', 'solo'])
    expect(all.filter(({ group }) => group === 'mute')).toHaveLength(20)
    const { checks } = fakes.a
    await waitUntil('it is checked again and again', () => fakes.a.checks > checks + 2)
  })

  it('keeps statements from a cluster that starts, whether its check or its POST says so', async () => {
    fakes.a.is = 'starting'
    const sqls = Array.from({ length: 4 }, () => readOf('pair'))
    for (const sql of sqls) expect((await run(writer.url, sql)).rows).toEqual([[1]])
    expect(sqls.flatMap((sql) => postedAs(sql, [fakes.b]))).toHaveLength(4)
    await waitUntil('it is PENDING', async () => (await clusterAt('a')).health === 'PENDING')
    const sql = readOf('pair')
    expect((await run(writer.url, sql)).rows).toEqual([[1]])
    expect(postedAs(sql, [fakes.a])).toEqual([])
  })
})

describe('A restart of a cluster under the same address', () => {
  it('lets a statement without rows run at another cluster', async () => {
    const restarted = deferred()
    let isBefore = true
    for (const fake of [fakes.a, fakes.b]) {
      fake.resultOf = () => ({ pages: 2 })
      fake.before = async ({ url }) => {
        if (!isBefore || !url?.includes('/executing/')) return
        await restarted.promise
        return 'cut'
      }
    }
    const sql = readOf('pair')
    const first = await pollUntil((await post(writer.url, sql)).json, () => postedAs(sql)[0]?.starts === 1)
    ;(postedAs(sql, [fakes.a]).length > 0 ? fakes.a : fakes.b).restart()
    isBefore = false
    restarted.resolve()
    expect((await rest(first)).rows).toEqual([[1], [2]])
    expect(postedAs(sql).map(({ starts }) => starts)).toEqual([1, 1])
  })

  it('fails a statement with rows, and a change, and names the cluster', async () => {
    fakes.solo.resultOf = () => ({ pages: 3 })
    const half = await pollUntil((await post(writer.url, readOf('solo'))).json, hasRows)
    fakes.solo.restart()
    const { error } = await rest(half)
    expect(error).toMatchObject({ errorName: 'REMOTE_HOST_GONE' })
    expect(error!.message).toMatch(/^Cluster solo: it does not know the query\. A part of the result had been sent/)
    const sql = insertInto('solo')
    const begun = await pollUntil((await post(writer.url, sql)).json, () => postedAs(sql)[0]?.starts === 1)
    fakes.solo.restart()
    expect((await rest(begun)).error!.message).toMatch(/^Cluster solo: .*not known whether/)
    expect(postedAs(sql)).toHaveLength(1)
  })
})

describe('A statement', () => {
  it('is routed by headers if only a newer Trino can parse it', async () => {
    const sql = `SELECT * FROM pair.s.t !! NEWER SYNTAX ${++marks}`
    const headers = { ...trinoHeaders, 'x-trino-source': 'newer' }
    expect((await run(writer.url, sql, headers)).rows).toEqual([[1]])
    expect(postedAs(sql)).toHaveLength(1)
    expect((await run(writer.url, sql)).error).toMatchObject({ errorName: 'SYNTAX_ERROR' })
  })

  it('has its rows in its answers if its client asks for spooled results', async () => {
    const sql = readOf('pair')
    const headers = { ...trinoHeaders, 'x-trino-query-data-encoding': 'json+zstd,json' }
    const { rows, answers } = await run(writer.url, sql, headers)
    expect(rows).toEqual([[1]])
    expect(answers.filter((answer) => 'encoding' in answer)).toEqual([])
    const [posted] = postedAs(sql)
    expect(Object.keys(posted!.headers)).not.toContain('x-trino-query-data-encoding')
  })

  it.each([8, 64, 200])('finds its prepared text of %d kB in a header, at each cluster', async (kilobytes) => {
    const prepared = `SELECT '${'x'.repeat(kilobytes * 1000)}' FROM pair.s.t`
    const header = `p=${encodeURIComponent(prepared)}`
    const headers = { ...trinoHeaders, 'x-trino-prepared-statement': header, 'x-trino-session': 'join_limit=3' }
    const texts = []
    for (const at of ['a', 'b'] as const) {
      const other = at === 'a' ? 'b' : 'a'
      await setState(other, 'INACTIVE')
      const before = fakes[at].statements.length
      const ran = await run(writer.url, 'EXECUTE p', headers)
      expect(ran.error).toBeUndefined()
      texts.push(fakes[at].statements.slice(before).map((statement) => statement.headers['x-trino-prepared-statement']))
      await setState(other, 'ACTIVE')
    }
    expect(texts.map((one) => one.map((text) => decodeURIComponent(String(text))))).toEqual([
      [`p=${prepared}`],
      [`p=${prepared}`],
    ])
  })

  it.each([
    ['chunked', 100, false],
    ['with a length', 20, true],
  ] as const)('has a large answer whole: %s, %d MB', { timeout: 240_000 }, async (_how, megabytes, hasLength) => {
    const row = `["${'x'.repeat(1_000_000)}"]`
    fakes.solo.resultOf = () => ({
      hasLength,
      *rows() {
        yield '['
        for (let index = 0; index < megabytes; index++) yield index === 0 ? row : `,${row}`
        yield ']'
      },
    })
    const json = await pollUntil((await post(writer.url, readOf('solo'))).json, hasRows)
    expect(json.data).toHaveLength(megabytes)
    expect(new Set(json.data!.map(([text]) => (text as string).length))).toEqual(new Set([1_000_000]))
    expect((await raw(json.nextUri!, { method: 'HEAD' })).text).toBe('')
    expect((await rest(json)).error).toBeUndefined()
  })

  it('has columns of types that this server does not know', async () => {
    const columns = [{ name: 'shape', type: 'hyperloglog9(geo)' }]
    fakes.solo.resultOf = () => ({ columns, rows: () => ['[["0x"]]'] })
    const ran = await run(writer.url, readOf('solo'))
    expect(ran.columns).toEqual(columns)
    expect(ran.rows).toEqual([['0x']])
  })
})

describe('The headers of a client', () => {
  it('never replace the credentials of the gateway, and its own ones do not reach the cluster', async () => {
    const sql = readOf('solo')
    const ran = await run(writer.url, sql, {
      ...trinoHeaders,
      'x-trino-extra-credential': 'token=secret',
      'proxy-authorization': 'Basic Y2xpZW50OnNlY3JldA==',
      cookie: 'session=secret',
    })
    expect(ran.error).toBeUndefined()
    const { headers } = postedAs(sql)[0]!
    expect(headers.authorization).toBe(`Basic ${Buffer.from(`gateway:${PASSWORD}`).toString('base64')}`)
    expect(headers['x-trino-user']).toBe('tester')
    const names = Object.keys(headers)
    expect(names.filter((name) => /forwarded|cookie|proxy|extra-credential|x-real-ip|^via$/.test(name))).toEqual([])
    expect(JSON.stringify(headers)).not.toContain('secret')
  })
})

describe('A canceled statement', () => {
  const cancels = {
    'DELETE of its nextUri': async ({ nextUri }: StatementJson) =>
      void expect((await raw(nextUri!, { method: 'DELETE' })).status).toBe(204),
    kill_query: async ({ id }: StatementJson) =>
      void expect((await run(writer.url, `CALL system.runtime.kill_query('${id}', 'a test')`)).error).toBeUndefined(),
    'DELETE of its resource': async ({ id }: StatementJson) =>
      void expect((await raw(`${writer.url}/v1/query/${id}`, { method: 'DELETE', headers: trinoHeaders })).status).toBe(
        204,
      ),
  }

  it.each(Object.keys(cancels) as (keyof typeof cancels)[])(
    'has ended at its cluster before its slot is given on: %s',
    async (how) => {
      fakes.solo.resultOf = () => ({ pages: 100 })
      const [first, second] = [readOf('solo'), readOf('solo')]
      const mayEnd = deferred()
      const asked = deferred()
      fakes.solo.before = async ({ method }, sql) => {
        if (method !== 'DELETE' || sql !== first) return
        asked.resolve()
        await mayEnd.promise
      }
      const running = await pollUntil((await post(writer.url, first)).json, hasRows)
      const waiting = raw((await post(writer.url, second)).json.nextUri!)
      await waitUntil('it waits', async () => (await clusterAt('solo')).waiting === 1)
      await cancels[how](running)
      await asked.promise
      const { json } = await waiting
      expect(postedAs(second)).toEqual([])
      expect(await clusterAt('solo')).toMatchObject({ running: 1, waiting: 1 })
      mayEnd.resolve()
      expect((await rest(json)).rows).toHaveLength(100)
      expect(postedAs(first)).toMatchObject([{ state: 'CANCELED' }])
    },
  )
})

describe('A change', () => {
  const last = { updateType: 'INSERT', updateCount: 1 }

  it('starts once if the client repeats its POST', async () => {
    fakes.solo.resultOf = () => ({ pages: 0, last })
    const sql = insertInto('solo')
    await post(writer.url, sql)
    const ran = await run(writer.url, sql)
    expect(ran.error).toBeUndefined()
    expect(ran.answers.at(-1)).toMatchObject(last)
    const starts = (): number => postedAs(sql).reduce((sum, one) => sum + one.starts, 0)
    expect(starts()).toBe(1)
    for (const { queryId } of await openQueries()) await raw(`${writer.url}/v1/query/${queryId}`, { method: 'DELETE' })
    expect(starts()).toBe(1)
  })

  it('starts once if the answers of its cluster to POST and GET are lost', async () => {
    for (const fake of [fakes.a, fakes.b]) {
      const lost = new Set<string>()
      fake.resultOf = () => ({ pages: 0, last })
      fake.before = ({ method, url = '' }) => {
        const key = method === 'POST' ? 'POST' : url
        if (lost.has(key)) return undefined
        lost.add(key)
        return 'cut'
      }
    }
    const sql = insertInto('pair')
    const ran = await run(writer.url, sql)
    expect(ran.error).toBeUndefined()
    expect(ran.answers.at(-1)).toMatchObject(last)
    expect(postedAs(sql).length).toBeGreaterThan(1)
    expect(postedAs(sql).reduce((sum, one) => sum + one.starts, 0)).toBe(1)
  })
})

async function openQueries() {
  const { text } = await raw(`${writer.url}/v1/query?state=QUEUED,PLANNING,STARTING,RUNNING`, { headers: trinoHeaders })
  return JSON.parse(text) as { queryId: string }[]
}

describe('A client', () => {
  it('gets answers while its cluster gives none', async () => {
    const mayAnswer = deferred()
    const sql = readOf('solo')
    fakes.solo.before = async ({ method, url = '' }) => {
      if (method === 'GET' && url.includes('/executing/')) await mayAnswer.promise
    }
    const begun = await pollUntil((await post(writer.url, sql)).json, () => postedAs(sql)[0]?.starts === 1)
    let json = begun
    for (let polls = 0; polls < 3; polls++) {
      ;({ json } = await raw(json.nextUri!))
      expect(json.nextUri).toBeDefined()
    }
    mayAnswer.resolve()
    expect((await rest(json)).rows).toEqual([[1]])
  })

  it('does not wait for other users behind the same address', async () => {
    const order: string[] = []
    fakes.solo.resultOf = (sql) => (order.push(sql), {})
    const mayStart = deferred()
    fakes.solo.before = async ({ method }) => {
      if (method === 'GET') await mayStart.promise
    }
    const as = (user: string) => ({ ...trinoHeaders, 'x-trino-user': user })
    const runs = []
    const sqls = Array.from({ length: 6 }, () => readOf('solo'))
    for (const [index, sql] of sqls.entries()) {
      runs.push(run(writer.url, sql, as(index < 5 ? 'many' : 'one')))
      const waiting = index
      await waitUntil('it waits', async () => (await clusterAt('solo')).waiting === waiting)
    }
    mayStart.resolve()
    for (const { error } of await Promise.all(runs)) expect(error).toBeUndefined()
    const started = [...new Set(order)]
    expect(started.indexOf(sqls[5]!)).toBeLessThanOrEqual(2)
  })

  it('can move its session to another cluster, but no transaction', async () => {
    const started = await run(writer.url, 'START TRANSACTION')
    const transaction = String(started.last.headers['x-trino-started-transaction-id'])
    const within = { ...trinoHeaders, 'x-trino-transaction-id': transaction }
    expect((await run(writer.url, readOf('pair'), within)).error).toMatchObject({ errorName: 'NOT_SUPPORTED' })
    const session = { ...trinoHeaders, 'x-trino-catalog': 'pair', 'x-trino-schema': 's', 'x-trino-session': 'a=b' }
    for (const at of ['a', 'b'] as const) {
      const other = at === 'a' ? 'b' : 'a'
      await setState(other, 'INACTIVE')
      const sql = `SELECT * FROM t WHERE mark = ${++marks}`
      await run(writer.url, sql, session)
      expect(postedAs(sql, [fakes[at]])).toMatchObject([
        { headers: { 'x-trino-catalog': 'pair', 'x-trino-schema': 's', 'x-trino-session': 'a=b' } },
      ])
      await setState(other, 'ACTIVE')
    }
  })
})

describe('While no cluster of a group is there', () => {
  it('statements wait, fail after their time, and run once a cluster is there', { timeout: 240_000 }, async () => {
    fakes.cold.is = 'dead'
    await waitUntil('it is UNHEALTHY', async () => (await clusterAt('cold')).health === 'UNHEALTHY')
    const left = leaveQueue()
    const failing = await run(writer.url, readOf('cold'))
    expect(failing.error).toMatchObject({ errorName: 'NO_NODES_AVAILABLE' })
    expect(failing.error!.message).toBe('No cluster of group cold takes statements: cold is UNHEALTHY')
    const { json } = await raw((await post(writer.url, readOf('cold'))).json.nextUri!)
    await waitUntil('it waits', async () => (await clusterAt('cold')).waiting === 1)
    fakes.cold.is = 'ready'
    expect((await rest(json)).rows).toEqual([[1]])
    expect(await left).toBe('ABANDONED_QUERY')
  })

  /** Leaves a statement that waits for a slot. @returns the name of its error, once it no longer waits */
  async function leaveQueue(): Promise<string> {
    fakes.solo.resultOf = () => ({ pages: 1_000_000 })
    let { json } = await post(writer.url, readOf('solo'))
    const sql = readOf('solo')
    const poll = async (): Promise<void> => void ({ json } = await raw(json.nextUri!))
    while (!hasRows(json)) await poll()
    const { id, nextUri } = (await post(writer.url, sql)).json
    await raw(nextUri!)
    const isWaiting = async (count: 0 | 1): Promise<boolean> => {
      await poll()
      return (await clusterAt('solo')).waiting === count
    }
    await waitUntil('it waits', () => isWaiting(1))
    await waitUntil('it has left the queue', () => isWaiting(0))
    await raw(json.nextUri!, { method: 'DELETE' })
    expect(postedAs(sql)).toEqual([])
    const { text } = await raw(`${writer.url}/v1/query/${id}`, { headers: trinoHeaders })
    return (JSON.parse(text) as { errorCode: { name: string } }).errorCode.name
  }
})
