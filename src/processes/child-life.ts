import { reportedErrorText } from '../telemetry/reported-error.ts'
import type { Config } from '../config/load-config.ts'
import { LogChanged, LogUnavailable } from '../events/event-log.ts'
import { deepFreeze } from '../shared/deep-freeze.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import type { EngineLauncher } from '../execution/engine/launched-program.ts'
import type { Service } from '../shared/service.ts'
import { createChildLauncher, type ChildLauncher } from './child-engines.ts'
import { keepFilesPrivate } from '../supervisor/data-folder.ts'
import type { KeptIdentity } from './tls-identity.ts'
import type { ChildStart, FromChild, RestartCount, ToChild } from '../supervisor/messages.ts'

/**
 * Texts of files by purpose: those that the previous process had in force, and a function that keeps this process's
 * texts.
 */
export interface KeptTexts {
  readonly last: Readonly<Record<string, string>>
  keep(file: string, text: string): void
}

/** The connection of a coordinator or worker process with its supervisor. */
export interface ChildLife {
  readonly config: Config
  /** Address of the socket that the supervisor gave; undefined if the child listens on its own. */
  readonly url: string | undefined
  /**
   * The writer of the event log that is known to be dead: claim at once if it is still the last writer in the log.
   * Undefined: ask the writer first, and wait until it is silent.
   */
  readonly deadWriter: string | undefined
  /** Whether this process may follow another writer of the log until it can take over. */
  readonly follow: boolean
  /** Whether a previous process was ready: then this one waits for missing dependencies. */
  readonly successor: boolean
  /** Handles of the bound socket. Each accepts its own connections. */
  readonly sockets: Promise<readonly unknown[]>
  /** The identity that is served by TLS. The supervisor keeps it when a process dies. */
  readonly identity: KeptIdentity
  /** Texts of files in force. The supervisor keeps them in the same way. */
  readonly files: KeptTexts
  /** Starts engines as users of their own; undefined where they run as this process's user. */
  readonly engines: EngineLauncher | undefined
  /** How often this supervisor restarted processes, by process and reason. Changes while the child runs. */
  restarts(): readonly RestartCount[]
  /** The database's address: the configured one, else that of the embedded Postgres once it answers. */
  database(): Promise<string>
  /** Reports that this process is ready for its work. */
  ready(): void
  /** Reports that this process now writes the event log under this name. */
  claimed(writer: string): void
  /** Reports that this process must not be restarted, however it ends. Resolves once the report is sent. */
  last(): Promise<void>
  /** Ends the process as SIGTERM does. */
  end(): void
  /** Ends the process, with the code and line of an ExitError, else as a bug. Reports the reason first. */
  fail(error: unknown): void
}

/** The log has changed, or its data cannot be read. This is no bug, and a restart does not repair it. */
function unusable({ message }: LogChanged): ExitError {
  return new ExitError(exitCodes.dependency, `Cannot use the event log: ${message}`)
}

/** The exit that an error means, with its line; undefined for a bug, whose stack is shown. */
function exitOf(error: unknown): ExitError | undefined {
  if (error instanceof LogChanged) return unusable(error)
  // The supervisor starts the next process, which waits for the log.
  if (error instanceof LogUnavailable) return new ExitError(exitCodes.internal, error.message)
  return error instanceof ExitError ? error : undefined
}

/** A child program: gets its `ChildLife`, returns how to drain it. */
export type ChildProgram = (life: ChildLife) => Promise<Pick<Service, 'stop'>>

/**
 * Runs a child program. Waits for the supervisor's start message, sends beats, drains on SIGTERM, exits within a second
 * when the supervisor is gone, and turns any error into an exit code and a line.
 */
export function runChild(program: ChildProgram): void {
  keepFilesPrivate()
  const parent = process.ppid
  // Without a supervisor, nothing would end this process or start its successor.
  const orphaned = () => process.exit(exitCodes.drained)
  if (!process.connected) {
    process.stderr.write('This program is started by quipu start, quipu coordinator or quipu worker\n')
    process.exit(exitCodes.configuration)
  }
  // If the reader of the log lines has gone away, the process continues.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  process.once('disconnect', orphaned)
  // A process that inherited the channel may keep it open, so check the parent too.
  setInterval(() => void (process.ppid === parent || orphaned()), 500).unref()

  let started: ((start: ChildStart) => void) | undefined
  let socketsCame = (_handles: readonly unknown[]) => {}
  let databaseCame = (_url: string) => {}
  const start = new Promise<ChildStart>((resolve) => (started = resolve))
  const sockets = new Promise<readonly unknown[]>((resolve) => (socketsCame = resolve))
  const handles: unknown[] = []
  const database = new Promise<string>((resolve) => (databaseCame = resolve))
  let restarts: readonly RestartCount[] = []
  let engines: ChildLauncher | undefined

  process.on('message', (message: ToChild, handle: unknown) => {
    switch (message.type) {
      case 'start':
        restarts = message.start.restarts
        return started?.(message.start)
      case 'socket':
        handles.push(handle)
        return message.left === 0 ? socketsCame(handles) : undefined
      case 'database':
        return databaseCame(message.url)
      case 'restarts':
        restarts = message.restarts
        return
      case 'engine':
        return engines?.onMessage(message.engineMessage)
    }
  })

  let ending = false
  const fail = (error: unknown): void => {
    const exit = exitOf(error)
    if (!exit) process.stderr.write(`${reportedErrorText(error)}\n`)
    if (ending) return
    ending = true
    const code = exit?.exitCode ?? exitCodes.internal
    const line = exit?.message ?? `Internal error: ${error instanceof Error ? error.message : String(error)}`
    // The line must be sent before the exit. A supervisor that does not read must not keep this process alive.
    setTimeout(() => process.exit(code), 500)
    process.send!({ type: 'exit', line } satisfies FromChild, () => process.exit(code))
  }
  process.on('uncaughtException', fail)
  process.on('unhandledRejection', fail)

  let service: Pick<Service, 'stop'> | undefined
  const running = start.then(async (given) => {
    const config = deepFreeze(given.config as Config)
    const beat = () => sendToParent({ type: 'beat' })
    beat()
    setInterval(beat, config.timeouts.coordinatorBeatMs)
    engines = given.engines && createChildLauncher(given.engines, (ask) => sendToParent({ type: 'engine', ask }))
    service = await program({
      config,
      url: given.url,
      deadWriter: given.deadWriter,
      follow: given.follow,
      successor: given.successor,
      sockets,
      identity: { last: given.identity, keep: (served) => sendToParent({ type: 'identity', served }) },
      files: { last: given.files ?? {}, keep: (file, text) => sendToParent({ type: 'file', file, text }) },
      engines,
      restarts: () => restarts,
      database: () => (config.databaseUrl === undefined ? database : Promise.resolve(config.databaseUrl)),
      ready: () => sendToParent({ type: 'ready' }),
      claimed: (writer) => sendToParent({ type: 'writer', writer }),
      last: () => new Promise((resolve) => sendToParent({ type: 'last' }, resolve)),
      end: () => drain(),
      fail,
    })
  })
  running.catch(fail)

  const drain = () => {
    if (ending) return
    ending = true
    // Nothing was admitted before the start was done, so there is nothing to drain.
    if (service === undefined) process.exit(exitCodes.drained)
    // The supervisor kills a process that drains for too long.
    service.stop().then(
      () => process.exit(exitCodes.drained),
      (error: unknown) => {
        process.stderr.write(`${reportedErrorText(error)}\n`)
        process.exit(exitCodes.internal)
      },
    )
  }
  process.once('SIGTERM', drain)
  // On Ctrl-C the supervisor acts: it drains the processes in order.
  process.on('SIGINT', () => {})
}

function sendToParent(message: FromChild, onSent = () => {}): void {
  // If the channel closed meanwhile, its own event reports that.
  if (process.send) process.send(message, undefined, {}, onSent)
  else onSent()
}
