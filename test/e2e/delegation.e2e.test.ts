import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { processesOf, waitUntil } from '../support/quipu-process.ts'
import { catalogsOf } from '../support/server-catalogs.ts'
import { serverOfFile, type ServerOfFile } from '../support/server-of-file.ts'
import { post, raw, run, trinoHeaders } from '../support/statement-client.ts'

/** Makes the folder of a lake catalog. */
function lakeIn({ folder }: ServerOfFile, name: string): string {
  const path = join(folder, name)
  mkdirSync(path, { recursive: true, mode: 0o777 })
  chmodSync(path, 0o777)
  return path
}

const cluster = serverOfFile('error', (own) =>
  catalogsOf(own, {
    tpch: { connector: 'tpch' },
    far: { connector: 'tpch' },
    warehouse: { connector: 'memory' },
    lake: { connector: 'lake', location: lakeIn(own, 'lake') },
    other: { connector: 'lake', location: lakeIn(own, 'other') },
  }),
)
const gateway = serverOfFile('error', (own) => {
  const clusters = join(own.folder, 'clusters')
  mkdirSync(clusters)
  writeFileSync(
    join(clusters, 'trino-a.json'),
    JSON.stringify({
      url: cluster.url,
      group: 'big',
      catalogs: ['far', 'warehouse'],
      mirrors: ['tpch', 'lake', 'other'],
    }),
    { mode: 0o644 },
  )
  const rules = join(own.folder, 'routing.json')
  writeFileSync(
    rules,
    JSON.stringify({
      rules: [
        { name: 'etl', match: { source: 'etl' }, route: { group: 'big' } },
        { name: 'no', match: { source: 'blocked' }, route: { reject: 'Ask the platform team' } },
        {
          name: 'large',
          match: { queryType: ['SELECT'], catalogs: ['lake'], bytesOver: '100kB' },
          route: { group: 'big' },
        },
        { name: 'all of other', match: { catalogs: ['other'], bytesOver: '0B' }, route: { cluster: 'trino-a' } },
      ],
    }),
    { mode: 0o644 },
  )
  return {
    ...catalogsOf(own, {
      tpch: { connector: 'tpch' },
      lake: { connector: 'lake', location: lakeIn(cluster, 'lake') },
      other: { connector: 'lake', location: lakeIn(own, 'other') },
    }),
    QUIPU_CLUSTERS_DIR: clusters,
    QUIPU_ROUTING_RULES_FILE: rules,
    QUIPU_CLUSTERS_BEAT_MS: '200',
  }
})

const queryResource = z.looseObject({ state: z.string() })
const eventsOf = async (id: string) =>
  z
    .array(z.object({ type: z.string(), data: z.record(z.string(), z.unknown()) }))
    .parse(JSON.parse((await raw(`${gateway.url}/v1/query/${id}/events`)).text))

async function untilHealthy(): Promise<void> {
  await waitUntil('the cluster is healthy', async () =>
    (await raw(`${gateway.url}/v1/cluster`)).text.includes('"HEALTHY"'),
  )
}

describe('A statement over a catalog of a cluster', () => {
  it.each([
    'SELECT count(*), sum(nationkey) FROM far.tiny.nation',
    'SELECT * FROM far.tiny.nation ORDER BY nationkey',
    'SELECT * FROM far.tiny.nation WHERE false',
    'SELECT orderkey, linenumber, extendedprice, comment FROM far.tiny.lineitem ORDER BY orderkey, linenumber',
    'SHOW TABLES FROM far.tiny',
    'DESCRIBE far.tiny.nation',
  ])('has the rows and columns that the cluster gives: %s', async (sql) => {
    await untilHealthy()
    const direct = await run(cluster.url, sql)
    const through = await run(gateway.url, sql)
    expect(direct.error).toBeUndefined()
    expect(through.error).toBeUndefined()
    expect(through.rows).toEqual(direct.rows)
    const columns = (ran: typeof direct) => ran.answers.find((answer) => answer.columns?.length)?.columns
    expect(columns(through)).toEqual(columns(direct))
  })

  it('is recorded with its route, and its task names the cluster', async () => {
    await untilHealthy()
    // A query waits for the columns of its tables for 2 s only. This statement waits until they are there.
    expect((await run(gateway.url, 'DESCRIBE far.tiny.nation')).error).toBeUndefined()
    const { id, error } = await run(gateway.url, 'SELECT count(*) FROM far.tiny.nation')
    expect(error).toBeUndefined()
    const events = await eventsOf(id)
    const dataOf = (type: string) => events.find((event) => event.type.startsWith(`quipu.${type}.`))?.data
    expect(dataOf('query.planned')).toMatchObject({
      route: 'delegated',
      routed: { to: 'group', name: 'big', grade: 'analysed', readOnly: true, skipped: [] },
      columns: [{ name: '_col0', type: 'bigint' }],
      tables: [{ catalog: 'far', schema: 'tiny', table: 'nation' }],
    })
    const created = z
      .object({ remote: z.object({ cluster: z.string(), queryId: z.string() }) })
      .parse(dataOf('task.created'))
    expect(created.remote.cluster).toBe('trino-a')
    expect(JSON.stringify(events)).not.toContain('/v1/statement/')
    const there = queryResource.parse(JSON.parse((await raw(`${cluster.url}/v1/query/${created.remote.queryId}`)).text))
    expect(there.state).toBe('FINISHED')
    const here = await raw(`${gateway.url}/v1/query/${id}`)
    expect(queryResource.parse(JSON.parse(here.text)).state).toBe('FINISHED')
  })

  it('fails with the error of the cluster and its place in the text', async () => {
    await untilHealthy()
    const sql = 'SELECT nope FROM far.tiny.nation'
    const direct = await run(cluster.url, sql)
    const through = await run(gateway.url, sql)
    expect(through.error).toMatchObject({
      errorName: direct.error!.errorName,
      errorCode: direct.error!.errorCode,
      errorType: direct.error!.errorType,
      message: direct.error!.message,
      errorLocation: direct.error!.errorLocation,
    })
  })

  it('changes tables once, and gives the count and the kind of the change', async () => {
    await untilHealthy()
    const made = await run(gateway.url, 'CREATE TABLE warehouse.default.numbers AS SELECT 1 AS a')
    expect(made.error).toBeUndefined()
    const inserted = await run(gateway.url, 'INSERT INTO warehouse.default.numbers VALUES 2, 3')
    expect(inserted.error).toBeUndefined()
    expect(inserted.answers.at(-1)).toMatchObject({ updateType: 'INSERT', updateCount: 2 })
    expect((await run(gateway.url, 'SELECT a FROM warehouse.default.numbers ORDER BY a')).rows).toEqual([[1], [2], [3]])
    const described = async () => {
      const { rows, error } = await run(gateway.url, 'DESCRIBE warehouse.default.numbers')
      return error?.errorName ?? rows.map(([name]) => name)
    }
    // This server keeps names and columns of clusters, until it sends a change of them itself.
    expect(await described()).toEqual(['a'])
    expect((await run(gateway.url, 'DROP TABLE warehouse.default.numbers')).error).toBeUndefined()
    expect(await described()).toBe('TABLE_NOT_FOUND')
    expect((await run(gateway.url, 'CREATE TABLE warehouse.default.numbers (b bigint)')).error).toBeUndefined()
    expect(await described()).toEqual(['b'])
  })

  it('sets the session of the client as the cluster says', async () => {
    await untilHealthy()
    const used = await run(gateway.url, 'USE far.tiny')
    expect(used.error).toBeUndefined()
    const headers = { ...trinoHeaders, 'x-trino-catalog': 'far', 'x-trino-schema': 'tiny' }
    expect((await run(gateway.url, 'SELECT count(*) FROM nation', headers)).rows).toEqual([[25]])
    const prepared = {
      ...headers,
      'x-trino-prepared-statement': `p=${encodeURIComponent('SELECT ? + count(*) FROM nation')}`,
    }
    expect((await run(gateway.url, 'EXECUTE p USING 5', prepared)).rows).toEqual([[30]])
  })

  it('is canceled at the cluster too', async () => {
    await untilHealthy()
    const first = await post(
      gateway.url,
      'SELECT count(*) FROM far.tiny.lineitem a, far.tiny.lineitem b WHERE a.comment < b.comment',
    )
    let { json } = first
    let remoteId: string | undefined
    await waitUntil('it runs at the cluster', async () => {
      json = (await raw(json.nextUri!)).json
      const task = (await eventsOf(first.json.id)).find(({ type }) => type.startsWith('quipu.task.created.'))
      remoteId = z.object({ remote: z.object({ queryId: z.string() }) }).safeParse(task?.data).data?.remote.queryId
      return remoteId !== undefined && json.stats.state === 'RUNNING'
    })
    expect((await raw(json.nextUri!, { method: 'DELETE' })).status).toBe(204)
    await waitUntil('it has ended there', async () => {
      const there = JSON.parse((await raw(`${cluster.url}/v1/query/${remoteId}`)).text) as { state: string }
      return there.state === 'FAILED'
    })
  })
})

describe('A routing rule', () => {
  it('sends a statement over a mirrored catalog to the cluster', async () => {
    await untilHealthy()
    const sql = 'SELECT count(*) FROM tpch.tiny.orders'
    const routeOf = async (source: string) => {
      const ran = await run(gateway.url, sql, { ...trinoHeaders, 'x-trino-source': source })
      expect(ran.rows).toEqual([[15_000]])
      const planned = (await eventsOf(ran.id)).find(({ type }) => type.startsWith('quipu.query.planned.'))
      return planned?.data
    }
    expect(await routeOf('etl')).toMatchObject({ route: 'delegated', routed: { rule: 'etl' } })
    expect(await routeOf('other')).toMatchObject({ route: 'local' })
  })

  it('rejects a statement in its own words', async () => {
    const ran = await run(gateway.url, 'SELECT 1', { ...trinoHeaders, 'x-trino-source': 'blocked' })
    expect(ran.error).toMatchObject({ errorName: 'QUERY_REJECTED', message: 'Ask the platform team' })
  })
})

const routeSchema = z.looseObject({ plan: z.string() })
/** The route of a query in its resource. */
const routeOf = async (id: string) =>
  z.object({ route: routeSchema }).parse(JSON.parse((await raw(`${gateway.url}/v1/query/${id}`)).text)).route

describe('The route of a query', () => {
  it('is in its resource, in the history and in the text of EXPLAIN', async () => {
    await untilHealthy()
    const headers = { ...trinoHeaders, 'x-trino-source': 'etl' }
    const there = await run(gateway.url, 'SELECT count(*) FROM tpch.tiny.orders', headers)
    const route = await routeOf(there.id)
    expect(route).toMatchObject({
      plan: 'delegated',
      to: 'group',
      name: 'big',
      rule: 'etl',
      grade: 'analysed',
      skipped: [],
      cluster: 'trino-a',
      attempts: 1,
    })
    const here = await run(gateway.url, 'SELECT 1')
    expect(await routeOf(here.id)).toEqual({ plan: 'coordinator', to: 'local', skipped: [] })
    const history = await run(
      gateway.url,
      `SELECT query_id, route, cluster, remote_query_id, routing_rule FROM system.history.queries WHERE query_id IN ('${there.id}', '${here.id}') ORDER BY created`,
    )
    expect(history.rows).toEqual([
      [there.id, 'delegated', 'trino-a', route['remoteQueryId'], 'etl'],
      [here.id, 'coordinator', null, null, null],
    ])
  })

  it('is in the resource of a rejected query', async () => {
    const ran = await run(gateway.url, 'SELECT 1', { ...trinoHeaders, 'x-trino-source': 'blocked' })
    expect(await routeOf(ran.id)).toMatchObject({ to: 'reject', rule: 'no' })
  })

  it.each([
    ['EXPLAIN SELECT count(*) FROM tpch.tiny.orders', 'etl', /^Route: group big, by rule 'etl'\n/],
    ['EXPLAIN ANALYZE SELECT count(*) FROM far.tiny.nation', 'cli', /^Route: group big\n/],
    ['EXPLAIN SELECT count(*) FROM tpch.tiny.orders', 'cli', /^Route: local\n/],
    ['EXPLAIN (TYPE LOGICAL) SELECT 1', 'cli', /^Route: local\n/],
    ['EXPLAIN (FORMAT JSON) SELECT count(*) FROM far.tiny.nation', 'cli', /^\{/],
    ['EXPLAIN (FORMAT JSON) SELECT 1', 'cli', /^\{/],
  ])('is the first line of a plan as text: %s, source %s', async (sql, source, plan) => {
    await untilHealthy()
    const ran = await run(gateway.url, sql, { ...trinoHeaders, 'x-trino-source': source })
    expect(ran.error).toBeUndefined()
    const [[text]] = ran.rows as [[string]]
    expect(text).toMatch(plan)
    const type = ran.answers.find(({ columns }) => columns?.length)?.columns?.[0]?.type
    if (type !== 'varchar') expect(type).toBe(`varchar(${[...text].length})`)
  })
})

describe('A statement over a mirrored table', () => {
  const numbers = 'SELECT count(*), sum(orderkey) FROM lake.shop.items'
  const texts = 'SELECT count(*), max(comment) FROM lake.shop.items'

  it('runs here below the size of a rule, and above it at the cluster, with the same rows', async () => {
    await untilHealthy()
    const made = [
      'CREATE SCHEMA lake.shop',
      'CREATE TABLE lake.shop.items AS SELECT orderkey, comment FROM far.tiny.lineitem WHERE orderkey < 500',
    ]
    for (const sql of made) expect((await run(cluster.url, sql)).error).toBeUndefined()
    const routed = async (sql: string) => {
      const [through, direct] = [await run(gateway.url, sql), await run(cluster.url, sql)]
      expect(through.error).toBeUndefined()
      expect(through.rows).toEqual(direct.rows)
      return routeOf(through.id)
    }
    const small = await routed(texts)
    expect(small).toMatchObject({ plan: 'local', to: 'local', bytes: expect.any(Number) })
    expect(small).not.toHaveProperty('rule')
    const more = 'INSERT INTO lake.shop.items SELECT orderkey, comment FROM far.tiny.lineitem WHERE orderkey >= 500'
    expect((await run(cluster.url, more)).error).toBeUndefined()
    const large = await routed(texts)
    expect(large).toMatchObject({ plan: 'delegated', rule: 'large', cluster: 'trino-a', skipped: [] })
    expect(large['bytes']).toBeGreaterThan(100 * 1024)
    // Only the columns that the statement reads count.
    const narrow = await routed(numbers)
    expect(narrow).toMatchObject({ plan: 'local', to: 'local' })
    expect(narrow['bytes']).toBeLessThan(large['bytes'] as number)
    const explained = await run(gateway.url, `EXPLAIN ${texts}`)
    expect(explained.rows[0]![0]).toMatch(/^Route: group big, by rule 'large', [\d.]+kB\n/)
  })

  it('stays here if the table at the cluster has other columns, and the decision says why', async () => {
    await untilHealthy()
    const make = async (url: string, type: string) => {
      for (const sql of ['CREATE SCHEMA other.s', `CREATE TABLE other.s.t AS SELECT CAST(7 AS ${type}) AS a`])
        expect((await run(url, sql)).error).toBeUndefined()
    }
    await make(cluster.url, 'integer')
    await make(gateway.url, 'bigint')
    const ran = await run(gateway.url, 'SELECT a FROM other.s.t')
    expect(ran.rows).toEqual([[7]])
    expect(await routeOf(ran.id)).toMatchObject({
      plan: 'local',
      skipped: [
        {
          rule: 'all of other',
          why: "table other.s.t differs: column 'a' is bigint here and integer at cluster trino-a",
        },
      ],
    })
  })
})

describe('A coordinator that is killed', () => {
  it('is followed by a coordinator that continues with the delegated result', { timeout: 240_000 }, async () => {
    await untilHealthy()
    const sql = 'SELECT orderkey, linenumber, comment FROM far.tiny.lineitem ORDER BY orderkey, linenumber'
    const direct = await run(cluster.url, sql)
    const first = await post(gateway.url, sql)
    let { json } = first
    const rows: unknown[] = []
    let killed = false
    while (json.nextUri !== undefined) {
      const answer = await raw(json.nextUri).catch(() => undefined)
      if (!answer || answer.status !== 200) continue
      ;({ json } = answer)
      rows.push(...((json.data ?? []) as unknown[]))
      if (!killed && rows.length > 0) {
        killed = true
        for (const pid of processesOf(gateway.data).children.slice(0, 1)) process.kill(pid, 'SIGKILL')
      }
    }
    expect(json.error).toBeUndefined()
    expect(rows).toEqual(direct.rows)
  })

  it.each([
    'SELECT count(*) FROM far.tiny.nation',
    'CREATE TABLE warehouse.default.repeated AS SELECT 1 AS a',
    'SELECT nope FROM far.tiny.nation',
  ])('is followed by one that repeats the last answer of %s', { timeout: 240_000 }, async (sql) => {
    await untilHealthy()
    const { json: first } = await post(gateway.url, sql)
    let last = first
    let uri = first.nextUri!
    while (last.nextUri !== undefined) {
      uri = last.nextUri
      last = (await raw(uri)).json
    }
    for (const pid of processesOf(gateway.data).children.slice(0, 1)) process.kill(pid, 'SIGKILL')
    let again: typeof last | undefined
    await waitUntil('the next coordinator answers', async () => {
      const answer = await raw(uri).catch(() => undefined)
      if (answer?.status === 200) again = answer.json
      return again !== undefined && again.nextUri === undefined
    })
    expect(again!.error?.errorName).toBe(last.error?.errorName)
    expect(again!.data).toEqual(last.data)
    expect(again!.stats.state).toBe(last.stats.state)
  })
})
