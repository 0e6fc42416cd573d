import { generateKeyPairSync, randomBytes, type KeyObject } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { once as onceOf } from 'node:events'
import { createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer, request as httpsRequest } from 'node:https'
import { connect, createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createServer as createSecureServer, TLSSocket } from 'node:tls'
import { hashSync } from '@node-rs/bcrypt'
import { SignJWT, type JWTPayload } from 'jose'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { queryArchivePolicyOf } from '../../src/processes/record/archiving-queries.ts'
import { archivePolicyOf } from '../../src/processes/record/archive-policy.ts'
import { wireAccess } from '../../src/processes/coordinator/wire-access.ts'
import { publishingTargets } from '../../src/processes/record/publishing.ts'
import { writerSettings } from '../../src/processes/coordinator/writer-settings.ts'
import { wireLogIns, type WiredLogIns } from '../../src/processes/coordinator/wire-log-ins.ts'
import { engineSettings } from '../../src/processes/engine-settings.ts'
import { eventLogOf } from '../../src/processes/event-log/event-log-of.ts'
import { createGatedServer } from '../../src/processes/gated-server.ts'
import { createProcessTelemetry } from '../../src/processes/telemetry/process-telemetry.ts'
import { boundedProperties } from '../../src/coordinator/query/execution/query-limits.ts'
import type { ActingProperty } from '../../src/sql/session/session-properties.ts'
import { loadConfig, type Config } from '../../src/config/load-config.ts'
import { settingList } from '../../src/config/setting-list.ts'
import type { QueryEventType } from '../../src/coordinator/query/stream/events.ts'
import { clientCertificate } from '../../src/protocol/edge/client-certificate.ts'
import { HttpProblem } from '../../src/protocol/edge/problem.ts'
import { BEGINNING } from '../../src/protocol/events/feed-position.ts'
import { destinationOf } from '../../src/publishing/destination.ts'
import type { Destination, Message } from '../../src/publishing/publication.ts'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { askServer, createHttpClient } from '../../src/shared/http-client.ts'
import { createServerTrust } from '../../src/shared/server-trust.ts'
import { newTraceId } from '../../src/telemetry/trace-context.ts'
import { createBlockedAppends } from '../support/blocked-appends.ts'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { startFakeBroker, type FakeBroker } from '../support/fake-broker.ts'
import { startIdentityProvider, throughProvider, type TestProvider } from '../support/identity-provider.ts'
import { createPlainBrowser } from '../support/plain-browser.ts'
import { startOtlpReceiver, type OtlpReceiver } from '../support/otlp-receiver.ts'
import { createDatabase, freePort, type TestDatabase } from '../support/postgres.ts'
import { commandOf, familyOf, usersOf } from '../support/process-users.ts'
import { event, QUERY_ID } from '../support/query-events.ts'
import { recordedOf } from '../support/recorded-events.ts'
import {
  isAlive,
  processesOf,
  spawnQuipu,
  temporaryFolder,
  waitUntil,
  type QuipuProcess,
} from '../support/quipu-process.ts'
import { exchange } from '../support/raw-socket.ts'
import {
  given,
  settingOf,
  settingSources,
  type SettingName,
  type SettingTexts,
  type SettingSource,
} from '../support/setting-groups.ts'
import { post, raw, run, type StatementJson } from '../support/statement-client.ts'

/** How a test sees the effect of a setting: it changes the setting, together with others, and observes a difference. */
interface Act {
  /** The text of the flag or variable; a function if the test first creates the value. */
  readonly value: string | (() => string)
  /** Other settings that a valid configuration needs with this setting. */
  readonly also?: SettingTexts
  readonly in?: Group
  /** Rejects when the effect is not observed. */
  see(): Promise<void> | void
}

/** Programs that are started once, with all settings of the table that are observed in them. */
interface Group {
  readonly source: SettingSource
}

const SECRET = 'a secret that both sides know'
const TOKEN_SECRET = randomBytes(48)
const kB = 1024
const MB = 1024 * kB
const isRoot = process.getuid?.() === 0

/** Long limits, so that a pause of the machine does not end anything. */
const COMMON: SettingTexts = {
  ...(isRoot ? { runAs: 'root' } : {}),
  engineMemoryPercent: '20',
  coordinatorDeadMs: '60s',
  postLogWaitMs: '60s',
  deleteValidityWaitMs: '60s',
  ownWritesWaitMs: '30s',
  workerWaitMs: '10m',
}

const folder = temporaryFolder()
const at = (...names: string[]): string => join(folder.path, ...names)
const passwordFlags = ['--authentication', 'password', '--password-file', at('passwords')]
const tokenFlags = ['--authentication', 'jwt', '--jwt-key-file', at('token-key')]
const ending: (() => Promise<unknown>)[] = [() => folder.remove()]
const collectors: { own?: OtlpReceiver; base?: OtlpReceiver } = {}
let authority: TestAuthority
let context: {
  readonly port: number
  readonly databaseUrl: string
  readonly certificate: { readonly cert: string; readonly key: string }
  readonly server: { readonly cert: string; readonly key: string }
  readonly otherCa: string
  readonly bound: string[]
  readonly signing: KeyObject
  readonly keys: string
  readonly directory: string
  readonly secureDirectory: string
}
let webhook: Received
let coordinator: Received
/** Receives the browsers that return from the identity provider. */
let callbacks: Received
let provider: TestProvider

/** The requests of a server that answers 204 to everything. */
interface Received {
  readonly url: string
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: string }[]
}

async function startReceiver(): Promise<Received> {
  const requests: { path: string; headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      requests.push({ path: request.url ?? '', headers: request.headers, body })
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ending.unshift(async () => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

// ---- started programs --------------------------------------------------------------------------

/** Starts a program with these settings, on a data folder with this name. */
type Start = (
  program: 'start' | 'coordinator' | 'worker',
  name: string,
  settings: SettingTexts,
) => { readonly process: QuipuProcess; readonly dataDir: string }

let starting: Promise<unknown> = Promise.resolve()

/** A group whose programs are started when the first of its settings is tested. */
function group<Bed>(source: SettingSource, begin: (start: Start, settings: SettingTexts) => Promise<Bed>) {
  const own: Group = { source }
  let bed: Promise<Bed> | undefined
  const start: Start = (program, name, settings) => {
    const dataDir = settings.dataDir ?? at(name)
    const call = given(source, { ...COMMON, dataDir, ...settings }, folder.path)
    const process = spawnQuipu([program, ...call.args], { env: call.env, productWaits: true })
    ending.unshift(() => endOf(process))
    return { process, dataDir }
  }
  const opened = (): Promise<Bed> => {
    // Programs start one after another. Their later waits run at the same time.
    bed ??= starting.then(() => begin(start, settingsIn(own)))
    starting = bed.catch(() => {})
    return bed
  }
  return {
    opened,
    /** A setting whose effect is observed in this group. */
    act: (value: Act['value'], see: (bed: Bed) => Promise<void> | void, also: SettingTexts = {}): Act => ({
      value,
      also,
      in: own,
      see: async () => see(await opened()),
    }),
  }
}

function settingsIn(group: Group): SettingTexts {
  const entries = Object.entries(acts).filter(([, act]) => act.in === group)
  return Object.assign({}, ...entries.map(([name, act]) => ({ ...act.also, [name]: textOf(act) }))) as SettingTexts
}

function textOf({ value }: Act): string {
  return typeof value === 'string' ? value : value()
}

async function endOf(process: QuipuProcess): Promise<void> {
  process.signal('SIGTERM')
  await process.exit
}

/** A complete server with two workers. */
const busy = group('flags', async (start, settings) => {
  const { process, dataDir } = start('start', 'busy', settings)
  return { url: await process.url, process, dataDir, databaseUrl: settings.databaseUrl! }
})

/** A server with low limits over a long log, without a worker. */
const strict = group('variables', async (start, settings) => {
  const { process, dataDir } = start('start', 'strict', {
    databaseUrl: await longLog(),
    port: '0',
    workers: '0',
    ...settings,
  })
  return { url: (await process.url).replace('0.0.0.0', '127.0.0.1'), process, dataDir }
})

/** A server with long waits, without a worker. */
const patient = group('file', async (start, settings) => {
  const { url: databaseUrl } = await database()
  const { process } = start('start', 'patient', {
    databaseUrl,
    port: '0',
    workers: '0',
    logLevel: 'error',
    ...settings,
  })
  const url = await process.url
  const appends = await createBlockedAppends(databaseUrl)
  ending.unshift(() => appends.close())
  return { url, databaseUrl, appends, process }
})

/** A server with small sizes of pages, texts and memory. */
const small = group('variables', async (start, settings) => {
  const { url: databaseUrl } = await database()
  const { process, dataDir } = start('start', 'small', { databaseUrl, port: '0', ...settings })
  return { url: await process.url, process, dataDir }
})

/** A worker that announces itself to the test. */
const alone = group('flags', async (start, settings) => {
  const startedAt = performance.now()
  const { process, dataDir } = start('worker', 'alone', { port: '0', ...settings })
  await waitUntil('a worker announces itself', () => coordinator.requests.length > 0)
  return { process, dataDir, startedAt }
})

/** A worker whose heartbeats do not reach its supervisor. */
const unheard = group('file', async (start, settings) => {
  const needs: SettingTexts = { port: '0', coordinators: 'http://127.0.0.1:1', sharedSecret: SECRET }
  return start('worker', 'unheard', { ...needs, ...settings })
})

/** One writer and two followers, of which only the second can take over soon. */
const succession = group('variables', async (start, settings) => {
  const { firstFollowMs, openQueries, standby, ...others } = settings
  const { writerSilentMs, clientAbsentMs, ...more } = others
  const { writerSilentJitterMs, diskFloorBytes, workerFailedMs } = more
  const needs = { databaseUrl: (await database()).url, port: '0', sharedSecret: SECRET }
  const open = async (name: string, own: Readonly<Record<string, string | undefined>>) => {
    const started = start('coordinator', name, { ...needs, ...own } as SettingTexts)
    return { ...started, url: await started.process.url }
  }
  const first = await open('first', { firstFollowMs, openQueries })
  const second = await open('second', { standby, writerSilentMs, clientAbsentMs })
  const third = await open('third', { standby, writerSilentJitterMs, diskFloorBytes, workerFailedMs })
  return { first, second, third }
})

async function database(): Promise<TestDatabase> {
  const made = await createDatabase()
  ending.push(() => made.drop())
  return made
}

/** A reader that is this many events behind the end is far behind. */
const FAR_BEHIND = 10_000

/** A database whose log has more events than a reader of the feed may be behind. */
async function longLog(): Promise<string> {
  const made = await createMigratedDatabase()
  ending.push(() => made.drop())
  const log = await eventLogOf(loadConfig([], {}), made.url, {})
  await log.open()
  await log.claim({ address: 'http://127.0.0.1:1', version: '0' })
  const eventOf = (type: QueryEventType) => ({ v: 1, ...event(type) })
  const delivered = Array.from({ length: 500 }, () => eventOf('ResultsDelivered'))
  await log.append(QUERY_ID, 0, [eventOf('QueryCreated')])
  let sequence = 1
  for (; sequence <= FAR_BEHIND; sequence += delivered.length) await log.append(QUERY_ID, sequence, delivered)
  await log.append(QUERY_ID, sequence, [eventOf('QueryFailed')])
  await log.close()
  return made.url
}

// ---- observations ------------------------------------------------------------------------------

/** Checks that the action takes at least this time. @param ms well above the default of the setting */
async function atLeast(ms: number, happens: () => Promise<unknown>): Promise<void> {
  const begun = performance.now()
  await happens()
  expect(performance.now() - begun).toBeGreaterThanOrEqual(ms)
}

async function json<T>(url: string, options?: Parameters<typeof raw>[1]): Promise<T> {
  const { status, text } = await raw(url, options)
  expect(status, text).toBe(200)
  return JSON.parse(text) as T
}

async function stateOf(url: string, id: string): Promise<string> {
  return (await json<{ state: string }>(`${url}/v1/query/${id}`)).state
}

async function failureOf(url: string, id: string): Promise<string> {
  await waitUntil(`query ${id} fails`, async () => (await stateOf(url, id)) === 'FAILED')
  const { failureInfo, errorCode } = await json<{ failureInfo?: { message: string }; errorCode?: { name: string } }>(
    `${url}/v1/query/${id}`,
  )
  return `${errorCode?.name}: ${failureInfo?.message}`
}

/** A result of about two megabytes. */
const MANY_ROWS = 'SELECT * FROM tpch.tiny.orders'

/** A statement that needs a worker. */
const SCAN = 'SELECT name FROM tpch.tiny.nation'

const reported = (process: QuipuProcess, text: string): Promise<void> =>
  waitUntil(`it tells "${text}"`, () => (process.stdout() + process.stderr()).includes(text))

/** The number of archived periods in a folder, of any log. */
const periodsIn = (folder: string): number =>
  existsSync(folder) ? readdirSync(folder, { recursive: true }).filter((path) => /\d{6}$/.test(String(path))).length : 0

const anchorsIn = (file: string): number =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).length : 0

const filesBelow = (path: string): string[] =>
  existsSync(path) ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : []

/** Opens the event feed from another address of this machine. @returns the status */
function feedFrom(url: string, localAddress: string, query = ''): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(`${url}/v1/events${query}`, { localAddress, agent: false }, (response) => {
      ending.unshift(async () => void response.destroy())
      response.on('error', () => {})
      resolve(response.statusCode ?? 0)
    })
    request.on('error', reject)
    request.end()
  })
}

/** Opens a gated server with these flags, and returns the result of `look` at its port. */
async function door<T>(flags: readonly string[], look: (port: number) => Promise<T>): Promise<T> {
  const gate = createGatedServer(loadConfig(flags, {}), () => false)
  gate.open((request, response) => {
    request.resume().on('end', () => response.write('held'))
  })
  await new Promise<void>((resolve) => gate.server.listen(0, '127.0.0.1', resolve))
  try {
    return await look((gate.server.address() as AddressInfo).port)
  } finally {
    gate.server.closeAllConnections()
    await gate.close()
  }
}

/** How many of these connections get an answer. */
async function answered(port: number, many: number): Promise<number> {
  const sockets = Array.from({ length: many }, () => connect({ port, host: '127.0.0.1' }))
  const taken = await Promise.all(
    sockets.map(
      (socket) =>
        new Promise<boolean>((resolve) => {
          socket.on('error', () => {})
          socket.on('data', () => resolve(true))
          socket.on('close', () => resolve(false))
          socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
        }),
    ),
  )
  for (const socket of sockets) socket.destroy()
  return taken.filter(Boolean).length
}

async function statusOf(port: number, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, host: '127.0.0.1', headers, agent: false }, (response) => {
      response.destroy()
      response.on('error', () => {})
      resolve(response.statusCode ?? 0)
    })
    request.on('error', reject)
    request.end()
  })
}

/** The settings of engines with these flags. */
function engines(...flags: string[]) {
  return engineSettings(loadConfig(flags, {}), {
    folder: '/a',
    allowedDirectories: [],
    launcher: undefined,
    sharers: 1,
    translateError: (text) => new Error(text),
  })
}

/** A setting that is passed to engines unchanged. */
function engineAct(name: SettingName, key: keyof ReturnType<typeof engines>): Act {
  const { flag } = settingOf(name)
  return {
    value: '12345ms',
    see: () => {
      expect(engines(`--${flag}`, '12345ms')[key]).toBe(12_345)
      expect(engines()[key]).not.toBe(12_345)
    },
  }
}

/** A setting that is passed to a part of the coordinator unchanged. */
function writerAct(name: SettingName, part: (settings: ReturnType<typeof writerSettings>) => number): Act {
  const { flag, kind } = settingOf(name)
  const value = kind === 'duration' ? '12345ms' : '12345'
  const most = kind === 'integer' ? '123' : value
  return {
    value: most,
    see: () => {
      expect(part(writerSettings(loadConfig([`--${flag}`, most], {})))).toBe(parseInt(most))
      expect(part(writerSettings(loadConfig([], {})))).not.toBe(parseInt(most))
    },
  }
}

/** The certificate that a server shows, and the certificate of the client as the server sees it. */
async function overTls(texts: SettingTexts): Promise<{ readonly shown: string; readonly seen: string }> {
  const { cert, key } = context.server
  const { args } = given('flags', { tlsCert: cert, tlsKey: key, ...texts }, folder.path)
  const gate = createGatedServer(loadConfig(args, {}), () => false)
  gate.open((request, response) => {
    const certificate = clientCertificate(request)
    response.end(certificate ? `${certificate.subject} ${certificate.verified}` : 'none')
  })
  await new Promise<void>((resolve) => gate.server.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = gate.server.address() as AddressInfo
    const client = { cert: readFileSync(context.certificate.cert), key: readFileSync(context.certificate.key) }
    const asked = httpsRequest({ host: '127.0.0.1', port, ca: readFileSync(authority.ca), agent: false, ...client })
    const [answer] = (await onceOf(asked.end(), 'response')) as [IncomingMessage]
    const shown = (answer.socket as TLSSocket).getPeerX509Certificate()!.subject
    let seen = ''
    for await (const part of answer.setEncoding('utf8')) seen += String(part)
    return { shown, seen }
  } finally {
    gate.server.closeAllConnections()
    await gate.close()
  }
}

/** How many of 40 new traces are sampled, and whether spans are kept at all. */
function taken(...flags: string[]): { readonly traces: number; readonly kept: boolean } {
  const bound = ['--traces-per-second', '40']
  const config = loadConfig(['--otlp-endpoint', 'http://127.0.0.1:1', '--log-level', 'silent', ...bound, ...flags], {})
  const telemetry = createProcessTelemetry(config, 'worker', 'a')
  const traces = Array.from({ length: 40 }, () => telemetry.sampler(undefined, newTraceId())).filter(Boolean).length
  return { traces, kept: telemetry.spans().enabled }
}

/** The broker that saw a process open its log, once the broker has received the text `until`. */
async function shownToKafka(texts: SettingTexts, tls: boolean, until: string): Promise<FakeBroker> {
  const { cert, key } = context.server
  const broker = await startFakeBroker(
    tls
      ? {
          cert: readFileSync(cert),
          key: readFileSync(key),
          ca: readFileSync(authority.ca),
          rejectUnauthorized: false,
        }
      : undefined,
  )
  const call = given('flags', { kafkaBrokers: broker.address, dataDir: at('kafka'), ...texts }, folder.path)
  const config = loadConfig(call.args, {})
  let seen = false
  // On a busy machine a log can give up waiting for a connection, so the test opens another.
  const asking = (async () => {
    while (!seen) {
      const log = await eventLogOf(config, 'postgres://nobody@127.0.0.1:1/none', {})
      const opened = log.open().catch(() => {})
      for (let asks = true; asks && !seen;) asks = await Promise.race([opened.then(() => false), sleep(20, true)])
      // The log continues to ask until it gives up.
      void log.close().catch(() => {})
    }
  })()
  try {
    await waitUntil(`a broker is shown ${JSON.stringify(until)}`, () => broker.text().includes(until))
  } finally {
    seen = true
    await broker.close()
    await asking
  }
  return broker
}

interface SeenLogIn {
  readonly url?: () => string
  readonly scopes?: string
  readonly name?: string
  readonly groups?: readonly string[]
}

/** A setting of the identity provider, observed in a log-in. */
function providerAct(setting: SettingName, value: () => string, wanted: SeenLogIn): Act {
  return {
    value,
    also: { authentication: 'oauth2', oauth2Issuer: 'http://localhost:1', oauth2ClientId: 'quipu' },
    see: async () => {
      writeFileSync(at('client-secret'), `${provider.clientSecret}\n`)
      const secret: SettingTexts =
        setting === 'oauth2ClientSecretFile' ? {} : { oauth2ClientSecret: provider.clientSecret }
      const own: SettingTexts = { oauth2Scopes: 'openid,profile', [setting]: value() }
      const there: SettingTexts = { oauth2Issuer: provider.issuer, oauth2ClientId: provider.clientId }
      const asked = logInsOf({ authentication: 'oauth2', ...there, ...secret, ...own }).deps.provider!
      const { url, checks } = await asked.begin(`${callbacks.url}/oauth2/callback`, true)
      if (wanted.url) expect(url.href.startsWith(wanted.url())).toBe(true)
      if (wanted.scopes !== undefined) expect(url.searchParams.get('scope')).toBe(wanted.scopes)
      const browser = createPlainBrowser()
      const back = await throughProvider(browser, await browser.open(url.href), 'ada', provider.issuer)
      const { verified } = await asked.finish(new URL(back.address).searchParams, checks)
      expect(verified.name).toBe(wanted.name ?? 'ada')
      expect(verified.groups).toEqual(wanted.groups ?? [])
    },
  }
}

function logInsOf(texts: SettingTexts): WiredLogIns {
  const { args } = given('flags', texts, folder.path)
  return wireLogIns(loadConfig(args, {}), SECRET, () => true)
}

const CLIENT_HELLO = '\x16\x03'

const KAFKA_USER: SettingTexts = {
  kafkaTls: 'true',
  kafkaSaslMechanism: 'plain',
  kafkaUser: 'ada',
  kafkaPassword: 'sesame',
}

/** A setting of the Kafka user, observed by a broker with authentication. */
function kafkaUser(name: SettingName, value: string, shown: string): Act {
  const { [name]: _, ...also } = KAFKA_USER
  return {
    value,
    also,
    see: async () =>
      void (await shownToKafka({ ...KAFKA_USER, [name]: value, kafkaCaFile: authority.ca }, true, shown)),
  }
}

async function showsCertificate(): Promise<void> {
  const { cert, key } = context.certificate
  const texts = { kafkaCaFile: authority.ca, kafkaCertFile: cert, kafkaKeyFile: key }
  const { clients } = await shownToKafka(texts, true, 'quipu.events.v1')
  expect(clients).toContain('client')
}

interface Published {
  /** The messages about a query that fails. */
  readonly messages: readonly Message[]
  readonly destination: Destination
}

/** The published messages and their destination with these settings. */
async function published(texts: SettingTexts): Promise<Published> {
  const config = loadConfig(given('flags', texts, folder.path).args, {})
  const [target, ...more] = publishingTargets({ config, secret: SECRET }, 'l')
  expect(more).toEqual([])
  const events = recordedOf([event('QueryCreated'), event('QueryFailed', 1)])
  const created = { sql: 'SELECT 1', resourceGroup: 'global', user: 'alice' }
  const facts = { queryId: QUERY_ID, createdAt: events[0]!.time, created }
  const reported = await Promise.all(
    events.map((one) => target!.publication.messageOf(one, () => Promise.resolve(facts))),
  )
  return { messages: reported.flatMap((one) => one ?? []), destination: await destinationOf(target!.settings) }
}

const LINEAGE: SettingTexts = { openLineageFile: 'lineage.jsonl' }

/** The request that an OpenLineage server would get. */
async function postedLineage(path: string, texts: SettingTexts = {}): Promise<(typeof webhook.requests)[number]> {
  const { messages, destination } = await published({ openLineageUrl: `${webhook.url}${path}`, ...texts })
  expect(await destination.deliver(messages)).toEqual({ taken: 2, refused: [] })
  await destination.close()
  return webhook.requests.findLast((one) => one.path === `${path}/api/v1/lineage`)!
}

/** The broker of the public topic that saw the publisher, once it has received the text `until`. */
async function shownToReaders(texts: SettingTexts, tls: boolean, until: string): Promise<FakeBroker> {
  const { cert, key } = context.server
  const server = { cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(authority.ca) }
  const broker = await startFakeBroker(tls ? { ...server, rejectUnauthorized: false } : undefined)
  const { messages, destination } = await published({ publicKafkaBrokers: broker.address, ...texts })
  let seen = false
  const delivered = (async () => {
    while (!seen) await destination.deliver(messages)
  })()
  try {
    await waitUntil(`a broker is shown ${JSON.stringify(until)}`, () => broker.text().includes(until))
  } finally {
    seen = true
    await broker.close()
    await delivered
    await destination.close()
  }
  return broker
}

const READERS: SettingTexts = { publicKafkaBrokers: '127.0.0.1:19092' }
const READERS_USER: SettingTexts = {
  publicKafkaTls: 'true',
  publicKafkaSaslMechanism: 'plain',
  publicKafkaUser: 'ada',
  publicKafkaPassword: 'sesame',
}

/** The same as `kafkaUser`, for the brokers of the public topic. */
function readersUser(name: SettingName, value: string, shown: string): Act {
  const { [name]: _, ...also } = READERS_USER
  const texts = { ...READERS_USER, [name]: value }
  return {
    value,
    also: { ...READERS, ...also },
    see: async () => void (await shownToReaders({ ...texts, publicKafkaCaFile: authority.ca }, true, shown)),
  }
}

async function showsReadersCertificate(): Promise<void> {
  const { cert, key } = context.certificate
  const texts = { publicKafkaCaFile: authority.ca, publicKafkaCertFile: cert, publicKafkaKeyFile: key }
  expect((await shownToReaders(texts, true, 'quipu.public.v1')).clients).toContain('client')
}

/** How the client sends the user name to a server in place of Postgres. */
async function shownToPostgres(texts: SettingTexts): Promise<'in clear' | 'over TLS' | 'nothing'> {
  const { cert, key } = context.server
  let shown: 'in clear' | 'over TLS' | 'nothing' = 'nothing'
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (first: Buffer) => {
      if (first.readInt32BE(4) !== SSL_REQUEST) {
        shown = 'in clear'
        return socket.destroy()
      }
      socket.write('S')
      const secure = new TLSSocket(socket, { isServer: true, cert: readFileSync(cert), key: readFileSync(key) })
      secure.on('error', () => {})
      secure.on('data', (text: Buffer) => {
        if (text.includes('ada')) shown = 'over TLS'
        secure.destroy()
      })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const databaseUrl = `postgres://ada@127.0.0.1:${(server.address() as AddressInfo).port}/quipu`
  const { args } = given('flags', { databaseUrl, ...texts }, folder.path)
  const client = new pg.Client({ connectionString: loadConfig(args, {}).databaseUrl! })
  client.on('error', () => {})
  await client.connect().catch(() => {})
  await client.end().catch(() => {})
  server.close()
  return shown
}

/** The code of a request for TLS in the protocol of Postgres. */
const SSL_REQUEST = 80_877_103

/** Sends a part of a request, and waits until the server closes the connection. */
function halfRequest(text: string): (port: number) => Promise<void> {
  return async (port) => {
    const { text: answer } = await exchange(`http://127.0.0.1:${port}`, `POST / HTTP/1.1\r\n${text}`)
    expect(answer).not.toContain('200 OK')
  }
}

// ---- shared observations -----------------------------------------------------------------------

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => (made ??= make())
}

/** Locks the table of queries, so that no reader and no projection can use it. */
const stuckProjection = once(async () => {
  const { databaseUrl } = await patient.opened()
  const client = new pg.Client(databaseUrl)
  client.on('error', () => {})
  ending.unshift(() => client.end())
  await client.connect()
  await client.query('begin')
  await client.query('lock table m.queries in access exclusive mode')
  return client
})

/** The address of a query whose end cannot be appended. */
const blockedQuery = once(async () => {
  const { url, appends } = await patient.opened()
  await Promise.all([seen('longPollMs'), seen('workerWaitMs'), seen('ownWritesWaitMs'), seen('historyReadMs')])
  await (await stuckProjection()).query('rollback')
  const { nextUri } = (await post(url, SCAN)).json
  await appends.block('QueryCreated', 'QueryFailed')
  return nextUri!
})

/** One query has the only place, and the second query waits for it. */
const queued = once(async () => {
  const { url } = await strict.opened()
  await posted(url)
  const begun = performance.now()
  const { stats } = await posted(url)
  return { stats, waitedMs: performance.now() - begun }
})

/** A query whose pages no client fetches. */
const unfollowed = once(async () => {
  const { url } = await small.opened()
  const { id } = (await post(url, MANY_ROWS)).json
  await waitUntil('it has pages', async () => {
    const { queryStats } = await json<{ queryStats: { outputPositions?: number } }>(`${url}/v1/query/${id}`)
    return (queryStats.outputPositions ?? 0) > 0
  })
  return id
})

/** Asks for the last address of a query until it is unknown, well before five minutes are over. */
const released = once(async () => {
  const { url } = await small.opened()
  const { answers } = await run(url, 'SELECT 1')
  const asked = answers.map(({ nextUri }) => nextUri).findLast((uri) => uri !== undefined)!
  for (let tries = 0; tries < 30; tries++) {
    const { status } = await raw(asked)
    if (status !== 200) return expect(status).toBe(404)
    await sleep(2_500)
  }
  expect.unreachable('it is answered still')
})

/** Announces a worker. */
async function announce(coordinatorUrl: string, bearer: string, url: string): Promise<void> {
  const body = JSON.stringify({ nodeId: 'w', url, version: '0', cores: 1, memoryBytes: 1, epochSeen: 0 })
  const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
  expect((await raw(`${coordinatorUrl}/v1/announcement`, { method: 'PUT', headers, body })).status).toBe(204)
}

/** Posts a statement until it is accepted. */
async function posted(url: string): Promise<StatementJson> {
  let accepted: StatementJson | undefined
  await waitUntil('a statement is accepted', async () => {
    const answer = await post(url, SCAN)
    if (answer.status === 200) accepted = answer.json
    return accepted !== undefined
  })
  return accepted!
}

async function writes(url: string): Promise<boolean> {
  const answer = await raw(`${url}/v1/info`, { timeoutMs: 1_000 }).catch(() => undefined)
  return answer?.status === 200 && (JSON.parse(answer.text) as { writer?: boolean }).writer === true
}

const childrenOf = (dataDir: string): readonly number[] => processesOf(dataDir).children

async function refusesMemory(url: string, textKb: number, reason: string): Promise<void> {
  const { text } = await post(url, `SELECT 1 -- ${'x'.repeat(textKb * kB)}`)
  expect(text).toContain(reason)
}

function valueOf(config: Config, name: SettingName): unknown {
  return settingOf(name).path.reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], config)
}

function configOf(source: SettingSource, texts: SettingTexts): Config {
  const { args, env } = given(source, texts, folder.path)
  return loadConfig(args, env)
}

/** A limit of a session property. The test query-limits.e2e.test.ts proves that such limits end queries. */
function bounding(name: SettingName, value: string, property: ActingProperty, shown: string): Act {
  const boundOf = (texts: SettingTexts): string | undefined =>
    boundedProperties(writerSettings(configOf('variables', texts)).execution.limits.server)[property]?.shown
  return {
    value,
    see() {
      expect(boundOf({ [name]: value })).toBe(shown)
      expect(boundOf({})).not.toBe(shown)
    },
  }
}

// ---- the table ---------------------------------------------------------------------------------

/** Every setting with its observation. A missing setting does not compile. */
const acts: Record<SettingName, Act> = {
  port: busy.act(
    () => String(context.port),
    ({ url }) => expect(url).toBe(`http://127.0.0.1:${context.port}`),
  ),
  host: strict.act(
    '0.0.0.0',
    async ({ url }) => {
      // The server listens on every address of the machine.
      await json(`${url.replace('127.0.0.1', '127.0.0.7')}/v1/info`)
    },
    { insecure: 'true' },
  ),
  dataDir: busy.act(
    () => at('elsewhere'),
    () => expect(readdirSync(at('elsewhere'))).toContain('supervisor.json'),
  ),
  tablesDir: busy.act(
    () => at('tables'),
    async ({ url }) => {
      const before = filesBelow(at('tables')).length
      expect((await run(url, 'CREATE TABLE spare.default.t AS SELECT 1 AS one')).error).toBeUndefined()
      expect(filesBelow(at('tables')).length).toBeGreaterThan(before)
    },
  ),
  workers: busy.act('2', ({ url }) =>
    waitUntil('two workers are there', async () => (await json<unknown[]>(`${url}/v1/node`)).length === 2),
  ),
  catalogDir: busy.act(
    () => at('catalogs'),
    async ({ url }) => expect((await run(url, 'SHOW CATALOGS')).rows).toEqual([['spare'], ['system'], ['tpch']]),
  ),
  databaseUrl: busy.act(
    () => context.databaseUrl,
    async ({ url }) => {
      await run(url, 'SELECT 1')
      const client = new pg.Client(context.databaseUrl)
      await client.connect()
      // Any events count: the events of the statement may be archived already.
      const { rowCount } = await client.query('select from quipu_log.events')
      await client.end()
      expect(rowCount).toBeGreaterThan(0)
    },
  ),
  databaseCaFile: {
    value: () => authority.ca,
    also: { databaseUrl: 'postgres://ada@127.0.0.1:1/quipu' },
    see: async () => {
      expect(await shownToPostgres({})).toBe('in clear')
      expect(await shownToPostgres({ databaseCaFile: authority.ca })).toBe('over TLS')
      expect(await shownToPostgres({ databaseCaFile: context.otherCa })).toBe('nothing')
    },
  },
  kafkaBrokers: {
    value: '127.0.0.1:19092',
    see: async () => void (await shownToKafka({}, false, 'quipu.events.v1')),
  },
  kafkaTopic: {
    value: 'audited.events',
    see: async () => void (await shownToKafka({ kafkaTopic: 'audited.events' }, false, 'audited.events')),
  },
  kafkaTls: {
    value: 'true',
    see: async () => void (await shownToKafka({ kafkaTls: 'true' }, false, CLIENT_HELLO)),
  },
  kafkaCaFile: {
    value: () => authority.ca,
    // No other authority signed the certificate of the broker.
    see: async () => void (await shownToKafka({ kafkaCaFile: authority.ca }, true, 'quipu.events.v1')),
  },
  kafkaCertFile: {
    value: () => context.certificate.cert,
    also: { kafkaKeyFile: 'key.pem' },
    see: () => showsCertificate(),
  },
  kafkaKeyFile: {
    value: () => context.certificate.key,
    also: { kafkaCertFile: 'cert.pem' },
    see: () => showsCertificate(),
  },
  kafkaSaslMechanism: kafkaUser('kafkaSaslMechanism', 'scram-sha-256', 'SCRAM-SHA-256'),
  kafkaUser: kafkaUser('kafkaUser', 'grace', '\0grace\0sesame'),
  kafkaPassword: kafkaUser('kafkaPassword', 'open', '\0ada\0open'),
  kafkaPasswordFile: {
    value: () => at('password'),
    also: { kafkaTls: 'true', kafkaSaslMechanism: 'plain', kafkaUser: 'ada' },
    see: async () => {
      writeFileSync(at('password'), 'from a file\n')
      const { kafkaPassword: _, ...others } = KAFKA_USER
      const texts = { ...others, kafkaCaFile: authority.ca, kafkaPasswordFile: at('password') }
      await shownToKafka(texts, true, '\0ada\0from a file')
    },
  },
  sharedSecret: alone.act(SECRET, () =>
    expect(coordinator.requests[0]!.headers.authorization).toBe(`Bearer ${internalBearer(SECRET)}`),
  ),
  openLineageUrl: {
    value: () => `${webhook.url}/there`,
    see: async () => expect((await postedLineage('/there')).path).toBe('/there/api/v1/lineage'),
  },
  openLineageFile: {
    value: () => at('lineage.jsonl'),
    see: async () => {
      const { messages, destination } = await published({ openLineageFile: at('lineage.jsonl') })
      await destination.deliver(messages)
      expect(readFileSync(at('lineage.jsonl'), 'utf8')).toBe(`${messages.map(({ text }) => text).join('\n')}\n`)
    },
  },
  openLineageApiKeyFile: {
    value: () => at('lineage-key'),
    also: { openLineageUrl: 'http://127.0.0.1:1' },
    see: async () => {
      writeFileSync(at('lineage-key'), 'a key\n')
      const { headers } = await postedLineage('/keyed', { openLineageApiKeyFile: at('lineage-key') })
      expect(headers.authorization).toBe('Bearer a key')
      expect((await postedLineage('/keyless')).headers.authorization).toBeUndefined()
    },
  },
  openLineageCaFile: {
    value: () => authority.ca,
    also: { openLineageUrl: 'https://127.0.0.1:1' },
    see: async () => {
      const { cert, key } = context.server
      const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_asked, answer) =>
        answer.writeHead(201).end(),
      )
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const openLineageUrl = `https://localhost:${(server.address() as AddressInfo).port}`
      const taken = async (texts: SettingTexts): Promise<number> => {
        const { messages, destination } = await published({ openLineageUrl, ...texts })
        const delivery = await destination.deliver(messages)
        await destination.close()
        return delivery.taken
      }
      expect(await taken({ openLineageCaFile: authority.ca })).toBe(2)
      expect(await taken({ openLineageCaFile: context.otherCa })).toBe(0)
      expect(await taken({})).toBe(0)
      server.close()
    },
  },
  openLineageNamespace: {
    value: 'lake',
    also: LINEAGE,
    see: async () => {
      const { messages } = await published({ ...LINEAGE, openLineageNamespace: 'lake' })
      expect(JSON.parse(messages[0]!.text)).toMatchObject({ job: { namespace: 'lake' } })
    },
  },
  openLineageStatements: {
    value: 'true',
    also: LINEAGE,
    see: async () => {
      const { messages } = await published({ ...LINEAGE, openLineageStatements: 'true' })
      expect(messages[0]!.text).toContain('SELECT 1')
      expect((await published(LINEAGE)).messages[0]!.text).not.toContain('SELECT 1')
    },
  },
  publicKafkaBrokers: {
    value: '127.0.0.1:19092',
    see: async () => void (await shownToReaders({}, false, 'quipu.public.v1')),
  },
  publicKafkaTopic: {
    value: 'told.to.all',
    also: READERS,
    see: async () => void (await shownToReaders({ publicKafkaTopic: 'told.to.all' }, false, 'told.to.all')),
  },
  publicKafkaRetentionMs: {
    value: '3h',
    also: READERS,
    see: async () => {
      const broker = await shownToReaders({ publicKafkaRetentionMs: '3h' }, false, 'retention.ms')
      expect(broker.text()).toContain('10800000')
    },
  },
  publicKafkaTexts: {
    value: 'true',
    also: READERS,
    see: async () => {
      const reported = async (texts: SettingTexts) =>
        (await published({ ...READERS, ...texts })).messages.map(({ text }) => text).join()
      expect(await reported({ publicKafkaTexts: 'true' })).toMatch(/SELECT 1.*Division by zero/)
      expect(await reported({})).not.toMatch(/SELECT 1|Division by zero/)
    },
  },
  publicKafkaTls: {
    value: 'true',
    also: READERS,
    see: async () => void (await shownToReaders({ publicKafkaTls: 'true' }, false, CLIENT_HELLO)),
  },
  publicKafkaCaFile: {
    value: () => authority.ca,
    also: READERS,
    see: async () => void (await shownToReaders({ publicKafkaCaFile: authority.ca }, true, 'quipu.public.v1')),
  },
  publicKafkaCertFile: {
    value: 'cert.pem',
    also: { ...READERS, publicKafkaKeyFile: 'key.pem' },
    see: showsReadersCertificate,
  },
  publicKafkaKeyFile: {
    value: 'key.pem',
    also: { ...READERS, publicKafkaCertFile: 'cert.pem' },
    see: showsReadersCertificate,
  },
  publicKafkaSaslMechanism: readersUser('publicKafkaSaslMechanism', 'scram-sha-512', 'SCRAM-SHA-512'),
  publicKafkaUser: readersUser('publicKafkaUser', 'grace', '\0grace\0sesame'),
  publicKafkaPassword: readersUser('publicKafkaPassword', 'open', '\0ada\0open'),
  publicKafkaPasswordFile: {
    value: () => at('readers-password'),
    also: { ...READERS, publicKafkaTls: 'true', publicKafkaSaslMechanism: 'plain', publicKafkaUser: 'ada' },
    see: async () => {
      writeFileSync(at('readers-password'), 'from a file\n')
      const { publicKafkaPassword: _, ...others } = READERS_USER
      const texts = { ...others, publicKafkaCaFile: authority.ca, publicKafkaPasswordFile: at('readers-password') }
      await shownToReaders(texts, true, '\0ada\0from a file')
    },
  },
  anchorKey: busy.act(
    () => at('anchors.pem'),
    () => waitUntil('the key is made', () => existsSync(at('anchors.pem'))),
  ),
  anchorFile: busy.act(
    () => at('anchors.jsonl'),
    () => waitUntil('there are anchors', () => anchorsIn(at('anchors.jsonl')) > 0),
  ),
  archiveFolder: busy.act(
    () => at('archived'),
    () => waitUntil('a period is archived there', () => periodsIn(at('archived')) > 0),
  ),
  anchorWebhook: busy.act(
    () => `${webhook.url}/anchors`,
    () => waitUntil('anchors are posted', () => webhook.requests.some(({ path }) => path === '/anchors')),
  ),
  tlsCert: {
    value: () => context.server.cert,
    also: { tlsKey: 'key.pem' },
    see: async () => expect(await overTls({})).toEqual({ shown: 'CN=server', seen: 'none' }),
  },
  tlsKey: {
    value: () => context.server.key,
    also: { tlsCert: 'cert.pem' },
    see: () => expect(overTls({ tlsKey: context.certificate.key })).rejects.toThrow('mismatch'),
  },
  tlsCaFile: {
    value: () => authority.ca,
    see: async () => {
      const { cert, key } = context.server
      const server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, (_asked, answer) =>
        answer.end('there'),
      )
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const asked = async (tlsCaFile?: string): Promise<string> => {
        const http = createHttpClient(createServerTrust({ tlsCaFile }), { keepAlive: false })
        const base = `https://localhost:${(server.address() as AddressInfo).port}`
        return askServer(http, base, '/', { headers: {} }).then(
          ({ text }) => text,
          (error: Error) => error.message,
        )
      }
      expect(await asked(authority.ca)).toBe('there')
      expect(await asked(context.otherCa)).toContain('certificate')
      expect(await asked()).toContain('certificate')
      server.close()
    },
  },
  tlsClientCaFile: {
    value: () => authority.ca,
    also: { tlsCert: 'cert.pem', tlsKey: 'key.pem' },
    see: async () => {
      const asking = { authentication: 'certificate', tlsClientCaFile: authority.ca }
      expect(await overTls(asking)).toMatchObject({ seen: 'CN=client true' })
      expect(await overTls({ ...asking, tlsClientCaFile: context.otherCa })).toMatchObject({ seen: 'CN=client false' })
    },
  },
  environment: strict.act('staging', async ({ url }) =>
    expect(await json(`${url}/v1/info`)).toMatchObject({ environment: 'staging' }),
  ),
  coordinators: alone.act(
    () => coordinator.url,
    () => expect(coordinator.requests[0]!.path).toBe('/v1/announcement'),
  ),
  advertisedUrl: alone.act('http://127.0.0.1:5', () =>
    expect(JSON.parse(coordinator.requests[0]!.body)).toMatchObject({ url: 'http://127.0.0.1:5' }),
  ),
  runAs: unheard.act(isRoot ? 'nobody' : 'root', ({ process, dataDir }) =>
    isRoot
      ? waitUntil('the worker is nobody', () => {
          if (!existsSync(join(dataDir, 'supervisor.json'))) return false
          const pids = childrenOf(dataDir).filter(isAlive)
          return pids.length > 0 && pids.every((pid) => !usersOf(pid).uids.includes(0))
        })
      : reported(process, 'run-as'),
  ),
  // Not in the group of `runAs`: there the engines would have separate users in any case.
  engineUsers: unheard.act(isRoot ? 'same' : 'own', async ({ process, dataDir }) => {
    if (!isRoot) return reported(process, 'engine-users')
    await waitUntil(
      'a worker has started',
      () => existsSync(join(dataDir, 'supervisor.json')) && childrenOf(dataDir).length > 0,
    )
    expect(familyOf(process.pid).filter((pid) => commandOf(pid).includes('/engine-launcher.js'))).toEqual([])
  }),
  standby: succession.act('true', async ({ second }) =>
    expect(await json(`${second.url}/v1/info`)).toMatchObject({ writer: false }),
  ),
  authentication: {
    value: 'jwt',
    also: { jwtKeyFile: at('token-key') },
    see: async () => {
      expect(await callerBy(tokenFlags, {}, '/v1/info')).toEqual({ kind: 'nobody' })
      for (const path of ['/v1/statement', '/v1/query', '/v1/node', '/v1/events', '/v1/task'])
        await expect(callerBy(tokenFlags, {}, path)).rejects.toMatchObject({ status: 401 })
      expect(await callerBy([], {}, '/v1/query')).toEqual({ kind: 'anybody' })
    },
  },
  passwordFile: {
    value: () => at('passwords'),
    also: { authentication: 'password' },
    see: async () => {
      const by = (password: string) => entered(passwordFlags, basic('alice', password))
      expect([await by('right'), await by('wrong')]).toEqual(['alice', 401])
    },
  },
  ldapUrl: {
    value: () => context.directory,
    also: { authentication: 'password', ldapUserBindPattern: 'uid=${USER}' },
    see: async () => expect(await entered(directoryFlags(context.directory), basic('alice', 'right'))).toBe('alice'),
  },
  ldapUserBindPattern: {
    value: 'cn=${USER},ou=here',
    also: { authentication: 'password', ldapUrl: 'ldap://127.0.0.1:1' },
    see: async () => {
      await entered(directoryFlags(context.directory, 'cn=${USER},ou=here'), basic('bob', 'right'))
      expect(context.bound.join()).toContain('cn=bob,ou=here')
    },
  },
  ldapCase: {
    value: 'directory',
    also: { authentication: 'password', ldapUrl: 'ldap://127.0.0.1:1', ldapUserBindPattern: 'uid=${USER}' },
    see: async () => {
      const by = (...more: string[]) =>
        entered([...directoryFlags(context.directory), ...more], basic('ALICE', 'right'))
      // This directory cannot return the name of a user.
      expect([await by(), await by('--ldap-case', 'directory')]).toEqual(['alice', 503])
    },
  },
  ldapCaFile: {
    value: () => authority.ca,
    also: { authentication: 'password', ldapUrl: 'ldaps://127.0.0.1:1', ldapUserBindPattern: 'uid=${USER}' },
    see: async () => {
      const by = (ca: string) =>
        entered([...directoryFlags(context.secureDirectory), '--ldap-ca-file', ca], basic('alice', 'right'))
      expect([await by(authority.ca), await by(context.otherCa)]).toEqual(['alice', 503])
    },
  },
  ldapInsecure: {
    value: 'true',
    see: () => {
      const elsewhere = directoryFlags('ldap://directory.example')
      expect(() => loadConfig(elsewhere, {})).toThrow('others could read passwords')
      expect(loadConfig([...elsewhere, '--ldap-insecure'], {}).ldapInsecure).toBe(true)
    },
  },
  jwtKeyFile: {
    value: () => at('token-key'),
    also: { authentication: 'jwt' },
    see: async () => expect(await entered(tokenFlags, await bearer({ sub: 'alice' }))).toBe('alice'),
  },
  jwksUrl: {
    value: () => context.keys,
    also: { authentication: 'jwt' },
    see: async () => {
      const flags = ['--authentication', 'jwt', '--jwks-url', context.keys]
      expect(await entered(flags, await bearer({ sub: 'alice' }, context.signing))).toBe('alice')
    },
  },
  jwtRequiredIssuer: tokenAct('jwtRequiredIssuer', 'https://issuer.example', [
    { sub: 'alice', iss: 'https://issuer.example' },
    { sub: 'alice', iss: 'https://other.example' },
  ]),
  jwtRequiredAudience: tokenAct('jwtRequiredAudience', 'quipu,other', [
    { sub: 'alice', aud: ['quipu'] },
    { sub: 'alice', aud: 'trino' },
  ]),
  jwtPrincipalField: tokenAct('jwtPrincipalField', 'person.name', [{ person: { name: 'alice' } }, { sub: 'alice' }]),
  jwtGroupsField: {
    value: 'groups',
    also: { authentication: 'jwt', jwtKeyFile: at('token-key') },
    see: async () => {
      const caller = await callerBy(
        [...tokenFlags, '--jwt-groups-field', 'groups'],
        await bearer({ sub: 'a', groups: ['x'] }),
      )
      expect(caller).toMatchObject({ principal: { groups: ['x'] } })
    },
  },
  userMappingPattern: {
    value: '(.*)@example\\.com',
    see: async () => {
      const by = async (sub: string) =>
        entered([...tokenFlags, '--user-mapping-pattern', '(.*)@example\\.com'], await bearer({ sub }))
      expect([await by('alice@example.com'), await by('alice')]).toEqual(['alice', 401])
    },
  },
  userMappingFile: {
    value: () => at('mapping.json'),
    see: async () => {
      const flags = [...tokenFlags, '--user-mapping-file', at('mapping.json')]
      expect(await entered(flags, await bearer({ sub: 'ALICE' }))).toBe('alice')
    },
  },
  groupsFile: {
    value: () => at('groups'),
    see: async () => {
      const caller = await callerBy([...tokenFlags, '--groups-file', at('groups')], await bearer({ sub: 'alice' }))
      expect(caller).toMatchObject({ principal: { groups: ['staff'] } })
    },
  },
  metricsToken: {
    value: 'a token for figures',
    see: async () => {
      const flags = [...tokenFlags, '--metrics-token', 'figures']
      const by = (token: string) => callerBy(flags, { authorization: `Bearer ${token}` }, '/metrics', '203.0.113.7')
      expect(await by('figures')).toEqual({ kind: 'nobody' })
      await expect(by('others')).rejects.toMatchObject({ status: 401 })
    },
  },
  oauth2Issuer: providerAct('oauth2Issuer', () => provider.issuer, { url: () => provider.issuer }),
  oauth2ClientId: providerAct('oauth2ClientId', () => provider.clientId, { name: 'ada' }),
  oauth2ClientSecret: providerAct('oauth2ClientSecret', () => provider.clientSecret, { name: 'ada' }),
  oauth2ClientSecretFile: providerAct('oauth2ClientSecretFile', () => at('client-secret'), { name: 'ada' }),
  oauth2Scopes: providerAct('oauth2Scopes', () => 'openid,profile', { scopes: 'openid profile' }),
  oauth2PrincipalField: providerAct('oauth2PrincipalField', () => 'preferred_username', { name: 'ada by name' }),
  oauth2GroupsField: providerAct('oauth2GroupsField', () => 'groups', { groups: ['staff', 'friends of ada'] }),
  accessRulesFile: {
    value: () => at('rules.json'),
    also: { authentication: 'jwt', jwtKeyFile: at('token-key') },
    see() {
      writeFileSync(at('rules.json'), '{\n  "impersonation": [{ "new_user": "(" }]\n}')
      const settings = ['--access-rules-file', at('rules.json'), '--data-dir', at('ruled')]
      const start = (...more: string[]) =>
        wireAccess({ config: loadConfig([...settings, ...more], {}), secret: SECRET })
      expect(() => start(...tokenFlags)).toThrow(/rules\.json: line 2: impersonation, 1, new_user: /)
      expect(() => start()).toThrow('without authentication')
    },
  },
  sessionPropertyRulesFile: {
    value: () => at('session-properties.json'),
    see() {
      writeFileSync(at('session-properties.json'), '[{ "sessionProperties": {\n  "query_max_run_time": "soon" } }]')
      const file = at('session-properties.json')
      const config = loadConfig(['--session-property-rules-file', file, '--data-dir', at('defaulted')], {})
      expect(() => wireAccess({ config, secret: SECRET })).toThrow(
        /session-properties\.json: line 2: 1, sessionProperties, query_max_run_time: duration is not a valid/,
      )
    },
  },
  resourceGroupsFile: {
    value: () => at('resource-groups.json'),
    see() {
      writeFileSync(
        at('resource-groups.json'),
        '{\n  "rootGroups": [{ "name": "all", "maxQueued": 1 }], "selectors": []\n}',
      )
      const config = loadConfig(['--resource-groups-file', at('resource-groups.json'), '--data-dir', at('grouped')], {})
      expect(() => wireAccess({ config, secret: SECRET })).toThrow(
        /resource-groups\.json: line 2: rootGroups, 1: hardConcurrencyLimit is missing/,
      )
    },
  },
  routingRulesFile: {
    value: () => at('routing-rules.json'),
    see() {
      writeFileSync(at('routing-rules.json'), '{ "rules": [\n{ "name": "a", "route": "elsewhere" }] }')
      const config = loadConfig(['--routing-rules-file', at('routing-rules.json'), '--data-dir', at('routed')], {})
      expect(() => wireAccess({ config, secret: SECRET })).toThrow(
        /routing-rules\.json: line 2: rules, 1, route: A route is "local", or an object/,
      )
    },
  },
  pricesFile: {
    value: () => at('prices.json'),
    see() {
      writeFileSync(at('prices.json'), '{ "currency": "EUR", "periods": [\n{ "from": "today" }] }')
      const config = loadConfig(['--prices-file', at('prices.json'), '--data-dir', at('priced')], {})
      expect(() => wireAccess({ config, secret: SECRET })).toThrow(/prices\.json: line 2: periods, 1, from: /)
    },
  },
  clustersDir: strict.act(
    () => at('clusters'),
    async ({ url }) => {
      const mute = createTcpServer(() => {})
      await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
      ending.unshift(async () => mute.close())
      const file = { url: `http://127.0.0.1:${(mute.address() as AddressInfo).port}`, group: 'big' }
      writeFileSync(at('clusters', 'mute.json'), JSON.stringify(file))
      await waitUntil('it is listed', async () => (await json<unknown[]>(`${url}/v1/cluster`)).length === 1)
    },
  ),
  withoutDigests: small.act('true', async ({ url }) => {
    const { id } = await run(url, 'SELECT 1')
    const { status, text } = await raw(`${url}/v1/query/${id}/digest`)
    expect(text).toContain('The query has no digest of its result')
    expect(status).toBe(404)
  }),
  insecure: strict.act('true', async ({ url }) => {
    await json(`${url}/v1/info`)
    expect(() => loadConfig(['--host', '0.0.0.0'], {})).toThrow('--insecure')
  }),
  publicHosts: strict.act('shop.example', async ({ url }) => {
    const called = async (host: string): Promise<number> => (await raw(`${url}/v1/info`, { headers: { host } })).status
    expect([await called('shop.example'), await called('another.example')]).toEqual([200, 403])
  }),
  trustedProxies: strict.act('127.0.0.9', async ({ url }) => {
    const from = (localAddress: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const headers = { 'x-forwarded-host': 'no host' }
        httpRequest(`${url}/v1/info`, { localAddress, agent: false, headers }, (response) => {
          response.resume()
          resolve(String(response.statusCode))
        })
          .on('error', reject)
          .end()
      })
    expect([await from('127.0.0.9'), await from('127.0.0.8')]).toEqual(['400', '200'])
  }),
  logLevel: strict.act('silent', async ({ url, process }) => {
    await json(`${url}/v1/info`)
    // A start without log lines. Other tests of this file wait for log lines.
    expect(process.stdout()).not.toContain('"level"')
  }),

  otlpEndpoint: small.act(
    () => collectors.base!.url,
    async ({ url }) => {
      await run(url, 'SELECT 1')
      await waitUntil('spans come', () => collectors.base!.exports.some(({ path }) => path === '/v1/traces'))
    },
  ),
  otlpTracesEndpoint: busy.act(
    () => `${collectors.own!.url}/traces/in`,
    async ({ url }) => {
      await run(url, 'SELECT 1')
      await waitUntil('spans come', () => collectors.own!.exports.length > 0)
      expect(new Set(collectors.own!.exports.map(({ path }) => path))).toEqual(new Set(['/traces/in']))
    },
  ),
  otlpHeaders: busy.act('x-tenant=blue', async () => {
    await seen('otlpTracesEndpoint')
    expect(collectors.own!.exports[0]!.headers['x-tenant']).toBe('blue')
  }),
  serviceName: busy.act('warehouse', async () => {
    await seen('otlpTracesEndpoint')
    expect(collectors.own!.exports[0]!.resource['service.name']).toBe('warehouse')
  }),
  resourceAttributes: busy.act('team=data', async () => {
    await seen('otlpTracesEndpoint')
    expect(collectors.own!.exports[0]!.resource['team']).toBe('data')
  }),
  tracesSampler: {
    value: 'always_off',
    see: () => expect([taken(), taken('--traces-sampler', 'always_off')].map(({ traces }) => traces)).toEqual([40, 0]),
  },
  tracesPerSecond: {
    value: '1',
    // A second may end between the traces.
    see: () => expect(taken('--traces-per-second', '1').traces).toBeLessThan(40),
  },
  tracesSamplerArg: {
    value: '0',
    see: () => {
      const ratio = ['--traces-sampler', 'traceidratio']
      expect([taken(...ratio), taken(...ratio, '--traces-sampler-arg', '0')].map(({ traces }) => traces)).toEqual([
        40, 0,
      ])
    },
  },
  sdkDisabled: {
    value: 'true',
    see: () => expect([taken().kept, taken('--sdk-disabled').kept]).toEqual([true, false]),
  },

  requestHeadMs: {
    value: '300ms',
    see: () => door(['--request-head-ms', '300ms'], halfRequest('Host: localhost\r\nX-A: ')),
  },
  requestMs: {
    value: '600ms',
    see: () => door(['--request-ms', '600ms'], halfRequest('Host: localhost\r\nContent-Length: 9\r\n\r\nhalf')),
  },
  longPollMs: patient.act('3s', async ({ url }) => {
    const { id, nextUri } = (await post(url, SCAN)).json
    let next = nextUri!
    // The first polls are answered at once with news.
    for (let longest = 0; longest < 2_500;) {
      const begun = performance.now()
      const { json } = await raw(next)
      expect(json.nextUri, `query ${id} waits for a worker`).toBeDefined()
      next = json.nextUri!
      longest = performance.now() - begun
    }
  }),
  postLogWaitMs: patient.act('7s', async ({ url }) => {
    await blockedQuery()
    await atLeast(6_900, async () => expect((await post(url, 'SELECT 2')).status).toBe(503))
  }),
  deleteValidityWaitMs: patient.act('3s', async () => {
    const nextUri = await blockedQuery()
    await atLeast(2_900, async () => expect((await raw(nextUri, { method: 'DELETE' })).status).toBe(204))
  }),
  postPlanWaitMs: strict.act('3s', async () => {
    // The query is planned only after it gets a place to run.
    expect((await queued()).waitedMs).toBeGreaterThanOrEqual(2_900)
  }),
  firstFollowMs: succession.act('1800ms', async ({ first }) => {
    await seen('openQueries')
    const { id } = await posted(first.url)
    expect(await failureOf(first.url, id)).toMatch(/ABANDONED_QUERY.* for 0\.03m$/)
  }),
  clientAbsentMs: succession.act('2400ms', async ({ second }) => {
    await seen('writerSilentMs')
    const { id } = await posted(second.url)
    expect(await failureOf(second.url, id)).toMatch(/ABANDONED_QUERY.* for 0\.04m$/)
  }),
  sessionMs: {
    value: '3m',
    see: () => {
      const issued = logInsOf({ sessionMs: '3m' }).deps.tokens
      const principal = { name: 'ada', user: 'ada', groups: [], method: 'oauth2' } as const
      const { expiresAt } = issued.peek(issued.issue(principal, 'program')!)!
      expect(Math.abs(expiresAt - Date.now() - 180_000)).toBeLessThan(60_000)
    },
  },
  answersKeptMs: small.act('20s', () => released()),
  // Repeated polls would keep the query in memory.
  endedInMemoryMs: small.act('200ms', () => released()),
  firstAppendHoldMs: patient.act('1500ms', async ({ url }) => {
    // The query does not end within this time.
    await atLeast(1_400, () => posted(url))
  }),
  workerRequestMs: strict.act('700ms', async ({ url, dataDir }) => {
    await seen('queuedQueries')
    const mute = createTcpServer(() => {})
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
    ending.unshift(async () => mute.close())
    const bearer = internalBearer(readFileSync(join(dataDir, 'secret'), 'utf8').trim())
    await waitUntil('a worker that says nothing is given up', async () => {
      await announce(url, bearer, `http://127.0.0.1:${(mute.address() as AddressInfo).port}`)
      const nodes = await json<{ lastFailureInfo?: { message: string } }[]>(`${url}/v1/node`)
      return nodes.some(({ lastFailureInfo }) => lastFailureInfo?.message.includes('no answer within 700 ms'))
    })
  }),
  clustersBeatMs: strict.act('300ms', async ({ url }) => {
    await seen('clustersDir')
    await waitUntil('a cluster that says nothing is given up', async () => {
      const clusters = await json<{ lastCheck?: { error?: string } }[]>(`${url}/v1/cluster`)
      return clusters.some(({ lastCheck }) => lastCheck?.error?.includes('no answer within 300 ms'))
    })
  }),
  pageLostMs: writerAct('pageLostMs', ({ pageLostMs }) => pageLostMs),
  handOverMs: patient.act('8s', async ({ process }) => {
    await Promise.all([seen('postLogWaitMs'), seen('deleteValidityWaitMs'), seen('firstAppendHoldMs')])
    // The last event of the query cannot be appended.
    await atLeast(8_000, () => endOf(process))
  }),
  resignMs: writerAct('resignMs', ({ tenure }) => tenure.resignMs),
  ownWritesWaitMs: patient.act('4s', async ({ url }) => {
    await stuckProjection()
    const { id } = await run(url, 'SELECT 1')
    const { headers } = await raw(`${url}/v1/query/${id}/events`)
    expect(headers['x-engine-stale']).toBe('4000')
  }),
  archiveAfterMs: busy.act('1s', async ({ url }) => {
    await waitUntil('old records leave the log', async () => {
      await run(url, 'SELECT 1')
      return periodsIn(at('archived')) > 1
    })
  }),
  archiveQueriesAfterMs: {
    value: '2d',
    see() {
      const policy = queryArchivePolicyOf(loadConfig(['--archive-queries-after-ms', '2d'], {}))
      expect(policy?.(3 * 86_400_000)).toMatchObject({
        before: new Date(86_400_000).toISOString(),
        keepQueries: undefined,
      })
      expect(queryArchivePolicyOf(loadConfig([], {}))).toBeUndefined()
    },
  },
  anchorMs: small.act('200ms', async ({ url, dataDir }) => {
    for (let anchors = 0; anchors < 4; anchors++) {
      await run(url, 'SELECT 1')
      // By default there is an anchor once a minute.
      await waitUntil('there is another anchor', () => anchorsIn(join(dataDir, 'anchors.jsonl')) > anchors)
    }
  }),
  historyReadMs: patient.act('16s', async ({ url }) => {
    await stuckProjection()
    await atLeast(15_900, async () => expect((await raw(`${url}/v1/query?limit=5`)).status).toBe(503))
  }),
  slowQueryMs: busy.act('0', async ({ url, process }) => {
    const { id } = await run(url, 'SELECT 1')
    await waitUntil('the statement is reported as slow', () =>
      process
        .stdout()
        .split('\n')
        .some((line) => line.includes('query.slow') && line.includes(id)),
    )
  }),
  queryExecutionMs: bounding('queryExecutionMs', '2h', 'query_max_execution_time', '2.00h'),
  queryPlanningMs: bounding('queryPlanningMs', '20s', 'query_max_planning_time', '20.00s'),
  queryCpuMs: bounding('queryCpuMs', '90s', 'query_max_cpu_time', '1.50m'),
  queryMemoryBytes: bounding('queryMemoryBytes', '3GB', 'query_max_memory', '3GB'),
  queryNodeMemoryBytes: bounding('queryNodeMemoryBytes', '2GB', 'query_max_memory_per_node', '2GB'),
  queryScanBytes: bounding('queryScanBytes', '100MB', 'query_max_scan_physical_bytes', '100MB'),
  queryRunMs: bounding('queryRunMs', '4h', 'query_max_run_time', '4.00h'),
  writerSilentMs: succession.act('6s', async ({ first, second }) => {
    await Promise.all([seen('standby'), seen('firstFollowMs'), seen('workerFailedMs')])
    const [pid] = childrenOf(first.dataDir)
    process.kill(pid!, 'SIGSTOP')
    ending.unshift(async () => void process.kill(pid!, 'SIGCONT'))
    // The last sign of life may be a second and a half old.
    await atLeast(4_000, () => waitUntil('the second writes', () => writes(second.url)))
  }),
  writerSilentJitterMs: succession.act('30d', async ({ third }) => {
    await seen('writerSilentMs')
    expect(await writes(third.url)).toBe(false)
  }),
  workerWaitMs: patient.act('12s', async ({ url }) => {
    await atLeast(11_900, async () => {
      expect((await run(url, SCAN)).error).toMatchObject({ errorName: 'NO_NODES_AVAILABLE' })
    })
  }),
  coordinatorBeatMs: unheard.act('1h', ({ process }) => reported(process, 'has been silent for')),
  coordinatorDeadMs: unheard.act('2s', ({ process }) => reported(process, 'has been silent for 2000 ms: killing it')),
  restartBackoffMinMs: unheard.act('600ms', ({ process }) => reported(process, 'starting it again in 600 ms')),
  restartBackoffMaxMs: unheard.act('900ms', ({ process }) => reported(process, 'starting it again in 900 ms'), {}),
  drainMs: alone.act('13s', async ({ process: worker, dataDir }) => {
    await Promise.all([seen('workerBeatMs'), seen('advertisedUrl'), seen('sharedSecret'), seen('coordinators')])
    const [pid] = childrenOf(dataDir)
    process.kill(pid!, 'SIGSTOP')
    // Two seconds more for the rest of the shutdown.
    await atLeast(14_500, () => endOf(worker))
  }),
  verifiedPasswordMs: {
    value: '0',
    see: async () => {
      const logIns = async (...flags: string[]) => {
        const reported: string[] = []
        const access = accessBy([...passwordFlags, ...flags], (user) => reported.push(user))
        await access(basic('alice', 'right'))
        await access(basic('alice', 'right'))
        return reported.length
      }
      expect([await logIns(), await logIns('--verified-password-ms', '0')]).toEqual([1, 2])
    },
  },
  jwtClockSkewMs: {
    value: '2h',
    see: async () => {
      const old = await bearer({ sub: 'alice' }, undefined, '-1h')
      const by = (...flags: string[]) => entered([...tokenFlags, ...flags], old)
      expect([await by(), await by('--jwt-clock-skew-ms', '2h')]).toEqual([401, 'alice'])
    },
  },
  workerBeatMs: alone.act('3s', async ({ startedAt }) => {
    await waitUntil('it is announced again', () => coordinator.requests.length >= 4)
    expect(performance.now() - startedAt).toBeGreaterThan(9_000)
  }),
  workerFailedMs: succession.act('8s', async ({ third }) => {
    await atLeast(7_900, async () => {
      await announce(third.url, internalBearer(SECRET), 'http://127.0.0.1:1')
      await waitUntil('it has failed', async () => (await json<unknown[]>(`${third.url}/v1/node/failed`)).length === 1)
    })
  }),
  workerForgetsMs: small.act('20s', async ({ process: quipu, dataDir }) => {
    await Promise.all(
      (
        [
          'answersKeptMs',
          'anchorMs',
          'otlpEndpoint',
          'pageMaxBytes',
          'taskBodyBytes',
          'pageBytes',
          'pageStoreQueryBytes',
        ] as const
      ).map(seen),
    )
    await unfollowed()
    const [pid] = childrenOf(dataDir)
    process.kill(pid!, 'SIGSTOP')
    await reported(quipu, 'The worker had no contact to a coordinator').finally(() => process.kill(pid!, 'SIGCONT'))
  }),
  engineBeatMs: engineAct('engineBeatMs', 'beatMs'),
  engineDeadMs: engineAct('engineDeadMs', 'deadAfterMs'),
  prepareMs: engineAct('prepareMs', 'prepareDeadlineMs'),
  interruptMs: engineAct('interruptMs', 'interruptToKillMs'),
  spareEngineMs: engineAct('spareEngineMs', 'spareAfterMs'),

  statementBytes: busy.act('20kB', async ({ url }) => {
    expect((await post(url, `SELECT 1 -- ${'x'.repeat(10 * kB)}`)).status).toBe(200)
    expect((await post(url, `SELECT 1 -- ${'x'.repeat(30 * kB)}`)).status).toBe(413)
  }),
  headerBytes: {
    value: '2kB',
    see: async () => {
      const status = (...flags: string[]) => door(flags, (port) => statusOf(port, { 'x-a': 'x'.repeat(3 * kB) }))
      expect([await status(), await status('--header-bytes', '2kB')]).toEqual([200, 431])
    },
  },
  headers: {
    value: '20',
    see: async () => {
      const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`x-${index}`, 'x']))
      const status = (...flags: string[]) => door(flags, (port) => statusOf(port, many))
      expect([await status(), await status('--headers', '20')]).toEqual([200, 431])
    },
  },
  connections: {
    value: '16',
    see: async () => expect(await door(['--connections', '16'], (port) => answered(port, 20))).toBe(16),
  },
  connectionsPerAddress: {
    value: '8',
    see: async () => expect(await door(['--connections-per-address', '8'], (port) => answered(port, 12))).toBe(8),
  },
  taskBodyBytes: small.act('20kB', async ({ url }) => {
    const { error } = await run(url, `SELECT name FROM tpch.tiny.nation WHERE name <> '${'x'.repeat(30 * kB)}'`)
    expect(error).toMatchObject({ errorName: 'QUERY_EXCEEDED_COMPILER_LIMIT' })
  }),
  batchAttempts: writerAct('batchAttempts', ({ execution }) => execution.maxAttempts),
  inlineResultBytes: writerAct('inlineResultBytes', ({ execution }) => execution.limits.inlineBytes),
  pageMemoryBytes: writerAct('pageMemoryBytes', ({ pageMemoryBytes }) => pageMemoryBytes),
  endedQueries: writerAct('endedQueries', ({ retention }) => retention.endedInMemory),
  endedQueryBytes: writerAct('endedQueryBytes', ({ retention }) => retention.endedBytes),
  pageBytes: small.act('100kB', async ({ url }) => {
    const { answers } = await run(url, 'SELECT * FROM tpch.tiny.orders')
    // The result has less than two megabytes in all.
    expect(answers.filter(({ data }) => data).length).toBeGreaterThan(10)
  }),
  pageMaxBytes: small.act('300kB', async ({ url }) => {
    const { error } = await run(url, `SELECT rpad(name, ${400 * kB}, 'x') FROM tpch.tiny.nation`)
    expect(error?.message).toContain('A row of the result is larger than')
  }),
  feeds: strict.act('4', async ({ url }) => {
    await seen('feedsPerAddress')
    const statuses = await Promise.all([3, 4, 5].map((host) => feedFrom(url, `127.0.0.${host}`)))
    expect([...statuses, await feedFrom(url, '127.0.0.6')]).toEqual([200, 200, 200, 429])
  }),
  feedsPerAddress: strict.act('1', async ({ url }) => {
    await seen('replays')
    expect(await feedFrom(url, '127.0.0.2')).toBe(429)
  }),
  replays: strict.act('1', async ({ url }) => {
    // The test does not read the first feed, so it stays behind.
    const begins = `?after=${BEGINNING}`
    expect(await feedFrom(url, '127.0.0.2', begins)).toBe(200)
    expect(await feedFrom(url, '127.0.0.3', begins)).toBe(429)
  }),
  actQueries: small.act('1', async ({ url }) => {
    await run(url, 'SELECT 1')
    await run(url, 'SELECT 2')
    const body = JSON.stringify({ act: 'rerun', filter: {} })
    const { text } = await raw(`${url}/v1/act/preview`, { body, headers: { 'content-type': 'application/json' } })
    expect(text).toContain('More than 1 queries match')
  }),
  openQueries: succession.act('1', ({ first }) =>
    waitUntil('a second query is refused', async () => {
      const answers = await Promise.all([post(first.url, SCAN), post(first.url, SCAN)])
      return answers.some(({ text }) => text.includes('Too many open queries: 1 are allowed'))
    }),
  ),
  openStatementBytes: strict.act('700kB', ({ url }) => refusesMemory(url, 720, 'All open statements')),
  userStatementBytes: strict.act('256kB', ({ url }) => refusesMemory(url, 300, 'The open statements of this user')),
  addressStatementBytes: strict.act('64kB', ({ url }) =>
    refusesMemory(url, 100, 'The open statements of this address'),
  ),
  runningQueries: strict.act('1', async () => {
    expect((await queued()).stats['queuedReason']).toContain('is full')
  }),
  queuedQueries: strict.act('1', async ({ url }) => {
    await seen('runningQueries')
    const { error } = await run(url, SCAN)
    expect(error).toMatchObject({ errorName: 'QUERY_QUEUE_FULL' })
  }),
  logRecords: {
    value: '20000',
    see() {
      const policy = archivePolicyOf(loadConfig(['--log-records', '20000'], {}))
      expect(policy?.(0)).toMatchObject({ before: undefined, keepRecords: 20_000n, leastRecords: 2000n })
      expect(archivePolicyOf(loadConfig([], {}))).toBeUndefined()
    },
  },
  hotQueries: {
    value: '20000',
    see() {
      const policy = queryArchivePolicyOf(loadConfig(['--hot-queries', '20000'], {}))
      expect(policy?.(0)).toMatchObject({ before: undefined, keepQueries: 20_000, leastQueries: 2000 })
      expect(queryArchivePolicyOf(loadConfig([], {}))).toBeUndefined()
    },
  },
  anchorEvents: busy.act('1', async ({ url }) => {
    // By default there is an anchor once a minute.
    await waitUntil('anchors follow each other', async () => {
      await run(url, 'SELECT 1')
      return anchorsIn(at('anchors.jsonl')) >= 5
    })
  }),
  pageStoreQueryBytes: small.act('300kB', async ({ url }) => {
    const id = await unfollowed()
    // The same statement finishes meanwhile when its pages are fetched.
    expect((await run(url, MANY_ROWS)).error).toBeUndefined()
    expect(await stateOf(url, id)).toBe('RUNNING')
  }),
  pageStoreBytes: {
    value: '5MB',
    see: () =>
      expect([engines('--page-store-bytes', '5MB').maxSpillBytes, engines().maxSpillBytes]).toEqual([
        5 * MB,
        10_240 * MB,
      ]),
  },
  diskFloorBytes: succession.act('1000TB', async ({ second, third }) => {
    await Promise.all([seen('writerSilentJitterMs'), seen('clientAbsentMs')])
    await endOf(second.process)
    await waitUntil('the third writes', () => writes(third.url))
    await waitUntil('no statement is taken', async () => (await post(third.url, 'SELECT 1')).text.includes('disk'))
  }),
  engineMemoryPercent: {
    value: '80',
    see: () => {
      const [less, more] = [engines('--engine-memory-percent', '40'), engines('--engine-memory-percent', '80')]
      // Every engine has at least a quarter of a gigabyte.
      expect(more.memoryLimitBytes > less.memoryLimitBytes || more.memoryLimitBytes === 256 * MB).toBe(true)
    },
  },
}

// ---- authentication ----------------------------------------------------------------------------

/** The authentication of requests by a coordinator with these flags. */
function accessBy(flags: readonly string[], loggedIn: (user: string) => void = () => {}) {
  const door = wireAccess({ config: loadConfig(flags, {}), secret: SECRET }).entry({
    authenticationFailed: () => {},
    accessDenied: () => {},
    loggedIn: ({ user }) => loggedIn(user),
  })
  return async (headers: IncomingHttpHeaders, path = '/v1/query', remoteAddress = '127.0.0.1') =>
    door.callerAt(requestOf(headers, path, remoteAddress), path)
}

function requestOf(headers: IncomingHttpHeaders, url: string, remoteAddress: string): IncomingMessage {
  const request = { method: 'GET', url, headers, rawHeaders: ['host', 'quipu'], socket: { remoteAddress } }
  return request as unknown as IncomingMessage
}

const callerBy = (flags: readonly string[], ...request: Parameters<ReturnType<typeof accessBy>>) =>
  accessBy(flags)(...request)

/** The user of an accepted request, or the status of a refused request. */
async function entered(flags: readonly string[], headers: IncomingHttpHeaders): Promise<string | number> {
  try {
    const caller = await callerBy(flags, headers)
    return caller.kind === 'principal' ? caller.principal.user : caller.kind
  } catch (error) {
    if (error instanceof HttpProblem) return error.status
    throw error
  }
}

function basic(user: string, password: string): IncomingHttpHeaders {
  return { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` }
}

async function bearer(claims: JWTPayload, key?: KeyObject, expiresIn = '1h'): Promise<IncomingHttpHeaders> {
  const signer = new SignJWT(claims).setProtectedHeader({ alg: key ? 'ES256' : 'HS256' }).setExpirationTime(expiresIn)
  return { authorization: `Bearer ${await signer.sign(key ?? TOKEN_SECRET)}` }
}

function tokenAct(name: SettingName, value: string, [good, bad]: readonly [JWTPayload, JWTPayload]): Act {
  const { flag } = settingOf(name)
  const by = async (claims: JWTPayload) => entered([...tokenFlags, `--${flag}`, value], await bearer(claims))
  return {
    value,
    also: { authentication: 'jwt', jwtKeyFile: at('token-key') },
    see: async () => expect([await by(good), await by(bad)]).toEqual(['alice', 401]),
  }
}

function directoryFlags(url: string, pattern = 'uid=${USER}'): string[] {
  return ['--authentication', 'password', '--ldap-url', url, '--ldap-user-bind-pattern', pattern]
}

/** A directory that accepts every bind and records it. */
function letsIn(reported: string[]): (socket: Socket) => void {
  return (socket) =>
    socket
      .on('error', () => {})
      .on('data', (bind: Buffer) => {
        reported.push(bind.toString('latin1'))
        const done = [0x30, 0x0c, 0x02, 0x01, bind[4]!, 0x61, 0x07, 0x0a, 0x01, 0x00, 0x04, 0x00, 0x04, 0x00]
        socket.write(Buffer.from(done))
      })
}

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ending.unshift(async () => void server.close())
  return (server.address() as AddressInfo).port
}

async function startAuthorities({ cert, key }: { readonly cert: string; readonly key: string }) {
  writeFileSync(at('passwords'), `alice:${hashSync('right', { cost: 8 })}\n`)
  writeFileSync(at('token-key'), TOKEN_SECRET.toString('base64'))
  writeFileSync(at('mapping.json'), '{ "rules": [{ "pattern": "(.*)", "case": "lower" }] }')
  writeFileSync(at('groups'), 'staff:alice,bob\n')
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = createServer((_request, response) =>
    response.end(JSON.stringify({ keys: [publicKey.export({ format: 'jwk' })] })),
  )
  const bound: string[] = []
  const secure = createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) }, letsIn(bound))
  return {
    bound,
    signing: privateKey,
    keys: `http://127.0.0.1:${await portOf(keys)}/keys`,
    directory: `ldap://127.0.0.1:${await portOf(createTcpServer(letsIn(bound)))}`,
    secureDirectory: `ldaps://127.0.0.1:${await portOf(secure)}`,
  }
}

const seeing = new Map<SettingName, Promise<void>>()

/** Runs the observation of a setting once, and shares its outcome. */
function seen(name: SettingName): Promise<void> {
  const known = seeing.get(name)
  if (known) return known
  const act = (async () => acts[name].see())()
  act.catch(() => {})
  seeing.set(name, act)
  return act
}

const names = Object.keys(acts) as SettingName[]

it('the table of observed settings has every setting', () => {
  expect(names.toSorted()).toEqual(settingList.map(({ path }) => path.at(-1)).toSorted())
})

it.each(names)('the setting %s has an observable effect', { timeout: 240_000 }, async (name) => {
  // The observations of all settings run at the same time.
  for (const other of names) void seen(other)
  await seen(name)
})

it.each(names)('the setting %s gives the same value by flag, variable and file', (name) => {
  const texts = { ...acts[name].also, [name]: textOf(acts[name]) }
  const [byFlag, ...others] = settingSources.map((source) => configOf(source, texts))
  for (const other of others) expect(other).toEqual(byFlag)
  expect(valueOf(byFlag!, name)).not.toEqual(valueOf(loadConfig([], {}), name))
})

beforeAll(async () => {
  mkdirSync(at('catalogs'))
  mkdirSync(at('clusters'))
  writeFileSync(at('catalogs', 'spare.json'), '{ "connector": "memory" }')
  writeFileSync(at('catalogs', 'tpch.json'), '{ "connector": "tpch" }')
  authority = await createAuthority()
  const other = await createAuthority()
  ending.push(
    () => authority.remove(),
    () => other.remove(),
  )
  webhook = await startReceiver()
  coordinator = await startReceiver()
  callbacks = await startReceiver()
  provider = await startIdentityProvider([callbacks.url])
  ending.push(() => provider.stop())
  collectors.base = await startOtlpReceiver()
  collectors.own = await startOtlpReceiver()
  ending.push(
    () => collectors.base!.close(),
    () => collectors.own!.close(),
  )
  const server = await authority.issue('server')
  context = {
    port: await freePort(),
    databaseUrl: (await database()).url,
    certificate: await authority.issue('client'),
    server,
    otherCa: other.ca,
    ...(await startAuthorities(server)),
  }
})

afterAll(async () => {
  for (const end of ending) await end().catch(() => {})
}, 240_000)
