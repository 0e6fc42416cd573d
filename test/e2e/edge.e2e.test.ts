import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:net'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { deriveKey, internalBearer } from '../../src/security/cluster-secret.ts'
import { bodyDigest, openRelayClock, sealRelay, type RelayClaims } from '../../src/security/relay-credential.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { exchange, requestText } from '../support/raw-socket.ts'
import { CLUSTER_SECRET, rolesOf, startStandbyCluster, type StandbyCluster } from '../support/standby-cluster.ts'
import { follow, raw, run, trinoHeaders, type RawAnswer } from '../support/statement-client.ts'

/** Requests that only an attacker writes, to real processes: the writer, the stand-by, a worker. */

const SERVERS = ['writer', 'stand-by', 'worker'] as const
type ServerName = (typeof SERVERS)[number]

let cluster: StandbyCluster
let urls: Readonly<Record<ServerName, string>>
/** A server of an attacker: everything that it receives has leaked. */
let elsewhere: Server
let leaked = ''
let away: string

const key = deriveKey(CLUSTER_SECRET, 'relay')
const bearer = internalBearer(CLUSTER_SECRET)
const CLOSE = 'Connection: close'

beforeAll(async () => {
  elsewhere = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (part) => {
      leaked += part.toString('latin1')
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
    })
  })
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  away = `127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
  // Users are not authenticated, but the server still checks names in Host and Origin.
  cluster = await startStandbyCluster({ QUIPU_INSECURE: 'true', QUIPU_HISTORY_READ_MS: '2s' })
  const { writer, other } = await rolesOf(cluster)
  let worker: string | undefined
  await waitUntil('the worker is known', async () => {
    const nodes = JSON.parse((await raw(`${writer.url}/v1/node`)).text) as { uri: string; state: string }[]
    worker = nodes.find(({ state }) => state === 'active')?.uri
    return worker !== undefined
  })
  urls = { writer: writer.url, 'stand-by': other.url, worker: worker! }
}, 240_000)

afterAll(async () => {
  await cluster?.stop()
  elsewhere?.close()
})

const hostOf = (url: string): string => new URL(url).host

async function statusOf(url: string, line: string, headers: readonly string[] = [`Host: ${hostOf(url)}`], body = '') {
  const { statuses, text } = await exchange(url, requestText(line, [...headers, CLOSE], body))
  return { statuses, text }
}

describe('A request target', () => {
  it.each(SERVERS)('never makes a %s send a request to another server', async (name) => {
    const url = urls[name]
    const paths = [
      '/v1/statement',
      '/v1/statement/20260101_000000_00000_00001/0.x',
      '/v1/task',
      '/v1/task/x',
      '/v1/info',
    ]
    const forms = (path: string) => [
      `http://${away}${path}`,
      `HTTP://${away}${path}`,
      `https://${away}${path}`,
      `//${away}${path}`,
      `///${away}${path}`,
      `/\\${away}${path}`,
      `\\\\${away}${path}`,
      `http:/${away}${path}`,
      `http:${away}${path}`,
      `http://user@${away}${path}`,
      `http://${hostOf(url)}@${away}${path}`,
      `ftp://${away}${path}`,
      `http://${away}\\${path}`,
      `${away}${path}`,
    ]
    for (const path of paths)
      for (const target of forms(path))
        for (const method of ['GET', 'POST', 'DELETE']) {
          const body = method === 'POST' ? 'SELECT 1' : ''
          const length = method === 'POST' ? ['Content-Length: 8'] : []
          const headers = [`Host: ${hostOf(url)}`, ...length]
          const { statuses } = await statusOf(url, `${method} ${target} HTTP/1.1`, headers, body)
          expect([method, target, statuses.length]).toEqual([method, target, 1])
        }
    expect(leaked).toBe('')
  })

  it.each(SERVERS)('a %s accepts a target in absolute form, and takes the host name from it', async (name) => {
    const url = urls[name]
    const own = await statusOf(url, `GET http://${hostOf(url)}/v1/info?x=//y HTTP/1.1`)
    expect([own.statuses, own.text.includes('"nodeVersion"')]).toEqual([[200], true])
    const bare = await statusOf(url, `GET http://${hostOf(url)}?x HTTP/1.1`)
    expect(bare.statuses).toEqual([404])
    // The name in the target counts, not the Host header.
    expect((await statusOf(url, 'GET http://evil.example/v1/info HTTP/1.1')).statuses).toEqual([403])
    expect(
      (await statusOf(url, `GET http://${hostOf(url)}/v1/info HTTP/1.1`, ['Host: evil.example'])).statuses,
    ).toEqual([200])
  })

  it.each(['writer', 'stand-by'] as const)(
    'the %s accepts a statement with a target in absolute form',
    async (name) => {
      const url = urls[name]
      const answer = await raw(url, {
        method: 'POST',
        target: `${url}/v1/statement`,
        body: 'SELECT 6 * 7',
        headers: trinoHeaders,
      })
      expect(answer.json.nextUri).toMatch(`${url}/v1/statement/`)
      expect((await follow(answer)).rows).toEqual([[42]])
    },
  )

  it.each(SERVERS)('a %s refuses targets of any other form', async (name) => {
    const url = urls[name]
    const refused = async (line: string) => (await statusOf(url, line)).statuses
    expect(await refused('OPTIONS * HTTP/1.1')).toEqual([204])
    for (const target of [
      '*',
      'evil.example:443',
      'http://',
      'http:///v1/info',
      'http://user:word@127.0.0.1/v1/info',
      'http://[::1/v1/info',
      'http://%31%32%37.0.0.1/v1/info',
      '/v1/info#fragment',
      '/v1/\u00e9',
      '',
      'javascript:alert(1)',
    ])
      expect([target, await refused(`GET ${target} HTTP/1.1`)]).toEqual([target, [400]])
    for (const target of [
      '/v1%2Finfo',
      '//v1/info',
      '/v1/../v1/info',
      '/v1/info/..%2f',
      '/./v1/info',
      '/v1/task/../info',
      '/%2e%2e/',
    ])
      expect([target, await refused(`GET ${target} HTTP/1.1`)]).toEqual([target, [404]])
    // There is no tunnel: the server closes the connection.
    const tunnel = await exchange(url, requestText(`CONNECT ${away} HTTP/1.1`, [`Host: ${away}`]))
    expect(tunnel.statuses.filter((status) => status < 400)).toEqual([])
  })
})

describe('The framing of a request', () => {
  /** One request for a strict parser, two for a parser that reads the framing differently. */
  const inside = 'GET /v1/info HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n'
  const forms: readonly (readonly [string, readonly string[], string])[] = [
    ['two lengths', ['Content-Length: 0', `Content-Length: ${inside.length}`], inside],
    ['the same length twice', ['Content-Length: 8', 'Content-Length: 8'], 'SELECT 1'],
    ['a list of lengths', ['Content-Length: 8, 8'], 'SELECT 1'],
    ['a length with a sign', ['Content-Length: +8'], 'SELECT 1'],
    ['a length below zero', ['Content-Length: -8'], 'SELECT 1'],
    ['a length in hexadecimal', ['Content-Length: 0x8'], 'SELECT 1'],
    ['a length that is too large', [`Content-Length: ${'9'.repeat(30)}`], 'SELECT 1'],
    ['length and chunks', [`Content-Length: ${inside.length + 5}`, 'Transfer-Encoding: chunked'], `0\r\n\r\n${inside}`],
    ['chunks and length', ['Transfer-Encoding: chunked', 'Content-Length: 5'], `0\r\n\r\n${inside}`],
    ['chunks twice', ['Transfer-Encoding: chunked, chunked'], `0\r\n\r\n${inside}`],
    ['chunks in two headers', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], `0\r\n\r\n${inside}`],
    ['another coding before chunks', ['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'],
    ['another coding after chunks', ['Transfer-Encoding: chunked, gzip'], `0\r\n\r\n${inside}`],
    ['another coding', ['Transfer-Encoding: xchunked'], `0\r\n\r\n${inside}`],
    ['identity', ['Transfer-Encoding: identity', 'Content-Length: 8'], 'SELECT 1'],
    ['chunks with a character before', ['Transfer-Encoding: \u000bchunked'], `0\r\n\r\n${inside}`],
    ['a space before the colon', ['Transfer-Encoding : chunked'], `0\r\n\r\n${inside}`],
    ['a line that ends with LF only', ['X-A: b\nTransfer-Encoding: chunked'], `0\r\n\r\n${inside}`],
    ['a null in a header', ['X-A: b\u0000c'], ''],
    ['a header without a name', [': chunked'], ''],
    ['a chunk size that is not hexadecimal', ['Transfer-Encoding: chunked'], `0x8\r\nSELECT 1\r\n0\r\n\r\n`],
    ['a chunk size that is too large', ['Transfer-Encoding: chunked'], `${'f'.repeat(17)}\r\nSELECT 1\r\n0\r\n\r\n`],
    ['a chunk that is longer than its size', ['Transfer-Encoding: chunked'], `4\r\nSELECT 1\r\n0\r\n\r\n`],
  ]
  const cases = SERVERS.flatMap((name) => forms.map((form) => [name, ...form] as const))

  it.each(cases)(
    '%s: a request with %s is refused as one request, and its connection closes',
    async (name, _what, headers, body) => {
      const url = urls[name]
      // If the body breaks off on the way, the route may already have refused the request.
      const lines = [
        'POST /v1/statement HTTP/1.1',
        `Host: ${hostOf(url)}`,
        `Authorization: Bearer ${bearer}`,
        ...headers,
      ]
      const { statuses } = await exchange(url, requestText(lines[0]!, lines.slice(1), body))
      expect(statuses).toHaveLength(1)
      expect(statuses[0]).toBeGreaterThanOrEqual(400)
      expect(statuses[0]).toBeLessThanOrEqual(501)
    },
  )

  it.each(SERVERS)('%s: HTTP/1.0 refuses chunks, and needs no Host', async (name) => {
    const url = urls[name]
    const chunked = await exchange(
      url,
      requestText('POST /v1/statement HTTP/1.0', ['Transfer-Encoding: chunked'], `0\r\n\r\n${inside}`),
    )
    expect(chunked.statuses).toHaveLength(1)
    expect(chunked.statuses[0]).toBeGreaterThanOrEqual(400)
    expect((await exchange(url, requestText('GET /v1/info HTTP/1.0', []))).statuses).toEqual([200])
    if (name === 'worker') return
    const headers = ['X-Trino-User: alice', 'Content-Length: 8']
    const answer = await exchange(url, requestText('POST /v1/statement HTTP/1.0', headers, 'SELECT 1'))
    expect(answer.statuses).toEqual([200])
    expect(answer.text).not.toMatch(/^transfer-encoding/im)
    expect(JSON.parse(answer.text.slice(answer.text.indexOf('\r\n\r\n')))).toHaveProperty('id')
  })

  it.each(SERVERS)('%s: too many or too long headers get 431 at once', async (name) => {
    const url = urls[name]
    const host = `Host: ${hostOf(url)}`
    const many = (count: number) => Array.from({ length: count }, (_, index) => `a${index}: b`)
    expect((await statusOf(url, 'GET /v1/info HTTP/1.1', [host, ...many(400)])).statuses).toEqual([200])
    expect((await statusOf(url, 'GET /v1/info HTTP/1.1', [host, ...many(600)])).statuses).toEqual([431])
    // Node drops headers after the two thousandth.
    expect(
      (await statusOf(url, 'GET /v1/info HTTP/1.1', [host, ...many(2100), 'Origin: http://evil.example'])).statuses,
    ).toEqual([431])
    expect((await statusOf(url, 'GET /v1/info HTTP/1.1', [host, `a: ${'b'.repeat(100_000)}`])).statuses).toEqual([431])
    expect((await statusOf(url, `GET /${'a'.repeat(100_000)} HTTP/1.1`)).statuses).toEqual([431])
    const trailers = `Transfer-Encoding: chunked`
    const bomb = `0\r\n${'a: b\r\n'.repeat(20_000)}\r\n`
    const { statuses } = await statusOf(url, 'POST /v1/statement HTTP/1.1', [host, trailers], bomb)
    expect(statuses.filter((status) => status < 400)).toEqual([])
  })
})

describe('The head of a request or of an answer', () => {
  const GONE = '/v1/query/20260101_000000_00000_00001'
  const statusWith = async (name: ServerName, headers: readonly string[]): Promise<number> => {
    const { statuses } = await statusOf(urls[name], `DELETE ${GONE} HTTP/1.1`, [
      `Host: ${hostOf(urls[name])}`,
      ...headers,
    ])
    return statuses[0]!
  }
  /** Expects the same status at both servers for heads that grow from an accepted one to a refused one. */
  async function atBoth(heads: readonly (readonly string[])[]): Promise<void> {
    const [writer, standBy] = await Promise.all(
      (['writer', 'stand-by'] as const).map(async (name) => {
        const statuses: number[] = []
        for (const head of heads) statuses.push(await statusWith(name, head))
        return statuses
      }),
    )
    expect(standBy).toEqual(writer)
    expect([writer!.at(0), writer!.at(-1)]).toEqual([204, 431])
  }

  it('a request head passes at the stand-by exactly if it passes at the writer', async () => {
    await atBoth(Array.from({ length: 24 }, (_, index) => [`a: ${'b'.repeat(63_400 + 100 * index)}`]))
    await atBoth(
      Array.from({ length: 10 }, (_, index) => Array.from({ length: 492 + index }, (_a, one) => `a${one}: b`)),
    )
    // A client that sends the headers of a relay gets no more room for its own headers.
    for (const name of SERVERS) {
      const own = [`X-Quipu-Relay: ${'x'.repeat(1000)}`, `a: ${'b'.repeat(67_000)}`]
      expect(await statusWith(name, own)).toBe(431)
      expect(await statusWith(name, [`X-Quipu-Relay: ${'x'.repeat(110_000)}`])).toBe(431)
    }
  })

  it('both coordinators send an answer head with a prepared statement of 60,000 characters whole', async () => {
    for (const name of ['writer', 'stand-by'] as const) {
      const host = `Host: ${hostOf(urls[name])}`
      const sql = `PREPARE long FROM SELECT '${'x'.repeat(60_000)}'`
      const headers = [
        host,
        ...Object.entries(trinoHeaders).map((one) => one.join(': ')),
        `Content-Length: ${sql.length}`,
      ]
      let { text } = await statusOf(urls[name], 'POST /v1/statement HTTP/1.1', headers, sql)
      let head = ''
      for (let next: string | undefined = 'first'; next !== undefined;) {
        head = text.slice(0, text.indexOf('\r\n\r\n'))
        next = /"nextUri":"([^"]+)"/.exec(text)?.[1]
        if (next !== undefined)
          ({ text } = await statusOf(urls[name], `GET ${new URL(next).pathname} HTTP/1.1`, [host]))
      }
      expect([name, /^x-trino-added-prepare: long=.{60000}/im.test(head)]).toEqual([name, true])
    }
  })
})

describe('Host and Origin', () => {
  it.each(SERVERS)(
    '%s: refuses foreign names with 403 and malformed ones with 400, also with --insecure',
    async (name) => {
      const url = urls[name]
      const { port } = new URL(url)
      const withHost = async (...headers: string[]) => (await statusOf(url, 'GET /v1/info HTTP/1.1', headers)).statuses
      for (const host of [
        'evil.example',
        `evil.example:${port}`,
        '127.0.0.1.evil.example',
        'localhost.evil.example',
        '2130706433',
        '127.1',
        'EVIL.example.',
      ])
        expect([host, await withHost(`Host: ${host}`)]).toEqual([host, [403]])
      for (const host of [
        'localhost',
        `LOCALHOST:${port}`,
        'localhost.',
        '127.0.0.1',
        '127.8.9.10',
        '[::1]',
        `[::1]:${port}`,
        '10.1.2.3',
        '[fe80::1]',
        '[::ffff:10.1.2.3]:80',
      ])
        expect([host, await withHost(`Host: ${host}`)]).toEqual([host, [200]])
      for (const host of [
        '[::1',
        '[evil]',
        '::1',
        'a b',
        'localhost:port',
        'localhost:1:2',
        'user@localhost',
        'localhost/..',
        'localhost,evil.example',
        '\u00e9',
      ])
        expect([host, await withHost(`Host: ${host}`)]).toEqual([host, [400]])
      expect(await withHost('Host: localhost', 'Host: localhost')).toEqual([400])
      expect(await withHost('Host: localhost', 'hOsT: evil.example')).toEqual([400])
      expect(await withHost()).toEqual([400])
      const host = `Host: ${hostOf(url)}`
      for (const origin of [
        'http://evil.example',
        'null',
        `https://evil.example:${port}`,
        'http://127.0.0.1',
        'file://',
        '',
      ])
        expect([origin, await withHost(host, `Origin: ${origin}`)]).toEqual([origin, [403]])
      expect(await withHost(host, `Origin: http://${hostOf(url)}`)).toEqual([200])
      expect(await withHost(host, 'Origin: http://evil.example', `Origin: http://${hostOf(url)}`)).toEqual([403])
      for (const site of ['cross-site', 'Cross-Site', 'same-origin, cross-site'])
        expect([site, await withHost(host, `Sec-Fetch-Site: ${site}`)]).toEqual([site, [403]])
    },
  )
})

describe('The credential of a relayed request', () => {
  const BODY = 'SELECT 1'
  const target = '/v1/statement'

  function relayed(options: {
    readonly credential: string
    readonly method?: string
    readonly target?: string
    readonly body?: string
  }): Promise<RawAnswer> {
    return raw(urls.writer, {
      method: options.method ?? 'POST',
      target: options.target ?? target,
      ...(options.method === 'GET' ? {} : { body: options.body ?? BODY }),
      // No server here has this name: the stand-by has already checked it.
      headers: { ...trinoHeaders, host: 'quipu.example', 'x-quipu-relay': options.credential },
    })
  }
  const sealed = (now = Date.now(), more: { epoch?: number; claims?: RelayClaims; key?: Buffer } = {}) =>
    sealRelay(
      more.key ?? key,
      { method: 'POST', target, bodyDigest: bodyDigest(Buffer.from(BODY)) },
      more.claims ?? { clientAddress: '203.0.113.7' },
      { epoch: more.epoch ?? epoch, now },
    )
  let epoch: number
  beforeAll(async () => {
    epoch = (JSON.parse((await raw(`${urls.writer}/v1/info`)).text) as { epoch: number }).epoch
  })

  it('is accepted once, and gives the address of the client', async () => {
    const { credential } = sealed()
    const first = await relayed({ credential })
    expect(first.status).toBe(200)
    await run(urls.writer, 'SELECT 2')
    const info = JSON.parse((await raw(`${urls.writer}/v1/query/${first.json.id}`)).text) as {
      session: { remoteUserAddress: string }
    }
    expect(info.session.remoteUserAddress).toBe('203.0.113.7')
    expect((await relayed({ credential })).status).toBe(401)
  })

  it('is refused with any other request, and if it is malformed or sealed with another key', async () => {
    expect((await relayed({ credential: sealed().credential, body: 'SELECT 2' })).status).toBe(401)
    expect((await relayed({ credential: sealed().credential, body: '' })).status).toBe(401)
    expect((await relayed({ credential: sealed().credential, target: '/v1/statement?x' })).status).toBe(401)
    expect((await relayed({ credential: sealed().credential, target: '/v1/task', method: 'GET' })).status).toBe(401)
    expect((await relayed({ credential: sealed().credential, method: 'PUT' })).status).toBe(401)
    for (const credential of ['', 'x', '.', bearer, `${sealed().credential}.x`, sealed().credential.slice(0, -1)])
      expect([credential, (await relayed({ credential })).status]).toEqual([credential, 401])
    expect((await relayed({ credential: sealed(Date.now(), { key: randomBytes(32) }).credential })).status).toBe(401)
    expect(
      (
        await relayed({
          credential: sealed(Date.now(), { key: deriveKey(CLUSTER_SECRET, 'internal-bearer') }).credential,
        })
      ).status,
    ).toBe(401)
  })

  it('gets 503 and the reason if it is of another epoch or time', async () => {
    const other = await relayed({ credential: sealed(Date.now(), { epoch: epoch + 1 }).credential })
    expect([other.status, other.headers['x-quipu-not-writer']]).toEqual([503, 'true'])
    for (const offset of [-3_600_000, 3_600_000]) {
      const { credential, nonce } = sealed(Date.now() + offset)
      const late = await relayed({ credential })
      expect(late.status).toBe(503)
      const now = openRelayClock(key, String(late.headers['x-quipu-relay-clock']), nonce)
      expect(Math.abs(now! - Date.now())).toBeLessThan(60_000)
      expect(openRelayClock(key, String(late.headers['x-quipu-relay-clock']), 'another nonce')).toBeUndefined()
    }
  })

  it('does not work as the key of the cluster, and the key does not work as a credential', async () => {
    const { credential } = sealed()
    const asKey = await raw(`${urls.writer}/v1/announcement`, {
      method: 'PUT',
      body: '{}',
      headers: { authorization: `Bearer ${credential}` },
    })
    expect(asKey.status).toBe(401)
    const asBefore = await raw(`${urls.writer}/v1/statement`, {
      method: 'POST',
      body: BODY,
      headers: { host: 'evil.example', 'x-quipu-relayed-by': bearer, 'x-quipu-relayed-for': '203.0.113.7' },
    })
    expect(asBefore.status).toBe(403)
  })

  it('is refused by a stand-by, so that a request is not relayed twice', async () => {
    const answer = await raw(`${urls['stand-by']}/v1/statement`, {
      method: 'POST',
      body: BODY,
      headers: { 'x-quipu-relay': sealed().credential },
    })
    expect([answer.status, answer.headers['x-quipu-not-writer']]).toEqual([503, 'true'])
  })

  it('is made by the stand-by, with the address of its client; headers of one connection are dropped', async () => {
    const answer = await raw(`${urls['stand-by']}/v1/statement`, {
      method: 'POST',
      body: 'SELECT 3',
      headers: { ...trinoHeaders, 'x-trino-source': 'kept', 'x-secret': 'dropped', connection: 'close, x-secret' },
    })
    const ran = await follow(answer)
    expect(ran.rows).toEqual([[3]])
    const info = JSON.parse((await raw(`${urls.writer}/v1/query/${ran.id}`)).text) as {
      session: { remoteUserAddress: string; source: string }
    }
    expect(info.session).toMatchObject({ remoteUserAddress: '127.0.0.1', source: 'kept' })
  })
})

describe('Names outside ASCII', () => {
  it.each(['writer', 'stand-by'] as const)('reach a client of the %s and come back unchanged', async (name) => {
    const url = urls[name]
    for (const schema of ['日本', 'voilà', 'é', '\u{1f9f6}\u{10fffd}', "it's 100% a,b=c;d"]) {
      const quoted = `memory."${schema.replaceAll('"', '""')}"`
      expect((await run(url, `CREATE SCHEMA IF NOT EXISTS ${quoted}`)).error).toBeUndefined()
      const used = await run(url, `USE ${quoted}`)
      expect([schema, used.error]).toEqual([schema, undefined])
      const reported = String(used.last.headers['x-trino-set-schema'])
      expect(Buffer.from(reported, 'latin1').toString()).toBe(schema)
      // Sends the header as a client does that treats headers as bytes.
      const headers = { ...trinoHeaders, 'x-trino-catalog': 'memory', 'x-trino-schema': reported }
      // A Buffer: with a text body Node would encode the headers before it in UTF-8 once more.
      const body = Buffer.from('SELECT current_schema')
      const asked = await follow(await raw(`${url}/v1/statement`, { method: 'POST', body, headers }))
      expect(asked.rows).toEqual([[schema]])
    }
  })
})

describe('A read of history', () => {
  it('gets 503 and stops in Postgres if it takes too long, and no statement waits for it', async () => {
    const database = new pg.Client({ connectionString: cluster.databaseUrl })
    await database.connect()
    try {
      await database.query('begin; lock table m.queries in access exclusive mode')
      const asked = Array.from({ length: 8 }, () => raw(`${urls.writer}/v1/query?q=nowhere`))
      expect((await run(urls.writer, 'SELECT 5')).rows).toEqual([[5]])
      for (const { status, text } of await Promise.all(asked)) {
        expect(status).toBe(503)
        expect(text).toContain('The history took too long to read')
      }
      const { rows } = await database.query(
        "select count(*)::int as waiting from pg_stat_activity where query ilike '%ilike%' and state = 'active' and wait_event_type = 'Lock'",
      )
      expect(rows).toEqual([{ waiting: 0 }])
    } finally {
      await database.end()
    }
  })
})

describe('Epochs in requests to a worker', () => {
  const nation = 'SELECT count(*) FROM nation'

  it('change nothing without the key', async () => {
    const before = await raw(`${urls.writer}/v1/info`)
    for (const epoch of ['999999999999999', '2147483647', '99', 'x', '-1'])
      for (const path of ['/v1/task', '/v1/task?since=', '/v1/task/20260101_000000_00000_00001.0.0'])
        expect((await raw(`${urls.worker}${path}`, { headers: { 'x-engine-epoch': epoch } })).status).not.toBe(409)
    expect((await run(urls.writer, nation)).rows).toEqual([[25]])
    const after = await raw(`${urls.writer}/v1/info`)
    expect((JSON.parse(after.text) as { epoch: number }).epoch).toBe(
      (JSON.parse(before.text) as { epoch: number }).epoch,
    )
  })

  it('are refused with the key if no log can have them', async () => {
    const keyed = (epoch: string, log = 'another-log') =>
      raw(`${urls.worker}/v1/task`, {
        headers: { authorization: `Bearer ${bearer}`, 'x-engine-epoch': epoch, 'x-engine-log': log },
      }).then(({ status }) => status)
    expect(await keyed('999999999999999')).toBe(400)
    expect(await keyed('2147483648')).toBe(400)
    expect(await keyed('5', 'a log\u00e9')).toBe(400)
    expect(await keyed('5')).toBe(200)
    expect(await keyed('4')).toBe(409)
    expect(await keyed('5000000')).toBe(400)
    // Epochs of another log do not affect this log.
    expect((await run(urls.writer, nation)).rows).toEqual([[25]])
  })

  it('do not end a coordinator if only a worker has seen them', async () => {
    const before = (JSON.parse((await raw(`${urls.writer}/v1/info`)).text) as { epoch: number }).epoch
    // An old coordinator names no log: the worker takes the epoch for the log that it heard last.
    expect((await run(urls.writer, nation)).rows).toEqual([[25]])
    const poisoned = await raw(`${urls.worker}/v1/task`, {
      headers: { authorization: `Bearer ${bearer}`, 'x-engine-epoch': String(before + 1000) },
    })
    expect(poisoned.status).toBe(200)
    const refused = await raw(`${urls.writer}/v1/statement`, { method: 'POST', body: nation, headers: trinoHeaders })
    expect(refused.status).toBe(200)
    await waitUntil('the coordinator notices', async () => {
      const nodes = JSON.parse((await raw(`${urls.writer}/v1/node`)).text) as { recentFailures: number }[]
      return nodes[0]!.recentFailures > 0
    })
    const info = JSON.parse((await raw(`${urls.writer}/v1/info`)).text) as { epoch: number; writer: boolean }
    expect(info).toMatchObject({ epoch: before, writer: true })
    expect((await run(urls.writer, 'SELECT 1')).rows).toEqual([[1]])
  })
})
