import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomBytes } from 'node:crypto'
import { parse } from 'yaml'
import { Connection, type Access } from '../chaos/http.ts'
import { KeptProgram } from '../chaos/kept-program.ts'
import { canMount, mountDisk, type OwnDisk } from '../chaos/own-disk.ts'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { composeServices, OURS, settingsOf, type OurService } from '../support/compose-services.ts'
import { startKafka, type TestKafka } from '../support/kafka.ts'
import { writePasswordFile } from '../support/password-file.ts'
import { freePort, startPostgres, unprivileged, type TestPostgres } from '../support/postgres.ts'
import { findPrometheus, startPrometheusFrom, type RunningPrometheus } from '../support/prometheus.ts'
import { haproxy, startProxy, type RunningProxy } from '../support/proxies.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { repository } from '../support/repository.ts'
import { createRunFolder } from '../support/run-folder.ts'
import { alwaysSend, alwaysTrust, trinoHeaders } from '../support/statement-client.ts'

/** The password of every user of the set. */
export const PASSWORD = 'a password of the soak'
const METRICS_TOKEN = 'a token for the figures of the soak'
/** On a busy machine a Kafka broker, a database and four programs take minutes to start. */
const UP_MS = 300_000

/** One of the four Quipu programs. */
export interface SoakNode {
  readonly name: OurService
  readonly kind: 'coordinator' | 'worker'
  readonly url: string
  readonly dataDir: string
  readonly program: KeptProgram
}

/** The services of docker-compose.yml as processes of this machine, with TLS and passwords, behind HAProxy. */
export interface SoakSet {
  /** Address of the proxy, which clients use. */
  readonly base: string
  /** How clients of test/chaos log in. */
  readonly access: Access
  /** File (PEM) of the authority, for published clients. */
  readonly ca: string
  readonly folder: string
  readonly nodes: readonly SoakNode[]
  readonly kafka: TestKafka
  readonly postgres: TestPostgres
  /** The disk for everything that Quipu writes; undefined if this machine cannot mount one. */
  readonly disk: OwnDisk | undefined
  readonly prometheus: RunningPrometheus | undefined
  /** The coordinator that reports that it writes the log, and its epoch. */
  writer(): Promise<{ readonly node: SoakNode; readonly epoch: number } | undefined>
  /** Runs a command of Quipu with the settings of a coordinator. */
  command(...args: string[]): QuipuProcess
  /** Sends SIGTERM to each program. @returns exit codes by name; undefined for a program that did not exit in time */
  endPrograms(): Promise<ReadonlyMap<string, number | null | undefined>>
  stop(): Promise<void>
}

export interface SoakSetOptions {
  /** The users that may log in. */
  readonly users: readonly string[]
  readonly logLevel: string
}

const isProxys: Access['isProxys'] = ({ status, headers }) =>
  (status === 502 || status === 503 || status === 504) && !/json|plain/.test(headers['content-type'] ?? '')

export async function startSet({ users, logLevel }: SoakSetOptions): Promise<SoakSet> {
  if (process.env['QUIPU_TEST_RUN_FOLDER'] === undefined) await createRunFolder()
  const folder = temporaryFolder()
  const ending: (() => Promise<unknown>)[] = [() => folder.remove()]
  const stop = async (): Promise<void> => {
    for (const end of ending.splice(0).toReversed()) await end()
  }
  try {
    const authority = await createAuthority()
    ending.push(() => authority.remove())
    const postgres = await startPostgres()
    ending.push(() => postgres.stop())
    const kafka = await startKafka()
    ending.push(() => kafka.stop())
    const store = join(folder.path, 'disk')
    const disk = (await canMount()) ? await mountDisk(store) : undefined
    if (!disk) mkdirSync(store, { mode: 0o711 })
    ending.push(async () => disk?.remove())
    const cluster = { folder: folder.path, store, authority, kafka, database: await postgres.createDatabase() }
    const env = await settingsOfSet(cluster, [...users, trinoHeaders['x-trino-user']])
    const ca = readFileSync(authority.ca, 'utf8')
    alwaysTrust(ca)
    const credential = `${trinoHeaders['x-trino-user']}:${PASSWORD}`
    alwaysSend({ authorization: `Basic ${Buffer.from(credential).toString('base64')}` })
    const access = { ca, password: PASSWORD, isProxys }
    const nodes = OURS.map((name): SoakNode => {
      const { command } = composeServices[name]!
      const logFile = join(folder.path, `${name}.log`)
      const program = new KeptProgram({ args: command, env: { ...env.get(name)!, QUIPU_LOG_LEVEL: logLevel }, logFile })
      return {
        name,
        kind: name.startsWith('worker') ? 'worker' : 'coordinator',
        url: env.get(name)!['QUIPU_ADVERTISED_URL']!,
        dataDir: join(store, name),
        program,
      }
    })
    const endPrograms = async () =>
      new Map(await Promise.all(nodes.map(async ({ name, program }) => [name, await program.stop()] as const)))
    ending.push(endPrograms)
    const coordinators = nodes.filter(({ kind }) => kind === 'coordinator')
    const probe = new Connection(trinoHeaders['x-trino-user'], access)
    ending.push(async () => probe.close())
    const writer = async () => {
      for (const node of coordinators) {
        const answer = await probe.ask(`${node.url}/v1/info`, { timeoutMs: 3_000 }).catch(() => undefined)
        if (answer?.status !== 200) continue
        const { writer: writes, epoch } = JSON.parse(answer.text) as { writer?: boolean; epoch: number }
        if (writes === true) return { node, epoch }
      }
      return undefined
    }
    await waitUntil('one coordinator writes', async () => (await writer()) !== undefined, UP_MS)
    const servesWith = async (workers: number): Promise<boolean> => {
      const answer = await probe.ask(`${coordinators[0]!.url}/v1/node`).catch(() => undefined)
      return answer?.status === 200 && (JSON.parse(answer.text) as unknown[]).length >= workers
    }
    await waitUntil('two workers serve', () => servesWith(2), UP_MS)
    const [first, second] = coordinators
    const proxy: RunningProxy = await startProxy({
      program: await haproxy(),
      authority,
      coordinators: [first!.url, second!.url],
      folder: folder.path,
    })
    ending.push(() => proxy.stop())
    const prometheus = await startScraping(nodes, authority)
    if (prometheus) ending.push(() => prometheus.stop())
    return {
      base: proxy.url,
      access,
      ca: authority.ca,
      folder: folder.path,
      nodes,
      kafka,
      postgres,
      disk,
      prometheus,
      writer,
      command: (...args) => spawnQuipu(args, { env: env.get('coordinator')!, productWaits: true }),
      endPrograms,
      stop,
    }
  } catch (error) {
    await stop().catch(() => {})
    throw error
  }
}

interface Cluster {
  readonly folder: string
  readonly store: string
  readonly authority: TestAuthority
  readonly kafka: TestKafka
  readonly database: { readonly url: string }
}

/**
 * The settings of each program: those of docker-compose.yml, and those that its comments give for a server that other
 * machines reach.
 */
async function settingsOfSet(
  { folder, store, authority, kafka, database }: Cluster,
  users: readonly string[],
): Promise<ReadonlyMap<OurService, Readonly<Record<string, string>>>> {
  const { cert, key } = await authority.issue('quipu')
  // The programs have dropped the rights of root when they read these files.
  chmodSync(authority.folder, 0o755)
  for (const file of [cert, key, authority.ca]) chmodSync(file, 0o644)
  const [passwords, rules] = [join(folder, 'passwords'), join(folder, 'rules.json')]
  writePasswordFile(passwords, users, PASSWORD)
  // Metrics contain user names, so nobody reads them without a rule.
  writeFileSync(rules, JSON.stringify({ system_information: [{ allow: ['read', 'write'] }] }), { mode: 0o644 })
  const shared = ['tables', 'log'].map((name) => join(store, name))
  shared.forEach((path) => mkdirSync(path, { mode: 0o711 }))
  const owner = await unprivileged()
  if (owner) [store, ...shared].forEach((path) => chownSync(path, owner.uid, owner.gid))
  const ports = new Map<string, number>()
  for (const name of OURS) ports.set(name, await freePort())
  const here = (text: string): string =>
    OURS.reduce((now, name) => now.replaceAll(`http://${name}:8080`, `https://127.0.0.1:${ports.get(name)}`), text)
      .replaceAll('kafka:9092', kafka.brokers.join(','))
      .replace(/^postgresql:.*@postgres:5432\/quipu$/, database.url)
      .replace(/\$\{QUIPU_SHARED_SECRET[^}]*\}/, 'a secret of the whole set')
      .replace(/\$\{OTEL_EXPORTER_OTLP_ENDPOINT[^}]*\}/, '')
      .replaceAll('/var/lib/quipu-log', shared[1]!)
      .replaceAll('/var/lib/quipu-tables', shared[0]!)
  const tls = { QUIPU_TLS_CERT: cert, QUIPU_TLS_KEY: key, QUIPU_TLS_CA_FILE: authority.ca }
  const logIn = {
    QUIPU_INSECURE: 'false',
    QUIPU_AUTHENTICATION: 'password',
    QUIPU_PASSWORD_FILE: passwords,
    QUIPU_ACCESS_RULES_FILE: rules,
    QUIPU_TRUSTED_PROXIES: '127.0.0.1',
  }
  const topic = `quipu.soak-${randomBytes(4).toString('hex')}`
  return new Map(
    OURS.map((name) => [
      name,
      {
        ...settingsOf(name, here),
        ...tls,
        ...(name.startsWith('worker') ? {} : { ...logIn, QUIPU_KAFKA_TOPIC: topic }),
        QUIPU_HOST: '127.0.0.1',
        QUIPU_PORT: String(ports.get(name)),
        QUIPU_DATA_DIR: join(store, name),
        QUIPU_METRICS_TOKEN: METRICS_TOKEN,
      },
    ]),
  )
}

/** Starts Prometheus with the shipped configuration and rules; undefined if there is no Prometheus. */
async function startScraping(
  nodes: readonly SoakNode[],
  authority: TestAuthority,
): Promise<RunningPrometheus | undefined> {
  const programs = await findPrometheus()
  if (!programs) return undefined
  const shipped = readFileSync(join(repository, 'dashboards/provisioning/prometheus/quipu.yaml'), 'utf8')
  const config = parse(shipped) as { scrape_configs: { job_name: string }[] }
  return startPrometheusFrom(
    programs,
    JSON.stringify({
      ...config,
      rule_files: [join(repository, 'dashboards/rules/quipu.yaml')],
      scrape_configs: config.scrape_configs.map(({ job_name: job }) => ({
        job_name: job,
        scheme: 'https',
        tls_config: { ca_file: authority.ca },
        authorization: { credentials: METRICS_TOKEN },
        static_configs: [
          { targets: nodes.filter(({ kind }) => job === `quipu-${kind}`).map(({ url }) => new URL(url).host) },
        ],
      })),
    }),
  )
}
