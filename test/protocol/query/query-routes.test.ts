import { parseTaskId, type QueryId } from '../../../src/shared/ids.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { KnownQuery } from '../../../src/coordinator/query/stream/state.ts'
import { LogUnavailable } from '../../../src/events/event-log.ts'
import type { ProjectionRunner } from '../../../src/events/projection-runner.ts'
import type { LiveQueryView } from '../../../src/protocol/query/live-queries.ts'
import { createQueryRoutes, type QueryRoutesDeps } from '../../../src/protocol/query/query-routes.ts'
import { queryInfoSchema, queryListItemSchema, totalsInfoSchema } from '../../../src/protocol/info/schemas/query.ts'
import { taskInfoSchema } from '../../../src/protocol/info/schemas/task.ts'
import { pricesSchema } from '../../../src/readmodels/history/prices.ts'
import { allowAll, authorizeBy } from '../../../src/security/authorization.ts'
import { administratorsToo } from '../../support/access.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { serve, type HttpApp } from '../../support/http-app.ts'
import { queryLife, taskStats, testQueryId, toLogEvents } from '../../support/query-life.ts'
import { openReadModelBed, storedIn, type ReadModelBed } from '../../support/read-models.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- tests check answers field by field
type Json = any

let bed: ReadModelBed
let runner: ProjectionRunner
let app: HttpApp
let live: Map<string, LiveQueryView>
let ended: { queryId: string; by: string; how: string; message: string }[]
/** The owners of queries that this process does not hold. */
let elsewhere: Map<string, string>

async function start(over: Partial<QueryRoutesDeps> = {}): Promise<void> {
  app = await serve(
    createQueryRoutes({
      live: { get: (id) => live.get(id), list: () => [...live.values()] },
      read: (text, values) => bed.query(text, [...values]),
      stored: storedIn((text, values) => bed.query(text, [...values])),
      projection: runner,
      isWriter: () => true,
      async end(queryId, { failure, endedBy, mayEnd }) {
        const held = live.get(queryId)?.query
        const user = held?.created.session.user ?? elsewhere.get(queryId)
        if (user === undefined) return 'unknown'
        if (mayEnd?.({ user }, queryId) === false) return 'refused'
        if (held?.kind === 'FINISHED') return 'ended'
        ended.push({ queryId, by: endedBy!.user, how: endedBy!.how, message: failure.message })
        return 'done'
      },
      identify: (request) => ({ user: request.get('x-trino-user') ?? 'anonymous', groups: [] }),
      authorize: allowAll,
      baseUri: () => 'http://here:8080',
      clock: systemClock,
      logId: () => 'log-1',
      ownWritesWaitMs: 2000,
      ...over,
    }),
  )
}

async function open(): Promise<void> {
  bed = await openReadModelBed()
  runner = await bed.startRunner()
  live = new Map()
  ended = []
  elsewhere = new Map()
}

async function close(): Promise<void> {
  await app.close()
  await bed.close()
}

async function store(queryId: string, options: Parameters<typeof queryLife>[1] = {}): Promise<void> {
  await bed.log.append(queryId, 0, toLogEvents(queryLife(queryId, options)))
}

async function storedNow(number: number, options: Parameters<typeof queryLife>[1] = {}): Promise<QueryId> {
  const queryId = testQueryId(number)
  await store(queryId, { startMillis: Date.now() - 1000 + number, ...options })
  return queryId
}

function holdLive(queryId: QueryId, options: Parameters<typeof queryLife>[1] = {}): void {
  const events = queryLife(queryId, options)
  const query = foldQuery(queryId, events) as KnownQuery
  live.set(queryId, { query, sequence: events.length, liveStats: new Map() })
}

async function get(
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; body: Json }> {
  const response = await fetch(app.base + path, { headers, redirect: 'manual' })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text,
  }
}

describe('GET /v1/query/{queryId}', () => {
  const queryId = testQueryId(1)
  let body: Json
  let headers: Headers

  beforeAll(async () => {
    await open()
    await start()
    await store(queryId)
    await runner.barrier(60_000)
    const answer = await get(`/v1/query/${queryId}`)
    expect(answer.status).toBe(200)
    body = answer.body
    headers = answer.headers
  })
  afterAll(close)

  const at = (path: string): unknown => path.split('.').reduce((value: Json, key) => value?.[key], body)

  it.each([
    ['queryId', queryId],
    ['session.user', 'alice'],
    ['session.source', 'quipu-test'],
    ['session.catalog', 'tpch'],
    ['session.schema', 'tiny'],
    ['session.remoteUserAddress', '127.0.0.1'],
    ['session.userAgent', 'vitest'],
    ['session.timeZone', 'UTC'],
    ['session.clientTags', ['nightly']],
    ['state', 'FINISHED'],
    ['self', `http://here:8080/v1/query/${queryId}`],
    ['fieldNames', ['name']],
    ['query', 'SELECT name FROM nation'],
    ['queryType', 'SELECT'],
    ['resourceGroupId', ['global']],
    ['finalQueryInfo', true],
    ['traceId', '0af7651916cd43dd8448eb211c80319c'],
    ['inputs', [{ catalogName: 'tpch', schema: 'tiny', table: 'nation', columns: [{ name: 'name' }] }]],
    ['warnings', []],
    ['queryStats.elapsedTime', '300.00ms'],
    ['queryStats.queuedTime', '1.00ms'],
    ['queryStats.analysisTime', '2.00ms'],
    ['queryStats.planningTime', '3.00ms'],
    ['queryStats.totalScheduledTime', '150.00ms'],
    ['queryStats.totalCpuTime', '120.00ms'],
    ['queryStats.totalBlockedTime', '5.00ms'],
    ['queryStats.totalTasks', 2],
    ['queryStats.runningTasks', 0],
    ['queryStats.completedTasks', 2],
    ['queryStats.totalDrivers', 5],
    ['queryStats.queuedDrivers', 0],
    ['queryStats.runningDrivers', 2],
    ['queryStats.completedDrivers', 4],
    ['queryStats.totalMemoryReservation', '0B'],
    ['queryStats.peakTotalMemoryReservation', '4.00kB'],
    ['queryStats.rawInputDataSize', '10.00kB'],
    ['queryStats.processedInputDataSize', '5.00kB'],
    ['queryStats.outputDataSize', '1000B'],
    ['queryStats.rawInputPositions', 25],
    ['queryStats.processedInputPositions', 24],
    ['queryStats.outputPositions', 23],
    ['queryStats.spilledDataSize', '17B'],
    ['queryStats.progressPercentage', 100],
  ])('returns %s as %j', (path, value) => {
    expect(at(path)).toEqual(value)
  })

  it.each(['createTime', 'executionStartTime', 'lastHeartbeat', 'endTime'])(
    'returns queryStats.%s as a time with an offset',
    (name) => {
      expect(at(`queryStats.${name}`)).toMatch(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
    },
  )

  it('returns session.startTime in milliseconds', () => {
    expect(at('session.startTime')).toBe(Date.parse(body.queryStats.createTime))
  })

  it('returns outputStage as the tree of stages with their tasks', () => {
    const root = body.outputStage
    expect(root).toMatchObject({ stageId: `${queryId}.0`, state: 'FINISHED', done: true, types: ['varchar(25)'] })
    expect(root.tasks.map((task: Json) => task.taskId)).toEqual([`${queryId}.0.0`])
    expect(root.tasks[0].self).toBe(`http://here:8080/v1/task/${queryId}.0.0`)
    expect(root.tasks[0].outputBuffers).toEqual({
      state: 'FINISHED',
      masterSequenceId: 0,
      pagesAdded: 1,
      buffers: [{ bufferId: '0', finished: true, bufferedPages: 0, pagesSent: 1 }],
    })
    expect(taskInfoSchema.parse(root.tasks[0])).toEqual(root.tasks[0])
    expect(root.subStages).toHaveLength(1)
    const [leaf] = root.subStages
    expect(leaf).toMatchObject({ stageId: `${queryId}.1`, state: 'FINISHED', subStages: [] })
    expect(leaf.stageStats).toMatchObject({
      totalTasks: 1,
      completedTasks: 1,
      totalSplits: 7,
      completedSplits: 3,
      rawInputPositions: 25,
      totalCpuTime: '120.00ms',
    })
    const [task] = leaf.tasks
    expect(task.self).toBe(`http://127.0.0.1:18081/v1/task/${queryId}.1.0`)
    expect(task.stats.pipelines[0].operatorSummaries.map((one: Json) => one.operatorType)).toEqual([
      'ScanFilterAndProjectOperator',
      'TaskOutputOperator',
    ])
  })

  it('answers with a body that fits the schema in /openapi.json', () => {
    expect(queryInfoSchema.parse(body)).toEqual(body)
  })

  it('leaves out keys without a value', () => {
    expect(JSON.stringify(body)).not.toContain('null')
    expect(body).not.toHaveProperty('errorCode')
    expect(body).not.toHaveProperty('updateType')
  })

  it.each([
    ['content-type', 'application/json'],
    ['x-content-type-options', 'nosniff'],
    ['cache-control', 'no-store'],
    ['vary', 'Accept'],
  ])('sends the header %s as %s', (name, value) => {
    expect(headers.get(name)).toBe(value)
  })
})

describe('GET /v1/query/{queryId} in each state of a query', () => {
  beforeEach(async () => {
    await open()
    await start()
  })
  afterEach(close)

  it('returns the error of a failed query', async () => {
    const queryId = await storedNow(2, { end: 'failed' })
    const { body } = await get(`/v1/query/${queryId}`)
    expect(body).toMatchObject({
      state: 'FAILED',
      errorType: 'USER_ERROR',
      errorCode: { code: 8, name: 'DIVISION_BY_ZERO', type: 'USER_ERROR' },
      failureInfo: { message: 'Division by zero' },
    })
  })

  it('answers for an open query from memory, with live figures that no event has', async () => {
    const queryId = testQueryId(3)
    const query = foldQuery(queryId, queryLife(queryId, { end: 'open' }).slice(0, 3)) as KnownQuery
    const stats = taskStats({ memoryBytes: 3072, rawInputPositions: 99 })
    const liveStats = new Map([[parseTaskId(`${queryId}.1.0`), stats]])
    live.set(queryId, { query, sequence: 3, liveStats, lastHeartbeatAt: 1_772_359_200_000 })
    const { body } = await get(`/v1/query/${queryId}`)
    expect(body.state).toBe('STARTING')
    expect(body.queryStats).toMatchObject({
      totalMemoryReservation: '3.00kB',
      rawInputPositions: 99,
      lastHeartbeat: '2026-03-01T10:00:00.000Z',
    })
    expect(body.queryStats).not.toHaveProperty('endTime')
    expect(body.finalQueryInfo).toBe(false)
  })

  it('gives the same answer from memory and from the events', async () => {
    const queryId = testQueryId(4)
    holdLive(queryId, { startMillis: Date.now() })
    const stored = live.get(queryId)!
    await bed.log.append(
      queryId,
      0,
      toLogEvents(queryLife(queryId, { startMillis: Date.parse(stored.query.createdAt) })),
    )
    const fromMemory = await get(`/v1/query/${queryId}`)
    live.clear()
    const fromEvents = await get(`/v1/query/${queryId}`)
    expect(fromEvents.body).toEqual(fromMemory.body)
  })

  it('finds a query as soon as its events are valid, before they are projected', async () => {
    const queryId = await storedNow(5)
    expect((await get(`/v1/query/${queryId}`)).body.state).toBe('FINISHED')
  })

  it('shows a query as it was at a sequence or a time (?asOf=)', async () => {
    const queryId = await storedNow(6)
    expect((await get(`/v1/query/${queryId}?asOf=1`)).body.state).toBe('QUEUED')
    expect((await get(`/v1/query/${queryId}?asOf=2`)).body.state).toBe('STARTING')
    const planned = (await get(`/v1/query/${queryId}?asOf=2`)).body
    expect((await get(`/v1/query/${queryId}?asOf=${planned.queryStats.lastHeartbeat}`)).body.state).toBe('STARTING')
    expect((await get(`/v1/query/${queryId}?asOf=2`)).headers.get('x-engine-sequence')).toBe('2')
  })

  it('explains why it cannot answer an asOf', async () => {
    const queryId = await storedNow(7)
    const last = (await get(`/v1/query/${queryId}`)).headers.get('x-engine-sequence')
    const refused = async (asOf: string): Promise<string> => {
      const { status, body } = await get(`/v1/query/${queryId}?asOf=${asOf}`, { accept: 'application/json' })
      return `${status} ${body.detail}`
    }
    expect(await refused('2020-01-01T00:00:00Z')).toMatch(
      /^404 .* did not exist at 2020-01-01T00:00:00.000Z: it was created at /,
    )
    expect(await refused('1000')).toBe(`404 Query ${queryId} has no event 1000: its last is ${last}`)
    for (const bad of ['never', '0', '-1', '1.5', '2026-01-31', '2026-01-31T12:00:00', '2026-13-31T12:00:00Z', ''])
      expect(await refused(bad)).toMatch(/^400 asOf must be the sequence of an event/)
    expect(await refused('2026-01-31T12:00:00+01:00')).toMatch(/write \+ as %2B$/)
    expect((await get(`/v1/query/${testQueryId(998)}?asOf=1`)).status).toBe(404)
  })

  it('returns 404 with a problem for an unknown query and for text that is not an id', async () => {
    for (const id of [testQueryId(999), 'nonsense']) {
      const { status, headers, body } = await get(`/v1/query/${id}`, { accept: 'application/json' })
      expect(status).toBe(404)
      expect(headers.get('content-type')).toBe('application/problem+json')
      expect(body).toMatchObject({ status: 404, title: 'Not Found', detail: 'Query not found' })
    }
  })

  it('redirects a browser to the page of the query', async () => {
    const { status, headers } = await get(`/v1/query/${testQueryId(1)}`, {
      accept: 'text/html,application/xhtml+xml,*/*;q=0.8',
    })
    expect(status).toBe(303)
    expect(headers.get('location')).toBe(`/ui/query/${testQueryId(1)}`)
    const json = await get(`/v1/query/${testQueryId(1)}?format=json`, { accept: 'text/html,*/*;q=0.8' })
    expect(json.headers.get('content-type')).toMatch(/json$/)
  })
})

describe('GET /v1/query', () => {
  beforeEach(open)
  afterEach(close)

  it('filters by the program behind a query, tags, groups, tables and times, in the tables and in memory', async () => {
    await start()
    const dbt = `/* {"app": "dbt", "node_id": "model.shop.orders"} */ SELECT name FROM nation`
    const stored = await storedNow(31, { sql: dbt, session: { clientTags: ['etl'], groups: ['data'] } })
    const failed = await storedNow(32, { end: 'failed', source: 'superset', session: { clientTags: [] } })
    const inMemory = testQueryId(33)
    holdLive(inMemory, { startMillis: Date.now(), end: 'open', sql: dbt, session: { clientTags: ['etl'] } })
    await runner.barrier(60_000)
    const ids = async (query: string): Promise<string[]> =>
      (await get(`/v1/query?${query}`)).body.map((one: Json) => one.queryId)
    const cases: readonly [string, string[]][] = [
      ['app=dbt', [inMemory, stored]],
      ['app=dbt&appObject=model.shop.orders&state=FINISHED', [stored]],
      ['app=superset', [failed]],
      ['tag=etl', [inMemory, stored]],
      ['group=data', [stored]],
      ['error=DIVISION_BY_ZERO', [failed]],
      ['source=superset&user=alice&queryType=SELECT&plan=local&resourceGroup=global', [failed]],
      ['table=tpch.TINY."nation"', [inMemory, failed, stored]],
      ['table=tpch.tiny.region', []],
      ['until=2000-01-01T00:00:00Z', []],
      ['cluster=none', []],
    ]
    for (const [query, expected] of cases) expect([query, await ids(query)]).toEqual([query, expected])
    for (const query of ['table=nation', 'table=a.b.c.d', 'table=.a.b.c', 'table=', 'until=today', 'app=%00'])
      expect([query, (await get(`/v1/query?${query}`)).status]).toEqual([query, 400])
    const { body } = await get(`/v1/query?app=dbt&state=FINISHED`)
    expect(body[0]).toMatchObject({ app: 'dbt', appObject: 'model.shop.orders', plan: 'local' })
    expect(body[0].session).toMatchObject({ groups: ['data'], clientTags: ['etl'], remoteUserAddress: '127.0.0.1' })
    const totals = await get('/v1/query/totals?table=tpch.tiny.nation')
    expect(totalsInfoSchema.parse(totals.body)).toMatchObject({
      queries: 3,
      states: { FINISHED: { queries: 1, cpuTime: '120.00ms' }, FAILED: { queries: 1 }, RUNNING: { queries: 1 } },
    })
    expect((await get('/v1/query/totals?table=nation')).status).toBe(400)
  })

  it.each(['/v1/query', '/v1/query/totals'])(
    'searches %s for a short text in the newest queries, and says so',
    async (path) => {
      const stored = storedIn((text, values) => bed.query(text, [...values]))
      const since = new Date(Date.now() - 60_000).toISOString()
      await start({ stored: { ...stored, searchStart: async ({ text }) => (text === 'zq' ? since : undefined) } })
      await store(testQueryId(41), { startMillis: Date.now() - 3_600_000, sql: 'SELECT zq' })
      await storedNow(42, { sql: 'SELECT zq' })
      await runner.barrier(60_000)
      const found = async (parameters: string) => {
        const { body, headers } = await get(`${path}?${parameters}`)
        return { queries: body.queries ?? body.length, since: headers.get('x-engine-searched-since') }
      }
      expect(await found('q=zq')).toEqual({ queries: 1, since })
      expect(await found('q=select%20zq')).toEqual({ queries: 2, since: null })
      expect(await found('q=zq&since=2100-01-01T00:00:00Z')).toEqual({ queries: 0, since: null })
    },
  )

  it('lists open and recently ended queries, newest first, and prefers memory to the tables', async () => {
    await start()
    const old = testQueryId(10)
    await store(old, { startMillis: Date.now() - 3_600_000 })
    const finished = await storedNow(11)
    const open = await storedNow(12, { end: 'open' })
    holdLive(open, { startMillis: Date.now() - 900, end: 'finished' })
    const onlyInMemory = testQueryId(13)
    holdLive(onlyInMemory, { startMillis: Date.now(), end: 'open' })
    await runner.barrier(60_000)
    const { body, headers, status } = await get('/v1/query')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('application/json')
    expect(headers.get('x-engine-stale')).toBeNull()
    expect(body.map((one: Json) => [one.queryId, one.state])).toEqual([
      [onlyInMemory, 'RUNNING'],
      [open, 'FINISHED'],
      [finished, 'FINISHED'],
    ])
    for (const item of body) expect(queryListItemSchema.parse(item)).toEqual(item)
    expect(body[2]).toMatchObject({
      self: `http://here:8080/v1/query/${finished}`,
      query: 'SELECT name FROM nation',
      session: { user: 'alice', source: 'quipu-test', catalog: 'tpch', schema: 'tiny' },
      queryStats: { elapsedTime: '300.00ms', totalCpuTime: '120.00ms', rawInputPositions: 25, outputPositions: 23 },
    })
  })

  it('shows the beginning of a long text, and reads only the beginning from the tables', async () => {
    let read = 0
    await start({
      async read(text, values) {
        const rows = await bed.query(text, [...values])
        read += JSON.stringify(rows).length
        return rows
      },
    })
    const sql = `SELECT  '${'👩'.repeat(50_000)}'`
    const ids: QueryId[] = []
    for (let number = 1; number <= 20; number++) ids.unshift(await storedNow(number, { sql }))
    for (const queryId of ids.slice(0, 10)) holdLive(queryId, { startMillis: Date.now(), sql })
    await runner.barrier(60_000)
    const { body } = await get('/v1/query?limit=10&user=alice')
    expect(body).toHaveLength(10)
    for (const item of body) {
      expect(queryListItemSchema.parse(item)).toEqual(item)
      expect(item.queryTruncated).toBe(true)
      // The text is cut between characters, not within one.
      expect(item.query).toBe(sql.slice(0, 4096 - 1))
    }
    // It reads one row more than a page, whatever is in memory, and only the beginning of each text.
    expect(read).toBeLessThan(11 * 20_000)
    expect((await get(`/v1/query/${ids[0]}`)).body.query).toBe(sql)
  })

  it('filters by state, user, time and text, also among older queries', async () => {
    await start()
    const old = testQueryId(20)
    await store(old, { startMillis: Date.now() - 3_600_000, user: 'bob', sql: 'SELECT 100%_done' })
    const failed = await storedNow(21, { end: 'failed' })
    await runner.barrier(60_000)
    const ids = async (search: string) => (await get(`/v1/query?${search}`)).body.map((one: Json) => one.queryId)
    expect(await ids('user=bob')).toEqual([old])
    expect(await ids('state=failed')).toEqual([failed])
    expect(await ids('state=FAILED,FINISHED')).toEqual([failed, old])
    expect(await ids(`q=${encodeURIComponent('0%_D')}`)).toEqual([old])
    expect(await ids('q=nothing')).toEqual([])
    expect(await ids(`since=${new Date(Date.now() - 60_000).toISOString()}`)).toEqual([failed])
    // Times that JavaScript can represent and Postgres cannot.
    for (const long of ['1519-02-09T03:14:31-21:30', '0000-01-01T00:00:00%2B23:59'])
      expect(await ids(`since=${long}`)).toEqual(await ids('since=1970-01-01T00:00:00Z'))
    expect(await ids('since=9999-12-31T23:59:59-23:59')).toEqual([])
    expect((await get(`/v1/query/${old}?asOf=0000-01-01T00:00:00%2B23:59`)).status).toBe(404)
    expect((await get(`/v1/query/${old}?asOf=9999-12-31T23:59:59-23:59`)).status).toBe(200)
  })

  it('searches the first 4,096 characters of a text, in the tables and in memory', async () => {
    await start()
    const before = `SELECT '${'👩'.repeat(4080)}`
    expect([...before]).toHaveLength(4088)
    const within = await storedNow(60, { sql: `${before}in Reach'` })
    const beyond = await storedNow(61, { sql: `${before}beyond reach'` })
    const live = [62, 63].map((number) => testQueryId(number))
    holdLive(live[0]!, { startMillis: Date.now(), sql: `${before}in Reach'` })
    holdLive(live[1]!, { startMillis: Date.now(), sql: `${before}beyond reach'` })
    await runner.barrier(60_000)
    const ids = async (search: string): Promise<unknown[]> =>
      (await get(`/v1/query?q=${search}`)).body.map((one: Json) => one.queryId).toSorted()
    expect(await ids('n%20reach')).toEqual([within, live[0]].toSorted())
    expect(await ids('nd%20reach')).toEqual([])
    expect(await ids('beyond')).toEqual([beyond, live[1]].toSorted())
  })

  it('continues with the cursor of its Link header', async () => {
    await start()
    const all = []
    for (let number = 30; number < 35; number++) all.unshift(await storedNow(number))
    await runner.barrier(60_000)
    const seen: string[] = []
    let path: string | undefined = '/v1/query?limit=2'
    let pages = 0
    while (path) {
      const { body, headers } = await get(path)
      seen.push(...body.map((one: Json) => one.queryId))
      const link: RegExpExecArray | null = /<http:\/\/here:8080([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')
      path = link?.[1]
      pages++
    }
    expect(seen).toEqual(all)
    expect(pages).toBe(3)
  })

  it.each(['elapsed', 'created'])('sorts stored queries and queries in memory by %s, over all pages', async (sort) => {
    await start()
    const ids = [41, 42, 43, 44].map((number) => testQueryId(number))
    for (const [at, queryId] of ids.slice(0, 3).entries()) await store(queryId, { startMillis: Date.now() - 9000 + at })
    holdLive(ids[3]!, { startMillis: Date.now() - 5000, end: 'open' })
    await runner.barrier(60_000)
    const elapsed = [700, 100, 300]
    for (const [at, milliseconds] of elapsed.entries())
      await bed.query('update queries set elapsed_ms = $1 where query_id = $2', [milliseconds, ids[at]])
    const walk = async (order: string): Promise<readonly string[]> => {
      const seen: string[] = []
      let path: string | undefined = `/v1/query?limit=1&sort=${sort}&order=${order}`
      while (path) {
        const { body, headers } = await get(path)
        seen.push(...body.map((one: Json) => one.queryId))
        path = /<http:\/\/here:8080([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1]
      }
      return seen
    }
    const upwards = sort === 'elapsed' ? [ids[1], ids[2], ids[0], ids[3]] : ids
    expect(await walk('asc')).toEqual(upwards)
    expect(await walk('desc')).toEqual(upwards.toReversed())
  })

  it('shows the cost of each query, and totals that are equal to their sum', async () => {
    const prices = pricesSchema.parse({
      currency: 'EUR',
      periods: [
        { from: '2026-01-15T00:00:00Z', cpuSecond: 10 },
        { from: '2026-02-01T00:00:00Z', cpuSecond: 1, terabyteScanned: 1e9, clusterHour: 3, clusterHours: { big: 4 } },
      ],
    })
    await start({ prices: () => prices })
    const created = ['2026-01-10', '2026-01-31', '2026-02-02', '2026-02-03', '2026-02-04']
    const ids = created.map((_, at) => testQueryId(60 + at))
    for (const [at, day] of created.entries()) await store(ids[at]!, { startMillis: Date.parse(`${day}T12:00:00Z`) })
    holdLive(testQueryId(70), { startMillis: Date.now() - 500, end: 'finished' })
    await runner.barrier(60_000)
    await bed.query(
      `update queries set cluster = 'big', elapsed_ms = 7200000, queued_ms = 3600000 where query_id = $1`,
      [ids[3]],
    )
    await bed.query(
      `update queries set cluster = 'toString', elapsed_ms = 3600000, queued_ms = 0 where query_id = $1`,
      [ids[4]],
    )
    const { body } = await get('/v1/query?since=2025-01-01T00:00:00Z&order=asc')
    const costs = body.map((one: Json) => one.cost)
    expect(costs[0]).toBeUndefined()
    expect(costs[1]).toBeCloseTo(1.2, 9)
    const bytes = body[2].queryStats.rawInputDataSize
    expect(bytes).toMatch(/B$/)
    expect(costs[3]).toBeCloseTo(costs[2] + 4, 9)
    expect(costs[4]).toBeCloseTo(costs[2] + 3, 9)
    expect(body[1].currency).toBe('EUR')
    const info = await get(`/v1/query/${ids[2]}`)
    expect(info.body.cost).toBeCloseTo(costs[2], 9)
    const totals = await get('/v1/query/totals?since=2025-01-01T00:00:00Z')
    const sum = costs.reduce((all: number, cost: number | undefined) => all + (cost ?? 0), 0)
    expect(totals.body).toMatchObject({ cost: expect.closeTo(sum, 9), currency: 'EUR' })
    expect(totals.body.states.FINISHED.cost).toBeCloseTo(sum, 9)
  })

  // Times that JavaScript reads and the database does not.
  const times = ['0 (x)', '1', '+010000-01-01T00:00:00Z', '-000001-01-01T00:00:00Z', '0000-01-01T00:00:00Z']
  const cursors = times.map(
    (time) => `cursor=${Buffer.from(JSON.stringify([time, testQueryId(1)])).toString('base64url')}`,
  )

  it.each([
    'state=SLEEPING',
    'limit=0',
    'limit=1001',
    'since=yesterday',
    'cursor=abc',
    'sort=sql',
    'order=up',
    `sort=cpu&cursor=${Buffer.from(JSON.stringify(['2026-01-01T00:00:00.000Z', testQueryId(1)])).toString('base64url')}`,
    'user=%00',
    'q=a%00',
    ...cursors,
  ])('answers 400 to %s', async (search) => {
    await start()
    expect((await get(`/v1/query?${search}`)).status).toBe(400)
  })

  it('waits on a follower until the projection has the latest events', async () => {
    await start({ isWriter: () => false })
    const queryId = await storedNow(40)
    expect((await get('/v1/query')).body.map((one: Json) => one.queryId)).toEqual([queryId])
  })

  it('sends X-Engine-Stale when the read models may be behind', async () => {
    await start({
      isWriter: () => false,
      projection: { barrier: async () => false, lag: async () => ({ events: 3, oldestMillis: 1234 }) },
    })
    const { status, headers } = await get('/v1/query')
    expect(status).toBe(200)
    expect(headers.get('x-engine-stale')).toBe('1234')
  })

  it('answers 503 without the database, while GET of a query in memory still works', async () => {
    const read = async () => {
      throw new Error('connect ECONNREFUSED')
    }
    await start({ read, stored: storedIn(read) })
    holdLive(testQueryId(41), { end: 'open' })
    expect((await get('/v1/query')).status).toBe(503)
    expect((await get(`/v1/query/${testQueryId(41)}`)).status).toBe(200)
  })
})

describe('GET /v1/query/{queryId}/events', () => {
  beforeEach(open)
  afterEach(close)

  it('returns the events as CloudEvents, in pages', async () => {
    await start()
    const queryId = await storedNow(50)
    const first = await get(`/v1/query/${queryId}/events?limit=5`)
    expect(first.headers.get('content-type')).toBe('application/cloudevents-batch+json')
    expect(first.body.map((event: Json) => event.type)).toEqual([
      'quipu.query.created.v3',
      'quipu.query.planned.v9',
      'quipu.task.created.v2',
      'quipu.task.finished.v1',
      'quipu.task.finished.v1',
    ])
    expect(first.body[0]).toMatchObject({
      specversion: '1.0',
      id: `${queryId}/1`,
      source: '/quipu/log-1',
      subject: queryId,
      datacontenttype: 'application/json',
      data: { sql: 'SELECT name FROM nation' },
    })
    expect(first.headers.get('link')).toBe(`<http://here:8080/v1/query/${queryId}/events?after=5&limit=5>; rel="next"`)
    const rest = await get(`/v1/query/${queryId}/events?after=5`)
    expect(rest.body.map((event: Json) => event.sequence)).toEqual([6, 7])
    expect(rest.headers.get('link')).toBeNull()
    expect((await get(`/v1/query/${testQueryId(51)}/events`)).status).toBe(404)
  })

  it('reads the events of the page and the first one, not the whole stream', async () => {
    const stored = storedIn((text, values) => bed.query(text, [...values]))
    const pages: (readonly number[])[] = []
    await start({
      stored: {
        ...stored,
        page(stream, after, limit, until) {
          pages.push([after, limit])
          return stored.page(stream, after, limit, until)
        },
        stream: () => {
          throw new Error('reads the whole stream')
        },
      },
    })
    const queryId = await storedNow(52)
    const page = await get(`/v1/query/${queryId}/events?after=3&limit=2`)
    expect(page.body.map((event: Json) => event.sequence)).toEqual([4, 5])
    expect(pages).toEqual([
      [0, 1],
      [3, 3],
    ])
  })
})

describe('DELETE /v1/query/{queryId}', () => {
  beforeEach(open)
  afterEach(close)

  const remove = (id: string, user = 'alice') =>
    fetch(`${app.base}/v1/query/${id}`, { method: 'DELETE', headers: { 'x-trino-user': user } })

  it('cancels a query and answers 204, also for an unknown query or id', async () => {
    await start()
    holdLive(testQueryId(60), { end: 'open' })
    expect((await remove(testQueryId(60))).status).toBe(204)
    expect((await remove(testQueryId(61))).status).toBe(204)
    expect((await remove('malformed')).status).toBe(204)
    expect(ended).toEqual([{ queryId: testQueryId(60), by: 'alice', how: 'canceled', message: 'Query was canceled' }])
  })

  it('answers 503 while the log does not answer', async () => {
    for (const end of [async () => 'waiting' as const, () => Promise.reject(new LogUnavailable('away'))]) {
      await start({ end })
      const response = await remove(testQueryId(62))
      expect(response.status).toBe(503)
      expect(response.headers.get('retry-after')).toBe('1')
    }
  })
})

describe('PUT /v1/query/{queryId}/killed and /preempted', () => {
  beforeEach(open)
  afterEach(close)

  const put = (id: string, how: string, body = '', user = 'alice') =>
    fetch(`${app.base}/v1/query/${id}/${how}`, { method: 'PUT', headers: { 'x-trino-user': user }, body })

  it('end an open query with the message in the body, in the format of Trino', async () => {
    await start()
    const queryId = testQueryId(60)
    holdLive(queryId, { end: 'open' })
    const answer = await put(queryId, 'killed', 'too “large”')
    expect([answer.status, await answer.text()]).toEqual([202, ''])
    expect((await put(queryId, 'killed')).status).toBe(202)
    expect((await put(queryId, 'preempted', 'room for others')).status).toBe(202)
    expect((await put(queryId, 'preempted')).status).toBe(202)
    expect(ended).toEqual(
      [
        { how: 'killed', message: 'Query killed. Message: too “large”' },
        { how: 'killed', message: 'Query killed. No message provided.' },
        { how: 'preempted', message: 'Query preempted. Message: room for others' },
        { how: 'preempted', message: 'Query preempted. No message provided.' },
      ].map((one) => ({ queryId, by: 'alice', ...one })),
    )
  })

  it('answer 410 for an unknown query and 409 for an ended query', async () => {
    await start()
    holdLive(testQueryId(60))
    expect((await put(testQueryId(60), 'killed')).status).toBe(409)
    expect((await put(testQueryId(61), 'killed')).status).toBe(410)
    expect((await put('malformed', 'preempted')).status).toBe(410)
  })

  it('answer 403 to users other than the owner, also for a query that this process does not hold', async () => {
    await start({ authorize: authorizeBy(() => undefined) })
    elsewhere.set(testQueryId(61), 'alice')
    for (const how of ['killed', 'preempted']) expect((await put(testQueryId(61), how, '', 'bob')).status).toBe(403)
    expect(ended).toEqual([])
    expect((await put(testQueryId(61), 'killed')).status).toBe(202)
  })

  it('answer 413 to a message that is too long, and 400 to bytes that are not UTF-8', async () => {
    await start()
    holdLive(testQueryId(60), { end: 'open' })
    expect((await put(testQueryId(60), 'killed', 'x'.repeat(16 * 1024 + 1))).status).toBe(413)
    const bytes = { method: 'PUT', body: Buffer.from([0xc3]) }
    expect((await fetch(`${app.base}/v1/query/${testQueryId(60)}/killed`, bytes)).status).toBe(400)
    expect(ended).toEqual([])
    expect((await put(testQueryId(60), 'killed', 'x'.repeat(16 * 1024))).status).toBe(202)
  })

  it('answer 503 while the log does not answer', async () => {
    await start({ end: async () => 'waiting' })
    const answer = await put(testQueryId(62), 'killed')
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
  })
})

describe('The user that killed a query', () => {
  beforeEach(open)
  afterEach(close)

  it('is shown to administrators and hidden from the owner: the owner sees only the message', async () => {
    await start({ authorize: administratorsToo(new Set(['root'])) })
    const queryId = await storedNow(75, { end: 'killed' })
    await runner.barrier(60_000)
    const as = (user: string) => ({ 'x-trino-user': user })
    for (const [user, reported] of [
      ['alice', undefined],
      ['root', { user: 'kim', originalUser: 'root2', remoteAddress: '10.1.2.3', how: 'killed' }],
    ] as const) {
      const { body } = await get(`/v1/query/${queryId}`, as(user))
      expect([body.failureInfo.message, body.endedBy]).toEqual(['Query killed. Message: too large', reported])
      const events = await get(`/v1/query/${queryId}/events`, as(user))
      const { failure, endedBy } = events.body.at(-1).data
      expect([failure.message, endedBy]).toEqual(['Query killed. Message: too large', reported])
    }
  })
})

describe('Rights over queries', () => {
  beforeEach(open)
  afterEach(close)

  it('give the digest of a result only to users with a right to its rows, and other answers leave it out', async () => {
    // As without the section of the rules: all users see all queries, and only the rows of their own queries.
    await start({
      authorize: ({ user }, permission) => permission.action !== 'results' || permission.query.user === user,
    })
    const digest = { version: 'sip24-1' as const, key: 'k', sum: 'feedfeedfeedfeed' }
    const queryId = testQueryId(76)
    const life = queryLife(queryId, { startMillis: Date.now() - 1000 }).map((one) =>
      one.type === 'QueryFinished' ? { ...one, data: { ...one.data, digest } } : one,
    )
    await bed.log.append(queryId, 0, toLogEvents(life))
    await runner.barrier(60_000)
    const as = (user: string) => ({ 'x-trino-user': user })
    const reported = await get(`/v1/query/${queryId}/digest`, as('alice'))
    expect(reported).toMatchObject({ status: 200, body: digest })
    expect(reported.body.rows).toBeGreaterThan(0)
    expect((await get(`/v1/query/${queryId}/digest`, as('bob'))).status).toBe(403)
    for (const path of ['', '/events']) {
      const shown = await get(`/v1/query/${queryId}${path}`, as('alice'))
      expect(shown.status).toBe(200)
      expect(JSON.stringify(shown.body)).not.toContain(digest.sum)
    }
    expect((await get(`/v1/query/${testQueryId(99)}/digest`, as('alice'))).status).toBe(404)
  })

  it('let only owners and administrators see and cancel a query, and limit lists to own queries', async () => {
    await start({ authorize: administratorsToo(new Set(['root'])) })
    const queryId = await storedNow(70)
    holdLive(testQueryId(71), { user: 'bob', end: 'open', startMillis: Date.now() })
    await runner.barrier(60_000)
    const as = (user: string) => ({ 'x-trino-user': user })
    expect((await get(`/v1/query/${queryId}`, as('alice'))).status).toBe(200)
    expect((await get(`/v1/query/${queryId}`, as('root'))).status).toBe(200)
    expect((await get(`/v1/query/${queryId}`, as('bob'))).status).toBe(403)
    expect((await get(`/v1/query/${queryId}/events`, as('bob'))).status).toBe(403)
    const seenBy = async (user: string) => (await get('/v1/query', as(user))).body.map((one: Json) => one.session.user)
    expect(await seenBy('alice')).toEqual(['alice'])
    expect(await seenBy('bob')).toEqual(['bob'])
    expect(await seenBy('root')).toEqual(['bob', 'alice'])
    expect((await get('/v1/query?user=alice', as('bob'))).body).toEqual([])
    const killed = await fetch(`${app.base}/v1/query/${testQueryId(71)}`, { method: 'DELETE', headers: as('alice') })
    expect(killed.status).toBe(403)
    expect(ended).toEqual([])
  })
})

describe('DELETE of a query that only the log knows', () => {
  beforeEach(open)
  afterEach(close)

  it('works for the owner only, before recovery has reached the query', async () => {
    await start({ authorize: authorizeBy(() => undefined) })
    elsewhere.set(testQueryId(1), 'alice')
    const end = async (user: string) => {
      const address = `${app.base}/v1/query/${testQueryId(1)}`
      return (await fetch(address, { method: 'DELETE', headers: { 'x-trino-user': user } })).status
    }
    expect(await end('bob')).toBe(403)
    expect(ended).toEqual([])
    expect(await end('alice')).toBe(204)
    expect(ended).toMatchObject([{ queryId: testQueryId(1), by: 'alice' }])
  })
})

describe('The query resources', () => {
  beforeEach(open)
  afterEach(close)

  it('answer HEAD without a body, OPTIONS with the methods, and other methods with 405', async () => {
    await start()
    const head = await fetch(`${app.base}/v1/query`, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
    const options = await fetch(`${app.base}/v1/query/${testQueryId(1)}`, { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, DELETE, HEAD, OPTIONS'])
    const post = await fetch(`${app.base}/v1/query`, { method: 'POST' })
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
  })
})
