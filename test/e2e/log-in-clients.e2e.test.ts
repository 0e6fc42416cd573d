import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { chromium, type Browser } from 'playwright-core'
import { Trino } from 'trino-client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { CHROMIUM, hasChromium } from '../support/chromium.ts'
import { startIdentityProvider, type TestProvider } from '../support/identity-provider.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { freePort, type TestDatabase } from '../support/postgres.ts'
import { challengeOf } from '../support/provider-server.ts'
import { signalTo } from '../support/process-children.ts'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { cliProgram, missing, pythonClients } from '../support/real-clients.ts'
import { jdbcProgram, rowReaders } from '../support/row-readers.ts'
import { testCache } from '../support/test-cache.ts'

const there = hasChromium('no client logs in through one')
const cli = there ? await cliProgram().catch((error: Error) => missing('Trino CLI 476', error)) : undefined
const python = there ? await pythonClients() : undefined
const jdbc = there ? await jdbcProgram() : undefined
const go = there ? (await rowReaders()).get('trino-go-client 1.4.1') : undefined

const folder = temporaryFolder()
let authority: TestAuthority
let served: { readonly cert: string; readonly key: string }
let provider: TestProvider
let quipu: QuipuProcess
const databases: TestDatabase[] = []
let browser: Browser
let base: string
/** The server with short sessions that can be renewed. */
let shortBase: string

/** A server that uses the provider of this file, over TLS. */
async function serverAt(address: string, settings: Readonly<Record<string, string>> = {}): Promise<QuipuProcess> {
  const { port } = new URL(address)
  const database = await createMigratedDatabase()
  databases.push(database)
  return spawnQuipu(['start', '--port', port, '--data-dir', join(folder.path, port), '--log-level', 'warn'], {
    env: {
      DATABASE_URL: database.url,
      QUIPU_TLS_CERT: served.cert,
      QUIPU_TLS_KEY: served.key,
      QUIPU_TLS_CA_FILE: authority.ca,
      QUIPU_AUTHENTICATION: 'oauth2',
      QUIPU_OAUTH2_ISSUER: provider.issuer,
      QUIPU_OAUTH2_CLIENT_ID: provider.clientId,
      QUIPU_OAUTH2_CLIENT_SECRET: provider.clientSecret,
      ...settings,
    },
  })
}

beforeAll(async () => {
  if (!there) return
  base = `https://localhost:${await freePort()}`
  shortBase = `https://localhost:${await freePort()}`
  authority = await createAuthority()
  served = await authority.issue('server')
  provider = await startIdentityProvider([base, shortBase])
  quipu = await serverAt(base)
  await quipu.url
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
}, 240_000)
afterAll(async () => {
  if (!there) return
  await browser.close()
  quipu.signal('SIGTERM')
  await quipu.exit
  for (const database of databases) await database.drop()
  await provider.stop()
  await authority.remove()
  await folder.remove()
}, 240_000)

/** Acts as a user in a browser: opens the address that a program shows, confirms, and logs in. */
async function confirms(address: string, login: string): Promise<void> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  context.setDefaultTimeout(120_000)
  const page = await context.newPage()
  await page.goto(address)
  await page.getByRole('button', { name: 'Log it in' }).click()
  await atProvider(page, login)
  await page.getByText('The program is logged in as').waitFor()
  await context.close()
}

async function atProvider(page: Awaited<ReturnType<Browser['newPage']>>, login: string): Promise<void> {
  await page.locator('input[name=login]').fill(login)
  await page.locator('input[name=password]').fill('any')
  await page.locator('button[type=submit]').click()
  await page.getByRole('button', { name: 'Continue' }).click()
}

function overTls(
  url: string,
  options: RequestOptions,
  body?: string,
): Promise<{ readonly headers: IncomingHttpHeaders; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const asked = httpsRequest(url, { ...options, agent: false, method }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => (text += part))
      answer.on('end', () => resolve({ headers: answer.headers, text })).on('error', reject)
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

/** Runs a program that prints a log-in address, and logs its user in there. */
async function runWithLogIn(command: string, args: readonly string[], login: string): Promise<string> {
  // Python's client prefers this variable of the environment to the `verify` argument.
  const child = spawn(command, [...args], { env: { ...process.env, REQUESTS_CA_BUNDLE: authority.ca } })
  let reported = ''
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text: Buffer) => (reported += text.toString()))
  let ended: number | null | undefined
  child.once('exit', (code) => (ended = code))
  const found = (): string | undefined => /https:\/\/\S+\/oauth2\/token\/initiate\/[\w-]+/.exec(reported)?.[0]
  await waitUntil('it tells where to log in, or ends', () => found() !== undefined || ended !== undefined)
  const address = found()
  if (address === undefined) throw new Error(reported)
  await confirms(address, login)
  await waitUntil('it ends', () => ended !== undefined)
  expect(ended, reported).toBe(0)
  return stdout
}

const external = ['--external-authentication', '--external-authentication-redirect-handler', 'PRINT']

function cliOf(server: string, user: string, sql: string): readonly string[] {
  const args = ['--server', server, '--truststore-path', authority.ca, '--user', user, '--execute', sql]
  return [`-Duser.home=${homedir()}`, ...cli!, ...external, ...args]
}

it.runIf(cli)('the Trino CLI logs its user in through a browser', { timeout: 240_000 }, async () => {
  const output = await runWithLogIn('java', cliOf(base, 'alice', 'select current_user'), 'alice')
  expect(output).toContain('"alice"')
})

function jdbcOf(server: string, user: string, sql: string, connections = 1): readonly string[] {
  const settings = new URLSearchParams({
    SSL: 'true',
    SSLTrustStorePath: authority.ca,
    externalAuthentication: 'true',
    externalAuthenticationRedirectHandlers: 'PRINT',
    externalAuthenticationTokenCache: 'MEMORY',
  })
  const url = `jdbc:trino://${new URL(server).host}/tpch/tiny?${settings.toString()}`
  return jdbc!(url, sql, user, String(connections))
}

it.runIf(jdbc)(
  'JDBC logs its user in through a browser, once for all its connections',
  { timeout: 240_000 },
  async () => {
    // A second log-in would wait for ever, because no user confirms it.
    const output = await runWithLogIn('java', jdbcOf(base, 'erin', 'select current_user', 3), 'erin')
    expect(output.split('\n').filter((line) => line === 'erin').length).toBe(3)
  },
)

it.runIf(go)(
  'a token that a user got through a browser works in clients without browser log-in',
  { timeout: 240_000 },
  async () => {
    const ssl = { ca: readFileSync(authority.ca) }
    const refused = await overTls(`${base}/v1/statement`, ssl, 'select 1')
    const { initiate, token } = challengeOf(refused.headers['www-authenticate'])
    await confirms(initiate, 'dora')
    const { token: given } = JSON.parse((await overTls(token, ssl)).text) as { token: string }
    const { code, stdout, stderr } = await go!.read(base, 'select current_user', {
      user: 'dora',
      ca: authority.ca,
      token: given,
    })
    expect([code, stdout.trim()], stderr).toEqual([0, 'dora'])
    const rows: unknown[] = []
    const extraHeaders = { authorization: `Bearer ${given}`, 'X-Trino-User': 'dora' }
    for await (const result of await Trino.create({ server: base, ssl, extraHeaders }).query('select current_user'))
      rows.push(...(result.data ?? []))
    expect(rows).toEqual([['dora']])
  },
)

const pythonScript = `
import sys, trino
from trino.auth import OAuth2Authentication
auth = OAuth2Authentication(redirect_auth_url_handler=lambda url: print(url, file=sys.stderr, flush=True))
connection = trino.dbapi.connect(host='localhost', port=int(sys.argv[1]), http_scheme='https', verify=sys.argv[2], user=sys.argv[3], auth=auth)
for sql in sys.argv[4:]:
    cursor = connection.cursor()
    cursor.execute(sql)
    print(cursor.fetchall())
`
const pythonProgram = (server: string, user: string, ...sql: readonly string[]): readonly string[] => [
  '-c',
  pythonScript,
  new URL(server).port,
  authority.ca,
  user,
  ...sql,
]
const PYTHON = join(testCache, 'python', 'bin', 'python')

it.runIf(python)("Python's client logs its user in through a browser", { timeout: 240_000 }, async () => {
  const output = await runWithLogIn(PYTHON, pythonProgram(base, 'bob', 'select current_user', 'select 2'), 'bob')
  expect(output).toContain("[['bob']]\n[[2]]")
})

it.runIf(cli && jdbc && python)(
  'a session that ends during a query is renewed without a browser, and the query finishes',
  { timeout: 240_000 },
  async () => {
    const short = await serverAt(shortBase, {
      QUIPU_SESSION_MS: '5s',
      QUIPU_OAUTH2_SCOPES: 'openid,offline_access',
      QUIPU_WORKER_FAILED_MS: '10m',
      QUIPU_COORDINATOR_DEAD_MS: '10m',
    })
    await short.url
    const worker = processesOf(join(folder.path, new URL(shortBase).port)).children[1]!
    signalTo(worker, 'SIGSTOP')
    try {
      const sql = 'select current_user, count(*) from tpch.tiny.nation'
      const outputs = Promise.all([
        runWithLogIn('java', cliOf(shortBase, 'anna', sql), 'anna'),
        runWithLogIn('java', jdbcOf(shortBase, 'beth', sql), 'beth'),
        runWithLogIn(PYTHON, pythonProgram(shortBase, 'cleo', sql), 'cleo'),
      ])
      const renewed = waitUntil(
        'the provider has renewed the sessions of all',
        () => ['anna', 'beth', 'cleo'].every((user) => provider.renewed.has(user)),
        200_000,
      )
      // A program that fails would never renew its session.
      await Promise.race([renewed, outputs])
      signalTo(worker, 'SIGCONT')
      expect((await outputs).map((output) => output.trim().split('\n').at(-1))).toEqual([
        '"anna","25"',
        'beth,25',
        "[['cleo', 25]]",
      ])
    } finally {
      signalTo(worker, 'SIGCONT')
      short.signal('SIGTERM')
      await short.exit
    }
  },
)

it.runIf(there)('a user logs in to the web UI, sees their name, and logs out', { timeout: 240_000 }, async () => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  context.setDefaultTimeout(120_000)
  const page = await context.newPage()
  await page.goto(`${base}/ui/nodes`)
  await page.getByRole('button', { name: 'Log in at the identity provider' }).click()
  await atProvider(page, 'carol')
  await page.waitForURL(`${base}/ui/nodes`)
  await page.getByRole('banner').getByText('carol').waitFor()
  await page.locator('h1', { hasText: 'Cluster' }).waitFor()
  // Going back leads to the log-in page or to the page of the provider; neither shows the user's data.
  await page.goto(`${base}/ui`)
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.waitForURL(`${base}/ui/log-in`)
  await page.goBack()
  await page.waitForURL(/\/ui\/log-in/)
  await context.close()
})
