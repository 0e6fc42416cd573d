import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { startEmbeddedPostgres } from '../../src/supervisor/embedded-postgres.ts'
import { writePasswordFile } from '../support/password-file.ts'
import { sharedKafka, startKafka, type TestKafka } from '../support/kafka.ts'
import { freePort } from '../support/postgres.ts'
import { processesOf, spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { repository } from '../support/repository.ts'
import { stopWithOwner } from '../support/stop-with-owner.ts'

export interface BedOptions {
  readonly log: 'postgres' | 'kafka'
  /** Whether clients must authenticate. */
  readonly guarded?: boolean
  /** Whether to use the shared broker of the test run; otherwise the bed starts its own broker. */
  readonly sharedBroker?: boolean
}

/** A program of Quipu: its supervisor and its main process. */
export interface AttackedProcess {
  readonly name: 'coordinator a' | 'coordinator b' | 'worker'
  readonly url: string
  readonly port: number
  readonly dataDir: string
  readonly supervisor: QuipuProcess
  /** The id of the main process at the start of the attack. */
  readonly pid: number
}

/** A server of the attacker. No process of Quipu may connect to it. */
export interface AttackersServer {
  readonly url: string
  readonly port: number
  /** The head of each request that arrived. */
  readonly heard: readonly string[]
}

/** Real processes: a writing and a following coordinator, a worker, Postgres, and Kafka if the log is there. */
export interface AttackBed {
  readonly log: 'postgres' | 'kafka'
  readonly coordinators: readonly [AttackedProcess, AttackedProcess]
  readonly worker: AttackedProcess
  readonly all: readonly AttackedProcess[]
  readonly secret: string
  /** The key of the cluster in the form of a bearer token. */
  readonly bearer: string
  /** The authorization headers of the attacker and of another user; undefined without authentication. */
  readonly known: { readonly attacker: string; readonly other: string } | undefined
  readonly attacker: AttackersServer
  /** A file that no client may read. */
  readonly canary: { readonly path: string; readonly word: string }
  readonly database: pg.Pool
  readonly kafka?: { readonly brokers: readonly string[]; readonly topic: string }
  /** Runs another program of Quipu on the same log. */
  command(...args: string[]): QuipuProcess
  /** Stops all processes by SIGTERM. @returns a line for each process that did not end correctly */
  stop(): Promise<readonly string[]>
}

const SECRET = 'a secret that only processes of the cluster know'
/** Short waits: abandoned queries must end, and the loss of a worker must show, during the attack. */
const SHORT_WAITS = {
  QUIPU_FIRST_FOLLOW_MS: '5s',
  QUIPU_CLIENT_ABSENT_MS: '8s',
  QUIPU_ANSWERS_KEPT_MS: '20s',
  QUIPU_WORKER_FAILED_MS: '2s',
  // On a busy machine no writer may be replaced and no process may be killed.
  QUIPU_WRITER_SILENT_MS: '20s',
  QUIPU_COORDINATOR_DEAD_MS: '60s',
  QUIPU_POST_LOG_WAIT_MS: '30s',
  QUIPU_DELETE_VALIDITY_WAIT_MS: '30s',
  // Elapsed time: during an attack it depends more on the machine than on the statement.
  QUIPU_PREPARE_MS: '30s',
  // A busy machine may correctly answer "not available now", which is no fault.
  QUIPU_OWN_WRITES_WAIT_MS: '30s',
}

export async function startBed(options: BedOptions): Promise<AttackBed> {
  const folder = temporaryFolder()
  const cleanups: (() => Promise<unknown>)[] = [() => folder.remove()]
  try {
    return await makeBed(options, folder.path, cleanups)
  } catch (error) {
    for (const end of cleanups.toReversed()) await end().catch(() => {})
    throw error
  }
}

async function makeBed(
  { log, guarded = false, sharedBroker = false }: BedOptions,
  folder: string,
  cleanups: (() => Promise<unknown>)[],
): Promise<AttackBed> {
  const home = join(folder, 'database')
  mkdirSync(home, { mode: 0o711 })
  const postgres = await startEmbeddedPostgres({ dataDir: home })
  cleanups.push(() => postgres.stop())
  stopWithOwner(postgres.pid, 'INT')
  const broker = log === 'kafka' ? await brokerOf(sharedBroker, cleanups) : undefined
  const port = { a: await freePort(), b: await freePort(), worker: await freePort() }
  const kafka = broker && { brokers: broker.brokers, topic: `quipu.attack-${port.a}-${process.pid}` }
  const attacker = await startAttacker(cleanups)
  const canary = makeCanary()
  const tables = join(folder, 'tables')
  const env = {
    ...SHORT_WAITS,
    DATABASE_URL: postgres.connectionString,
    QUIPU_SHARED_SECRET: SECRET,
    QUIPU_CATALOG_DIR: makeCatalogs(folder),
    QUIPU_TABLES_DIR: tables,
    QUIPU_LOG_LEVEL: 'warn',
    ...(guarded ? makeGuard(folder) : {}),
    ...(kafka ? { KAFKA_BROKERS: kafka.brokers.join(','), QUIPU_KAFKA_TOPIC: kafka.topic } : {}),
  }

  async function coordinator(name: 'a' | 'b'): Promise<AttackedProcess> {
    const dataDir = join(folder, name)
    const args = ['coordinator', '--standby', '--port', String(port[name]), '--data-dir', dataDir]
    const supervisor = spawnQuipu(args, { env, productWaits: true })
    stopWithOwner(supervisor.pid)
    const url = await supervisor.url
    cleanups.push(() => ended(supervisor))
    return {
      name: `coordinator ${name}`,
      url,
      port: port[name],
      dataDir,
      supervisor,
      pid: processesOf(dataDir).children[0]!,
    }
  }

  const a = await coordinator('a')
  const b = await coordinator('b')
  const dataDir = join(folder, 'worker')
  const supervisor = spawnQuipu(
    ['worker', '--port', String(port.worker), '--data-dir', dataDir, '--coordinators', `${a.url},${b.url}`],
    { env, productWaits: true },
  )
  stopWithOwner(supervisor.pid)
  cleanups.push(() => ended(supervisor))
  await waitUntil('the worker is up', () => supervisor.stdout().startsWith('Worker up in '))
  const url = `http://127.0.0.1:${port.worker}`
  const pid = processesOf(dataDir).children[0]!
  const worker: AttackedProcess = { name: 'worker', url, port: port.worker, dataDir, supervisor, pid }
  const all = [a, b, worker]
  const database = new pg.Pool({ connectionString: postgres.connectionString, max: 2 })
  // Postgres ends before the pool.
  database.on('error', () => {})
  return {
    log,
    coordinators: [a, b],
    worker,
    all,
    secret: SECRET,
    bearer: internalBearer(SECRET),
    known: guarded ? { attacker: basic('attack', PASSWORD), other: basic('somebody', PASSWORD) } : undefined,
    attacker,
    canary,
    database,
    ...(kafka ? { kafka } : {}),
    command: (...args) => spawnQuipu([...args, '--data-dir', a.dataDir], { env, productWaits: true }),
    async stop() {
      const wrong: string[] = []
      for (const { name, supervisor: one } of all) {
        const code = await ended(one)
        if (code !== 0) wrong.push(`${name} ended with ${code} on SIGTERM`)
      }
      await database.end()
      for (const end of cleanups.splice(0).toReversed()) await end().catch(() => {})
      return wrong
    },
  }
}

const PASSWORD = 'a password that two users have'

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
}

/** Users with passwords. The attacker may act as any user and view all queries: the attack is in the texts. */
function makeGuard(folder: string): Readonly<Record<string, string>> {
  const passwords = join(folder, 'passwords')
  writePasswordFile(passwords, ['attack', 'somebody', 'third'], PASSWORD)
  const rules = join(folder, 'rules.json')
  const sections = {
    queries: [{ user: 'attack', allow: ['execute', 'view', 'kill'] }, { allow: ['execute'] }],
    impersonation: [{ original_user: 'attack', new_user: '.*' }],
  }
  writeFileSync(rules, JSON.stringify(sections), { mode: 0o644 })
  return { QUIPU_AUTHENTICATION: 'password', QUIPU_PASSWORD_FILE: passwords, QUIPU_ACCESS_RULES_FILE: rules }
}

async function brokerOf(shared: boolean, cleanups: (() => Promise<unknown>)[]): Promise<TestKafka> {
  if (shared) return sharedKafka()
  const broker = await startKafka()
  cleanups.push(() => broker.stop())
  return broker
}

async function ended(supervisor: QuipuProcess): Promise<number | null> {
  try {
    supervisor.signal('SIGTERM')
  } catch {
    // The process has already ended.
  }
  return (await supervisor.exit).code
}

async function startAttacker(cleanups: (() => Promise<unknown>)[]): Promise<AttackersServer> {
  const heard: string[] = []
  const server: Server = createServer((request, response) => {
    heard.push(`${request.method} ${request.url} ${JSON.stringify(request.headers)}`)
    response.end('{}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      }),
  )
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, heard }
}

/** The file is the same in every run, so that the bytes of a case are too. It is not removed: other runs may use it. */
function makeCanary(): AttackBed['canary'] {
  const path = join(tmpdir(), 'quipu-attack-canary.txt')
  const word = 'a-canary-that-sings-for-nobody'
  // All users may read the file, so that only the server protects it from clients.
  writeFileSync(path, `${word}\n`, { mode: 0o644 })
  return { path, word }
}

/** The catalogs of the product, and a lake with files. */
function makeCatalogs(folder: string): string {
  const catalogs = join(folder, 'catalogs')
  cpSync(join(repository, 'etc', 'catalog'), catalogs, { recursive: true })
  const lake = join(folder, 'lake')
  mkdirSync(join(lake, 'odd', 'people'), { recursive: true })
  writeFileSync(join(lake, 'odd', 'people', 'one.csv'), `id,name\n1,$E\n2,"'; --"\n3,日本\n`)
  writeFileSync(join(catalogs, 'lake.json'), JSON.stringify({ connector: 'lake', location: lake }))
  return catalogs
}
