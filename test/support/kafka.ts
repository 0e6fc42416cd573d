import { execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { access, cp, mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { archivedClasses, shortLived } from './java.ts'
import { freePort } from './postgres.ts'
import { freezeProcess } from './process-children.ts'
import { isAlive, waitUntil } from './quipu-process.ts'
import { testCache, withCached } from './test-cache.ts'
import { RUN_PID, runFolder, withRunLock } from './run-folder.ts'

const run = promisify(execFile)
const VERSION = '4.1.0'

export interface TestKafka {
  readonly brokers: readonly string[]
  readonly host: string
  readonly port: number
  /** Sends SIGKILL. Only for separate brokers. */
  kill(): Promise<void>
  freeze(): Promise<() => Promise<void>>
  start(): Promise<void>
  stop(): Promise<void>
}

/**
 * Whether Kafka can run on this machine. If not, prints a message, and fails under CI=true, because a suite that skips
 * silently proves nothing.
 */
export async function kafkaIsAvailable(): Promise<boolean> {
  const found = await findKind()
  // The download happens here, outside the time-out of a test.
  const ready = found !== 'java' || (await jars().then(Boolean, () => false))
  if (found !== undefined && ready) return true
  if (process.env['CI'] === 'true') throw new Error('No Kafka: set KAFKA_BROKERS, or have Docker, or Maven and Java 17')
  console.warn('SKIPPED: no Kafka (neither KAFKA_BROKERS, nor Docker, nor Maven and Java 17)')
  return false
}

/** The shared broker of the run, started by the first caller. Each test has a separate topic. */
export async function sharedKafka(): Promise<TestKafka> {
  const given = process.env['KAFKA_BROKERS']?.split(',').filter(Boolean)
  if (given?.length) return handleOf({ kind: 'given', port: Number(given[0]!.split(':').at(-1)), brokers: given })
  const note = join(runFolder(), 'kafka.json')
  const broker = await withRunLock('kafka', async () => {
    const found = await readFile(note, 'utf8').catch(() => undefined)
    if (found) return JSON.parse(found) as Broker
    const made = await createBroker()
    await startBroker(made)
    await writeFile(note, JSON.stringify(made))
    return made
  })
  return handleOf(broker)
}

export async function stopSharedKafka(): Promise<void> {
  const found = await readFile(join(runFolder(), 'kafka.json'), 'utf8').catch(() => undefined)
  if (found) await handleOf(JSON.parse(found) as Broker).stop()
}

/** Starts a separate broker, which a test may kill. */
export async function startKafka(): Promise<TestKafka> {
  const broker = await createBroker({ properties: SOON_BACK })
  await startBroker(broker)
  return handleOf(broker)
}

/** The credentials of a broker with authentication, and the credentials that it accepts. */
export interface KafkaCredentials {
  /** PEM: private key (PKCS 8) and certificate of the broker, one after the other. */
  readonly keystore: string
  /** PEM: the authority of the broker and of its clients. */
  readonly truststore: string
  readonly user: string
  readonly password: string
}

export interface SecuredKafka {
  /** The address of the listener for users and passwords, over TLS. */
  readonly sasl: string
  /** The address of the listener for client certificates. */
  readonly tls: string
  stop(): Promise<void>
}

/** Starts a broker with a listener for each kind of credential. Needs Java, because its key stores are files. */
export async function startSecuredKafka(credentials: KafkaCredentials): Promise<SecuredKafka> {
  const { keystore, truststore, user, password } = credentials
  const [sasl, tls] = [await freePort(), await freePort()]
  const scram = (bits: number): string => `SCRAM-SHA-${bits}=[name=${user},password=${password}]`
  const login = 'org.apache.kafka.common.security'
  const broker = await createBroker({
    listeners: { SASL_SSL: sasl, SSL: tls },
    properties: {
      'inter.broker.listener.name': 'PLAINTEXT',
      'ssl.keystore.type': 'PEM',
      'ssl.keystore.location': keystore,
      'ssl.truststore.type': 'PEM',
      'ssl.truststore.location': truststore,
      'listener.name.ssl.ssl.client.auth': 'required',
      'listener.name.sasl_ssl.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
      'listener.name.sasl_ssl.plain.sasl.jaas.config': `${login}.plain.PlainLoginModule required user_${user}="${password}";`,
      'listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config': `${login}.scram.ScramLoginModule required;`,
      'listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config': `${login}.scram.ScramLoginModule required;`,
    },
    format: ['--add-scram', scram(256), '--add-scram', scram(512)],
  })
  await startBroker(broker)
  return { sasl: `${HOST}:${sasl}`, tls: `${HOST}:${tls}`, stop: () => handleOf(broker).stop() }
}

interface Broker {
  readonly kind: 'given' | 'docker' | 'java'
  readonly port: number
  readonly brokers: readonly string[]
  readonly folder?: string
  readonly container?: string
  /** The value changes with each start. */
  pid?: number
}

const HOST = '127.0.0.1'

let foundKind: Promise<'given' | 'docker' | 'java' | undefined> | undefined

function findKind(): Promise<'given' | 'docker' | 'java' | undefined> {
  foundKind ??= (async () => {
    if (process.env['KAFKA_BROKERS']) return 'given' as const
    const works = (command: string, ...args: string[]): Promise<boolean> =>
      run(command, args, { timeout: 60_000 }).then(
        () => true,
        () => false,
      )
    if (await works('docker', 'info')) return 'docker' as const
    if (!(await works('java', '-version'))) return undefined
    const cached = await access(join(cacheFolder(), 'jars')).then(
      () => true,
      () => false,
    )
    return cached || (await works('mvn', '-version')) ? ('java' as const) : undefined
  })()
  return foundKind
}

interface MoreOfBroker {
  /** Ports by the name of the protocol. */
  readonly listeners?: Readonly<Record<string, number>>
  readonly properties?: Readonly<Record<string, string>>
  /** Further options with which the storage is formatted. Needs Java. */
  readonly format?: readonly string[]
}

/**
 * A broker that was killed may come back under its number only when its session is over: 9 s by default. The shared
 * broker keeps the default, because a short session costs CPU as long as the broker runs.
 */
const SOON_BACK = { 'broker.session.timeout.ms': '1500', 'broker.heartbeat.interval.ms': '300' }

async function createBroker(more: MoreOfBroker = {}): Promise<Broker> {
  const kind = more.format ? 'java' : await findKind()
  const port = await freePort()
  const brokers = [`${HOST}:${port}`]
  if (kind === 'docker') return { kind, port, brokers, container: `quipu-test-kafka-${randomBytes(4).toString('hex')}` }
  if (kind !== 'java') throw new Error('No Kafka of our own can be started here')
  const folder = await mkdtemp(join(tmpdir(), 'quipu-test-kafka-'))
  const controller = await freePort()
  await writeFile(join(folder, 'server.properties'), propertiesOf(folder, port, controller, more))
  if (more.format) await format(folder, more.format)
  else await cp(await formattedData(), join(folder, 'data'), { recursive: true })
  return { kind, port, brokers, folder }
}

/** The file `server.properties` of a broker. */
function propertiesOf(
  folder: string,
  port: number,
  controller: number,
  { listeners = {}, properties = {} }: MoreOfBroker = {},
): string {
  const others = Object.entries(listeners).map(([name, at]) => `,${name}://${HOST}:${at}`)
  const protocols = Object.keys(listeners).map((name) => `,${name}:${name}`)
  return `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@${HOST}:${controller}
listeners=PLAINTEXT://${HOST}:${port},CONTROLLER://${HOST}:${controller}${others.join('')}
advertised.listeners=PLAINTEXT://${HOST}:${port}${others.join('')}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT${protocols.join('')}
log.dirs=${join(folder, 'data')}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
auto.create.topics.enable=false
# No record each 500 ms for other brokers that fetch nothing else.
metadata.max.idle.interval.ms=0
controller.quorum.election.timeout.ms=300
controller.quorum.fetch.timeout.ms=600
delete.topic.enable=true
# No second member comes: 3 s by default.
group.initial.rebalance.delay.ms=0
${Object.entries(properties)
  .map(([name, value]) => `${name}=${value}`)
  .join('\n')}`
}

/** Formats the storage of a broker for its `server.properties`. */
function format(folder: string, options: readonly string[] = []): Promise<void> {
  return java(folder, ['kafka.tools.StorageTool', 'format', '-t', uuid(), '-c', 'server.properties', ...options])
}

/** A formatted storage that a broker begins with: formatting starts a Java of its own. It contains no port. */
async function formattedData(): Promise<string> {
  const folder = join(cacheFolder(), 'formatted')
  // The download makes the folder around it.
  await jars()
  await withCached(folder, 'kafka-format', async () => {
    const fresh = `${folder}.${process.pid}`
    await mkdir(fresh, { recursive: true })
    await writeFile(join(fresh, 'server.properties'), propertiesOf(fresh, 1, 2))
    await format(fresh)
    await rename(fresh, folder)
  })
  return join(folder, 'data')
}

/** A UUID in the format of Kafka: base 64, 22 digits. */
function uuid(): string {
  // The id is an argument of a command, so it must not begin with a dash.
  return `k${randomBytes(16).toString('base64url').slice(1)}`
}

async function startBroker(broker: Broker): Promise<void> {
  if (broker.kind === 'docker') await startContainer(broker)
  else broker.pid = await startJava(broker.folder!, await archivedBroker())
  await listening(broker)
}

async function listening({ port, folder, container }: Broker): Promise<void> {
  for (let waited = 0; !(await listens(port)); waited += 50) {
    if (waited > 60_000) throw new Error(`Kafka did not start (see ${folder ?? container})`)
    await sleep(50)
  }
}

/** Options of Java for a broker, with an archive of the classes that a start loads. */
function archivedBroker(): Promise<readonly string[]> {
  return archivedClasses(join(cacheFolder(), 'broker.jsa'), async (options) => {
    const broker = await createBroker()
    const pid = await startJava(broker.folder!, options)
    await listening(broker)
    process.kill(pid, 'SIGTERM')
    await waitUntil('the broker has ended', () => !isAlive(pid))
    await rm(broker.folder!, { recursive: true, force: true, maxRetries: 5 })
  })
}

async function startJava(folder: string, options: readonly string[]): Promise<number> {
  const log = await open(join(folder, 'log'), 'a')
  const server = spawn('java', [...options, ...javaOptions(await jars()), 'kafka.Kafka', 'server.properties'], {
    cwd: folder,
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
  })
  await log.close()
  server.unref()
  const owner = process.env[RUN_PID] ?? String(process.pid)
  spawn('/bin/sh', ['-c', `while kill -0 ${owner} && kill -0 ${server.pid}; do sleep 1; done; kill -9 ${server.pid}`], {
    detached: true,
    stdio: 'ignore',
  }).unref()
  return server.pid!
}

async function startContainer({ container, port }: Broker): Promise<void> {
  const known = await run('docker', ['start', container!]).then(
    () => true,
    () => false,
  )
  if (known) return
  const env = {
    KAFKA_NODE_ID: 1,
    KAFKA_PROCESS_ROLES: 'broker,controller',
    KAFKA_LISTENERS: `PLAINTEXT://:${port},CONTROLLER://:9093`,
    KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://${HOST}:${port}`,
    KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
    KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
    KAFKA_CONTROLLER_QUORUM_VOTERS: '1@localhost:9093',
    KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: 1,
    KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
    KAFKA_BROKER_SESSION_TIMEOUT_MS: 1500,
    KAFKA_BROKER_HEARTBEAT_INTERVAL_MS: 300,
  }
  const variables = Object.entries(env).flatMap(([name, value]) => ['-e', `${name}=${value}`])
  const published = `${HOST}:${port}:${port}`
  await run('docker', ['run', '-d', '--name', container!, '-p', published, ...variables, `apache/kafka:${VERSION}`])
}

function handleOf(broker: Broker): TestKafka {
  const signal = (name: NodeJS.Signals): void => {
    try {
      if (broker.pid) process.kill(broker.pid, name)
    } catch {
      // The process has ended already.
    }
  }
  const docker = (...args: string[]): Promise<unknown> => run('docker', [...args, broker.container!])
  return {
    brokers: broker.brokers,
    host: HOST,
    port: broker.port,
    async kill() {
      if (broker.kind === 'docker') await docker('kill')
      else signal('SIGKILL')
      while (await listens(broker.port)) await sleep(10)
    },
    async freeze() {
      if (broker.kind === 'docker') await docker('pause')
      else if (broker.pid) await freezeProcess(broker.pid)
      return async () => {
        if (broker.kind === 'docker') await docker('unpause')
        else signal('SIGCONT')
      }
    },
    start: () => startBroker(broker),
    async stop() {
      if (broker.kind === 'given') return
      if (broker.kind === 'docker') await docker('rm', '-f').catch(() => {})
      else signal('SIGKILL')
      if (broker.folder) await rm(broker.folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

async function java(folder: string, args: readonly string[]): Promise<void> {
  await run('java', [...javaOptions(await jars()), ...args], { cwd: folder })
}

function javaOptions(folder: string): string[] {
  return ['-Xmx384m', '-Xms128m', ...shortLived, '-cp', join(folder, '*')]
}

function cacheFolder(): string {
  return join(testCache, `kafka-${VERSION}`)
}

/** The folder with the jars of Kafka, downloaded by Maven once on each machine (43 MB). */
async function jars(): Promise<string> {
  const folder = cacheFolder()
  const found = join(folder, 'jars')
  return withCached(found, 'maven', () => fetchJars(folder)).then(() => found)
}

async function fetchJars(folder: string): Promise<void> {
  const fresh = `${folder}.${process.pid}`
  await mkdir(fresh, { recursive: true })
  await writeFile(
    join(fresh, 'pom.xml'),
    `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>quipu.test</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${VERSION}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>`,
  )
  await run('mvn', ['-q', '-B', 'dependency:copy-dependencies', `-DoutputDirectory=${join(fresh, 'jars')}`], {
    cwd: fresh,
    timeout: 300_000,
  })
  await rename(fresh, folder)
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST)
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
