// One abuse of a server, by name, until its standard input ends; then how it was answered: statuses, and those of 429 and
// 503 that say when to come again.
import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'

const [name, base] = process.argv.slice(2)
const { hostname, port, protocol } = new URL(base)
const statuses = new Map()
let stopping = false
process.stdin.resume().on('end', () => {
  stopping = true
  const counts = [...statuses].sort(([a], [b]) => (a < b ? -1 : 1)).map(([status, count]) => `${status}: ${count}`)
  process.stdout.write(`${counts.join(', ')}\n`, () => process.exit(0))
})

/** @param {string} status */
function count(status) {
  statuses.set(status, (statuses.get(status) ?? 0) + 1)
}

/** A connection of its own, from one of many addresses of this machine. */
function open(number, onAnswer = () => {}) {
  const place = { host: hostname, port, localAddress: `127.0.${1 + (number % 20)}.1` }
  // Whom it speaks with is nothing to it.
  const socket = protocol === 'https:' ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place)
  let text = ''
  socket.on('error', () => count('connection ended'))
  socket.on('data', (part) => {
    text += part.toString('latin1')
    for (;;) {
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) break
      const head = text.slice(0, end)
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (text.length < end + 4 + length) break
      const body = text.slice(end + 4, end + 4 + length)
      text = text.slice(end + 4 + length)
      const status = head.slice(9, 12)
      const later = status === '429' || status === '503' ? (/\r\nretry-after:/i.test(head) ? ' later' : ' no time') : ''
      count(status + later)
      onAnswer(socket, status, body)
    }
  })
  return socket
}

const statement = (sql, user = 'mallory', more = '') =>
  `POST /v1/statement HTTP/1.1\r\nHost: ${hostname}:${port}\r\nX-Trino-User: ${user}\r\n${more}Content-Length: ${Buffer.byteLength(sql)}\r\n\r\n${sql}`
const get = (path) => `GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nX-Trino-User: mallory\r\n\r\n`
const nextOf = (body) => /"nextUri":"https?:\/\/[^/]+([^"]+)"/.exec(body)?.[1]

/** As many at once, each begun anew when it is over. */
function keep(many, begin) {
  for (let number = 0; number < many; number++) {
    const again = () => {
      if (stopping) return
      const socket = begin(number)
      socket.once('close', () => setTimeout(again, 20))
    }
    setTimeout(again, number / 10)
  }
}

const abuses = {
  /** Each has been answered once, and stays. */
  'idle-connections': () => keep(10_000, (number) => opened(open(number), get('/v1/info'))),
  'idle-tls': () => keep(10_000, (number) => opened(open(number), get('/v1/info'))),
  /** The first bytes of a ClientHello, and no more. */
  'half-handshakes': () =>
    keep(2_000, (number) => {
      const socket = connect({ host: hostname, port, localAddress: `127.0.${1 + (number % 20)}.1` })
      socket.on('error', () => count('connection ended'))
      socket.once('close', () => count('closed'))
      return opened(socket, Buffer.from('160301020001', 'hex'))
    }),
  /** Of many names, from many addresses. */
  'wrong-passwords': () =>
    keep(200, (number) => {
      const guess = Buffer.from(`user${Math.random()}:${Math.random()}`).toString('base64')
      const again = (socket) => (stopping ? socket.destroy() : socket.write(attempt))
      const attempt = `GET /v1/query HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Basic ${guess}\r\n\r\n`
      return opened(open(number, again), attempt)
    }),
  'slow-heads': () => keep(1_000, (number) => drip(open(number), `GET /v1/query HTTP/1.1\r\nX: `)),
  'slow-bodies': () =>
    keep(1_000, (number) => drip(open(number), statement('x'.repeat(900_000)).split('\r\n\r\n')[0] + '\r\n\r\n')),
  'many-statements': () =>
    keep(2_000, (number) => opened(open(number, follow), statement(`SELECT ${number}`, `user${number % 50}`))),
  'flood-of-one-user': () => keep(500, (number) => opened(open(number, follow), statement('SELECT 1 + 1'))),
  /** They post, read one answer and are gone; the query goes on until it is abandoned. */
  'vanishing-clients': () =>
    keep(200, (number) =>
      opened(
        open(number, (socket) => socket.destroy()),
        statement('SELECT count(*) FROM tpch.tiny.lineitem a, tpch.tiny.nation b'),
      ),
    ),
  /** Results of megabytes whose second page nobody fetches. */
  'unread-pages': () =>
    keep(100, (number) =>
      opened(
        open(number, (socket, status, body) => {
          const next = nextOf(body)
          if (next && !/"data":/.test(body)) socket.write(get(next))
          else setTimeout(() => socket.destroy(), 2000)
        }),
        statement('SELECT * FROM tpch.tiny.lineitem'),
      ),
    ),
  'header-bombs': () =>
    keep(200, (number) =>
      opened(
        open(number, (socket) => socket.destroy()),
        statement(
          'SELECT 1',
          'mallory',
          number % 2 ? `X-Trino-Session: ${'a=b,'.repeat(15_000)}\r\n` : 'X-A: b\r\n'.repeat(490),
        ),
      ),
    ),
  'nested-parentheses': () => {
    const deep = 499_000
    keep(20, (number) => opened(open(number, follow), statement(`SELECT ${'('.repeat(deep)}1${')'.repeat(deep)}`)))
  },
}

function opened(socket, text) {
  socket.once(socket.encrypted ? 'secureConnect' : 'connect', () => socket.write(text))
  return socket
}

/** A byte a second. */
function drip(socket, head) {
  opened(socket, head)
  const timer = setInterval(() => socket.write('x'), 1000)
  socket.once('close', () => clearInterval(timer))
  return socket
}

/** To the end of the result, then the connection ends. */
function follow(socket, status, body) {
  const next = nextOf(body)
  if (next) socket.write(get(next))
  else socket.destroy()
}

abuses[name]()
setTimeout(() => process.stdout.write('begun\n'), name.startsWith('idle') ? 10_000 : 1000)
