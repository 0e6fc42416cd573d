import { Fault, type AttackFamily, type CaseContext } from './attack-case.ts'
import type { WirePiece } from './wire.ts'

const CRLF = '\r\n'

/** Raw requests that no HTTP library would send. */
export const sockets: AttackFamily = {
  name: 'sockets',
  weight: 110,
  async run(context) {
    const { random, bed, wire } = context
    const { port } = random.pick(bed.all)
    await wire.exchange(port, random.pick(forms)(context))
  },
}

/** Request targets with another host: the server must answer or refuse them itself and never connect to that host. */
export const absoluteTargets: AttackFamily = {
  name: 'absolute targets',
  weight: 40,
  async run(context) {
    const { random, bed, wire } = context
    const { port } = random.pick(bed.all)
    // The mark separates the requests of this case from those of others at the attacker's server.
    const mark = `case-${random.whole(0, 2 ** 31)}`
    const path =
      random.pick(['/v1/statement', '/v1/info', '/v1/task', '/v1/query', '/v1/announcement', '/']) + `?${mark}`
    const host = `127.0.0.1:${bed.attacker.port}`
    const target = random.pick([
      `http://${host}${path}`,
      `http://a:b@${host}${path}`,
      `HTTP://${host}${path}`,
      `http://${host}?${mark}`,
      `http:///${host}${path}`,
      `//${host}${path}`,
      `/\\${host}${path}`,
      `/\\/${host}${path}`,
      `http:\\\\${host}${path}`,
      `${host}${path}`,
      `x:http://${host}${path}`,
      `/v1/statement/..//${host}/?${mark}`,
      `/v1/statement@${host}/?${mark}`,
      `\thttp://${host}${path}`,
      `ws://${host}${path}`,
    ])
    const method = random.pick(['GET', 'POST', 'DELETE', 'PUT', 'HEAD', 'OPTIONS'])
    const named = random.pick([`127.0.0.1:${port}`, host, 'attacker.example', 'localhost'])
    const body = method === 'POST' || method === 'PUT' ? 'SELECT 1' : ''
    const head = [
      `${method} ${target} HTTP/1.1`,
      `Host: ${named}`,
      'X-Trino-User: attack',
      `Content-Length: ${body.length}`,
    ]
    await wire.exchange(port, [{ bytes: Buffer.from([...head, 'Connection: close', '', body].join(CRLF)) }])
    const heard = bed.attacker.heard.find((one) => one.includes(mark))
    if (heard !== undefined) throw new Fault(`a server went where a client sent it: ${heard}`)
  },
}

const text = (bytes: string): readonly WirePiece[] => [{ bytes: Buffer.from(bytes) }]
const host = 'Host: localhost'
const post = (headers: readonly string[], body: string): readonly WirePiece[] =>
  text(['POST /v1/statement HTTP/1.1', host, 'X-Trino-User: attack', ...headers, '', body].join(CRLF))

/** A request that is hidden in the body of another: the server must not execute it. */
const HIDDEN = `DELETE /v1/query/20000101_000000_00000_00000 HTTP/1.1${CRLF}${host}${CRLF}${CRLF}`

const forms: readonly ((context: CaseContext) => readonly WirePiece[])[] = [
  ({ texts }) => [{ bytes: texts.bytes(3000) }],
  ({ texts }) => text(`GET /${texts.statement()} HTTP/1.1${CRLF}${host}${CRLF}${CRLF}`),
  ({ texts }) => text(`GET / HTTP/1.1${CRLF}${host}${CRLF}${texts.statement()}: ${texts.statement()}${CRLF}${CRLF}`),
  ({ texts }) => text(`${texts.statement()} / HTTP/1.1${CRLF}${host}${CRLF}${CRLF}`),
  ({ random }) =>
    text(`GET /v1/info ${random.pick(['HTTP/0.9', 'HTTP/1.0', 'HTTP/1.9', 'HTTP/2.0', 'HTTP/11', ''])}${CRLF}${CRLF}`),
  () => text(`PRI * HTTP/2.0${CRLF}${CRLF}SM${CRLF}${CRLF}`),
  ({ random }) =>
    text(
      `${random.pick(['TRACE', 'CONNECT', 'PATCH', 'PROPFIND', 'get', 'M-SEARCH', 'QUERY', 'LINK'])} /v1/info HTTP/1.1${CRLF}${host}${CRLF}${CRLF}`,
    ),
  () => text(`OPTIONS * HTTP/1.1${CRLF}${host}${CRLF}${CRLF}`),
  () => text(`CONNECT 127.0.0.1:22 HTTP/1.1${CRLF}Host: 127.0.0.1:22${CRLF}${CRLF}`),
  () =>
    text(
      `GET /v1/info HTTP/1.1${CRLF}${host}${CRLF}Connection: Upgrade, HTTP2-Settings${CRLF}Upgrade: h2c${CRLF}HTTP2-Settings: AAMAAABk${CRLF}${CRLF}`,
    ),
  () =>
    text(
      `GET /v1/events HTTP/1.1${CRLF}${host}${CRLF}Connection: Upgrade${CRLF}Upgrade: websocket${CRLF}Sec-WebSocket-Key: x${CRLF}${CRLF}`,
    ),
  // Two different framings of one body.
  () => post(['Content-Length: 8', 'Transfer-Encoding: chunked'], `0${CRLF}${CRLF}${HIDDEN}`),
  () =>
    post(
      ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
      `8${CRLF}SELECT 1${CRLF}0${CRLF}${CRLF}${HIDDEN}`,
    ),
  ({ random }) =>
    post(
      [
        random.pick([
          'Transfer-Encoding : chunked',
          'Transfer-Encoding:\x0bchunked',
          'Transfer-Encoding: xchunked',
          'Transfer-Encoding: chunked, chunked',
          'X: y\nTransfer-Encoding: chunked',
        ]),
      ],
      `8${CRLF}SELECT 1${CRLF}0${CRLF}${CRLF}${HIDDEN}`,
    ),
  () => post(['Content-Length: 8', 'Content-Length: 80'], `SELECT 1${HIDDEN}`),
  ({ random }) =>
    post(
      [`Content-Length: ${random.pick(['+8', '-1', '8, 8', '0x8', '8 ', '18446744073709551624', '1e1', ''])}`],
      `SELECT 1${HIDDEN}`,
    ),
  ({ random }) =>
    post(
      ['Transfer-Encoding: chunked'],
      `${random.pick(['8;a=b', '08', '8\n', '0x8', ' 8', 'ffffffffffffffff', '-8', 'zz', `8;${'x'.repeat(20_000)}`])}${CRLF}SELECT 1${CRLF}0${CRLF}${CRLF}${HIDDEN}`,
    ),
  () =>
    post(['Transfer-Encoding: chunked'], `8${CRLF}SELECT 1${CRLF}0${CRLF}X-Trailer: ${'t'.repeat(5000)}${CRLF}${CRLF}`),
  () => post(['Expect: 100-continue', 'Content-Length: 8'], 'SELECT 1'),
  ({ random }) => post([`Expect: ${random.pick(['200-ok', '100-continue, x', ''])}`, 'Content-Length: 8'], 'SELECT 1'),
  () => text(`GET /v1/info HTTP/1.1${CRLF}${host}${CRLF}X: a${CRLF} folded${CRLF}${CRLF}`),
  () => text('GET /v1/info HTTP/1.1\nHost: localhost\n\n'),
  () => text(`GET /v1/info HTTP/1.1\rHost: localhost\r\r`),
  () => text(`GET /v1/info HTTP/1.1${CRLF}${CRLF}`),
  () => text(`GET /v1/info HTTP/1.1${CRLF}${host}${CRLF}Host: attacker.example${CRLF}${CRLF}`),
  ({ texts }) => text(`GET /v1/info HTTP/1.1${CRLF}Host: ${texts.header()}${CRLF}Connection: close${CRLF}${CRLF}`),
  // Header bombs.
  ({ random }) =>
    text(
      `GET /v1/info HTTP/1.1${CRLF}${host}${CRLF}${Array.from({ length: random.pick([100, 1500, 5000]) }, (_, n) => `h${n}: v${CRLF}`).join('')}${CRLF}`,
    ),
  ({ random }) =>
    text(
      `GET /v1/info HTTP/1.1${CRLF}${host}${CRLF}X-Trino-User: ${'u'.repeat(random.pick([60_000, 70_000, 300_000]))}${CRLF}${CRLF}`,
    ),
  ({ random }) =>
    text(`GET /${'a'.repeat(random.pick([8_000, 64_000, 100_000]))} HTTP/1.1${CRLF}${host}${CRLF}${CRLF}`),
  ({ random }) =>
    text(
      `GET /v1/query?${'a=b&'.repeat(random.pick([10, 5000]))} HTTP/1.1${CRLF}${host}${CRLF}Connection: close${CRLF}${CRLF}`,
    ),
  ({ random }) =>
    text(
      `GET ${'/'.repeat(random.pick([2, 500, 30_000]))}v1/info HTTP/1.1${CRLF}${host}${CRLF}Connection: close${CRLF}${CRLF}`,
    ),
  // Many requests on one connection, and one that is cut in the middle.
  ({ random }) => text(`GET /v1/info HTTP/1.1${CRLF}${host}${CRLF}${CRLF}`.repeat(random.pick([2, 20, 200]))),
  ({ random }) =>
    text(
      `POST /v1/statement HTTP/1.1${CRLF}${host}${CRLF}Content-Length: ${random.pick([100, 1_000_000, 2_000_000_000])}${CRLF}${CRLF}SELECT`,
    ),
  // A request in small pieces.
  () =>
    [
      'POST /v1/statement HTTP/1.1\r\nHost: local',
      'host\r\nX-Trino-User: a\r\nContent-Length: 8\r\n',
      'Connection: close\r\n\r\nSEL',
      'ECT',
      ' 1',
    ].map((part) => ({ bytes: Buffer.from(part), afterMs: 30 })),
  () => ['GET /v1/in', 'fo HTT', 'P/1.1\r\nHo'].map((part) => ({ bytes: Buffer.from(part), afterMs: 40 })),
  // Non-ASCII characters in header values.
  ({ texts }) =>
    post(
      [
        `X-Trino-Source: ${texts.header()}`,
        `X-Trino-Client-Tags: ${texts.header()}`,
        'Content-Length: 8',
        'Connection: close',
      ],
      'SELECT 1',
    ),
  () => [
    {
      bytes: Buffer.concat([
        Buffer.from(`GET /v1/info HTTP/1.1${CRLF}${host}${CRLF}X: `),
        Buffer.from([0, 1, 255, 254, 13, 10, 13, 10]),
      ]),
    },
  ],
]
