import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https'
import { createServer as createHttpServer, type IncomingHttpHeaders, type Server as HttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { SignJWT } from 'jose'
import { Client as DatabaseClient } from 'pg'
import { BasicAuth, Trino } from 'trino-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writePasswordFile } from '../support/password-file.ts'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { panelCounts, panelValues } from '../support/panels.ts'
import { findPrometheus, startPrometheusFrom } from '../support/prometheus.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { rowReaders, type LogIn } from '../support/row-readers.ts'
import type { StatementJson } from '../support/statement-client.ts'

const readers = await rowReaders()
const programs = await findPrometheus()
const folder = temporaryFolder()
const ending: (() => Promise<unknown>)[] = [() => folder.remove()]
/** The keys that are published; the last one signs tokens. */
const published = [signingKey('first')]
let keyServer: HttpServer

function signingKey(kid: string) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid } }
}

// JDBC cannot write `&` in an address.
const PASSWORD = 'open sesame, ümläut'
/** Users whose passwords are guessed: a separate user for each test, because the server delays users after guesses. */
const guessed = new Map(
  [...readers.keys(), 'js', 'certificate', 'others'].map((name, index) => [name, `user${'abcdefghijkl'[index]!}`]),
)

let authority: TestAuthority
let served: { readonly cert: string; readonly key: string }
let carol: { readonly cert: string; readonly key: string; readonly both: string }
let database: { readonly url: string }
let quipu: QuipuProcess
let base: string

beforeAll(async () => {
  authority = await createAuthority()
  ending.push(() => authority.remove())
  const made = await createMigratedDatabase()
  ending.push(() => made.drop())
  database = made
  const server = await authority.issue('quipu')
  served = { cert: join(folder.path, 'cert.pem'), key: join(folder.path, 'key.pem') }
  copyFileSync(server.cert, served.cert)
  copyFileSync(server.key, served.key)
  carol = await authority.issue('carol')
  writePasswordFile(join(folder.path, 'passwords'), ['alice', 'bob', ...guessed.values()], PASSWORD, 20_000)
  keyServer = createHttpServer((_asked, answer) =>
    answer.end(JSON.stringify({ keys: published.map(({ jwk }) => jwk) })),
  )
  await new Promise<void>((resolve) => keyServer.listen(0, '127.0.0.1', resolve))
  ending.push(async () => void keyServer.close())
  const asRoot = process.getuid?.() === 0 ? ['--run-as', 'root'] : []
  quipu = spawnQuipu(['start', '--port', '0', '--data-dir', join(folder.path, 'data'), ...asRoot], {
    env: {
      DATABASE_URL: database.url,
      QUIPU_LOG_LEVEL: 'warn',
      QUIPU_TLS_CERT: served.cert,
      QUIPU_TLS_KEY: served.key,
      QUIPU_TLS_CA_FILE: authority.ca,
      QUIPU_AUTHENTICATION: 'password,jwt,certificate',
      QUIPU_PASSWORD_FILE: join(folder.path, 'passwords'),
      QUIPU_JWKS_URL: `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}/keys`,
      QUIPU_JWT_CLOCK_SKEW_MS: '0s',
      QUIPU_USER_MAPPING_PATTERN: '(?:CN=)?([a-z]+)',
    },
  })
  ending.unshift(async () => {
    quipu.signal('SIGTERM')
    await quipu.exit
  })
  base = await quipu.url
}, 240_000)
afterAll(async () => {
  for (const end of ending) await end().catch(() => {})
}, 240_000)

function tokenOf(user: string, seconds = 3600): Promise<string> {
  const expiresAt = Math.floor(Date.now() / 1000) + seconds
  const { kid, privateKey } = published.at(-1)!
  return new SignJWT({ sub: user })
    .setProtectedHeader({ alg: 'ES256', kid })
    .setExpirationTime(expiresAt)
    .sign(privateKey)
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly resumed: boolean
  readonly json: StatementJson
}

function ask(url: string, options: RequestOptions = {}, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = httpsRequest(url, { ca: readFileSync(authority.ca), agent: false, ...options }, (answer) => {
      const resumed = (answer.socket as TLSSocket).isSessionReused()
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.on('error', reject).on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text,
          resumed,
          get json() {
            return JSON.parse(text) as StatementJson
          },
        }),
      )
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

const bearer = async (user: string, seconds?: number) => ({ authorization: `Bearer ${await tokenOf(user, seconds)}` })
const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
})
const post = (sql: string, options: RequestOptions) => ask(`${base}/v1/statement`, { method: 'POST', ...options }, sql)

/** The data of all events of one type that are in the log now. */
async function recorded(type: 'LoggedIn' | 'AuthenticationFailed'): Promise<readonly Record<string, unknown>[]> {
  const client = new DatabaseClient({ connectionString: database.url })
  await client.connect()
  try {
    const { rows } = await client.query<{ data: string }>('select data from quipu_log.events order by position')
    return rows
      .map(({ data }) => JSON.parse(data) as { type?: string; data?: string })
      .filter((event) => event.type === type)
      .map((event) => JSON.parse(event.data!) as Record<string, unknown>)
  } finally {
    await client.end()
  }
}

const WHO = 'SELECT current_user, count(*) FROM nation'

describe.each([...readers])('%s', (name, reader) => {
  const methods: readonly [string, () => Promise<LogIn>][] = [
    ['a password', async () => ({ user: 'alice', ca: authority.ca, password: PASSWORD })],
    ['a token', async () => ({ user: 'tom', ca: authority.ca, token: await tokenOf('tom') })],
    ['a certificate', async () => ({ user: 'carol', ca: authority.ca, certificate: carol })],
  ]
  it.each(methods)('logs in with %s', { timeout: 240_000 }, async (_method, logIn) => {
    const known = await logIn()
    const { code, stdout, stderr } = await reader.read(base, WHO, known)
    expect([code, stdout.trim()], stderr).toEqual([0, `${known.user},25`])
  })
  it('reports a wrong password', { timeout: 240_000 }, async () => {
    const { code, stdout, stderr } = await reader.read(base, WHO, {
      user: 'alice',
      ca: authority.ca,
      password: 'guess',
    })
    expect(code).not.toBe(0)
    expect(stdout + stderr).toMatch(/Authentication failed|401|Unauthorized/)
  })
  it('cannot act as another user than the one its credential names', { timeout: 240_000 }, async () => {
    const { code, stdout, stderr } = await reader.read(base, WHO, {
      user: 'alice',
      ca: authority.ca,
      token: await tokenOf('tom'),
    })
    expect(code).not.toBe(0)
    expect(stdout + stderr).toMatch(/403|Access Denied|Forbidden/)
  })
})

describe('trino-client for JavaScript', () => {
  const rowsOf = async (more: Partial<Parameters<typeof Trino.create>[0]>): Promise<unknown[]> => {
    const ssl = { ca: readFileSync(authority.ca) }
    const rows: unknown[] = []
    for await (const result of await Trino.create({
      server: base,
      catalog: 'tpch',
      schema: 'tiny',
      ssl,
      ...more,
    }).query(WHO))
      rows.push(...(result.data ?? []))
    return rows
  }
  it('logs in with a password, a token and a certificate', async () => {
    expect(await rowsOf({ auth: new BasicAuth('alice', PASSWORD) })).toEqual([['alice', 25]])
    expect(await rowsOf({ extraHeaders: { ...(await bearer('tom')), 'X-Trino-User': 'tom' } })).toEqual([['tom', 25]])
    const ssl = { ca: readFileSync(authority.ca), cert: readFileSync(carol.cert), key: readFileSync(carol.key) }
    expect(await rowsOf({ ssl, extraHeaders: { 'X-Trino-User': 'carol' } })).toEqual([['carol', 25]])
  })
  it('reports a wrong password', async () => {
    await expect(rowsOf({ auth: new BasicAuth(guessed.get('js')!, 'guess') })).rejects.toThrow(/401/)
  })
})

describe('A client certificate', () => {
  const shown = (pair: { readonly cert: string; readonly key: string }) => ({
    cert: readFileSync(pair.cert),
    key: readFileSync(pair.key),
  })
  it('names its user over a resumed TLS session too', async () => {
    const agent = new Agent({
      keepAlive: false,
      maxCachedSessions: 10,
      ca: readFileSync(authority.ca),
      ...shown(carol),
    })
    await waitUntil('a session is taken up again', async () => {
      const answer = await post('SELECT 1', { agent })
      expect(answer.status, answer.text).toBe(200)
      return answer.resumed
    })
  })
  it('is refused from another authority, for another user, or beside a wrong password', async () => {
    const others = await createAuthority()
    ending.push(() => others.remove())
    const impostor = await post('SELECT 1', shown(await others.issue('carol')))
    expect([impostor.status, impostor.headers['www-authenticate']]).toEqual([401, expect.stringContaining('Basic')])
    const headers = { 'x-trino-user': 'alice' }
    expect((await post('SELECT 1', { headers, ...shown(carol) })).status).toBe(403)
    // The credential that the client sent decides, even if the certificate would do.
    expect(
      (await post('SELECT 1', { headers: basic(guessed.get('certificate')!, 'guess'), ...shown(carol) })).status,
    ).toBe(401)
  })
  it('is refused if its name fits no mapping', async () => {
    const server = await authority.issue('no-user')
    expect((await post('SELECT 1', shown(server))).status).toBe(401)
  })
})

describe('A query of a user', () => {
  it('continues with a new token after its token has expired', async () => {
    let headers = await bearer('tom', 5)
    let answer = await post('SELECT current_user', { headers })
    // On a slow machine the token may expire before the first request.
    while (answer.status === 401) {
      headers = await bearer('tom', 30)
      answer = await post('SELECT current_user', { headers })
    }
    const nextUri = answer.json.nextUri!
    await waitUntil('the token has ended', async () => (answer = await ask(nextUri, { headers })).status === 401)
    expect(answer.headers['www-authenticate']).toContain('Bearer')
    headers = await bearer('tom')
    const rows: unknown[] = []
    for (let uri: string | undefined = nextUri; uri !== undefined; uri = answer.json.nextUri) {
      answer = await ask(uri, { headers })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.json.error).toBeUndefined()
      rows.push(...(answer.json.data ?? []))
    }
    expect(rows).toEqual([['tom']])
  })
  it('is read and canceled by no other user, even with its address', async () => {
    const headers = await bearer('tom')
    const nextUri = (await post('SELECT current_user', { headers })).json.nextUri!
    const others = [
      [{}, 401],
      [basic('alice', PASSWORD), 403],
      [{ ...basic('alice', PASSWORD), 'x-trino-user': 'tom' }, 403],
      [basic(guessed.get('others')!, 'guess'), 401],
    ] as const
    for (const method of ['GET', 'DELETE'] as const)
      for (const [credential, status] of others)
        expect([method, (await ask(nextUri, { method, headers: credential })).status]).toEqual([method, status])
    expect((await ask(nextUri, { headers })).status).toBe(200)
    expect((await ask(nextUri, { method: 'DELETE', headers })).status).toBe(204)
  })
})

it('no statement fails while the keys of tokens and the certificate are replaced', { timeout: 240_000 }, async () => {
  let going = true
  let done = 0
  const endings: string[] = []
  /** Repeats a request after 503, as clients do. */
  const patient = async (send: () => Promise<Answer>): Promise<Answer> => {
    for (;;) {
      const answer = await send()
      if (answer.status !== 503) return answer
      expect(answer.headers['retry-after']).toBeDefined()
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
  const client = async (): Promise<void> => {
    while (going) {
      // Each statement has a token of its own, so that no check is cached.
      const headers = await bearer('tom', 600 + done)
      let answer = await patient(() => post('SELECT current_user', { headers }))
      for (let next = answer.json.nextUri; next !== undefined; next = answer.json.nextUri)
        answer = await patient(() => ask(next!, { headers }))
      endings.push(answer.json.error?.message ?? answer.json.stats.state)
      done++
    }
  }
  const clients = Array.from({ length: 3 }, client)
  const more = (count: number): Promise<void> => {
    const reached = done + count
    return waitUntil('statements go on', () => done >= reached)
  }
  const shown = async (): Promise<string> => {
    const socket = connectTls({ host: '127.0.0.1', port: Number(new URL(base).port), ca: readFileSync(authority.ca) })
    await once(socket, 'secureConnect')
    const { subject } = socket.getPeerX509Certificate()!
    socket.destroy()
    return subject
  }
  try {
    await more(5)
    for (const round of ['second', 'third']) {
      published.push(signingKey(round))
      const { cert, key } = await authority.issue(round)
      for (const [from, to] of [
        [cert, served.cert],
        [key, served.key],
      ] as const) {
        copyFileSync(from, `${to}.new`)
        renameSync(`${to}.new`, to)
      }
      await waitUntil('the certificate is shown', async () => (await shown()) === `CN=${round}`)
      await more(5)
      published.shift()
      await more(5)
    }
  } finally {
    going = false
    await Promise.all(clients)
  }
  expect(new Set(endings)).toEqual(new Set(['FINISHED']))
})

describe.runIf(programs)('The dashboards', () => {
  it('show log-ins, the days of the certificate, and refused certificate files', { timeout: 240_000 }, async () => {
    const job = {
      job_name: 'quipu-coordinator',
      scheme: 'https',
      tls_config: { ca_file: authority.ca },
      static_configs: [{ targets: [new URL(base).host] }],
    }
    const prometheus = await startPrometheusFrom(
      programs!,
      JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: [job] }),
    )
    try {
      const daysLeft = async () =>
        Object.values(await panelValues(prometheus, 'runtime', 'Certificate, days left')).map(Math.round)
      const validTo = Date.parse(new X509Certificate(readFileSync(served.cert)).validTo)
      await expect.poll(daysLeft).toEqual([Math.round((validTo - Date.now()) / 86_400_000)])
      expect((await post('SELECT 1', { headers: await bearer('dave') })).status).toBe(200)
      await expect.poll(() => panelCounts(prometheus, 'audit', 'Log-ins')).toMatchObject({ jwt: 1, oauth2: 0 })
      writeFileSync(served.cert, 'nonsense')
      const refused = async () =>
        Object.values(await panelCounts(prometheus, 'runtime', 'Refused certificate files, 1 h'))
      await expect.poll(refused).toEqual([1])
    } finally {
      await prometheus.stop()
    }
  })
})

it('the log records who logged in, how and from where, and refusals; it hides names that no user has', async () => {
  expect((await post('SELECT 1', { headers: basic('a password typed as a name', 'x') })).status).toBe(401)
  expect((await post('SELECT 1', { headers: basic('bob', 'guess') })).status).toBe(401)
  expect((await post('SELECT 1', { headers: basic('bob', PASSWORD) })).status).toBe(200)
  expect((await post('SELECT 1', { headers: await bearer('tom') })).status).toBe(200)
  // A signed token whose name fits no table, header or line.
  expect((await post('SELECT 1', { headers: await bearer('tom\u0000\r\nX: y') })).status).toBe(401)
  // Repeated log-ins and refusals of a minute are recorded at its end, or when the server stops.
  quipu.signal('SIGTERM')
  expect((await quipu.exit).code).toBe(0)
  const remoteAddress = '127.0.0.1'
  expect(await recorded('LoggedIn')).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ user: 'bob', principal: 'bob', method: 'password', remoteAddress }),
      expect.objectContaining({ user: 'tom', principal: 'tom', method: 'jwt', remoteAddress }),
      expect.objectContaining({ user: 'carol', principal: 'CN=carol', method: 'certificate', remoteAddress }),
    ]),
  )
  const refused = await recorded('AuthenticationFailed')
  expect(refused).toContainEqual(expect.objectContaining({ user: 'bob', method: 'password', remoteAddress }))
  expect(refused).toContainEqual(expect.objectContaining({ user: expect.stringMatching(/^unknown-/) }))
  expect(JSON.stringify(refused)).not.toContain('typed as a name')
  expect(refused).toContainEqual(expect.objectContaining({ user: expect.stringMatching(/^unknown-/), method: 'jwt' }))
  expect(quipu.stdout() + quipu.stderr()).not.toContain(PASSWORD)
})
