import { createHash, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request as httpsRequest, type RequestOptions } from 'node:https'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { trinoCli } from '../support/real-clients.ts'

const cli = await trinoCli()
const folder = temporaryFolder()
const ending: (() => Promise<unknown>)[] = [() => folder.remove()]
const asRoot = process.getuid?.() === 0 ? ['--run-as', 'root'] : []
let authority: TestAuthority
let tls: Readonly<Record<string, string>>

beforeAll(async () => {
  authority = await createAuthority()
  ending.push(() => authority.remove())
  const { cert, key } = await authority.issue('quipu')
  tls = { QUIPU_TLS_CERT: cert, QUIPU_TLS_KEY: key, QUIPU_TLS_CA_FILE: authority.ca, QUIPU_LOG_LEVEL: 'warn' }
})
afterAll(async () => {
  for (const end of ending) await end().catch(() => {})
})

function start(program: string, name: string, env: Readonly<Record<string, string>>): QuipuProcess {
  const data = join(folder.path, name)
  const quipu = spawnQuipu([program, '--port', '0', '--data-dir', data, ...asRoot], { env })
  ending.unshift(async () => {
    quipu.signal('SIGTERM')
    await quipu.exit
  })
  return quipu
}

interface Answer {
  readonly status: number
  readonly text: string
}

function ask(url: string, options: RequestOptions = {}, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest
    const asked = send(url, { ca: readFileSync(authority.ca), agent: false, ...options }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.on('error', reject).on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

const HEADERS = { 'x-trino-user': 'ada', 'x-trino-catalog': 'tpch', 'x-trino-schema': 'tiny' }

interface Reported {
  readonly nextUri?: string
  readonly data?: readonly (readonly unknown[])[]
  readonly error?: { readonly message: string }
}

/** Runs a statement. @returns the rows, and every address that the client got */
async function run(url: string, sql: string, headers: Readonly<Record<string, string>> = HEADERS) {
  const rows: (readonly unknown[])[] = []
  const uris: string[] = []
  const post = await ask(`${url}/v1/statement`, { method: 'POST', headers }, sql)
  for (let answer = post; ;) {
    expect(answer.status, answer.text).toBe(200)
    const reported = JSON.parse(answer.text) as Reported
    expect(reported.error).toBeUndefined()
    rows.push(...(reported.data ?? []))
    if (reported.nextUri === undefined) return { rows, uris }
    uris.push(reported.nextUri)
    answer = await ask(reported.nextUri.replace(/^https:\/\/shop\.example/, url), { headers })
  }
}

const SCAN = 'SELECT count(*) FROM tpch.tiny.nation'

describe('A server on one machine, over TLS', () => {
  let quipu: QuipuProcess
  let url: string
  beforeAll(async () => {
    const database = await createMigratedDatabase()
    ending.push(() => database.drop())
    quipu = start('start', 'all', { ...tls, DATABASE_URL: database.url, QUIPU_RESTART_BACKOFF_MAX_MS: '200ms' })
    url = await quipu.url
  })

  it('prints its https address, and runs statements on a worker', async () => {
    expect(url).toMatch(/^https:/)
    expect(quipu.stdout()).toContain(`query --server ${url} --ca ${authority.ca}`)
    const { rows, uris } = await run(url, SCAN)
    expect(rows).toEqual([[25]])
    expect(uris.every((uri) => uri.startsWith(`${url}/`))).toBe(true)
    const nodes = JSON.parse((await ask(`${url}/v1/node`)).text) as { uri: string }[]
    expect(nodes.map(({ uri }) => uri.slice(0, 8))).toEqual(['https://'])
  })

  it('answers quipu query, if the client trusts its certificate', async () => {
    const query = spawnQuipu(['query', '--server', url, '--ca', authority.ca, SCAN])
    expect(await query.exit).toMatchObject({ code: 0, stdout: expect.stringContaining('25') })
    const untrusted = await spawnQuipu(['query', '--server', url, SCAN]).exit
    expect([untrusted.code, untrusted.stderr]).toEqual([1, expect.stringContaining('Cannot reach')])
  })

  it.runIf(cli)('answers the Trino CLI', async () => {
    const trust = ['--truststore-path', authority.ca]
    const { stdout, stderr } = await cli!(['--server', url, ...trust, '--output-format', 'CSV', '--execute', SCAN])
    expect([stdout, stderr]).toEqual(['"25"\n', expect.any(String)])
  })

  it(
    'refuses no connection while its coordinator is killed, and resumes TLS sessions',
    { timeout: 240_000 },
    async () => {
      const data = join(folder.path, 'all')
      const [before] = processesOf(data).children
      const refused: string[] = []
      let answered = 0
      let going = true
      const client = async (): Promise<void> => {
        while (going)
          await ask(`${url}/v1/info`).then(
            () => answered++,
            // Requests of accepted connections may fail when the process dies; no client may fail to connect.
            (error: NodeJS.ErrnoException) => void (error.code === 'ECONNREFUSED' && refused.push(error.message)),
          )
      }
      const clients = Array.from({ length: 8 }, client)
      await waitUntil('clients are answered', () => answered > 20)
      const agent = new Agent({ keepAlive: false, maxCachedSessions: 10, ca: readFileSync(authority.ca) })
      const reused = (): Promise<boolean> =>
        new Promise((resolve, reject) => {
          const asked = httpsRequest(`${url}/v1/info`, { agent }, (answer: IncomingMessage) => {
            const { socket } = answer
            answer.resume().on('end', () => resolve((socket as TLSSocket).isSessionReused()))
          })
          asked.on('error', reject).end()
        })
      await waitUntil('a session is reused', reused)
      process.kill(before!, 'SIGKILL')
      await waitUntil('another one runs', () => {
        const [now] = processesOf(data).children
        return now !== undefined && now !== before
      })
      expect(await reused()).toBe(true)
      const reached = answered
      await waitUntil('clients are answered again', () => answered > reached + 50)
      going = false
      await Promise.all(clients)
      expect(refused).toEqual([])
      expect((await run(url, SCAN)).rows).toEqual([[25]])
    },
  )
})

it(
  'a coordinator that restarts while the certificate files are broken serves the last valid certificate',
  { timeout: 240_000 },
  async () => {
    const broken = { cert: join(folder.path, 'cert.pem'), key: join(folder.path, 'key.pem') }
    copyFileSync(tls['QUIPU_TLS_CERT']!, broken.cert)
    copyFileSync(tls['QUIPU_TLS_KEY']!, broken.key)
    const database = await createMigratedDatabase()
    ending.push(() => database.drop())
    const env = { ...tls, QUIPU_TLS_CERT: broken.cert, QUIPU_TLS_KEY: broken.key, DATABASE_URL: database.url }
    const quipu = start('coordinator', 'broken', { ...env, QUIPU_SHARED_SECRET: 'a secret that all sides know' })
    const url = await quipu.url
    await waitUntil('the certificate is recorded', async () => (await actsIn(database.url)).length === 1)
    const data = join(folder.path, 'broken')
    const [before] = processesOf(data).children
    for (const path of Object.values(broken)) writeFileSync(path, 'nonsense')
    process.kill(before!, 'SIGKILL')
    await waitUntil('another one answers', async () => {
      const [now] = processesOf(data).children
      if (now === undefined || now === before) return false
      const { text } = await ask(`${url}/v1/info`).catch(() => ({ text: '{}' }))
      return (JSON.parse(text) as { writer?: boolean }).writer === true
    })
    expect(quipu.stdout()).toContain('tls.trouble')
    // A server that starts for the first time has no last valid certificate.
    const other = await start('coordinator', 'never', { ...env, QUIPU_SHARED_SECRET: 'a secret that all sides know' })
      .exit
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('for TLS: ')])
    const { cert, key } = await authority.issue('mended')
    copyFileSync(cert, broken.cert)
    copyFileSync(key, broken.key)
    const shown = async (): Promise<string> => {
      const socket = connectTls({ host: '127.0.0.1', port: Number(new URL(url).port), ca: readFileSync(authority.ca) })
      await once(socket, 'secureConnect')
      const { subject } = socket.getPeerX509Certificate()!
      socket.destroy()
      return subject
    }
    await waitUntil('the mended one is shown', async () => (await shown()) === 'CN=mended')
    const prints = [tls['QUIPU_TLS_CERT']!, cert].map((path) => sha256(new X509Certificate(readFileSync(path)).raw))
    await waitUntil('the log has what was shown, what was refused and what is shown now', async () => {
      const acts = await actsIn(database.url)
      return isDeepStrictEqual(acts, [
        ['CertificateTaken', 'start', prints[0]],
        ['CertificateTaken', 'start', prints[0]],
        ['FileRefused', undefined, prints[0]],
        ['CertificateTaken', 'reload', prints[1]],
      ])
    })
  },
)

/** The events of certificates in order: kind, occasion, and the fingerprint in force. */
async function actsIn(databaseUrl: string): Promise<readonly (readonly (string | undefined)[])[]> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ kind: string; details: Readonly<Record<string, string>> }>(
      `select kind, details from m.audit_log where kind in ('CertificateTaken', 'FileRefused') order by sequence`,
    )
    return rows.map(({ kind, details: { occasion, fingerprint, inForce } }) => [kind, occasion, fingerprint ?? inForce])
  } finally {
    await client.end()
  }
}

function sha256(data: Buffer): string {
  return createHash('sha256').update(data).digest('hex')
}

describe('Two coordinators and a worker, each with a certificate', () => {
  it('reach one another, and the follower gives its clients its own addresses', { timeout: 240_000 }, async () => {
    const database = await createMigratedDatabase()
    ending.push(() => database.drop())
    const shared = { ...tls, QUIPU_SHARED_SECRET: 'a secret that all sides know', DATABASE_URL: database.url }
    const env = { ...shared, QUIPU_TRUSTED_PROXIES: '127.0.0.9', QUIPU_PUBLIC_HOSTS: 'shop.example' }
    const first = await start('coordinator', 'first', env).url
    const second = await start('coordinator', 'second', { ...env, QUIPU_STANDBY: 'true' }).url
    start('worker', 'worker', { ...shared, QUIPU_COORDINATORS: `${first},${second}` })
    for (const url of [first, second]) {
      const { rows, uris } = await run(url, SCAN)
      expect(rows).toEqual([[25]])
      expect(uris.length).toBeGreaterThan(0)
      expect(uris.filter((uri) => !uri.startsWith(`${url}/`))).toEqual([])
    }
    const infos = await Promise.all([first, second].map(async (url) => (await ask(`${url}/v1/info`)).text))
    expect(infos.map((text) => (JSON.parse(text) as { writer: boolean }).writer)).toEqual([true, false])
    // A proxy before the follower: its headers reach the writer, and those of other addresses do not.
    const reported = {
      ...HEADERS,
      'x-forwarded-for': '203.0.113.7',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'shop.example',
    }
    const post = async (localAddress: string): Promise<{ id: string; nextUri: string }> => {
      const { text } = await ask(`${second}/v1/statement`, { method: 'POST', headers: reported, localAddress }, SCAN)
      return JSON.parse(text) as { id: string; nextUri: string }
    }
    const proxied = await post('127.0.0.9')
    expect(proxied.nextUri).toMatch(/^https:\/\/shop\.example\/v1\/statement\//)
    expect((await post('127.0.0.8')).nextUri.startsWith(`${second}/`)).toBe(true)
    const { text } = await ask(`${first}/v1/query/${proxied.id}/events`)
    expect(text).toContain('203.0.113.7')
  })

  it('a worker sends nothing to a coordinator with a certificate of another authority', async () => {
    const others = await createAuthority()
    ending.push(() => others.remove())
    const { cert, key } = await others.issue('impostor')
    const heard: string[] = []
    const impostor = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (asked, answer) => {
      heard.push(String(asked.headers.authorization))
      answer.end()
    })
    await new Promise<void>((resolve) => impostor.listen(0, '127.0.0.1', resolve))
    ending.unshift(async () => void impostor.close())
    let knocked = 0
    impostor.on('tlsClientError', () => knocked++)
    start('worker', 'deceived', {
      ...tls,
      QUIPU_SHARED_SECRET: 'a secret that all sides know',
      QUIPU_COORDINATORS: `https://localhost:${(impostor.address() as AddressInfo).port}`,
    })
    await waitUntil('the worker has tried', () => knocked > 1)
    expect(heard).toEqual([])
  })
})
