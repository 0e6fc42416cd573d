import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { copyFile, mkdtemp, readFile, rename, symlink, unlink, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load-config.ts'
import { createGatedServer, type GatedServer, type RefusedConnection } from '../../src/processes/gated-server.ts'
import type { CertificateNews } from '../../src/processes/tls-identity.ts'
import { bindSocket } from '../../src/supervisor/listening-socket.ts'
import { baseUri } from '../../src/protocol/edge/base-uri.ts'
import { clientCertificate } from '../../src/protocol/edge/client-certificate.ts'
import { clientConnection } from '../../src/protocol/edge/client-connection.ts'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { exchange } from '../support/raw-socket.ts'

let authority: TestAuthority
let others: TestAuthority
let ca: Buffer
let pairs: Record<'a' | 'b', { readonly cert: string; readonly key: string }>
const open: GatedServer[] = []

beforeAll(async () => {
  authority = await createAuthority()
  others = await createAuthority()
  ca = await readFile(authority.ca)
  pairs = { a: await authority.issue('a'), b: await authority.issue('b') }
})
afterEach(async () => {
  for (const gate of open.splice(0)) {
    gate.server.closeAllConnections()
    await gate.close()
  }
})
afterAll(() => Promise.all([authority.remove(), others.remove()]))

interface Served {
  readonly gate: GatedServer
  readonly port: number
  readonly news: CertificateNews[]
  readonly refused: RefusedConnection[]
}

async function served(settings: Record<string, string> = {}): Promise<Served> {
  const env = { QUIPU_TLS_CERT: pairs.a.cert, QUIPU_TLS_KEY: pairs.a.key, ...settings }
  const gate = createGatedServer(loadConfig([], env), () => false)
  open.push(gate)
  gate.open((asked, response) => void response.end(JSON.stringify(reported(asked))))
  const news: CertificateNews[] = []
  const refused: RefusedConnection[] = []
  gate.onCertificate((one) => void news.push(one))
  gate.onRefusedConnection((one) => void refused.push(one))
  await new Promise<void>((resolve) => gate.server.listen(0, '127.0.0.1', resolve))
  return { gate, port: (gate.server.address() as AddressInfo).port, news, refused }
}

const reported = (asked: IncomingMessage) => ({
  base: baseUri(asked),
  confidential: clientConnection(asked).confidential,
  certificate: clientCertificate(asked),
})

async function get(port: number, options: ConnectionOptions = {}): Promise<ReturnType<typeof reported>> {
  const sent = request({ host: '127.0.0.1', port, ca, agent: false, ...options })
  sent.end()
  const [answer] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const part of answer.setEncoding('utf8')) text += String(part)
  return JSON.parse(text) as ReturnType<typeof reported>
}

async function handshake(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connectTls({ host: '127.0.0.1', port, ca, ...options })
  await once(socket, 'secureConnect')
  return socket
}

async function tcpConnected(port: number): Promise<Socket> {
  const socket = connectTcp(port, '127.0.0.1').on('error', () => {})
  await once(socket, 'connect')
  return socket
}

async function shownBy(port: number): Promise<string | undefined> {
  const socket = await handshake(port)
  const { subject } = socket.getPeerX509Certificate()!
  socket.destroy()
  return subject
}

describe('A server with a certificate', () => {
  it.each(['TLSv1.2', 'TLSv1.3'] as const)('accepts %s', async (version) => {
    const { port } = await served()
    expect(await get(port, { minVersion: version, maxVersion: version })).toEqual({
      base: `https://127.0.0.1:${port}`,
      confidential: true,
    })
  })

  it('refuses TLS versions before 1.2', async () => {
    const { port } = await served()
    const old = connectTls({
      host: '127.0.0.1',
      port,
      ca,
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    })
    const [error] = (await once(old, 'error')) as [Error]
    expect(error.message).toMatch(/protocol version|unsupported protocol|no protocols/)
  })

  it('answers 400 to plain HTTP, with a hint to use HTTPS', async () => {
    const { port, refused } = await served()
    const { text, statuses } = await exchange(
      `http://127.0.0.1:${port}`,
      'GET /v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n',
    )
    expect(statuses).toEqual([400])
    expect(text).toContain('https://')
    expect(refused).toEqual(['handshake'])
  })

  it.each([
    ['nonsense', Buffer.from('nonsense\r\n\r\n')],
    ['half a record', Buffer.from('16030100', 'hex')],
    ['a record of 64 kB', Buffer.concat([Buffer.from('160301ffff', 'hex'), Buffer.alloc(70_000)])],
    ['an alert', Buffer.from('15030300020228', 'hex')],
    ['nothing', Buffer.alloc(0)],
  ])('closes a connection that begins with %s', async (_name, bytes) => {
    const { port, gate } = await served({ QUIPU_REQUEST_HEAD_MS: '300ms' })
    const { text } = await exchange(`http://127.0.0.1:${port}`, bytes)
    expect(text).not.toContain('HTTP')
    await waitUntil('no client is connected', async () => (await connections(gate)) === 0)
    expect((await get(port)).confidential).toBe(true)
  })

  it('disconnects clients that are slow with headers or body, as without TLS', async () => {
    const { port, gate } = await served({ QUIPU_REQUEST_HEAD_MS: '300ms', QUIPU_REQUEST_MS: '600ms' })
    gate.open((asked) => void asked.resume())
    for (const text of [
      'GET / HTTP/1.1\r\nHost: a\r\nX-',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf',
    ]) {
      const socket = await handshake(port)
      socket.on('error', () => {}).resume()
      socket.write(text)
      await once(socket, 'close')
    }
  })

  it('counts unfinished handshakes as connections of their address', async () => {
    const { port, gate, refused } = await served({ QUIPU_CONNECTIONS_PER_ADDRESS: '8' })
    const idle: Socket[] = Array.from({ length: 8 }, () => connectTcp(port, '127.0.0.1'))
    await waitUntil('all are there', async () => (await connections(gate)) === 8)
    await expect(get(port)).rejects.toThrow(/socket disconnected|ECONNRESET|hang up/)
    expect(refused).toEqual(['address_connections'])
    for (const socket of idle) socket.destroy()
    await waitUntil('all are gone', async () => (await connections(gate)) === 0)
    expect((await get(port)).confidential).toBe(true)
  })

  it('limits headers and pipelined requests, as without TLS', async () => {
    const { port, gate } = await served({ QUIPU_HEADERS: '20' })
    gate.open(() => {})
    const many = await handshake(port)
    many.write(`GET / HTTP/1.1\r\nHost: a\r\n${'A: b\r\n'.repeat(30)}\r\n`)
    expect(String((await once(many, 'data'))[0])).toContain(' 431 ')
    const ahead = await handshake(port)
    ahead.on('error', () => {}).resume()
    ahead.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(40))
    await once(ahead, 'close')
  })

  it('accepts handshakes on each of its handles, and counts unfinished handshakes', async () => {
    const env = { QUIPU_TLS_CERT: pairs.a.cert, QUIPU_TLS_KEY: pairs.a.key, QUIPU_CONNECTIONS: '16' }
    const gate = createGatedServer(loadConfig([], env), () => false)
    open.push(gate)
    gate.open((asked, response) => void response.end(JSON.stringify(reported(asked))))
    const refused: RefusedConnection[] = []
    gate.onRefusedConnection((one) => void refused.push(one))
    const sockets = await Promise.all([1, 2, 3, 4].map(() => bindSocket('https', '127.0.0.1', 0)))
    await gate.listen(sockets.map(({ handle }) => handle))
    const ports = sockets.map(({ url }) => Number(new URL(url).port))
    for (const port of ports) expect((await get(port)).base).toBe(`https://127.0.0.1:${port}`)
    const idle = await Promise.all(ports.flatMap((port) => [port, port, port, port]).map((port) => tcpConnected(port)))
    await expect(get(ports[1]!)).rejects.toThrow(/socket disconnected|ECONNRESET|hang up/)
    expect(refused).toEqual(['connections'])
    await gate.close()
    for (const socket of idle) socket.destroy()
  })

  it('closes during an unfinished handshake, after its pending answers', async () => {
    const { port, gate } = await served()
    let answer = () => {}
    gate.open((_asked, response) => (answer = () => response.end('{}')))
    const agent = new Agent({ keepAlive: true })
    const waiting = get(port, { agent } as ConnectionOptions)
    await once(gate.server, 'request')
    const mute = connectTcp(port, '127.0.0.1').on('error', () => {})
    await waitUntil('it is there', async () => (await connections(gate)) === 2)
    const closed = gate.close()
    answer()
    expect(await waiting).toEqual({})
    await closed
    mute.destroy()
    agent.destroy()
  })
})

const connections = (gate: GatedServer): Promise<number> =>
  new Promise((resolve) => gate.server.getConnections((_error, count) => resolve(count)))

describe('The certificate files of a server', () => {
  async function inFolder(): Promise<Served & { readonly cert: string; readonly key: string }> {
    const folder = await mkdtemp(join(authority.folder, 'served-'))
    const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    await copyFile(pairs.a.cert, cert)
    await copyFile(pairs.a.key, key)
    return { ...(await served({ QUIPU_TLS_CERT: cert, QUIPU_TLS_KEY: key })), cert, key }
  }

  const replace = async (from: string, to: string): Promise<void> => {
    await copyFile(from, `${to}.new`)
    await rename(`${to}.new`, to)
  }

  it('take effect when both have changed, written or renamed, and open connections stay', async () => {
    const { port, cert, key, news } = await inFolder()
    const before = await handshake(port)
    before.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(String((await once(before, 'data'))[0])).toContain(' 200 ')
    expect(await shownBy(port)).toBe('CN=a')
    // Written in place.
    await writeFile(cert, await readFile(pairs.b.cert))
    await writeFile(key, await readFile(pairs.b.key))
    await waitUntil('b is shown', async () => (await shownBy(port)) === 'CN=b')
    await replace(pairs.a.key, key)
    await replace(pairs.a.cert, cert)
    await waitUntil('a is shown', async () => (await shownBy(port)) === 'CN=a')
    before.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(String((await once(before, 'data'))[0])).toContain(' 200 ')
    before.destroy()
    expect(news.filter(({ kind }) => kind === 'serves').length).toBe(3)
    expect(news[0]).toMatchObject({ names: 'IP Address:127.0.0.1, DNS:localhost' })
  })

  it('may be symbolic links that change', async () => {
    const { port, cert, key } = await inFolder()
    for (const [path, target] of [
      [cert, pairs.b.cert],
      [key, pairs.b.key],
    ] as const) {
      await unlink(path)
      await symlink(target, path)
    }
    await waitUntil('b is shown', async () => (await shownBy(port)) === 'CN=b')
  })

  it.each<[string, (paths: { cert: string; key: string }) => Promise<unknown>]>([
    ['do not belong together', ({ cert }) => copyFile(pairs.b.cert, cert)],
    ['hold nonsense', ({ cert }) => writeFile(cert, 'nonsense')],
    ['are empty', ({ key }) => writeFile(key, '')],
    ['are away', ({ key }) => unlink(key)],
  ])('change nothing while they %s, which the server reports once, as it does their repair', async (_name, spoil) => {
    const { port, cert, key, news } = await inFolder()
    await spoil({ cert, key })
    await waitUntil('the server reports the files', () => news.length > 1)
    expect(await shownBy(port)).toBe('CN=a')
    await copyFile(pairs.b.cert, cert)
    await copyFile(pairs.b.key, key)
    await waitUntil('b is shown', async () => (await shownBy(port)) === 'CN=b')
    await waitUntil('the server reports the files', () => news.length > 2)
    expect(news.map(({ kind }) => kind)).toEqual(['serves', 'refused', 'serves'])
  })

  it('are refused at the start with the reason if they are unusable', async () => {
    const start = (cert: string, key: string) => served({ QUIPU_TLS_CERT: cert, QUIPU_TLS_KEY: key })
    await expect(start(pairs.a.cert, pairs.b.key)).rejects.toThrow(/for TLS: .*mismatch/)
    await expect(start('/nowhere.pem', pairs.b.key)).rejects.toThrow('Cannot use /nowhere.pem for TLS: ENOENT')
    const sealed = join(authority.folder, 'sealed.pem')
    const key = createPrivateKey(await readFile(pairs.a.key))
    const cipher = { cipher: 'aes-256-cbc', passphrase: 'sesame' }
    await writeFile(sealed, key.export({ type: 'pkcs8', format: 'pem', ...cipher }))
    await expect(start(pairs.a.cert, sealed)).rejects.toThrow('the key has a passphrase')
  })

  it('may be a single file with key and certificate, as Java servers use it', async () => {
    const both = join(authority.folder, 'both.pem')
    await writeFile(both, Buffer.concat([await readFile(pairs.a.key), await readFile(pairs.a.cert)]))
    const { news } = await served({ QUIPU_TLS_CERT: both, QUIPU_TLS_KEY: both })
    expect(news).toMatchObject([{ kind: 'serves' }])
  })
})

describe('A TLS session', () => {
  const SECRET = { QUIPU_SHARED_SECRET: 'a secret that both sides know' }

  async function resumed(first: Served, second: Served): Promise<boolean> {
    const options = { maxVersion: 'TLSv1.3' } as const
    const socket = await handshake(first.port, options)
    const session = new Promise<Buffer>((resolve) => socket.once('session', resolve))
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    const ticket = await session
    socket.destroy()
    const again = await handshake(second.port, { ...options, session: ticket })
    const reused = again.isSessionReused()
    again.destroy()
    return reused
  }

  it('resumes on another process with the same secret, and on no other process', async () => {
    const first = await served(SECRET)
    expect(await resumed(first, await served(SECRET))).toBe(true)
    expect(await resumed(first, await served({ QUIPU_SHARED_SECRET: 'another secret of somebody' }))).toBe(false)
  })

  it('does not resume on a server with other client authorities', async () => {
    const first = await served({
      ...SECRET,
      QUIPU_TLS_CLIENT_CA_FILE: authority.ca,
      QUIPU_AUTHENTICATION: 'certificate',
    })
    const second = await served({ ...SECRET, QUIPU_TLS_CLIENT_CA_FILE: others.ca, QUIPU_AUTHENTICATION: 'certificate' })
    expect(await resumed(first, first)).toBe(true)
    expect(await resumed(first, second)).toBe(false)
  })
})

describe('The certificate of a client', () => {
  const shown = async (pair: { readonly cert: string; readonly key: string }): Promise<ConnectionOptions> => ({
    cert: await readFile(pair.cert),
    key: await readFile(pair.key),
  })

  it('is requested only when clients are authenticated by certificate', async () => {
    const pair = await shown(await authority.issue('ada', 'email:ada@example.org'))
    const plain = await served({ QUIPU_TLS_CLIENT_CA_FILE: authority.ca })
    expect((await get(plain.port, pair)).certificate).toBeUndefined()
    const asking = await served({ QUIPU_TLS_CLIENT_CA_FILE: authority.ca, QUIPU_AUTHENTICATION: 'certificate' })
    expect((await get(asking.port)).certificate).toBeUndefined()
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const)
      expect((await get(asking.port, { ...pair, maxVersion })).certificate).toEqual({
        subject: 'CN=ada',
        alternativeNames: 'email:ada@example.org',
        verified: true,
      })
  })

  it('is not verified when another authority signed it', async () => {
    const asking = await served({ QUIPU_TLS_CA_FILE: authority.ca, QUIPU_AUTHENTICATION: 'certificate' })
    const foreign = await shown(await others.issue('ada'))
    expect((await get(asking.port, foreign)).certificate).toMatchObject({ subject: 'CN=ada', verified: false })
  })
})
