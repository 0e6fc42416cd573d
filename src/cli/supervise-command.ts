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

/** A start that could not be: the one line is the child's or the supervisor's. */
const EXIT_NOT_STARTED = 1
/** What a shell reports for a program ended by Ctrl-C. */
const EXIT_INTERRUPTED = 130
/** Engines and open answers get the drain time; the rest of a stop comes after it. */
const AFTER_DRAIN_MS = 2_000
const FIRST_FREE_PORT = 1024
/**
 * A worker's heap is small, 15 MB, beside the pages that pass through it: V8 counts both, and by its own choice of how far
 * they may grow it collected all garbage for each 24 MB of pages, a third of the CPU of a large result.
 */
const WORKER_V8 = ['--heap-growing-percent=300']

/**
 * `quipu start`, `quipu coordinator`, `quipu worker`: a supervisor and its children, until SIGTERM, SIGHUP or Ctrl-C.
 * @returns the exit code
 */
export async function superviseCommand(program: SupervisedProgram, argv: readonly string[]): Promise<number> {
  // A reader of the log lines that went away is no reason to end.
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
    throw new ExitError(exitCodes.configuration, '--engine-users own: only a start by root that does not stay root can')
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
    // The terminal sends one Ctrl-C to npm and to this process, and npm sends it on.
    const perInterrupt = byNpm ? 2 : 1
    let signals = 0
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      process.on(name, () => {
        resolve('asked')
        if (++signals <= perInterrupt || name !== 'SIGINT') return
        // Ctrl-C a second time: the operator does not want to wait. Whatever ends now is recovered at the next start.
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
    // Each of the two brings the other back; only root can start them both.
    lost = (await Promise.race([stopAsked, supervisor.retired, launcherLost])) === 'lost'
    if (lost) print('The processes that start engines are gone, both at once: ending, to be started again')
  }
  await supervisor.stop()
  return lost ? exitCodes.dependency : exitCodes.drained
}

/** What this program needs beyond a valid configuration. */
function checkNeeds(config: Config, program: SupervisedProgram): void {
  if (program === 'start') return
  const missing =
    program === 'coordinator'
      ? config.databaseUrl === undefined && 'DATABASE_URL'
      : (config.coordinators.length === 0 && 'QUIPU_COORDINATORS') ||
        (config.sharedSecret === undefined && 'QUIPU_SHARED_SECRET')
  if (missing) throw new ExitError(exitCodes.configuration, `quipu ${program} needs ${missing}`)
  // Others learn this address from the event log or an announcement: it must not be "all my addresses".
  if (config.advertisedUrl === undefined && ['0.0.0.0', '::'].includes(config.host)) {
    const why = `others cannot reach it at ${config.host}`
    throw new ExitError(exitCodes.configuration, `quipu ${program} needs QUIPU_ADVERTISED_URL: ${why}`)
  }
}

/** A port that only root may have is taken before this process is another user's. */
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
      // A stand-by may run on the data folder of the start it stands by for.
      dataDir: workerFolder(config, index),
      tablesDir: config.tablesDir ?? join(config.dataDir, 'tables'),
      // Their one coordinator has ended before them: nobody comes for what they still run.
      timeouts: { ...config.timeouts, drainMs: 0 },
    }),
  )
  return [coordinator, ...workers]
}

function workerFolder({ dataDir, standby }: Config, index: number): string {
  return join(dataDir, `${standby ? 'standby-' : ''}worker-${index + 1}`)
}

/** The folders of the processes that run engines, in the order of the children; absolute. */
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
  // Under TLS a name of the certificate.
  const called = (config.tlsCert !== undefined && config.advertisedUrl) || url
  const ca = config.tlsCaFile === undefined ? '' : ` --ca ${config.tlsCaFile}`
  const trust = config.tlsCaFile === undefined ? '' : ` --truststore-path ${config.tlsCaFile}`
  const sample = catalogs.includes('tpch') ? 'SELECT * FROM tpch.tiny.nation LIMIT 5' : 'SHOW CATALOGS'
  return [
    `Quipu is up in ${seconds} s: ${url}`,
    ...(config.standby ? ['  stand-by  it takes over when the coordinator that writes the event log is gone'] : []),
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

/** By their files; a folder that is not there has none, as for the coordinator. */
function catalogNames(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => file.slice(0, -'.json'.length))
    .sort()
}

/** How this program was called: in a clone there is no `quipu` on the path. */
function ownCommand(): string {
  const file = process.argv[1]
  return file?.endsWith('.js') ? `node ${relative(process.cwd(), file)}` : 'quipu'
}
