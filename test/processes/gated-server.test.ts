import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect, Socket, type AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { createGatedServer, type GatedServer, type RefusedConnection } from '../../src/processes/gated-server.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import { bindSocket } from '../../src/supervisor/listening-socket.ts'
import { sendProblem, toProblem } from '../../src/protocol/edge/problem.ts'
import { readBody } from '../../src/protocol/edge/request-body.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { exchange, requestText } from '../support/raw-socket.ts'

async function listening(gate: GatedServer): Promise<number> {
  await new Promise<void>((resolve) => gate.server.listen(0, '127.0.0.1', resolve))
  return (gate.server.address() as AddressInfo).port
}

function get(port: number, path: string, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path, ...(agent && { agent }) }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.once('end', () => resolve(text))
    })
    sent.once('error', reject)
    sent.end()
  })
}

it('a gated server holds requests until it opens, except requests that its early listener answers', async () => {
  const gate = createGatedServer(loadConfig([], {}), (request, response) => {
    if (request.url !== '/early') return false
    response.end('early')
    return true
  })
  const port = await listening(gate)
  const waiting = get(port, '/late')
  expect(await get(port, '/early')).toBe('early')
  gate.open((request, response) => response.end(`open ${request.url}`))
  expect(await waiting).toBe('open /late')
  expect(await get(port, '/early')).toBe('open /early')
  await gate.close()
})

it('a gated server closes after its pending answers, although clients keep connections open', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  const port = await listening(gate)
  let answer = () => {}
  gate.open((_request, response) => (answer = () => response.end('at last')))
  const agent = new Agent({ keepAlive: true })
  const waiting = get(port, '/', agent)
  await new Promise((resolve) => gate.server.once('request', resolve))
  const closed = gate.close()
  answer()
  expect(await waiting).toBe('at last')
  await closed
  await expect(get(port, '/')).rejects.toThrow('ECONNREFUSED')
  agent.destroy()
})

it('a gated server closes although a client keeps sending requests on the same connection', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  const port = await listening(gate)
  gate.open((_request, response) => void setTimeout(() => response.end('again'), 5))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  let answers = 0
  const polling = (async () => {
    for (;;) {
      await get(port, '/', agent)
      answers++
    }
  })()
  await waitUntil('the client polls', () => answers > 3)
  await gate.close()
  // A reset is possible when a request crosses the close of its idle connection.
  await expect(polling).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/)
  agent.destroy()
})

it('a gated server serves another address before all the requests that one address sent at once', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  const port = await listening(gate)
  const paths: string[] = []
  const other = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  const flood = connect({ port, host: '127.0.0.1' })
  await Promise.all([once(other, 'connect'), once(flood, 'connect')])
  const ask = (socket: Socket, path: string) => socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  const done = new Promise<void>((resolve) =>
    gate.open((request, response) => {
      if (paths.length === 0) ask(other, '/other')
      paths.push(request.url!)
      // Each request takes longer than the time slice of one pass of the event loop.
      for (const until = performance.now() + 10; performance.now() < until;);
      response.end()
      if (paths.length === 31) resolve()
    }),
  )
  flood.cork()
  for (let index = 0; index < 30; index++) ask(flood, `/${index}`)
  flood.uncork()
  await done
  expect(paths.indexOf('/other')).toBeLessThan(15)
  expect(paths.filter((path) => path !== '/other')).toEqual(Array.from({ length: 30 }, (_, index) => `/${index}`))
  for (const socket of [other, flood]) socket.destroy()
  await gate.close()
})

it('a gated server drops waiting requests of a client that disconnected', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  const port = await listening(gate)
  const gone = connect({ port, host: '127.0.0.1' })
  await once(gone, 'connect')
  const asked: string[] = []
  gate.open((request, response) => {
    asked.push(request.url!)
    // The connection closes while its other requests wait.
    if (asked.length === 1) request.socket.destroy()
    for (const until = performance.now() + 30; performance.now() < until;);
    response.end()
  })
  gone.write(Array.from({ length: 5 }, (_, index) => `GET /${index} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''))
  await once(gone, 'close')
  expect(await get(port, '/after')).toBe('')
  expect(asked).toEqual(['/0', '/after'])
  await gate.close()
})

/** Opens a connection with a request; undefined if the server closes it without an answer. */
async function connected(port: number): Promise<Socket | undefined> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.write('GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const kept = await Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)])
  if (kept) return socket
  socket.destroy()
  return undefined
}

describe('A gated server and slow clients', () => {
  const slow = loadConfig([], { QUIPU_REQUEST_HEAD_MS: '300ms', QUIPU_REQUEST_MS: '600ms' })
  const at = (port: number): string => `http://127.0.0.1:${port}`

  it('disconnects a client that is slow with its headers or sends nothing', async () => {
    const gate = createGatedServer(slow, () => false)
    gate.open((_request, response) => response.end('never'))
    const port = await listening(gate)
    expect((await exchange(at(port), 'GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ')).statuses).toEqual([408])
    expect((await exchange(at(port), '')).statuses.filter((status) => status !== 408)).toEqual([])
    await gate.close()
  })

  it('disconnects a client that is slow with its body', async () => {
    const gate = createGatedServer(slow, () => false)
    gate.open((request, response) => {
      readBody(request, 1000).then(
        () => response.end('never'),
        (error: unknown) => sendProblem(request, response, toProblem(error)),
      )
    })
    const port = await listening(gate)
    const head = 'POST / HTTP/1.1\r\nHost: localhost\r\n'
    for (const body of ['Content-Length: 10\r\n\r\nhalf', 'Transfer-Encoding: chunked\r\n\r\n4\r\nhal'])
      expect((await exchange(at(port), head + body)).text).not.toContain('never')
    await gate.close()
  })

  it('keeps a client that waits long for its answer', async () => {
    const gate = createGatedServer(slow, () => false)
    gate.open((_request, response) => void setTimeout(() => response.end('at last'), 2_500))
    const port = await listening(gate)
    expect(await get(port, '/')).toBe('at last')
    await gate.close()
  })
})

it('a gated server closes connections above the limit of an address, and accepts more when some have closed', async () => {
  const gate = createGatedServer(loadConfig([], { QUIPU_CONNECTIONS_PER_ADDRESS: '8' }), () => false)
  gate.open((_request, response) => void response.write('held'))
  const port = await listening(gate)
  const held = await Promise.all(Array.from({ length: 8 }, () => connected(port)))
  expect(held.filter((one) => one === undefined)).toEqual([])
  expect(await connected(port)).toBeUndefined()
  const refused: RefusedConnection[] = []
  gate.onRefusedConnection((reason) => void refused.push(reason))
  // A connection that was refused before there was a listener is reported too.
  expect(refused).toEqual(['address_connections'])
  expect(await connected(port)).toBeUndefined()
  expect(refused).toEqual(['address_connections', 'address_connections'])
  held[0]!.destroy()
  await waitUntil('there is room', async () => {
    const next = await connected(port)
    held.push(next)
    return next !== undefined
  })
  for (const socket of held) socket?.destroy()
  await gate.close()
})

it('a gated server closes connections above its total limit', async () => {
  const gate = createGatedServer(loadConfig([], { QUIPU_CONNECTIONS: '16' }), () => false)
  gate.open((_request, response) => void response.write('held'))
  const port = await listening(gate)
  const held = await Promise.all(Array.from({ length: 16 }, () => connected(port)))
  expect(held.filter((one) => one === undefined)).toEqual([])
  const refused: RefusedConnection[] = []
  gate.onRefusedConnection((reason) => void refused.push(reason))
  expect(await connected(port)).toBeUndefined()
  await waitUntil('the refusal is reported', () => refused.length > 0)
  expect(new Set(refused)).toEqual(new Set(['connections']))
  for (const socket of held) socket?.destroy()
  await gate.close()
})

describe('A gated server over several handles', () => {
  /** Each handle has a separate port, so that a test knows which handle accepts a connection. */
  async function overHandles(count: number, settings: Record<string, string> = {}) {
    const gate = createGatedServer(loadConfig([], settings), () => false)
    const sockets = await Promise.all(Array.from({ length: count }, () => bindSocket('http', '127.0.0.1', 0)))
    await gate.listen(sockets.map(({ handle }) => handle))
    return { gate, ports: sockets.map(({ url }) => Number(new URL(url).port)) }
  }

  it('limits the connections of all handles together', async () => {
    const { gate, ports } = await overHandles(4, { QUIPU_CONNECTIONS: '16' })
    gate.open((_request, response) => void response.write('held'))
    const refused: RefusedConnection[] = []
    gate.onRefusedConnection((reason) => void refused.push(reason))
    const held = await Promise.all([...ports, ...ports, ...ports, ...ports].map(connected))
    expect(held).not.toContain(undefined)
    for (const port of ports) expect(await connected(port)).toBeUndefined()
    expect(refused).toEqual(ports.map(() => 'connections'))
    for (const socket of held) socket?.destroy()
    await gate.close()
  })

  it('keeps serving when the system refuses a connection (EMFILE), and reports it', async () => {
    const { gate, ports } = await overHandles(1)
    gate.open((_request, response) => response.end('there'))
    const refused: RefusedConnection[] = []
    gate.onRefusedConnection((reason) => void refused.push(reason))
    gate.server.emit('error', new Error('accept EMFILE'))
    expect(refused).toEqual(['connections'])
    expect(await get(ports[0]!, '/')).toBe('there')
    await gate.close()
  })

  it('closes after the pending answers of all handles, although clients keep connections open', async () => {
    const { gate, ports } = await overHandles(3)
    const answers: (() => void)[] = []
    gate.open((_request, response) => void answers.push(() => response.end('at last')))
    const agent = new Agent({ keepAlive: true })
    const waiting = ports.map((port) => get(port, '/', agent))
    await waitUntil('all ask', () => answers.length === ports.length)
    let over = false
    const closed = gate.close().then(() => (over = true))
    for (const [index, answer] of answers.entries()) {
      expect(over).toBe(false)
      answer()
      expect(await waiting[index]).toBe('at last')
    }
    await closed
    for (const port of ports) await expect(get(port, '/')).rejects.toThrow('ECONNREFUSED')
    agent.destroy()
  })
})

it('a gated server closes a connection with too many pipelined requests', async () => {
  let taken = 0
  const gate = createGatedServer(loadConfig([], {}), () => false)
  gate.open((_request, response) => {
    taken++
    response.once('close', () => {})
  })
  const port = await listening(gate)
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1000))
  await once(socket, 'close')
  // The requests that still wait have no client any more.
  expect(taken).toBeGreaterThan(0)
  expect(taken).toBeLessThanOrEqual(32)
  await gate.close()
})

it('a gated server stops reading a connection while two of its requests wait, and reads on after an answer', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  const paths: string[] = []
  let read = (): number => 0
  let answerFirst = (): void => {}
  gate.open((request, response) => {
    if (request.url === '/other') return void response.end()
    paths.push(request.url!)
    read = () => request.socket.bytesRead
    if (paths.length > 1) response.end()
    else answerFirst = () => response.end()
  })
  const port = await listening(gate)
  const socket = connect({ port, host: '127.0.0.1' })
  let text = ''
  socket.setEncoding('latin1').on('data', (part) => (text += String(part)))
  const head = (index: number) => `GET /${index} HTTP/1.1\r\nHost: localhost\r\nX-A: ${'a'.repeat(60_000)}\r\n\r\n`
  socket.write(Array.from({ length: 30 }, (_, index) => head(index)).join(''))
  await waitUntil('the second has come', () => paths.length >= 2)
  for (let attempt = 0; attempt < 20; attempt++) await get(port, '/other')
  expect(read()).toBeLessThan(5 * 65_536)
  answerFirst()
  await waitUntil('all are answered', () => text.split('HTTP/1.1 200').length === 31)
  expect(paths).toEqual(Array.from({ length: 30 }, (_, index) => `/${index}`))
  socket.destroy()
  await gate.close()
})

it('a gated server answers 400 if the Connection header names a header that identifies the client or session', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  gate.open((_request, response) => response.end())
  const url = `http://127.0.0.1:${await listening(gate)}`
  for (const [connection, status] of [
    ['close, X-Trino-User', 400],
    ['close ,x-presto-session,', 400],
    ['close, authorization', 400],
    ['close, Cookie', 400],
    ['close, te, x-of-a-proxy', 200],
    ['close, HTTP2-Settings', 200],
  ] as const) {
    const { statuses } = await exchange(
      url,
      requestText('GET / HTTP/1.1', ['Host: h', `Connection: ${connection}`, 'TE: trailers']),
    )
    expect([connection, ...statuses]).toEqual([connection, status])
  }
  const twice = ['Host: h', 'Connection: close', 'X-Trino-User: bob', 'Connection: x-trino-user']
  expect((await exchange(url, requestText('GET / HTTP/1.1', twice))).statuses).toEqual([400])
  await gate.close()
})

it('a gated server notices that a client disconnects while its request is in progress', async () => {
  const gate = createGatedServer(loadConfig([], {}), () => false)
  const gone = new Promise<void>((resolve) => gate.open((_request, response) => void response.once('close', resolve)))
  const socket = connect({ port: await listening(gate), host: '127.0.0.1' })
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', () => setTimeout(() => socket.destroy(), 50))
  await gone
  await gate.close()
})

it('a gated server counts the connections of an IPv6 network together', async () => {
  const gate = createGatedServer(loadConfig(['--connections-per-address', '8'], {}), () => false)
  const from = (remoteAddress: string): Socket => {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress })
    gate.server.emit('connection', socket)
    return socket
  }
  const neighbours = Array.from({ length: 9 }, (_, index) => from(`2001:db8::${index}`))
  const sockets = [...neighbours, from('2001:db8:0:1::1')]
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([...Array<boolean>(8).fill(false), true, false])
  for (const socket of sockets) socket.destroy()
})
