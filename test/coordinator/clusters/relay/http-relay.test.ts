import { readFileSync } from 'node:fs'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHttpRelay, type HttpRelayOptions } from '../../../../src/coordinator/clusters/relay/http-relay.ts'
import {
  AnswerNotRead,
  type RemoteAnswer,
  type RemoteUri,
} from '../../../../src/coordinator/clusters/relay/relay-port.ts'
import { createAuthority, type TestAuthority } from '../../../support/certificates.ts'
import { sendCut, sendJson, startScriptedCluster, type ScriptedCluster } from '../../../support/scripted-cluster.ts'

const ID = '20261127_115943_00001_abcde'
const uriOf = (token: number | string): RemoteUri => `/v1/statement/executing/${ID}/y0123/${token}` as RemoteUri

let cluster: ScriptedCluster
let relay: ReturnType<typeof createHttpRelay>
let outcomes: (string | undefined)[]

/** Makes the relay anew with other times. */
function relayWith(options: HttpRelayOptions): void {
  relay?.close()
  relay = createHttpRelay({ onOutcome: (_cluster, error) => void outcomes.push(error?.reason), ...options })
}

beforeEach(async () => {
  outcomes = []
  cluster = await startScriptedCluster()
  relayWith({})
})
afterEach(async () => {
  relay.close()
  await cluster.close()
})

function answerOf(token: number, data?: readonly unknown[]): Record<string, unknown> {
  return {
    id: ID,
    infoUri: `http://x/ui/${ID}`,
    nextUri: `http://somewhere.example:1${uriOf(token + 1)}`,
    columns: [{ name: 'a', type: 'bigint' }],
    ...(data ? { data } : {}),
    stats: { state: 'RUNNING' },
    warnings: [],
  }
}

async function rowsOf({ data }: RemoteAnswer): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of data ?? []) parts.push(part)
  return Buffer.concat(parts).toString('utf8')
}

const fetchPage = (token: number | string = 1, signal = new AbortController().signal): Promise<RemoteAnswer> =>
  relay.fetch(cluster.target, uriOf(token), signal)
const lost = (reason: string) => expect.objectContaining({ reason, cluster: 'trino-a' })
/** A page of 300 kB. */
const LARGE = Array.from({ length: 3000 }, (_, index) => [index, 'x'.repeat(90)])

const statement = {
  sql: "SELECT 'é'",
  user: 'alié',
  headers: {
    'X-Trino-Catalog': 'hive',
    'x-trino-client-tags': 'ä',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    authorization: 'Basic Y2xpZW50OnNlY3JldA==',
    'x-forwarded-for': '1.2.3.4',
    'X-Forwarded-Proto': 'https',
    cookie: 'a=b',
    host: 'evil.example',
    'accept-encoding': 'gzip',
    'x-trino-user': 'root',
    'x-trino-extra-credential': 'a=b',
    'x-trino-query-data-encoding': 'json+zstd',
  },
}
const post = () => relay.post(cluster.target, statement, new AbortController().signal)

describe('A statement at a cluster', () => {
  it('is posted with the headers of its session and the credentials of the cluster, and nothing else', async () => {
    const target = { ...cluster.target, credentials: async () => ({ authorization: 'Bearer service' }) }
    cluster.answerWith((_request, response) =>
      sendJson(response, { id: ID, nextUri: `http://127.0.0.1:9/v1/statement/queued/${ID}/y1/1?x=1`, stats: {} }),
    )
    const posted = await relay.post(target, statement, new AbortController().signal)
    expect(posted).toEqual({ remoteId: ID, uri: `/v1/statement/queued/${ID}/y1/1?x=1` })
    const [{ method, path, body, rawHeaders }] = cluster.requests as [(typeof cluster.requests)[number]]
    expect([method, path, body]).toEqual(['POST', '/v1/statement', statement.sql])
    // Node reads headers as Latin-1, and so does Trino.
    const headers = new Map(rawHeaders.flatMap((name, i) => (i % 2 ? [] : [[name.toLowerCase(), rawHeaders[i + 1]!]])))
    expect(Object.fromEntries(headers)).toEqual({
      'x-trino-user': 'alié',
      'x-trino-catalog': 'hive',
      'x-trino-client-tags': 'ä',
      traceparent: statement.headers.traceparent,
      authorization: 'Bearer service',
      'accept-encoding': 'identity',
      accept: 'application/json',
      'user-agent': 'quipu',
      'content-type': 'text/plain',
      'content-length': String(Buffer.byteLength(statement.sql)),
      host: cluster.target.url.host,
      connection: 'keep-alive',
    })
  })

  it('is posted with UTF-8 for texts that Latin-1 does not have', async () => {
    cluster.answerWith((_request, response) =>
      sendJson(response, { id: ID, nextUri: `http://127.0.0.1:9/v1/statement/queued/${ID}/y1/1`, stats: {} }),
    )
    await relay.post(cluster.target, { ...statement, user: 'é日' }, new AbortController().signal)
    const { rawHeaders } = cluster.requests[0]!
    const sent = rawHeaders[rawHeaders.indexOf('x-trino-user') + 1]!
    expect(Buffer.from(sent, 'latin1').toString('utf8')).toBe('é日')
  })

  it('is posted once more when the cluster closes the kept connection, and not a third time', async () => {
    const posted = { id: ID, nextUri: `http://x/v1/statement/queued/${ID}/y1/1`, stats: {} }
    cluster.answerWith((_request, response) => sendJson(response, posted))
    await post()
    let resets = 0
    cluster.answerWith((request, response) => {
      if (resets++ === 0) request.socket.destroy()
      else sendJson(response, posted)
    })
    expect((await post()).remoteId).toBe(ID)
    expect(cluster.requests).toHaveLength(3)
    cluster.answerWith((request) => request.socket.destroy())
    await expect(post()).rejects.toEqual(lost('unreachable'))
    // The kept connection, and a new one.
    expect(cluster.requests).toHaveLength(5)
  })

  it.each([
    [
      'a server that starts',
      { id: ID, error: { errorName: 'SERVER_STARTING_UP', message: 'starting' }, stats: {} },
      'refused',
    ],
    ['an answer of another form', { message: 'welcome' }, 'nonsense'],
    ['an id with other characters', { id: '../x', nextUri: 'http://x/../x', stats: {} }, 'nonsense'],
    ['an address of another query', { id: ID, nextUri: 'http://x/v1/statement/queued/other/1', stats: {} }, 'nonsense'],
  ])('is lost to %s', async (_, body, reason) => {
    cluster.answerWith((_request, response) => sendJson(response, body))
    await expect(post()).rejects.toEqual(lost(reason))
    expect(cluster.requests).toHaveLength(1)
  })

  it.each([
    [401, 'refused', undefined],
    [406, 'refused', undefined],
    [429, 'unreachable', 1000],
    [502, 'unreachable', 1000],
    [503, 'unreachable', 1000],
    [302, 'nonsense', undefined],
  ])('is lost with HTTP %d: %s', async (status, reason, retryAfterMs) => {
    cluster.answerWith((_request, response) =>
      response.writeHead(status, { 'retry-after': '1', location: 'http://127.0.0.1:1/' }).end('because'),
    )
    await expect(post()).rejects.toEqual(lost(reason))
    await expect(post()).rejects.toMatchObject({ retryAfterMs })
    expect(outcomes).toEqual([reason, reason])
  })

  it('is lost to a cluster that does not answer, or does not listen', async () => {
    relayWith({ maxWaitMs: 0, graceMs: 50 })
    cluster.answerWith(() => {})
    await expect(post()).rejects.toEqual(lost('stalled'))
    cluster.stop()
    await expect(post()).rejects.toEqual(lost('unreachable'))
    // No server listens at this port, and none of another test ever does.
    const unreachable = { ...cluster.target, url: new URL('http://127.0.0.1:1') }
    await expect(relay.post(unreachable, statement, new AbortController().signal)).rejects.toEqual(lost('unreachable'))
  })
})

describe('A page of a cluster', () => {
  it('has addresses without their host, the headers of the session, and the rows as bytes', async () => {
    const page = JSON.stringify(
      answerOf(1, [
        [1, 'é'],
        [2, null],
      ]),
    )
    cluster.answerWith((_request, response) =>
      sendJson(response, page, {
        'X-Trino-Set-Session': ['a=1', 'b=%C3%A9'],
        'X-Trino-Set-Schema': Buffer.from('schéma').toString('latin1'),
        'X-Trino-Clear-Transaction-Id': 'true',
        'X-Other': 'x',
        'Set-Cookie': 'a=b',
      }),
    )
    const found = await fetchPage()
    expect(found.head).toEqual({ id: ID, nextUri: uriOf(2), columns: [{ name: 'a', type: 'bigint' }] })
    expect(found.headers).toEqual([
      { header: 'Set-Session', value: 'a=1' },
      { header: 'Set-Session', value: 'b=%C3%A9' },
      { header: 'Set-Schema', value: 'schéma' },
      { header: 'Clear-Transaction-Id', value: 'true' },
    ])
    expect(await rowsOf(found)).toBe('[[1,"é"],[2,null]]')
    expect(await found.tail).toEqual({ stats: { state: 'RUNNING' }, warnings: [], rowsBytes: 19, rows: 2 })
    expect(outcomes).toEqual([undefined])
  })

  it('comes whole if it has up to 64 kB, wherever its connection is cut the first time', async () => {
    const page = Buffer.from(
      JSON.stringify(
        answerOf(1, [
          [1, 'é'],
          [2, '],"stats":{'],
        ]),
      ),
    )
    const seen = new Set<string>()
    cluster.answerWith(({ url = '' }, response) => {
      const cut = Number(url.split('/').at(-1))
      if (seen.has(url) || cut === page.length) return sendJson(response, page.toString())
      seen.add(url)
      sendCut(response, page, cut)
    })
    const cuts = Array.from({ length: page.length + 1 }, (_, cut) => cut)
    const found = await Promise.all(
      cuts.map(async (cut) => {
        const answer = await fetchPage(cut)
        return [await rowsOf(answer), (await answer.tail).stats, answer.head.nextUri]
      }),
    )
    for (const each of found) expect(each).toEqual(['[[1,"é"],[2,"],\\"stats\\":{"]]', { state: 'RUNNING' }, uriOf(2)])
    expect(cluster.requests).toHaveLength(2 * page.length + 1)
  })

  it('fails where its connection is cut if it has more than 64 kB, and never has fewer rows', async () => {
    const page = Buffer.from(JSON.stringify(answerOf(1, LARGE)))
    cluster.answerWith(({ url = '' }, response) => sendCut(response, page, Number(url.split('/').at(-1))))
    const last = Array.from({ length: 120 }, (_, index) => page.length - 1 - index)
    await Promise.all(
      [...last, 200_000, 100_000].map(async (cut) => {
        const found = await fetchPage(cut)
        await expect(rowsOf(found)).rejects.toEqual(lost('unreachable'))
        await expect(found.tail).rejects.toEqual(lost('unreachable'))
      }),
    )
  })

  it.each([429, 502, 503, 500])('is asked for again while the cluster answers %d', async (status) => {
    let failures = 3
    cluster.answerWith((_request, response) =>
      failures-- > 0 ? response.writeHead(status, { 'retry-after': '0' }).end() : sendJson(response, answerOf(1)),
    )
    expect((await fetchPage()).head.nextUri).toBe(uriOf(2))
    expect(cluster.requests.map(({ path }) => path)).toEqual(Array.from({ length: 4 }, () => uriOf(1)))
    expect(outcomes).toEqual(['unreachable', 'unreachable', 'unreachable', undefined])
  })

  it('comes after a restart of the cluster, and is lost when the cluster stays away', async () => {
    cluster.answerWith((_request, response) => sendJson(response, answerOf(1)))
    await fetchPage()
    cluster.stop()
    const waiting = fetchPage()
    await expect.poll(() => outcomes.filter((each) => each === 'unreachable').length).toBeGreaterThan(1)
    cluster.restart()
    expect((await waiting).head.nextUri).toBe(uriOf(2))
    cluster.stop()
    relayWith({ clusterLostMs: 200 })
    await expect(fetchPage()).rejects.toEqual(lost('unreachable'))
  })

  it.each([
    ['before its head', (): void => {}],
    ['in its head', (write: (text: string) => void): void => write('{"id":')],
    ['in its rows', (write: (text: string) => void): void => write(`{"id":"${ID}","data":[[1],`)],
  ])('is asked for again when the cluster falls silent %s', async (_, begin) => {
    relayWith({ maxWaitMs: 0, graceMs: 300 })
    let silences = 2
    cluster.answerWith((_request, response) => {
      if (silences-- <= 0) return sendJson(response, answerOf(1, [[1]]))
      begin((part) => void response.writeHead(200, { 'content-type': 'application/json' }).write(part))
    })
    expect(await rowsOf(await fetchPage())).toBe('[[1]]')
    // On a slow machine a good answer may be late as well.
    expect(outcomes.slice(0, 2)).toEqual(['stalled', 'stalled'])
    expect(outcomes.at(-1)).toBeUndefined()
  })

  it.each([
    [404, 'gone'],
    [410, 'passed'],
    [403, 'refused'],
    [301, 'nonsense'],
    [204, 'nonsense'],
  ])('is lost with HTTP %d: %s, without a second request', async (status, reason) => {
    cluster.answerWith((_request, response) => response.writeHead(status, { location: '/' }).end())
    await expect(fetchPage()).rejects.toEqual(lost(reason))
    expect(cluster.requests).toHaveLength(1)
  })

  it.each([
    ['HTML', (): [string, Record<string, string>] => ['<html>', { 'content-type': 'text/html' }]],
    ['no JSON', (): [string, Record<string, string>] => ['<html>', {}]],
    [
      'a compressed answer',
      (): [string, Record<string, string>] => [gzipSync('{}').toString('latin1'), { 'content-encoding': 'gzip' }],
    ],
    ['another query', (): [string, Record<string, string>] => [JSON.stringify({ ...answerOf(1), id: 'other' }), {}]],
  ])('is refused as nonsense for %s', async (_, make) => {
    const [body, headers] = make()
    cluster.answerWith((_request, response) => sendJson(response, body, headers))
    await expect(fetchPage()).rejects.toEqual(lost('nonsense'))
    expect(cluster.requests).toHaveLength(1)
    // No error shows an address.
    await expect(fetchPage()).rejects.toThrow(/^(?!.*y0123)/s)
  })

  it('ends with the reason of its signal, before and within the rows', async () => {
    const reason = new Error('the query has ended')
    const [before, within] = [new AbortController(), new AbortController()]
    cluster.answerWith(() => before.abort(reason))
    await expect(fetchPage(1, before.signal)).rejects.toBe(reason)
    cluster.answerWith((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write(JSON.stringify(answerOf(1, LARGE)).slice(0, 200_000))
    })
    const found = await fetchPage(1, within.signal)
    setTimeout(() => within.abort(reason), 20)
    await expect(rowsOf(found)).rejects.toBe(reason)
    await expect(found.tail).rejects.toBe(reason)
  })

  it('closes its connection when its reader stops, also while a part is awaited', async () => {
    let closed = 0
    cluster.answerWith((_request, response) => {
      response.on('close', () => closed++)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write(JSON.stringify(answerOf(1, LARGE)).slice(0, 200_000))
    })
    const found = await fetchPage()
    const iterator = found.data![Symbol.asyncIterator]()
    const reading = (async () => {
      for (;;) await iterator.next()
    })()
    setTimeout(() => void iterator.return!(), 20)
    await expect(reading).rejects.toBeInstanceOf(AnswerNotRead)
    await expect(found.tail).rejects.toBeInstanceOf(AnswerNotRead)
    await expect.poll(() => closed).toBe(1)
  })
})

describe('A query of a cluster', () => {
  it('is kept alive by HEAD, until the cluster does not know it', async () => {
    let status = 200
    cluster.answerWith((_request, response) => response.writeHead(status).end())
    expect(await relay.keepAlive(cluster.target, uriOf(1))).toBe('alive')
    for (status of [404, 410]) expect(await relay.keepAlive(cluster.target, uriOf(1))).toBe('unknown')
    expect(cluster.requests.map(({ method }) => method)).toEqual(['HEAD', 'HEAD', 'HEAD'])
    status = 503
    await expect(relay.keepAlive(cluster.target, uriOf(1))).rejects.toEqual(lost('unreachable'))
  })

  it.each([204, 404, 410])('is canceled by DELETE, again until the answer is %d', async (last) => {
    const answers = [503, 502, last]
    cluster.answerWith((_request, response) => response.writeHead(answers.shift()!).end())
    await relay.cancel(cluster.target, uriOf(1))
    expect(cluster.requests.map(({ method }) => method)).toEqual(['DELETE', 'DELETE', 'DELETE'])
  })

  it('is not canceled where the cluster refuses it', async () => {
    cluster.answerWith((_request, response) => response.writeHead(403).end('no'))
    await expect(relay.cancel(cluster.target, uriOf(1))).rejects.toEqual(lost('refused'))
  })

  it('has figures in milliseconds and bytes, or none where the gateway may not see them', async () => {
    cluster.answerWith((_request, response) =>
      sendJson(response, {
        queryId: ID,
        state: 'FINISHED',
        resourceGroupId: ['global', 'etl'],
        queryStats: {
          elapsedTime: '1.50s',
          queuedTime: '2.00ms',
          totalCpuTime: '90.00m',
          peakTotalMemoryReservation: '2MB',
          spilledDataSize: '0B',
          outputPositions: 7,
          outputDataSize: '1.50kB',
          totalDrivers: 12,
          completedDrivers: 12,
          processedInputPositions: 'many',
        },
      }),
    )
    expect(await relay.figures(cluster.target, ID)).toEqual({
      state: 'FINISHED',
      resourceGroup: 'global.etl',
      elapsedMillis: 1500,
      queuedMillis: 2,
      cpuMillis: 5_400_000,
      peakMemoryBytes: 2_097_152,
      spilledBytes: 0,
      outputRows: 7,
      outputBytes: 1536,
      completedSplits: 12,
      totalSplits: 12,
    })
    expect(cluster.requests[0]).toMatchObject({ method: 'GET', path: `/v1/query/${ID}?pruned=true` })
    for (const status of [403, 404, 410]) {
      cluster.answerWith((_request, response) => response.writeHead(status).end())
      expect(await relay.figures(cluster.target, ID)).toBeUndefined()
    }
  })

  it('has no figures where their answer is larger than 1 MB, which is no failure of the cluster', async () => {
    cluster.answerWith((_request, response) =>
      sendJson(response, { state: 'FINISHED', queryStats: {}, outputStage: 'x'.repeat(1024 * 1024) }),
    )
    expect(await relay.figures(cluster.target, ID)).toBeUndefined()
    expect(outcomes).toEqual([undefined])
  })
})

describe('A cluster with TLS', () => {
  let [trusted, foreign]: TestAuthority[] = []
  let ca: Buffer
  let client: { readonly cert: Buffer; readonly key: Buffer }
  let secure: ScriptedCluster
  const common: unknown[] = []

  beforeAll(async () => {
    ;[trusted, foreign] = await Promise.all([createAuthority(), createAuthority()])
    const [server, own] = await Promise.all([trusted!.issue('server'), trusted!.issue('gateway')])
    ca = readFileSync(trusted!.ca)
    client = { cert: readFileSync(own.cert), key: readFileSync(own.key) }
    secure = await startScriptedCluster(
      {},
      {
        cert: readFileSync(server.cert),
        key: readFileSync(server.key),
        ca,
        requestCert: true,
        rejectUnauthorized: false,
      },
    )
    secure.answerWith((request, response) => {
      common.push((request.socket as TLSSocket).getPeerCertificate().subject?.CN)
      sendJson(response, answerOf(1, [[1]]))
    })
  })
  afterAll(async () => {
    await secure.close()
    await Promise.all([trusted!.remove(), foreign!.remove()])
  })

  it('is reached with the certificate of the gateway', async () => {
    const target = { ...secure.target, tls: { ca, ...client } }
    expect(await rowsOf(await relay.fetch(target, uriOf(1), new AbortController().signal))).toBe('[[1]]')
    expect(common).toEqual(['gateway'])
  })

  it('is not reached where its authority or its name is another, also after it was reached', async () => {
    relayWith({ clusterLostMs: 0 })
    const target = { ...secure.target, tls: { ca } }
    const url = new URL(secure.target.url.href.replace('127.0.0.1', '127.0.0.2'))
    await relay.fetch(target, uriOf(1), new AbortController().signal)
    for (const other of [{ tls: undefined }, { tls: { ca: readFileSync(foreign!.ca) } }, { url }])
      await expect(relay.fetch({ ...target, ...other }, uriOf(1), new AbortController().signal)).rejects.toEqual(
        lost('unreachable'),
      )
    const requests = secure.requests.length
    await relay.fetch(target, uriOf(1), new AbortController().signal)
    expect(secure.requests).toHaveLength(requests + 1)
  })
})
