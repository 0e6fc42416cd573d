import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ClusterLost, type RemoteTail, type RemoteUri } from '../../../src/coordinator/clusters/relay/relay-port.ts'
import type { RelayedPage } from '../../../src/coordinator/clusters/relay/sealed-address.ts'
import type { RelayedQueryAnswer } from '../../../src/coordinator/query/registry/remote-answers.ts'
import { statusAnswer } from '../../../src/coordinator/query/results/statement-answer.ts'
import type { StatementService } from '../../../src/coordinator/query/results/statement-service.ts'
import { foldQuery } from '../../../src/coordinator/query/stream/evolve.ts'
import type { KnownQuery } from '../../../src/coordinator/query/stream/state.ts'
import { vouchConnection } from '../../../src/protocol/edge/client-connection.ts'
import { createStatementUris, statementPath } from '../../../src/protocol/statement/next-uri.ts'
import type { HeaderFamily } from '../../../src/protocol/statement/session-headers.ts'
import { LogUnavailable } from '../../../src/events/event-log.ts'
import { event, QUERY_ID } from '../../support/query-events.ts'
import { raw } from '../../support/statement-client.ts'
import type { HttpApp } from '../../support/http-app.ts'
import { serveStatements } from '../../support/statement-server.ts'

const uris = createStatementUris('a secret of the test')
const pageAt = (token: number): RelayedPage => ({
  attempt: 0,
  cluster: 'trino-a',
  uri: `/v1/statement/executing/20261127_115943_00001_abcde/y0123/${token}` as RemoteUri,
  rowsSent: token > 1,
})
const TAIL: RemoteTail = { stats: { state: 'RUNNING', nodes: 3 }, warnings: [{ message: 'slow' }], rowsBytes: 0 }
const cut = new ClusterLost('trino-a', 'unreachable', 'cut')

let server: HttpApp
let polls: unknown[][]
let polled: string[]
let answer: () => RelayedQueryAnswer | Promise<RelayedQueryAnswer>
/** The address of the client as the server sees it. */
let clientAddress: string
/** How many sources of rows were closed before their end. */
let closed: number

beforeEach(async () => {
  ;[polls, polled, closed, clientAddress] = [[], [], 0, '127.0.0.1']
  const service = {
    poll: async (...given: unknown[]) => (polls.push(given), answer()),
    heartbeat: async (...given: unknown[]) => (polls.push(given), true),
    cancel: async (...given: unknown[]) => (polls.push(given), 'done'),
  } as unknown as StatementService
  server = await serveStatements(
    {
      service,
      uris,
      onPolled: (result) => polled.push(result),
      limits: { statementBytes: 1000, longPollMs: 20, deleteValidityWaitMs: 30 },
    },
    (request) => vouchConnection(request, { address: clientAddress }),
  )
})
afterEach(() => server.close())

function queryOf(headerFamily: HeaderFamily = 'Trino'): KnownQuery {
  const state = foldQuery(QUERY_ID, [event('QueryCreated', 0, { headerFamily, baseUri: server.base })])
  if (state.kind === 'NONE') throw new Error('a query is created')
  return state
}

function relayed(part: Partial<RelayedQueryAnswer> = {}): RelayedQueryAnswer {
  return {
    kind: 'relayed',
    query: queryOf(),
    next: pageAt(2),
    cancelableStage: 1,
    columns: [{ name: 'a', type: 'bigint', typeSignature: { rawType: 'bigint', arguments: [] } }],
    headers: [],
    data: undefined,
    tail: Promise.resolve(TAIL),
    ...part,
  }
}

/** The rows in parts; then `end`, which may throw or wait. */
function rowsOf(parts: readonly (string | Buffer)[], end: () => Promise<void> = async () => {}): AsyncIterable<Buffer> {
  return (async function* () {
    try {
      for (const part of parts) yield Buffer.from(part)
      await end()
    } finally {
      closed++
    }
  })()
}

const address = (token = 1): string => uris.nextUri(server.base, QUERY_ID, token, pageAt(token))
const megabytes = (count: number): string[] => [
  '[',
  ...Array.from({ length: 16 * count }, () => `[${'1,'.repeat(32_000)}1],`),
  '[2]]',
]

describe('The answer of a cluster', () => {
  it('has the addresses of this server, and everything else as the cluster gives it', async () => {
    const error = { message: 'bad', errorCode: 1, errorName: 'HIVE_X', errorType: 'EXTERNAL' }
    answer = () =>
      relayed({
        data: rowsOf(['[[', '1],[2]]']),
        tail: Promise.resolve({ ...TAIL, updateType: 'INSERT', updateCount: 7, error }),
        headers: [
          { header: 'Set-Session', value: 'a=1' },
          { header: 'Set-Schema', value: 'é' },
        ],
      })
    const { text: body, headers } = await raw(address())
    expect(body).toBe(
      `{"id":"${QUERY_ID}","infoUri":"${server.base}/v1/query/${QUERY_ID}",` +
        `"partialCancelUri":"${uris.partialCancelUri(server.base, QUERY_ID, 1)}","nextUri":"${address(2)}",` +
        '"columns":[{"name":"a","type":"bigint","typeSignature":{"rawType":"bigint","arguments":[]}}],' +
        `"data":[[1],[2]],"stats":{"state":"RUNNING","nodes":3},"error":${JSON.stringify(error)},` +
        '"warnings":[{"message":"slow"}],"updateType":"INSERT","updateCount":7}',
    )
    expect(headers['x-trino-set-session']).toBe('a=1')
    expect(Buffer.from(headers['x-trino-set-schema'] as string, 'latin1').toString('utf8')).toBe('é')
    expect(polls).toEqual([[QUERY_ID, 1, expect.any(Number), pageAt(1)]])
    expect(polled).toEqual(['data'])
  })

  it('is the last if it has neither rows nor a next page', async () => {
    answer = () => relayed({ next: undefined, cancelableStage: undefined, columns: undefined })
    const { json } = await raw(address())
    expect(json).toEqual({
      id: QUERY_ID,
      infoUri: `${server.base}/v1/query/${QUERY_ID}`,
      stats: TAIL.stats,
      warnings: TAIL.warnings,
    })
    answer = () => relayed()
    expect((await raw(address())).json.nextUri).toBe(address(2))
    expect(polled).toEqual(['last', 'empty'])
  })

  it('reaches a client of Presto with its headers, and with columns without signatures', async () => {
    answer = () => relayed({ query: queryOf('Presto'), headers: [{ header: 'Set-Session', value: 'a=1' }] })
    const { json, headers } = await raw(address())
    expect(json.columns).toEqual([{ name: 'a', type: 'bigint' }])
    expect(headers['x-presto-set-session']).toBe('a=1')
  })

  it.each([
    ['1.1', 'identity'],
    ['1.1', 'gzip'],
    ['1.0', 'identity'],
  ])('reaches the client whole with a large page over HTTP/%s, %s', async (version, encoding) => {
    if (encoding === 'gzip') clientAddress = '203.0.113.7'
    answer = () => relayed({ data: rowsOf(megabytes(3)) })
    const socket = connect(Number(new URL(server.base).port), '127.0.0.1')
    const path = new URL(address()).pathname
    if (version === '1.0') socket.end(`GET ${path} HTTP/1.0\r\n\r\n`)
    const body =
      version === '1.0'
        ? (await text(socket)).split('\r\n\r\n')[1]!
        : await new Promise<string>((resolve, reject) => {
            const headers = { 'accept-encoding': 'gzip' }
            httpRequest(address(), { headers }, async (response) => {
              expect(response.headers['content-encoding']).toBe(encoding === 'gzip' ? 'gzip' : undefined)
              const parts: Buffer[] = []
              for await (const part of response) parts.push(part as Buffer)
              const bytes = Buffer.concat(parts)
              resolve((encoding === 'gzip' ? gunzipSync(bytes) : bytes).toString())
            })
              .on('error', reject)
              .end()
          })
    socket.destroy()
    expect(body).toContain(`"data":${megabytes(3).join('')},"stats":{`)
    expect(JSON.parse(body)).toMatchObject({ nextUri: address(2) })
  })

  it('is read no faster than the client reads', async () => {
    let read = 0
    async function* endless(): AsyncGenerator<Buffer> {
      for (; ; read++) yield Buffer.alloc(65_536, 0x20)
    }
    answer = () => relayed({ data: endless(), tail: new Promise(() => {}) })
    const socket = connect(Number(new URL(server.base).port), '127.0.0.1').pause()
    socket.write(`GET ${new URL(address()).pathname} HTTP/1.1\r\nhost: x\r\n\r\n`)
    // The client reads nothing. Parts are read until all buffers between here and there are full.
    let before = -1
    await expect.poll(() => [before, (before = read)], { interval: 500 }).toSatisfy(([a, b]) => a === b && b > 0)
    const full = read
    expect(full).toBeLessThan(1000)
    socket.resume()
    await expect.poll(() => read).toBeGreaterThan(2 * full)
    socket.destroy()
  })

  it('closes its source when the client goes away', async () => {
    answer = () => relayed({ data: rowsOf([...megabytes(1), ...megabytes(20)]), tail: new Promise(() => {}) })
    const socket = connect(Number(new URL(server.base).port), '127.0.0.1')
    socket.write(`GET ${new URL(address()).pathname} HTTP/1.1\r\nhost: x\r\n\r\n`)
    socket.once('data', () => socket.destroy())
    await expect.poll(() => closed).toBe(1)
  })
})

describe('A failure of the cluster', () => {
  it.each([
    ['its rows', () => ({ data: rowsOf(megabytes(1), () => Promise.reject(cut)), tail: new Promise<never>(() => {}) })],
    [
      'the record of its end',
      () => ({ data: rowsOf(megabytes(1)), tail: Promise.reject<RemoteTail>(new LogUnavailable('away')) }),
    ],
  ])('cuts the connection of the client if it is in %s, also with gzip', async (_, part) => {
    for (const clientAt of ['127.0.0.1', '203.0.113.7']) {
      clientAddress = clientAt
      answer = () => relayed(part())
      const got = await new Promise<string>((resolve) => {
        httpRequest(address(), { headers: { 'accept-encoding': 'gzip' } }, (response) => {
          response.resume()
          response.on('end', () => resolve('whole')).on('error', () => resolve('cut'))
        }).end()
      })
      expect(got).toBe('cut')
    }
  })

  it('lets the client ask for the same page again if no part was sent yet', async () => {
    const away = (): Promise<RemoteTail> => Promise.reject(new LogUnavailable('away'))
    for (const part of [
      () => ({ data: rowsOf(['[[1]'], () => Promise.reject(cut)), tail: Promise.reject<RemoteTail>(cut) }),
      () => ({ data: rowsOf(['[[1]]']), tail: away() }),
      () => ({ tail: away() }),
    ]) {
      answer = () => relayed(part())
      const { status, json } = await raw(address())
      expect([status, json.nextUri, json.data]).toEqual([200, address(1), undefined])
    }
  })

  it('keeps the page of the cluster in the address of every answer that lets the client wait', async () => {
    answer = () => Promise.reject(new LogUnavailable('away'))
    expect((await raw(address())).json.nextUri).toBe(address(1))
    const view = { query: queryOf(), liveStats: new Map(), queuedReason: undefined }
    answer = () => statusAnswer(view, 1) as unknown as RelayedQueryAnswer
    expect((await raw(address())).json.nextUri).toBe(address(1))
  })
})

describe('The address of a page of a cluster', () => {
  it('is given to the service by GET and HEAD, and ends the query with DELETE', async () => {
    answer = () => relayed()
    await raw(address(3))
    await raw(address(3), { method: 'HEAD' })
    expect((await raw(address(3), { method: 'DELETE' })).status).toBe(204)
    expect(polls).toEqual([
      [QUERY_ID, 3, expect.any(Number), pageAt(3)],
      [QUERY_ID, pageAt(3)],
      [QUERY_ID, expect.anything(), 30],
    ])
  })

  it('is not found with another token, with the seal of another secret, or changed', async () => {
    const { segment } = statementPath(new URL(address(3)).pathname)!
    const foreign = createStatementUris('another secret of a test').nextUri(server.base, QUERY_ID, 3, pageAt(3))
    const wrong = [segment.replace(/^3/, '4'), segment.slice(0, -1), `${segment}A`]
    for (const uri of [foreign, ...wrong.map((each) => `${server.base}/v1/statement/${QUERY_ID}/${each}`)])
      for (const method of ['GET', 'HEAD', 'DELETE']) expect((await raw(uri, { method })).status).toBe(404)
    expect(polls).toEqual([])
  })
})
