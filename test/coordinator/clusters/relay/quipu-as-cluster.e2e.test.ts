import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, it } from 'vitest'
import type { RelayTarget } from '../../../../src/coordinator/clusters/relay/relay-port.ts'
import { startFaultProxy, type FaultProxy } from '../../../support/fault-proxy.ts'
import { serverOfFile } from '../../../support/server-of-file.ts'
import { post, raw, run, trinoHeaders, type RawAnswer, type StatementJson } from '../../../support/statement-client.ts'
import { startTestRelay, type RelayedQueries, type TestRelay } from '../../../support/test-relay.ts'

const cluster = serverOfFile()
let proxy: FaultProxy
let queries: RelayedQueries
let relay: TestRelay
let outcomes: (string | undefined)[]

beforeAll(async () => {
  proxy = await startFaultProxy({ host: '127.0.0.1', port: Number(new URL(cluster.url).port) })
}, 240_000)
afterAll(() => proxy.close())

beforeEach(async () => {
  queries = new Map()
  outcomes = []
  relay = await startTestRelay(targetOf(proxy.port), queries, {
    onOutcome: (_cluster, error) => void outcomes.push(error?.reason),
  })
})
afterEach(() => relay.close())

function targetOf(port: number): RelayTarget {
  return {
    name: 'quipu',
    url: new URL(`http://127.0.0.1:${port}`),
    credentials: async () => ({}),
    tls: undefined,
    clientTimeoutMs: 60_000,
  }
}

/** Follows a statement as Trino's clients do: a page whose connection was cut is asked for again. */
async function followThroughCuts(
  first: RawAnswer,
  before: (answers: number) => void | Promise<void> = () => {},
  serverOf: () => TestRelay = () => relay,
): Promise<{ rows: unknown[][]; last: StatementJson; cuts: number }> {
  let last = first.json
  let cuts = 0
  const rows: unknown[][] = []
  for (let answers = 0; last.nextUri !== undefined; answers++) {
    await before(answers)
    const uri = serverOf().base + new URL(last.nextUri).pathname
    const answer = await raw(uri).catch(() => undefined)
    if (!answer) {
      cuts++
      continue
    }
    if (answer.status !== 200) throw new Error(`GET: ${answer.status} ${answer.text}`)
    last = answer.json
    rows.push(...((last.data ?? []) as unknown[][]))
  }
  return { rows, last, cuts }
}

const LINES = 'SELECT orderkey, linenumber, extendedprice, comment FROM lineitem ORDER BY orderkey, linenumber'

describe('A statement that is relayed to another Quipu', () => {
  it.each([
    'SELECT 1',
    "SELECT 'é', DATE '2026-01-02', ARRAY[1, NULL], MAP(ARRAY['stats'], ARRAY[MAP(ARRAY['],\"stats\":{'], ARRAY[1])])",
    'SELECT * FROM nation ORDER BY nationkey',
    'SELECT * FROM nation WHERE false',
    LINES,
    'SHOW CATALOGS',
    'SELECT nope FROM nation',
    'SELECT 1 / (nationkey - nationkey) FROM nation',
    "SET SESSION query_max_run_time = '10m'",
    'USE tpch.sf1',
    'PREPARE p FROM SELECT ? + 1',
  ])(
    'has the answer of a direct one: %s',
    async (sql) => {
      const direct = await run(cluster.url, sql)
      const relayed = await run(relay.base, sql)
      expect(relayed.rows).toEqual(direct.rows)
      // Whether a failed query shows its columns before depends on when it is asked.
      if (!direct.error) expect(relayed.columns).toEqual(direct.columns)
      expect(relayed.error).toEqual(direct.error)
      expect(relayed.last.json.updateType).toBe(direct.last.json.updateType)
      const changes = ({ headers }: RawAnswer) =>
        Object.entries(headers).filter(([name]) => name.startsWith('x-trino-'))
      expect(changes(relayed.last)).toEqual(changes(direct.last))
      const { port } = new URL(relay.base)
      for (const { id, infoUri, nextUri, partialCancelUri } of relayed.answers) {
        expect(id).toBe(relayed.id)
        for (const uri of [infoUri, nextUri, partialCancelUri])
          if (uri !== undefined) expect(new URL(uri).port).toBe(port)
      }
    },
    120_000,
  )

  it('reaches clients of Presto with their headers and their form of columns', async () => {
    const headers = { 'x-presto-user': 'tester', 'x-presto-catalog': 'tpch', 'x-presto-schema': 'tiny' }
    const found = await run(relay.base, 'SELECT name FROM nation ORDER BY name LIMIT 1', headers)
    expect(found.columns).toEqual([{ name: 'name', type: 'varchar(25)' }])
    expect(found.rows).toEqual([['ALGERIA']])
    const used = await run(relay.base, 'USE tpch.sf1', headers)
    expect([used.last.headers['x-presto-set-schema'], used.last.headers['x-trino-set-schema']]).toEqual([
      'sf1',
      undefined,
    ])
  })

  it('has all its rows once while connections to the cluster are cut and refused', async () => {
    const direct = await run(cluster.url, LINES)
    const { rows, last } = await followThroughCuts(await post(relay.base, LINES), (answers) => {
      setTimeout(() => proxy.cut(), answers % 5)
      if (answers % 3 !== 1) return
      const failures = (): number => outcomes.filter((each) => each === 'unreachable').length
      const before = failures()
      proxy.refuse()
      void expect.poll(failures).toBeGreaterThan(before).finally(proxy.accept)
    })
    proxy.accept()
    expect(last.error).toBeUndefined()
    expect(rows).toEqual(direct.rows)
    expect(outcomes).toContain('unreachable')
  })

  it('continues at another relay, from the address that the client has', async () => {
    const direct = await run(cluster.url, LINES)
    const other = await startTestRelay(targetOf(proxy.port), queries)
    let at = 0
    const { rows } = await followThroughCuts(await post(relay.base, LINES), undefined, () => (at++ % 2 ? other : relay))
    expect(rows).toEqual(direct.rows)
    await other.close()
  })

  it('gives the same bytes for a page that is asked for twice', async () => {
    let { json } = await post(relay.base, LINES)
    while (!json.data) json = (await raw(json.nextUri!)).json
    const [one, two] = [await raw(json.nextUri!), await raw(json.nextUri!)]
    const stable = ({ text }: RawAnswer): string => text.slice(0, text.lastIndexOf('],"stats":{'))
    expect(stable(one).length).toBeGreaterThan(1000)
    expect(stable(two)).toBe(stable(one))
    await relay.cancel(json.id)
  })

  it('ends at the cluster with DELETE, and lives there by HEAD before', async () => {
    const endless = `SELECT count(*) FROM lineitem a CROSS JOIN lineitem b CROSS JOIN lineitem c
      WHERE a.comment || b.comment < c.comment`
    let { json } = await post(relay.base, endless)
    json = (await raw(json.nextUri!)).json
    expect((await raw(json.nextUri!, { method: 'HEAD' })).status).toBe(200)
    const own = [...queries.values()][0]!
    const remoteId = own.uri.split('/')[3]!
    expect(await relay.port.figures(targetOf(proxy.port), remoteId)).toMatchObject({ outputRows: 0 })
    expect((await raw(json.nextUri!, { method: 'DELETE' })).status).toBe(204)
    const info = JSON.parse((await raw(`${cluster.url}/v1/query/${remoteId}`)).text) as Record<string, unknown>
    expect(info['errorCode']).toMatchObject({ name: 'USER_CANCELED' })
  })
})

it('A statement for a cluster that is away is refused by the relay', async () => {
  proxy.refuse()
  expect((await post(relay.base, 'SELECT 1', trinoHeaders)).status).toBe(500)
  proxy.accept()
  expect((await post(relay.base, 'SELECT 1', trinoHeaders)).status).toBe(200)
})
