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

/** Texts of files by what they are for: those that a process before this one had in force, and where it is told of this one's. */
export interface KeptTexts {
  readonly last: Readonly<Record<string, string>>
  keep(file: string, text: string): void
}

/** What a coordinator or worker process knows of, and tells, its supervisor. */
export interface ChildLife {
  readonly config: Config
  /** Address of the socket given by the supervisor; undefined where the child listens by itself. */
  readonly url: string | undefined
  /**
   * The writer of the event log that is known to be dead: claim at once if it is still the last one in the log.
   * Undefined: ask that writer first, and wait for its silence.
   */
  readonly deadWriter: string | undefined
  /** It may follow another writer of the log and wait for its turn. */
  readonly follow: boolean
  /** A process before this one was ready: what is missing now is waited for. */
  readonly successor: boolean
  /** Handles of the bound socket, each of which takes its own connections. */
  readonly sockets: Promise<readonly unknown[]>
  /** What is served by TLS, kept over the death of a process. */
  readonly identity: KeptIdentity
  /** Texts of files that are in force, kept likewise. */
  readonly files: KeptTexts
  /** Starts engines as users of their own; undefined where they run as this process's. */
  readonly engines: EngineLauncher | undefined
  /** How often this supervisor started processes again, by process and reason; changes while the child runs. */
  restarts(): readonly RestartCount[]
  /** The database's address: the configured one, else that of the embedded Postgres once it answers. */
  database(): Promise<string>
  /** Tells that this process does its work now. */
  ready(): void
  /** Tells that this process writes the event log now, under this name. */
  claimed(writer: string): void
  /** However this process ends, it is not started again. Resolves once that is told. */
  last(): Promise<void>
  /** Ends the process as SIGTERM does. */
  end(): void
  /** Ends the process: with an ExitError's code and line, else as a bug. Tells why before. */
  fail(error: unknown): void
}

/** The log is not what it was, or its data cannot be read: no bug, and nothing that a restart mends. */
function unusable({ message }: LogChanged): ExitError {
  return new ExitError(exitCodes.dependency, `Cannot use the event log: ${message}`)
}

/** The end that an error means, with its one line; undefined for a bug, whose stack is shown. */
function exitOf(error: unknown): ExitError | undefined {
  if (error instanceof LogChanged) return unusable(error)
  // The supervisor starts the next process, which waits for the log.
  if (error instanceof LogUnavailable) return new ExitError(exitCodes.internal, error.message)
  return error instanceof ExitError ? error : undefined
}

/** A child program: gets its life, returns how to drain it. */
export type ChildProgram = (life: ChildLife) => Promise<Pick<Service, 'stop'>>

/**
 * Runs a child program: waits for the supervisor's word, beats, drains on SIGTERM, ends within a second when the
 * supervisor is gone, and turns whatever is thrown into an exit code and a line.
 */
export function runChild(program: ChildProgram): void {
  keepFilesPrivate()
  const parent = process.ppid
  // Without a supervisor nobody would ever end this process or start its successor.
  const orphaned = () => process.exit(exitCodes.drained)
  if (!process.connected) {
    process.stderr.write('This program is started by quipu start, quipu coordinator or quipu worker\n')
    process.exit(exitCodes.configuration)
  }
  // A reader of the log lines that went away is no reason to end.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  process.once('disconnect', orphaned)
  // The channel may be kept open by a process that inherited it: look at the parent too.
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
    // The line must be out before the exit; a supervisor that does not read it must not keep this process alive.
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
    // A drain that takes too long is ended by the supervisor.
    service.stop().then(
      () => process.exit(exitCodes.drained),
      (error: unknown) => {
        process.stderr.write(`${reportedErrorText(error)}\n`)
        process.exit(exitCodes.internal)
      },
    )
  }
  process.once('SIGTERM', drain)
  // Ctrl-C is the supervisor's: it drains in order.
  process.on('SIGINT', () => {})
}

function sendToParent(message: FromChild, onSent = () => {}): void {
  // A channel that closed meanwhile is told by its own event.
  if (process.send) process.send(message, undefined, {}, onSent)
  else onSent()
}
