import { setImmediate as nextLoopPass } from 'node:timers/promises'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { QueryEventType } from '../../../src/coordinator/query/stream/events.ts'
import type { QueryExecution } from '../../../src/coordinator/query/registry/query-handle.ts'
import type { KnownQuery } from '../../../src/coordinator/query/stream/state.ts'
import type { StatementAnswer, StatementService } from '../../../src/coordinator/query/results/statement-service.ts'
import { Suspended } from '../../../src/coordinator/query/execution/suspended.ts'
import { WorkerLost } from '../../../src/coordinator/scheduler/worker-error.ts'
import { Fenced, LogChanged, LogUnavailable } from '../../../src/events/event-log.ts'
import { HttpProblem } from '../../../src/protocol/edge/problem.ts'
import { createStatementUris } from '../../../src/protocol/statement/next-uri.ts'
import type { StatementRouteDeps } from '../../../src/protocol/statement/statement-routes.ts'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { event, QUERY_ID } from '../../support/query-events.ts'
import { raw } from '../../support/statement-client.ts'
import type { HttpApp } from '../../support/http-app.ts'
import { serveStatements } from '../../support/statement-server.ts'

const uris = createStatementUris('a secret of the test')

function after(...types: readonly QueryEventType[]): KnownQuery {
  const state = foldQuery(
    QUERY_ID,
    types.map((type) => event(type)),
  )
  if (state.kind === 'NONE') throw new Error('a query is created')
  return state
}

type Answer = Extract<StatementAnswer, { kind: 'answer' }>

function answer(part: Partial<Answer>): Answer {
  const query = after('QueryCreated', 'QueryPlanned', 'TaskCreated', 'ResultPagesPublished')
  return {
    kind: 'answer',
    query,
    liveStats: new Map(),
    queuedReason: undefined,
    nextToken: 1,
    page: undefined,
    failure: undefined,
    settled: false,
    ...part,
  }
}

/** The calls of the service, and the reports of the routes. */
let asked: unknown[]
let reported: unknown[]
let held: number
/** Rejects for users that may not have the result or end the query. */
let guard: StatementRouteDeps['guard']
let service: StatementService
let server: HttpApp
let base: string

beforeEach(async () => {
  ;[asked, reported, held] = [[], [], 0]
  guard = () => {}
  service = {
    async submit(statement) {
      asked.push(statement)
      const state = after('QueryCreated')
      return {
        aggregate: { state, intended: state },
        liveStats: new Map(),
        queuedReason: undefined,
      } as unknown as QueryExecution
    },
    poll: async (...given) => (asked.push(given), answer({})),
    cancel: async (...given) => (asked.push(given), 'done'),
    cancelStage: async (...given) => (asked.push(given), 'done'),
    heartbeat: async (...given) => (asked.push(given), true),
  } as StatementService
  // A cancel of the previous test may still be retried.
  const own = service
  server = await serveStatements({
    service: new Proxy(own, { get: (_target, key) => own[key as keyof StatementService] }),
    memory: {
      hold: (_owner: unknown, bytes: number) => {
        held = bytes
        if (bytes > 500) throw new EngineError('TOO_MANY_REQUESTS_FAILED', 'No room')
        return { bytes, more: (more: number) => void (held += more), release: () => void (held = 0) }
      },
    } as unknown as StatementRouteDeps['memory'],
    uris,
    clock: { now: () => 1_000_000 },
    spans: {
      post: () => ({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', sampled: true }),
      polled: (_request, _response, { token, rows }) => reported.push({ token, rows }),
    } as StatementRouteDeps['spans'],
    guard: (request, of) => guard(request, of),
    groupOf: ({ session }) => `group of ${session.user}`,
    limits: { statementBytes: 1000, longPollMs: 20, deleteValidityWaitMs: 30 },
    onDelivered: (_query, rows) => reported.push(`delivered ${rows}`),
    onRejected: (group, reason) => reported.push(`${group}: ${reason}`),
    onPolled: (result) => reported.push(result),
  })
  base = server.base
})

afterEach(() => server.close())

const post = (body: string, headers: Record<string, string> = {}) =>
  fetch(`${base}/v1/statement`, { method: 'POST', body, headers })
const page = (token: number): string => uris.nextUri(base, QUERY_ID, token)
const stage = (number: number): string => uris.partialCancelUri(base, QUERY_ID, number)

describe('POST /v1/statement', () => {
  it('answers 400 to a prepared statement that does not parse, with the message of Trino', async () => {
    const prepared = 'good=SELECT+1,bad=' + encodeURIComponent('SELEC 1')
    for (const family of ['Trino', 'Presto', 'Engine']) {
      const response = await post('SELECT 1', { [`x-${family}-prepared-statement`]: prepared })
      expect(response.status).toBe(400)
      expect(await response.text()).toContain(`Invalid X-${family}-Prepared-Statement header: line 1:1: mismatched`)
    }
    expect(asked).toEqual([])
    expect((await post('SELECT 1', { 'x-trino-prepared-statement': 'good=SELECT+1' })).status).toBe(200)
  })

  it('submits the statement with its session, and answers with a nextUri', async () => {
    const response = await post('SELECT 1', { 'x-trino-user': 'alice', 'x-trino-catalog': 'TPCH' })
    expect(response.status).toBe(200)
    const body = (await response.json()) as Record<string, unknown>
    expect(body).toMatchObject({ id: QUERY_ID, stats: { state: 'QUEUED' } })
    expect(String(body['nextUri'])).toContain(new URL(page(0)).pathname)
    expect(JSON.stringify(asked)).toContain('"resourceGroup":"group of alice"')
    expect(JSON.stringify(asked)).toContain('"catalog":"tpch"')
    expect(held).toBe(0)
  })

  it('refuses a statement that is empty or too long, headers of two families, and Accept of HTML', async () => {
    expect((await post('  \n')).status).toBe(400)
    expect((await post('S'.repeat(1001))).status).toBe(413)
    expect((await post('SELECT 1', { 'x-trino-user': 'a', 'x-presto-user': 'a' })).status).toBe(400)
    expect((await post('SELECT 1', { accept: 'text/html' })).status).toBe(406)
    expect(asked).toEqual([])
  })

  it('lets the event loop run other work between long statements', async () => {
    const long = `SELECT 'secret' = 'x' /* ${'x'.repeat(300)} */`
    const reported: string[] = []
    const submit = service.submit
    // Sealing a text blocks the event loop for some time.
    service.submit = (statement) => {
      for (const until = performance.now() + 50; performance.now() < until;);
      reported.push('statement')
      return submit(statement)
    }
    let posted = false
    const otherWork = (async () => {
      for (; !posted; reported.push('turn')) await nextLoopPass()
    })()
    await Promise.all(Array.from({ length: 8 }, () => post(long)))
    posted = true
    await otherWork
    expect(reported.filter((one) => one === 'statement')).toHaveLength(8)
    expect(reported.join(' ')).not.toContain('statement statement')
  })

  it('answers 429 and reports "shed" when no memory is free for the statement', async () => {
    const response = await post('S'.repeat(600))
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '1'])
    expect(reported).toEqual(['group of anonymous: shed'])
  })

  it('answers 503 and reports "log_down" while the log does not answer', async () => {
    service.submit = () => Promise.reject(new LogUnavailable('The event log does not answer'))
    const response = await post('SELECT 1')
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
    expect(reported).toEqual(['group of anonymous: log_down'])
  })
})

describe('GET of a page of a result', () => {
  it('puts the stored bytes of the page into the answer unchanged', async () => {
    const bytes = [Buffer.from('[[ '), Buffer.from('1 ]]')]
    service.poll = async () => answer({ page: { token: 0, bytes, rows: 1 } })
    const response = await fetch(page(0))
    const text = await response.text()
    expect(text).toContain('"data":[[ 1 ]],"stats"')
    expect(JSON.parse(text)).toMatchObject({ id: QUERY_ID, data: [[1]] })
    expect(reported).toEqual(['data', { token: 0, rows: 1 }, 'delivered 1'])
  })

  it.each([60, 1_000])('sends a large page in parts completely, with HTTP/1.1 and 1.0: %d kB', async (kB) => {
    const rows = Array.from({ length: kB }, (_, i) => [i, 'ä'.repeat(495)])
    const bytes = Buffer.from(JSON.stringify(rows))
    const parts = [bytes.subarray(0, 1), bytes.subarray(1, 40_001), bytes.subarray(40_001)]
    service.poll = async () => answer({ page: { token: 0, bytes: parts, rows: kB } })
    const response = await fetch(page(0))
    expect(response.headers.get('transfer-encoding')).toBe('chunked')
    expect(await response.json()).toMatchObject({ id: QUERY_ID, data: rows })
    const old = connect(Number(new URL(base).port), '127.0.0.1')
    old.end(`GET ${new URL(page(0)).pathname} HTTP/1.0\r\n\r\n`)
    const [head, body] = (await text(old)).split('\r\n\r\n')
    expect(head).not.toMatch(/transfer-encoding/i)
    expect(JSON.parse(body!)).toMatchObject({ id: QUERY_ID, data: rows })
  })

  it('asks the service with the longest wait of a long poll', async () => {
    await fetch(page(7))
    expect(asked).toEqual([[QUERY_ID, 7, 20, undefined]])
    expect(reported).toEqual(['empty', { token: 7, rows: 0 }])
  })

  it('repeats a settled answer byte for byte', async () => {
    service.poll = async () => answer({ settled: true, nextToken: undefined })
    const first = await (await fetch(page(0))).text()
    service.poll = async () => answer({ settled: true, nextToken: undefined, query: after('QueryCreated') })
    expect(await (await fetch(page(0))).text()).toBe(first)
    expect(reported).toContain('last')
  })

  it('answers 410 for a result that is gone, and 404 for an unknown query', async () => {
    service.poll = async () => ({ kind: 'gone' })
    expect((await fetch(page(0))).status).toBe(410)
    service.poll = async () => ({ kind: 'unknown' })
    expect((await fetch(page(0))).status).toBe(404)
    expect(reported).toEqual(['gone', 'not_found'])
  })

  it('answers with the same nextUri while the log does not answer', async () => {
    service.poll = () => Promise.reject(new LogUnavailable('away'))
    const { status, json } = await raw(page(3))
    expect(status).toBe(200)
    expect(json).toMatchObject({ nextUri: page(3), stats: { state: 'QUEUED' } })
  })

  it.each([
    ['the log is away', new LogUnavailable('away')],
    ['another coordinator writes', new Fenced('fenced')],
    ['the next coordinator takes the query over', new Suspended()],
    ['its worker is away', new WorkerLost('away')],
  ])('answers GET, HEAD and DELETE without an error while %s', async (_what, error) => {
    service.poll = () => Promise.reject(error)
    service.heartbeat = () => Promise.reject(error)
    service.cancel = () => Promise.reject(error)
    expect((await fetch(page(0))).status).toBe(200)
    expect((await fetch(page(0), { method: 'HEAD' })).status).toBe(200)
    expect((await fetch(page(0), { method: 'DELETE' })).status).toBe(204)
  })

  it.each([
    ['the log does not answer with the owner of the query', () => Promise.reject(new LogUnavailable('away'))],
    ['the owner of the query is not known in time', () => new Promise<void>(() => {})],
  ])('lets the client wait while %s, and shows no data of the query', async (_what, ownerUnknown) => {
    guard = ownerUnknown
    const { status, json } = await raw(page(3))
    expect(status).toBe(200)
    expect(json).toMatchObject({ id: QUERY_ID, nextUri: page(3), stats: { state: 'QUEUED' } })
    expect([json.columns, json.data]).toEqual([undefined, undefined])
    expect((await fetch(page(0), { method: 'HEAD' })).status).toBe(200)
    expect(asked).toEqual([])
  })

  it('answers 403 to a user without rights to the query, also for HEAD and DELETE', async () => {
    guard = () => Promise.reject(new HttpProblem(403, 'Access Denied'))
    for (const method of ['GET', 'HEAD', 'DELETE']) expect((await fetch(page(0), { method })).status).toBe(403)
    expect(asked).toEqual([])
  })

  it.each([
    ['a bug', new TypeError('internals')],
    ['a bug with a text about a timeout', new Error('internals: timeout of what was terminated')],
    ['a bug with a code', Object.assign(new Error('internals'), { code: 'ENOENT' })],
    ['a log with altered records', new LogChanged('internals')],
  ])('answers 500 for %s, without the text of the error', async (_what, error) => {
    service.poll = () => Promise.reject(error)
    service.heartbeat = () => Promise.reject(error)
    service.cancel = () => Promise.reject(error)
    const response = await fetch(page(0))
    expect(response.status).toBe(500)
    expect(await response.text()).not.toContain('internals')
    expect((await fetch(page(0), { method: 'HEAD' })).status).toBe(500)
    expect((await fetch(page(0), { method: 'DELETE' })).status).toBe(500)
  })
})

describe('The address of a page, stage or query', () => {
  it.each([
    ['with the MAC of another page', () => page(1).replace('/1.', '/2.'), 'GET'],
    ['with the MAC of another query', () => page(1).replace('00006', '00007'), 'GET'],
    ['without a MAC', () => `${base}/v1/statement/${QUERY_ID}/1`, 'GET'],
    ['of text that is not a query id', () => `${base}/v1/statement/x/1.abc`, 'DELETE'],
    ['of another stage', () => stage(1).replace(`.1/`, '.2/'), 'DELETE'],
    ['of a heartbeat with a wrong MAC', () => `${base}/v1/statement/${QUERY_ID}/1.abc`, 'HEAD'],
  ])('%s is answered 404 without a call of the service', async (_name, address, method) => {
    expect((await fetch(address(), { method })).status).toBe(404)
    expect(asked).toEqual([])
  })

  it('is left to other routes when it belongs to no statement', async () => {
    for (const path of ['/v1/query', '/v1/statement/a/b/c', '/v1/stage/x/y'])
      expect((await fetch(base + path)).status).toBe(418)
  })

  it.each([
    ['/v1/statement', 'GET', 'POST, OPTIONS'],
    [`/v1/statement/${QUERY_ID}/1.x`, 'POST', 'GET, HEAD, DELETE, OPTIONS'],
    [`/v1/stage/${QUERY_ID}.1/x`, 'GET', 'DELETE'],
  ])('%s answers 405 to %s and names the allowed methods', async (path, method, allow) => {
    const response = await fetch(base + path, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
  })

  it('answers OPTIONS with its methods', async () => {
    const response = await fetch(`${base}/v1/statement`, { method: 'OPTIONS' })
    expect([response.status, response.headers.get('allow')]).toEqual([204, 'POST, OPTIONS'])
  })
})

describe('DELETE of a statement', () => {
  it('answers 204 when the cancel is recorded', async () => {
    expect((await fetch(page(2), { method: 'DELETE' })).status).toBe(204)
    expect(asked).toEqual([[QUERY_ID, { failure: expect.objectContaining({ errorName: 'USER_CANCELED' }) }, 30]])
  })

  it('answers 204 while the log accepts nothing, and the server retries the cancel', async () => {
    const outcomes: (() => Promise<'waiting' | 'done'>)[] = [
      async () => 'waiting',
      () => Promise.reject(new LogUnavailable('away')),
      async () => 'done',
    ]
    let cancels = 0
    const done = new Promise<void>((resolve) => {
      service.cancel = () => {
        const outcome = outcomes[cancels++]!
        if (cancels === outcomes.length) resolve()
        return outcome()
      }
    })
    expect((await fetch(page(2), { method: 'DELETE' })).status).toBe(204)
    await done
    expect(cancels).toBe(outcomes.length)
  })

  it('answers 204 while the owner is unknown, and later cancels only if the user has the right', async () => {
    let isAnswered = false
    const known = new Promise<void>((resolve) => {
      guard = async () => {
        if (!isAnswered) throw new LogUnavailable('away')
        resolve()
        throw new HttpProblem(403, 'Access Denied')
      }
    })
    expect((await fetch(page(2), { method: 'DELETE' })).status).toBe(204)
    isAnswered = true
    await known
    await nextLoopPass()
    expect(asked).toEqual([])
  })

  it('answers 404 for an unknown query', async () => {
    service.cancel = async () => 'unknown'
    expect((await fetch(page(2), { method: 'DELETE' })).status).toBe(404)
  })

  it('answers 204 for a stage, and 409 for a stage that writes', async () => {
    expect((await fetch(stage(1), { method: 'DELETE' })).status).toBe(204)
    expect(asked).toEqual([[QUERY_ID, 1]])
    service.cancelStage = async () => 'writes'
    expect((await fetch(stage(1), { method: 'DELETE' })).status).toBe(409)
  })
})

describe('HEAD of a statement', () => {
  it('answers 200 for a known query or while the log does not answer, and 404 for an unknown query', async () => {
    expect((await fetch(page(2), { method: 'HEAD' })).status).toBe(200)
    service.heartbeat = async () => false
    expect((await fetch(page(2), { method: 'HEAD' })).status).toBe(404)
    // The query may still exist.
    service.heartbeat = () => Promise.reject(new LogUnavailable('away'))
    expect((await fetch(page(2), { method: 'HEAD' })).status).toBe(200)
  })
})
