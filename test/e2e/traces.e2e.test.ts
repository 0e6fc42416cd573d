import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  readOtlp,
  startOtlpReceiver,
  type OtlpJson,
  type OtlpReceiver,
  type ReceivedSpan,
} from '../support/otlp-receiver.ts'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { serverOfFile } from '../support/server-of-file.ts'
import { post, raw, run, trinoHeaders } from '../support/statement-client.ts'

let collector: OtlpReceiver
// Hooks run in reverse order: the server ends before it.
afterAll(() => collector.close())
const server = serverOfFile('warn', async () => {
  collector = await startOtlpReceiver()
  return { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, QUIPU_TRACES_PER_SECOND: '1000' }
})
let base: string

const JOIN = `SELECT n.name, count(*) FROM customer c JOIN nation n ON c.nationkey = n.nationkey GROUP BY n.name ORDER BY 2`

beforeAll(() => {
  base = server.url
})

describe('A trace of a query', () => {
  it('has one root, no missing parent and every operator, in fewer than 60 spans', async () => {
    const { id } = await run(base, JOIN)
    const called = ['GET /v1/statement/{queryId}/{token}', 'task-update', 'INSERT events', 'connector splits', 'append']
    // Workers export their spans themselves.
    const served = 'POST /v1/task/{taskId}'
    const spans = await traceOf(id, [...called, served, 'batch', 'task', 'exchange', 'publish', 'engine run'])
    const asked = spans.find(({ name }) => name === 'task-update')!
    expect(spans.find(({ name }) => name === served)).toMatchObject({
      parentSpanId: asked.spanId,
      attributes: { 'http.response.status_code': 200 },
    })
    const roots = spans.filter((span) => span.parentSpanId === undefined)
    expect(roots.map((span) => span.name)).toEqual(['POST /v1/statement'])
    expect(missingParents(spans)).toEqual([])
    expect(spans.length).toBeLessThan(60)
    const names = spans.map((span) => span.name)
    for (const name of ['query', 'analyzer', 'planner', 'stage', 'remote-task', 'task', 'pipeline', 'batch', 'append'])
      expect(names).toContain(name)
    expect(names).toContain('GET /v1/statement/{queryId}/{token}')
    const steps = ['parse', 'access-control', 'analyze', 'render', 'fragment', 'connector table', 'connector splits']
    const work = ['task-update', 'exchange', 'publish', 'INSERT events']
    for (const name of [...steps, ...work]) expect(names).toContain(name)
    const exchange = spans.find((span) => span.name === 'exchange')!
    const produced = spans.find((span) => span.spanId === exchange.links[0]?.spanId)
    expect(produced?.name).toBe('task')
    expect(produced?.spanId).not.toBe(exchange.parentSpanId)
    expect(exchange.attributes['quipu.exchange.pages']).toBe(1)
    const pipelines = spans.filter(({ name }) => name === 'pipeline')
    const operators = pipelines.flatMap(({ events }) => events)
    expect(operators.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['operator LookupJoinOperator', 'operator TaskOutputOperator']),
    )
    const scan = operators.find(({ attributes }) => attributes['quipu.rows_out'] === 1500)
    expect(scan?.attributes['quipu.rows_estimated']).toBeGreaterThan(0)
    const worked = spans.find(({ name, attributes }) => name === 'task' && attributes['quipu.worker'] !== undefined)
    const engine = spans.find(({ name }) => name === 'engine run')!
    expect(spans.find(({ spanId }) => spanId === engine.parentSpanId)?.name).toBe('task')
    expect(engine.attributes).toMatchObject({ 'db.system.name': 'duckdb', 'db.response.returned_rows': 25 })
    expect(worked).toBeDefined()
    const [query, execution] = ['query', 'execution'].map((one) => spans.find(({ name }) => name === one)!)
    expect(execution!.parentSpanId).toBe(query!.spanId)
    expect(execution!.endMs).toBeLessThanOrEqual(query!.endMs)
    expect(query!.attributes).toMatchObject({
      'db.system.name': 'quipu',
      'db.response.returned_rows': 25,
      'quipu.tables': ['tpch.tiny.customer', 'tpch.tiny.nation'],
    })
    for (const span of spans) expect(span.endMs).toBeGreaterThanOrEqual(span.startMs)
    for (const span of spans.filter((one) => one.name !== 'POST /v1/statement'))
      expect(span.attributes['trino.query_id']).toBe(id)
  })

  it('has the times and the row count of the events', async () => {
    const { id } = await run(base, JOIN)
    const spans = await traceOf(id)
    const events = (await raw(`${base}/v1/query/${id}/events`)).json as unknown as { type: string; time: string }[]
    const query = spans.find((span) => span.name === 'query')!
    const timeOf = (verb: string): number => Date.parse(events.find(({ type }) => type.includes(verb))!.time)
    expect(query.startMs).toBe(timeOf('created'))
    expect(query.endMs).toBe(timeOf('finished'))
    expect(query.attributes['quipu.rows']).toBe(25)
    expect(query.statusCode).toBe(1)
  })

  it('equals the trace that is rebuilt from the events, which also exists for a query that was not sampled', async () => {
    const { id } = await run(base, JOIN)
    const [{ traceId }] = (await traceOf(id)) as [ReceivedSpan]
    const exported = () => collector.trace(traceId).filter(({ name }) => !isLiveOnly(name))
    const rebuilt = (await rebuiltTrace(id)).filter(({ name }) => !isLiveOnly(name))
    await until(() => exported().length >= rebuilt.length)
    expect(byId(rebuilt)).toEqual(byId(exported()))

    const unsampled = await run(base, 'SELECT 1', {
      ...trinoHeaders,
      traceparent: '00-11111111111111111111111111111111-2222222222222222-00',
    })
    const spans = await rebuiltTrace(unsampled.id)
    expect(missingParents(spans)).toEqual(['2222222222222222'])
    expect(collector.trace('1'.repeat(32))).toEqual([])
  })

  it('joins the trace of the client, and a poll in another trace has a link to the query', async () => {
    const traceId = 'abcdefabcdefabcdefabcdefabcdefab'
    const first = await post(base, 'SELECT 42', {
      ...trinoHeaders,
      traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
      tracestate: 'vendor=1',
    })
    const polled = `00-${'5'.repeat(32)}-${'6'.repeat(16)}-01`
    await raw(first.json.nextUri!, { headers: { traceparent: polled } })
    await until(() => {
      const sent = collector.trace(traceId)
      return sent.some((span) => span.name === 'query') && missingParents(sent).join() === '00f067aa0ba902b7'
    })
    const spans = collector.trace(traceId)
    const request = spans.find((span) => span.name === 'POST /v1/statement')!
    expect(request.parentSpanId).toBe('00f067aa0ba902b7')
    expect(missingParents(spans)).toEqual(['00f067aa0ba902b7'])
    const query = spans.find((span) => span.name === 'query')!
    expect(query.parentSpanId).toBe(request.spanId)
    await until(() => collector.trace('5'.repeat(32)).length > 0)
    const [poll] = collector.trace('5'.repeat(32))
    expect(poll).toMatchObject({ parentSpanId: '6'.repeat(16), links: [{ traceId, spanId: query.spanId }] })
  })

  it('has a link from the projection that wrote its events, in a separate trace', async () => {
    const { id } = await run(base, 'SELECT 3')
    const spans = await traceOf(id)
    // A small statement has few spans.
    expect(
      spans.filter(({ name }) => !['parse', 'access-control', 'analyze', 'render', 'fragment'].includes(name)).length,
    ).toBeLessThan(12)
    const query = spans.find((span) => span.name === 'query')!
    const projected = (): ReceivedSpan | undefined =>
      collector.spans.find((span) => span.name === 'process' && span.links.some((link) => link.spanId === query.spanId))
    await until(() => projected() !== undefined)
    expect(projected()!.traceId).not.toBe(query.traceId)
    expect(projected()!.parentSpanId).toBeUndefined()
    const statements = () => collector.trace(projected()!.traceId).filter((span) => span.parentSpanId !== undefined)
    await until(() => statements().some((span) => span.name === 'INSERT queries'))
    for (const span of statements()) expect(span.attributes['db.system.name']).toBe('postgresql')
  })

  it('contains the reads of the read models, by SQL and over HTTP', async () => {
    const { id } = await run(base, 'SELECT count(*) FROM system.runtime.queries')
    const spans = await traceOf(id, ['SELECT queries'])
    const read = spans.find(({ name }) => name === 'SELECT queries')!
    expect(read.parentSpanId).toBe(spans.find(({ name }) => name === 'query')!.spanId)
    expect(read.attributes).toMatchObject({ 'db.system.name': 'postgresql', 'db.operation.name': 'SELECT' })

    const traceId = '7'.repeat(32)
    await raw(`${base}/v1/query`, { headers: { ...trinoHeaders, traceparent: `00-${traceId}-${'8'.repeat(16)}-01` } })
    const named = (name: string): ReceivedSpan | undefined =>
      collector.trace(traceId).find((span) => span.name === name)
    await until(() => named('GET /v1/query') !== undefined && named('SELECT queries') !== undefined)
    expect(named('GET /v1/query')!.parentSpanId).toBe('8'.repeat(16))
    expect(named('SELECT queries')!.parentSpanId).toBe(named('GET /v1/query')!.spanId)
  })

  it('is separate from the trace of the claim of the log', async () => {
    await until(() => collector.spans.some((span) => span.name === 'claim-epoch'))
    const claim = collector.spans.find((span) => span.name === 'claim-epoch')
    expect(claim?.attributes['quipu.epoch']).toBe(1)
    expect(claim?.parentSpanId).toBeUndefined()
  })

  it.each(['x', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, 'ff-'])(
    'has a new id if the client sends the malformed traceparent %j',
    async (text) => {
      const { id, error } = await run(base, 'SELECT 1', { ...trinoHeaders, traceparent: text })
      expect(error).toBeUndefined()
      expect((await traceOf(id)).some((span) => span.name === 'query')).toBe(true)
    },
  )

  it('marks a failure at the step that failed and at the query', async () => {
    const { id, error } = await run(base, 'SELECT nothing FROM nation')
    expect(error?.errorName).toBe('COLUMN_NOT_FOUND')
    const spans = await traceOf(id)
    const failed = spans.filter((span) => span.statusCode === 2).map((span) => span.name)
    expect(failed.toSorted()).toEqual(['analyzer', 'query'])
    for (const span of spans.filter((one) => one.statusCode === 2)) {
      expect(span.attributes).toMatchObject({ 'error.type': 'COLUMN_NOT_FOUND', 'trino.error_type': 'USER_ERROR' })
      expect(span.events.some((event) => event.name === 'exception')).toBe(true)
    }
  })

  it('contains no literal and no result key', async () => {
    const { id, answers } = await run(base, `SELECT 'top secret', 4711`)
    const text = JSON.stringify(await traceOf(id))
    expect(text).not.toContain('top secret')
    expect(text).not.toContain('4711')
    const mac = answers[0]!.nextUri!.split('.').at(-1)!
    expect(mac.length).toBeGreaterThan(10)
    expect(JSON.stringify(collector.spans)).not.toContain(mac)
  })

  it('is completed by the successor of a killed coordinator', async () => {
    const begun = await post(base, 'SELECT o.orderkey, l.comment FROM orders o CROSS JOIN lineitem l LIMIT 3000000')
    const { id } = begun.json
    const [coordinator] = processesOf(server.data).children
    process.kill(coordinator!, 'SIGKILL')
    await until(async () => (await raw(`${base}/v1/info`).catch(() => undefined))?.status === 200)
    expect((await raw(`${base}/v1/query/${id}`, { method: 'DELETE', headers: trinoHeaders })).status).toBe(204)
    const spans = await traceOf(id)
    expect(missingParents(spans)).toEqual([])
    expect(spans.filter((span) => span.parentSpanId === undefined).map(({ name }) => name)).toEqual([
      'POST /v1/statement',
    ])
    const query = spans.find((span) => span.name === 'query')
    expect(query?.statusCode).toBe(2)
    await until(() => collector.spans.some((span) => span.name === 'recover'))
    const recovery = collector.spans.find((span) => span.name === 'recover')
    expect(recovery?.links).toContainEqual({ traceId: query!.traceId, spanId: query!.spanId })
    expect(recovery?.attributes['quipu.epoch']).toBe(2)
  })
})

describe('A coordinator that is killed', () => {
  it('loses no trace that it has not exported', async () => {
    const { id } = await run(base, 'SELECT 7')
    process.kill(processesOf(server.data).children[0]!, 'SIGKILL')
    const spans = await traceOf(id)
    expect(spans.find((span) => span.name === 'query')?.statusCode).toBe(1)
    expect(missingParents(spans)).toEqual([])
  })
})

describe('A collector that does not work', () => {
  it.each(['never', 'with 503'] as const)('stops neither statements nor the drain if it answers %s', async (answer) => {
    const away = await startOtlpReceiver(answer)
    const other = temporaryFolder()
    const slow = spawnQuipu(['start', '--data-dir', `${other.path}/data`, '--port', '0', '--log-level', 'warn'], {
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: away.url },
    })
    try {
      const url = await slow.url
      for (let count = 0; count < 50; count++) expect((await run(url, 'SELECT 1')).rows).toEqual([[1]])
    } finally {
      slow.signal('SIGTERM')
      expect((await slow.exit).code).toBe(0)
      await away.close()
      await other.remove()
    }
  })
})

/**
 * The exported spans of a query's trace, when `query`, all parents and the spans `names` have arrived: spans that end
 * later come with a later batch.
 */
async function traceOf(queryId: string, names: readonly string[] = []): Promise<readonly ReceivedSpan[]> {
  const find = (): ReceivedSpan | undefined =>
    collector.spans.find((span) => span.name === 'query' && span.attributes['trino.query_id'] === queryId)
  await until(() => {
    const query = find()
    if (query === undefined) return false
    const spans = collector.trace(query.traceId)
    return missingParents(spans).length === 0 && names.every((name) => spans.some((span) => span.name === name))
  }).catch((error: unknown) => {
    // The error names the missing spans.
    const spans = collector.trace(find()?.traceId ?? '')
    const ids = new Set(spans.map((span) => span.spanId))
    const orphans = spans.filter(({ parentSpanId }) => parentSpanId !== undefined && !ids.has(parentSpanId))
    throw new Error(
      `Spans ${spans.map(({ name }) => name).join()}; without parent ${orphans.map(({ name }) => name).join()}`,
      {
        cause: error,
      },
    )
  })
  return collector.trace(find()!.traceId)
}

async function rebuiltTrace(queryId: string): Promise<readonly ReceivedSpan[]> {
  const { text } = await raw(`${base}/v1/query/${queryId}/trace`, { headers: trinoHeaders })
  return readOtlp(JSON.parse(text) as OtlpJson)
}

function missingParents(spans: readonly ReceivedSpan[]): readonly string[] {
  const ids = new Set(spans.map((span) => span.spanId))
  return spans.map((span) => span.parentSpanId).filter((id) => id !== undefined && !ids.has(id)) as string[]
}

/** Spans of calls, which no event records. */
function isLiveOnly(name: string): boolean {
  return /^(append|access-control|render|fragment|engine run|task-(update|delete)|(GET|POST|INSERT|SELECT|connector) .*)$/.test(
    name,
  )
}

function byId(spans: readonly ReceivedSpan[]): readonly ReceivedSpan[] {
  return spans.toSorted((a, b) => (a.spanId < b.spanId ? -1 : 1))
}

function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  return waitUntil('the spans are there', condition)
}
