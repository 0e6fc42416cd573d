import { execFile, spawn } from 'node:child_process'
import {
  chownSync,
  closeSync,
  constants,
  existsSync,
  ftruncateSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { postgresUser, type PosixUser } from './posix-user.ts'
import { findPostgresBinaries, usableBinaries, type PostgresBinaries } from './postgres-binaries.ts'
import { preparePostgresFolders } from './postgres-folders.ts'
import { probePostgres } from './postgres-probe.ts'
import {
  identify,
  isRunning,
  programOf,
  signal,
  userOf,
  waitUntilGone,
  type ProcessIdentity,
} from './process-identity.ts'

export interface EmbeddedPostgresOptions {
  /** The cluster is made in `postgres/` below this folder, the socket in `run/`. Both are made if they are missing. */
  readonly dataDir: string
  /**
   * Server settings on top of the defaults below, passed as `-c name=value`. An adopted server keeps its own settings.
   */
  readonly settings?: Readonly<Record<string, string>>
  /** Prints a line for the operator, for example where the data lies if it is not below the data folder. */
  readonly print?: (line: string) => void
}

export interface EmbeddedPostgres {
  /**
   * Connection string for `pg`: superuser `quipu`, database `postgres`, over the Unix socket. The same after every
   * restart.
   */
  readonly connectionString: string
  readonly socketDir: string
  readonly clusterDir: string
  readonly pid: number
  /** Whether the server ran already and was taken over. */
  readonly adopted: boolean
  /** Resolves when the server is gone, for any reason. */
  readonly exited: Promise<void>
  /** Ends the sessions, writes a checkpoint and waits for the exit; after 10 s by force. Safe to call twice. */
  stop(): Promise<void>
  /** Ends the server at once. It recovers at the next start. */
  kill(): void
}

const run = promisify(execFile)

const USER = 'quipu'
const DATABASE = 'postgres'
/** How long a start may take, with recovery after a crash. */
const START_TIMEOUT_MS = 60_000
/** A running server that has not answered for this long is stopped or hung. It is ended and started again. */
const SILENCE_MS = 5_000
const STOP_TIMEOUT_MS = 10_000
const FIRST_PAUSE_MS = 5
const LONGEST_PAUSE_MS = 100
const LARGEST_LOG = 10 * 1024 * 1024

const DEFAULTS: Readonly<Record<string, string>> = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // One machine and few sessions: four processes fewer than by default, and no compilation of short statements.
  io_method: 'sync',
  max_connections: '100',
  jit: 'off',
  // Postgres quotes data in its error details. The client that caused an error gets them; the log must not have them.
  log_min_messages: 'log',
  log_error_verbosity: 'terse',
  max_logical_replication_workers: '0',
}

/**
 * Starts the Postgres of a data folder. Makes the cluster the first time and takes over a server that already runs.
 * Else it starts the server in its own process session, so that Ctrl-C in a terminal does not reach it.
 * @throws Error with one line for the operator
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const print = options.print ?? (() => {})
  const user = postgresUser(join(options.dataDir, 'postgres'))
  const folders = preparePostgresFolders(options.dataDir, user, print)
  const binaries = usableBinaries(findPostgresBinaries(), user, folders.copies, print)
  const server = {
    cluster: folders.cluster,
    socket: folders.socket,
    user,
    binaries,
    settings: { ...DEFAULTS, ...options.settings, unix_socket_directories: folders.socket },
    log: `${folders.cluster}.log`,
  }
  if (!existsSync(join(server.cluster, 'PG_VERSION'))) await makeCluster(server)
  return (await adopt(server)) ?? (await launch(server))
}

interface Server {
  readonly cluster: string
  readonly socket: string
  readonly user: PosixUser | undefined
  readonly binaries: PostgresBinaries
  readonly settings: Readonly<Record<string, string>>
  readonly log: string
}

/** Runs initdb in a folder beside the final one, then renames it: an interrupted start never leaves half a cluster. */
async function makeCluster({ cluster, user, binaries }: Server): Promise<void> {
  const fresh = `${cluster}.new`
  rmSync(fresh, { recursive: true, force: true })
  mkdirSync(fresh, { mode: 0o700 })
  if (user) chownSync(fresh, user.uid, user.gid)
  const args = ['-D', fresh, '-U', USER, '--auth=trust', '--encoding=UTF8', '--locale-provider=builtin']
  args.push('--builtin-locale=C.UTF-8', '--locale=C', '--no-instructions')
  try {
    await run(join(binaries.root, 'bin', 'initdb'), args, { ...identityOf(user), env: environment(), cwd: '/' })
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    const { stderr, message } = error as Error & { stderr?: string }
    throw new Error(`initdb failed: ${lastLine(stderr ?? '') ?? message}`)
  }
  renameSync(fresh, cluster)
}

/** Takes over a server that runs on this cluster and answers. Ends a server that does not answer. */
async function adopt(server: Server): Promise<EmbeddedPostgres | undefined> {
  const running = runningServer(server.cluster)
  if (!running) {
    // A crash left these files. Their process numbers may belong to other processes now, and Postgres would not start.
    rmSync(join(server.cluster, 'postmaster.pid'), { force: true })
    rmSync(`${socketPath(server)}.lock`, { force: true })
    return undefined
  }
  const path = running.socketDir === undefined ? undefined : join(running.socketDir, '.s.PGSQL.5432')
  if (path === socketPath(server)) {
    let silentSince = performance.now()
    const until = performance.now() + START_TIMEOUT_MS
    while (isRunning(running.identity) && performance.now() < until && performance.now() - silentSince < SILENCE_MS) {
      const answer = await probePostgres(path, USER, DATABASE, 2_000)
      if (answer === 'answers') return handle(server, running.identity, true, goneByPolling(running.identity))
      if (answer === 'starting') silentSince = performance.now()
      await sleep(20)
    }
  }
  await end(running.identity, ['SIGQUIT', 'SIGKILL'])
  return undefined
}

/** Ends the server of a data folder if it runs as another user than `user`, the folder's next owner. Needs root. */
export async function endForeignPostgres(dataDir: string, user: PosixUser): Promise<void> {
  const running = runningServer(join(dataDir, 'postgres'))
  if (running && userOf(running.identity.pid) !== user.uid)
    await end(running.identity, ['SIGINT', 'SIGQUIT', 'SIGKILL'])
}

/** The process named in postmaster.pid, if it still runs and is a Postgres. */
function runningServer(cluster: string): { identity: ProcessIdentity; socketDir: string | undefined } | undefined {
  let lines: string[]
  try {
    lines = readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return undefined
  }
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 1 || programOf(pid) !== 'postgres') return undefined
  // The cluster's user writes that file. It must not make this process end a server of another user.
  if (userOf(pid) !== statSync(cluster, { throwIfNoEntry: false })?.uid) return undefined
  const identity = identify(pid)
  return identity && { identity, socketDir: lines[4] || undefined }
}

/** Starts a server and waits until it answers a query. */
async function launch(server: Server): Promise<EmbeddedPostgres> {
  const until = performance.now() + START_TIMEOUT_MS
  for (;;) {
    const log = openLog(server.log)
    // Only lines of this start explain why it failed. This is also the only code that ever shortens the file.
    if (fstatSync(log).size > LARGEST_LOG) ftruncateSync(log)
    const from = fstatSync(log).size
    const args = ['-D', server.cluster, ...Object.entries(server.settings).flatMap(([k, v]) => ['-c', `${k}=${v}`])]
    const child = spawn(join(server.binaries.root, 'bin', 'postgres'), args, {
      ...identityOf(server.user),
      env: environment(),
      cwd: '/',
      detached: true,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    const exited = new Promise<void>((resolve) => {
      child.once('exit', () => resolve())
      child.once('error', () => resolve())
    })
    let gone = false
    void exited.then(() => (gone = true))
    child.unref()
    let pauseMs = FIRST_PAUSE_MS
    while (!gone && performance.now() < until) {
      if (existsSync(socketPath(server))) {
        const answer = await probePostgres(socketPath(server), USER, DATABASE, 2_000)
        const identity = child.pid === undefined ? undefined : identify(child.pid)
        if (answer === 'answers' && identity && !gone) return handle(server, identity, false, exited)
        // Postgres logs a line for each attempt while it recovers, so the pauses grow.
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
      }
      await sleep(pauseMs)
    }
    const lines = readFileSync(server.log, 'utf8').slice(from)
    // After a kill -9 of the server, its sessions may need a moment to notice and to release the shared memory.
    const passing = /lock file .* already exists|pre-existing shared memory block/.test(lines)
    if (gone && passing && performance.now() < until) {
      await sleep(100)
      continue
    }
    if (!gone && child.pid !== undefined) signal(child.pid, 'SIGQUIT')
    const why = /(?:FATAL|PANIC): +(.*)/.exec(lines)?.[1] ?? lastLine(lines) ?? 'it printed no reason'
    throw new Error(`Postgres did not start: ${why} (${server.log})`)
  }
}

/**
 * Opens the log for appending. Removes first anything but a file of this user, such as a link that Postgres' user put
 * there.
 */
function openLog(path: string): number {
  const { O_APPEND, O_CREAT, O_NOFOLLOW, O_WRONLY } = constants
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found && !(found.isFile() && found.uid === process.getuid?.() && found.nlink === 1)) unlinkSync(path)
  return openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600)
}

function handle(server: Server, identity: ProcessIdentity, adopted: boolean, exited: Promise<void>): EmbeddedPostgres {
  let stopping: Promise<void> | undefined
  let stopped = () => {}
  const ended = new Promise<void>((resolve) => (stopped = resolve))
  return {
    connectionString: `postgresql://${USER}@localhost/${DATABASE}?host=${encodeURIComponent(server.socket)}`,
    socketDir: server.socket,
    clusterDir: server.cluster,
    pid: identity.pid,
    adopted,
    exited: Promise.race([exited, ended]),
    kill: () => void (isRunning(identity) && signal(identity.pid, 'SIGQUIT')),
    stop: () => (stopping ??= end(identity, ['SIGINT', 'SIGQUIT', 'SIGKILL']).then(stopped)),
  }
}

/** Sends each signal in turn until the process is gone. */
async function end(identity: ProcessIdentity, signals: readonly NodeJS.Signals[]): Promise<void> {
  for (const name of signals) {
    if (!isRunning(identity)) return
    // A stopped process reacts only to SIGKILL until SIGCONT wakes it.
    signal(identity.pid, name)
    signal(identity.pid, 'SIGCONT')
    if (await waitUntilGone(identity, STOP_TIMEOUT_MS)) return
  }
}

async function goneByPolling(identity: ProcessIdentity): Promise<void> {
  while (isRunning(identity)) await sleep(500, undefined, { ref: false })
}

function socketPath(server: Server): string {
  return join(server.socket, '.s.PGSQL.5432')
}

function identityOf(user: PosixUser | undefined): { uid?: number; gid?: number } {
  return user ? { uid: user.uid, gid: user.gid } : {}
}

function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'] ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
}

function lastLine(text: string): string | undefined {
  return text.trim().split('\n').at(-1) || undefined
}
