import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, openSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { access, mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hashSync } from '@node-rs/bcrypt'
import { freePort } from '../support/postgres.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { raw } from '../support/statement-client.ts'
import { testCache, withCached } from '../support/test-cache.ts'
import type { TestAuthority } from '../support/certificates.ts'

const run = promisify(execFile)

const VERSION = '476'
const ARTIFACT = `io.trino:trino-server:${VERSION}:tar.gz`
/** Trino 476 does not start on an older Java. */
const OLDEST_JAVA = 24
const HEAP = '2G'
/** Fewer plugins than the server has: each costs time at its start. */
const PLUGINS = ['tpch', 'memory', 'iceberg', 'password-authenticators', 'session-property-managers']

/** A user that nobody may impersonate. */
const NOBODYS_USER = 'root'
/** The user of the gateway, which may impersonate other users. */
export const SERVICE = { user: 'gateway', password: 'open sesame' } as const
/** Short, so that tests can wait longer than it. Milliseconds. */
export const CLIENT_TIMEOUT_MS = 20_000

export interface TrinoServer {
  /** Over plain HTTP every user name is accepted. */
  readonly url: string
  /** Over TLS users need a password. */
  readonly secureUrl: string
  readonly pid: number
  /** Ends it at once, without waiting. */
  kill(): void
  stop(): Promise<void>
}

/**
 * Starts a Trino with the catalogs `tpch`, `memory` and `iceberg`. The first start downloads it: 820 MB.
 * @param folder for its files
 */
export async function startTrino(folder: string, authority: TestAuthority): Promise<TrinoServer> {
  const [java, home] = [await newJava(), await unpackedServer()]
  const [port, securePort] = [await freePort(), await freePort()]
  writeFiles(folder, home, { port, securePort, keystore: (await authority.issue('trino')).both })
  const log = openSync(join(folder, 'server.log'), 'w')
  const child = spawn(java, javaArguments(folder, home), { cwd: folder, stdio: ['ignore', log, log] })
  const exit = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = `http://127.0.0.1:${port}`
  try {
    await waitUntil('Trino is ready', () => isReady(child, url, folder), 300_000)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return {
    url,
    secureUrl: `https://127.0.0.1:${securePort}`,
    pid: child.pid!,
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      child.kill('SIGKILL')
      await exit
    },
  }
}

async function isReady(child: ChildProcess, url: string, folder: string): Promise<boolean> {
  if (child.exitCode !== null) {
    const log = readFileSync(join(folder, 'server.log'), 'utf8')
    throw new Error(`Trino ended with ${child.exitCode}:\n${log.slice(-4_000)}`)
  }
  const info = await raw(`${url}/v1/info`).catch(() => undefined)
  return info?.status === 200 && (JSON.parse(info.text) as { starting: boolean }).starting === false
}

function javaArguments(folder: string, home: string): string[] {
  return [
    `-Xmx${HEAP}`,
    '-XX:+UseG1GC',
    '-XX:+ExitOnOutOfMemoryError',
    '-Djdk.attach.allowAttachSelf=true',
    '-Dfile.encoding=UTF-8',
    '--add-modules=jdk.incubator.vector',
    '--enable-native-access=ALL-UNNAMED',
    '-Dnode.environment=test',
    '-Dnode.id=test',
    `-Dnode.data-dir=${join(folder, 'data')}`,
    '-Dnode.internal-address=127.0.0.1',
    '-Dnode.bind-ip=127.0.0.1',
    `-Dconfig=${join(folder, 'etc', 'config.properties')}`,
    '-cp',
    `${home}/lib/*`,
    'io.trino.server.TrinoServer',
  ]
}

function writeFiles(
  folder: string,
  home: string,
  { port, securePort, keystore }: { readonly port: number; readonly securePort: number; readonly keystore: string },
): void {
  const at = (...path: string[]): string => join(folder, ...path)
  for (const name of ['plugin', 'data', 'warehouse', join('etc', 'catalog')]) mkdirSync(at(name), { recursive: true })
  for (const plugin of readdirSync(join(home, 'plugin')))
    if (PLUGINS.includes(plugin)) symlinkSync(join(home, 'plugin', plugin), at('plugin', plugin))
  const hash = hashSync(SERVICE.password, { cost: 8, version: '2y' })
  writeFileSync(at('etc', 'passwords'), `${SERVICE.user}:${hash}\n`)
  const properties: Readonly<Record<string, Readonly<Record<string, string>>>> = {
    'config.properties': {
      coordinator: 'true',
      'node-scheduler.include-coordinator': 'true',
      'discovery.uri': `http://127.0.0.1:${port}`,
      'http-server.http.port': String(port),
      'http-server.https.enabled': 'true',
      'http-server.https.port': String(securePort),
      'http-server.https.keystore.path': keystore,
      'http-server.authentication.type': 'PASSWORD',
      'http-server.authentication.allow-insecure-over-http': 'true',
      'internal-communication.shared-secret': randomBytes(32).toString('hex'),
      'query.client.timeout': `${CLIENT_TIMEOUT_MS / 1000}s`,
      'plugin.dir': at('plugin'),
      'catalog.config-dir': at('etc', 'catalog'),
      'access-control.config-files': at('etc', 'access-control.properties'),
      'password-authenticator.config-files': at('etc', 'password-authenticator.properties'),
    },
    'access-control.properties': { 'access-control.name': 'file', 'security.config-file': at('etc', 'rules.json') },
    'password-authenticator.properties': {
      'password-authenticator.name': 'file',
      'file.password-file': at('etc', 'passwords'),
    },
    'catalog/tpch.properties': { 'connector.name': 'tpch', 'tpch.splits-per-node': '2' },
    'catalog/memory.properties': { 'connector.name': 'memory' },
    'catalog/iceberg.properties': {
      'connector.name': 'iceberg',
      'iceberg.catalog.type': 'TESTING_FILE_METASTORE',
      'hive.metastore.catalog.dir': 'local:///warehouse',
      'fs.native-local.enabled': 'true',
      'local.location': folder,
    },
  }
  for (const [name, lines] of Object.entries(properties))
    writeFileSync(
      at('etc', name),
      Object.entries(lines)
        .map(([key, value]) => `${key}=${value}\n`)
        .join(''),
    )
  writeFileSync(
    at('etc', 'rules.json'),
    JSON.stringify({
      catalogs: [{ allow: 'all' }],
      queries: [{ allow: ['execute', 'kill', 'view'] }],
      impersonation: [
        { original_user: SERVICE.user, new_user: NOBODYS_USER, allow: false },
        { original_user: SERVICE.user, new_user: '.*' },
      ],
      system_session_properties: [{ allow: true }],
      catalog_session_properties: [{ allow: true }],
      procedures: [{ privileges: ['EXECUTE', 'GRANT_EXECUTE'] }],
      functions: [{ privileges: ['EXECUTE', 'GRANT_EXECUTE', 'OWNERSHIP'] }],
      system_information: [{ allow: ['read', 'write'] }],
    }),
  )
}

/** The unpacked server, downloaded by Maven once on each machine. */
async function unpackedServer(): Promise<string> {
  const home = join(testCache, `trino-server-${VERSION}`)
  await withCached(home, 'trino-server', async () => {
    const fresh = `${home}.${process.pid}`
    await mkdir(fresh, { recursive: true })
    console.warn('Downloading Trino 476 with Maven (820 MB)')
    const copy = ['-q', '-B', 'dependency:copy', `-Dartifact=${ARTIFACT}`, `-DoutputDirectory=${fresh}`]
    await run('mvn', copy, { timeout: 3_600_000 })
    await run('tar', ['-xzf', join(fresh, `trino-server-${VERSION}.tar.gz`), '-C', fresh], { timeout: 600_000 })
    await rename(join(fresh, `trino-server-${VERSION}`), home)
    await rm(fresh, { recursive: true })
  })
  return home
}

/**
 * A Java that is new enough: of TRINO_JAVA_HOME, else of JAVA_HOME, else below /usr/lib/jvm, else of the path.
 * @throws Error when there is none
 */
async function newJava(): Promise<string> {
  const installed = '/usr/lib/jvm'
  const homes = [
    process.env['TRINO_JAVA_HOME'],
    process.env['JAVA_HOME'],
    ...((await exists(installed)) ? readdirSync(installed).map((name) => join(installed, name)) : []),
  ].filter((home) => home !== undefined)
  for (const java of [...homes.map((home) => join(home, 'bin', 'java')), 'java'])
    if ((await versionOf(java)) >= OLDEST_JAVA) return java
  throw new Error(`Trino ${VERSION} needs Java ${OLDEST_JAVA} or later: set TRINO_JAVA_HOME to one`)
}

/** The major version of a Java; 0 when it does not run. */
async function versionOf(java: string): Promise<number> {
  try {
    const { stderr } = await run(java, ['-version'], { timeout: 60_000 })
    return Number(/version "(\d+)/.exec(stderr)?.[1] ?? 0)
  } catch {
    return 0
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
