import { existsSync, readdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig, schemeOf, type Config } from '../config/load-config.ts'
import { loadClusterSecret } from '../security/cluster-secret.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { programUrl } from '../shared/programs.ts'
import type { ChildSpec } from '../supervisor/child-keeper.ts'
import { makeDataFolder } from '../supervisor/data-folder.ts'
import { bindSocket, type ListeningSocket } from '../supervisor/listening-socket.ts'
import { isRoot, type PosixUser } from '../supervisor/posix-user.ts'
import { Supervisor, type Running } from '../supervisor/supervisor.ts'
import { coordinatorFolder } from '../config/data-folders.ts'
import { launchApart, openFoldersTo, type ApartEngines } from './engine-users.ts'
import { leaveRoot, printUnwritable } from './leave-root.ts'
import { isRunByNpm, watchParent } from './npm-parent.ts'

export type SupervisedProgram = 'start' | 'coordinator' | 'worker'

/** Exit code when the start failed. The child or the supervisor gives the one line about it. */
const EXIT_NOT_STARTED = 1
/** The code that a shell reports for a program ended by Ctrl-C. */
const EXIT_INTERRUPTED = 130
/** Engines and open answers get the drain time. The rest of the stop gets this much more. */
const AFTER_DRAIN_MS = 2_000
const FIRST_FREE_PORT = 1024
/**
 * V8 options of a worker. Its heap is small, 15 MB, compared with the pages that pass through it. V8 counts both, and
 * with its own growth limit it collected all garbage for each 24 MB of pages, a third of the CPU time of a large
 * result.
 */
const WORKER_V8 = ['--heap-growing-percent=300']

/**
 * `quipu start`, `quipu coordinator`, `quipu worker`: runs a supervisor and its children until SIGTERM, SIGHUP or
 * Ctrl-C.
 * @returns the exit code
 */
export async function superviseCommand(program: SupervisedProgram, argv: readonly string[]): Promise<number> {
  // If the reader of the log lines has gone away, the process continues.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  const print = (line: string): void => void process.stderr.write(`quipu: ${line}\n`)
  const given = loadConfig(argv, process.env)
  checkNeeds(given, program)
  const bound = program === 'worker' ? undefined : await bindAsRoot(given)
  const folders = engineParents(program, given)
  let engines: ApartEngines | undefined
  const user = await leaveRoot(given, print, async (owner) => {
    engines = await launchApart(given, folders, owner, print)
    return engines?.groups ?? []
  })
  if (given.engineUsers === 'own' && user === undefined)
    throw new ExitError(
      exitCodes.configuration,
      '--engine-users own needs a start as root, after which Quipu becomes another user (--run-as)',
    )
  if (user) printUnwritable(given, user, print)
  makeDataFolder(given.dataDir)
  if (engines) openFoldersTo(engines, given, folders, print)
  const config = { ...given, sharedSecret: loadClusterSecret(given.dataDir, given.sharedSecret) }
  const supervisor = new Supervisor({
    dataDir: config.dataDir,
    ...(program === 'worker'
      ? {}
      : { listen: { scheme: schemeOf(config), host: config.host, port: config.port, ...(bound && { bound }) } }),
    embeddedPostgres: program === 'start' && config.databaseUrl === undefined,
    standby: program === 'start' && config.standby,
    ...(engines && { engines: engines.launch }),
    children: (url) => childrenOf(program, config, url),
    times: {
      deadMs: config.timeouts.coordinatorDeadMs,
      backoffMinMs: config.timeouts.restartBackoffMinMs,
      backoffMaxMs: config.timeouts.restartBackoffMaxMs,
      drainMs: config.timeouts.drainMs + AFTER_DRAIN_MS,
    },
    print,
  })

  const stopAsked = new Promise<'asked'>((resolve) => {
    const byNpm = isRunByNpm(process.env)
    if (byNpm) watchParent(() => resolve('asked'))
    // For one Ctrl-C the terminal signals both npm and this process, and npm passes its signal on.
    const perInterrupt = byNpm ? 2 : 1
    let signals = 0
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(name, () => {
        resolve('asked')
        if (++signals <= perInterrupt || name !== 'SIGINT') return
        // A second Ctrl-C: the operator does not want to wait. The next start recovers whatever ends now.
        supervisor.kill()
        process.exit(EXIT_INTERRUPTED)
      })
    }
  })

  const launcherLost = engines?.launch.gone.then(() => 'lost' as const) ?? new Promise<never>(() => {})
  const starting = supervisor.start().then(
    (running) => ({ running }),
    (error: Error) => ({ error }),
  )
  const outcome = await Promise.race([starting, stopAsked])
  if (outcome !== 'asked' && 'error' in outcome) {
    process.stderr.write(`quipu: ${outcome.error.message}\n`)
    return EXIT_NOT_STARTED
  }
  let lost = false
  if (outcome !== 'asked') {
    process.stdout.write(banner(program, config, outcome.running, user))
    // Launcher and watcher restart each other. Only root could start both again.
    lost = (await Promise.race([stopAsked, supervisor.retired, launcherLost])) === 'lost'
    if (lost)
      print(
        'Both processes that start engines have ended: this process ends too, so that its service manager starts it again',
      )
  }
  await supervisor.stop()
  return lost ? exitCodes.dependency : exitCodes.drained
}

/** Checks what this program needs beyond a valid configuration. */
function checkNeeds(config: Config, program: SupervisedProgram): void {
  if (program === 'start') return
  const missing =
    program === 'coordinator'
      ? config.databaseUrl === undefined && 'DATABASE_URL'
      : (config.coordinators.length === 0 && 'QUIPU_COORDINATORS') ||
        (config.sharedSecret === undefined && 'QUIPU_SHARED_SECRET')
  if (missing) throw new ExitError(exitCodes.configuration, `quipu ${program} needs ${missing}`)
  // Others learn this address from the event log or an announcement, so it must not mean "all my addresses".
  if (config.advertisedUrl === undefined && ['0.0.0.0', '::'].includes(config.host)) {
    const why = `others cannot reach it at ${config.host}`
    throw new ExitError(exitCodes.configuration, `quipu ${program} needs QUIPU_ADVERTISED_URL: ${why}`)
  }
}

/** Binds a port that only root may use, before this process becomes another user. */
async function bindAsRoot(config: Config): Promise<ListeningSocket | undefined> {
  const { host, port } = config
  return isRoot() && port > 0 && port < FIRST_FREE_PORT ? bindSocket(schemeOf(config), host, port) : undefined
}

function childrenOf(program: SupervisedProgram, config: Config, url: string | undefined): ChildSpec[] {
  if (program === 'worker') return [workerSpec('worker', config)]
  const coordinator: ChildSpec = {
    name: 'coordinator',
    process: 'coordinator',
    program: programFile('coordinator'),
    config,
    standby: config.standby,
  }
  if (program === 'coordinator') return [coordinator]
  const workers = Array.from({ length: config.workers }, (_, index) =>
    workerSpec(`worker ${index + 1}`, {
      ...config,
      host: '127.0.0.1',
      port: 0,
      advertisedUrl: undefined,
      coordinators: url === undefined ? [] : [url],
      // A stand-by may run on the data folder of the server that it stands by for.
      dataDir: workerFolder(config, index),
      tablesDir: config.tablesDir ?? join(config.dataDir, 'tables'),
      // Their only coordinator ends before them, so no client needs the tasks that they still run.
      timeouts: { ...config.timeouts, drainMs: 0 },
    }),
  )
  return [coordinator, ...workers]
}

function workerFolder({ dataDir, standby }: Config, index: number): string {
  return join(dataDir, `${standby ? 'standby-' : ''}worker-${index + 1}`)
}

/** The folders of the processes that run engines, in the order of the children; absolute paths. */
function engineParents(program: SupervisedProgram, config: Config): string[] {
  if (program === 'worker') return [resolve(config.dataDir)]
  const workers = program === 'start' ? config.workers : 0
  return [
    coordinatorFolder(config),
    ...Array.from({ length: workers }, (_, index) => resolve(workerFolder(config, index))),
  ]
}

function workerSpec(name: string, config: Config): ChildSpec {
  return { name, process: 'worker', program: programFile('worker'), v8Options: WORKER_V8, config }
}

function programFile(process: 'coordinator' | 'worker'): string {
  return fileURLToPath(programUrl(`processes/${process}/${process}-process`))
}

function banner(
  program: SupervisedProgram,
  config: Config,
  { url, postgres }: Running,
  user: PosixUser | undefined,
): string {
  const seconds = (performance.now() / 1000).toFixed(2)
  if (program === 'worker') return `Worker up in ${seconds} s, announced to ${config.coordinators.join(', ')}\n`
  const database = postgres ? `embedded Postgres (${postgres})` : 'the Postgres of DATABASE_URL'
  const log = config.kafkaBrokers.length > 0 ? `Kafka at ${config.kafkaBrokers.join(', ')}` : 'Postgres'
  const catalogs = catalogNames(config.catalogDir)
  // With TLS, clients must use a name that the certificate contains.
  const called = (config.tlsCert !== undefined && config.advertisedUrl) || url
  const ca = config.tlsCaFile === undefined ? '' : ` --ca ${config.tlsCaFile}`
  const trust = config.tlsCaFile === undefined ? '' : ` --truststore-path ${config.tlsCaFile}`
  const sample = catalogs.includes('tpch') ? 'SELECT * FROM tpch.tiny.nation LIMIT 5' : 'SHOW CATALOGS'
  return [
    `Quipu is up in ${seconds} s: ${url}`,
    ...(config.standby ? ['  stand-by  takes over when the coordinator that writes the event log is gone'] : []),
    ``,
    `  try       ${ownCommand()} query --server ${called}${ca} "${sample}"`,
    `            trino --server ${called}${trust}${catalogs.includes('tpch') ? ' --catalog tpch --schema tiny' : ''}`,
    ...(user ? [`  user      ${user.name}`] : []),
    `  data      ${config.dataDir}`,
    `  catalogs  ${config.catalogDir}: ${catalogs.join(', ') || 'none'}`,
    `  log       ${log}; read models in ${database}`,
    ``,
    ``,
  ].join('\n')
}

/** The catalogs, by their files. A missing folder has none, as for the coordinator. */
function catalogNames(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort()
}

/** How the user called this program: in a clone, `quipu` is not on the path. */
function ownCommand(): string {
  const file = process.argv[1]
  return file?.endsWith('.js') ? `node ${relative(process.cwd(), file)}` : 'quipu'
}
