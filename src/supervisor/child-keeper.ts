import { fork, type ChildProcess, type SendHandle } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  EXIT_CONFIGURATION,
  EXIT_DEPENDENCY,
  EXIT_DRAINED,
  EXIT_FENCED,
  type AskEngine,
  type ChildEngines,
  type ChildStart,
  type EngineMessage,
  type FromChild,
  type ServedIdentity,
  type RestartCount,
  type ToChild,
} from './messages.ts'
import { identify, type ProcessIdentity } from './process-identity.ts'
import { Silence, waitedForCpu } from './silence.ts'

export interface ChildSpec {
  /** For people: `coordinator`, `worker 1`. */
  readonly name: string
  /** For figures: `coordinator`, `worker`. */
  readonly process: string
  /** The program, a JavaScript file. */
  readonly program: string
  readonly config: unknown
  /** V8's, besides those of every child. */
  readonly v8Options?: readonly string[]
  /** It may follow another writer of the log from its first start on. */
  readonly standby?: boolean
}

export interface KeeperTimes {
  /** Silence after which the child is killed. */
  readonly deadMs: number
  readonly backoffMinMs: number
  readonly backoffMaxMs: number
  /** How long SIGTERM may take before SIGKILL. */
  readonly drainMs: number
}

export interface KeeperHost {
  readonly url: string | undefined
  /** The socket to accept on, when this child is the one that does. */
  readonly socket: unknown
  restarts(): readonly RestartCount[]
  /** The database's address, once known. */
  database(): string | undefined
  /** Where engines have users of their own. */
  readonly engines?: {
    readonly child: ChildEngines
    ask(asked: AskEngine, onMessage: (message: EngineMessage) => void): void
    /** The child is gone: resolves when its engines are, too. */
    end(): Promise<void>
  }
  /** The child ended because it was asked to, and is not started again. */
  retired(): void
  /** A child began, ended or became the writer. */
  changed(): void
  restarted(process: string, reason: RestartCount['reason']): void
  print(line: string): void
}

/** Tries of a child that never got ready before its supervisor gives up. */
const FIRST_TRIES = 3
/** A child that was ready for so long did not end because of how it started. */
const RAN_WELL_MS = 5_000
const TICK_MS = 500
/**
 * How often the child gets the listening socket. Node takes one connection of each handle in a turn of the event loop: by one
 * handle, whoever comes after a thousand others waits for a thousand turns, and a turn under load is long.
 */
const SOCKET_COPIES = 16

/**
 * Half a megabyte lives as long as a small statement, and with V8's own choice, which begins with 1 MB for all, much of it is
 * copied twice before it dies. Up to 64 MB of a process. One thread copies it, in place of up to five: they took more CPU.
 * Where cores are few that thread does all of the collecting: V8's helpers took a tenth of a statement's CPU, from engines and
 * Postgres; where there are more, they keep the pauses of a large heap short.
 */
const GARBAGE_COLLECTION = [
  '--min-semi-space-size=16',
  '--max-semi-space-size=32',
  availableParallelism() <= 2 ? '--single-threaded-gc' : '--no-parallel-scavenge',
]

/** How one process went. */
interface Life {
  /** Exit code, or the signal that ended it. */
  readonly code: number | string
  readonly reason: RestartCount['reason']
  /** What it said last. */
  readonly line: string | undefined
  readonly readyForMs: number
}

/**
 * Keeps one child process alive: starts it, listens to its beat, kills it when it is silent, starts a successor only
 * after its exit.
 */
export class ChildKeeper {
  /** Resolves when the child was ready for the first time; rejects with one line when it cannot be. */
  readonly firstReady: Promise<void>
  readonly #spec: ChildSpec
  readonly #times: KeeperTimes
  readonly #host: KeeperHost
  readonly #resolveReady: () => void
  readonly #rejectReady: (error: Error) => void
  readonly #stopping = new AbortController()
  #child: ChildProcess | undefined
  #identity: ProcessIdentity | undefined
  #exited: Promise<unknown> = Promise.resolve()
  #run: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  #wasReady = false
  #isLast = false
  #retired = false
  #deadWriter: string | undefined
  /** What it served by TLS last: its successor goes on with it while the files are of no use. */
  #served: ServedIdentity | undefined
  /** Files that it had in force last, likewise. */
  #files: Readonly<Record<string, string>> | undefined
  #writer: string | undefined

  constructor(spec: ChildSpec, times: KeeperTimes, host: KeeperHost, deadWriter: string | undefined) {
    this.#spec = spec
    this.#times = times
    this.#host = host
    this.#deadWriter = deadWriter
    let resolveReady = () => {}
    let rejectReady = (_error: Error) => {}
    this.firstReady = new Promise((resolve, reject) => {
      resolveReady = resolve
      rejectReady = reject
    })
    this.#resolveReady = resolveReady
    this.#rejectReady = rejectReady
    // Whoever waits sees the rejection; a supervisor that stops early waits no more.
    this.firstReady.catch(() => {})
  }

  /** The running child, to be ended by the next supervisor should this one die. */
  get identity(): ProcessIdentity | undefined {
    return this.#identity
  }

  /** The name under which the child, or its predecessor that is known to be dead, wrote the log. */
  get writer(): string | undefined {
    return this.#writer ?? this.#deadWriter
  }

  /** It ended because it was asked to. */
  get retired(): boolean {
    return this.#retired
  }

  start(): void {
    this.#run ??= this.#keep()
  }

  send(message: ToChild): void {
    this.#send(message)
  }

  /** SIGTERM, then SIGKILL when it takes too long. Later calls return the first call's promise. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop())
  }

  /** SIGKILL, at once. */
  kill(): void {
    this.#stopping.abort()
    this.#child?.kill('SIGKILL')
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    const child = this.#child
    if (child) {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), this.#times.drainMs)
      await this.#exited
      clearTimeout(timer)
    }
    await this.#run
  }

  async #keep(): Promise<void> {
    let pauseMs = this.#times.backoffMinMs
    for (let tries = 1; !this.#stopping.signal.aborted; tries++) {
      const { code, reason, line, readyForMs } = await this.#life().catch(notStarted)
      if (this.#stopping.signal.aborted) return
      if (this.#isLast) {
        this.#retired = true
        const how = code === EXIT_DRAINED ? '' : `, but ${describe(code, reason)}`
        this.#host.print(`${this.#spec.name} has ended, as it was asked to${how}`)
        return this.#host.retired()
      }
      const said = line ?? `${this.#spec.name} ended ${describe(code, reason)}`
      if (!this.#wasReady) {
        const final = code === EXIT_CONFIGURATION || code === EXIT_DEPENDENCY || tries === FIRST_TRIES
        if (final) return this.#rejectReady(new Error(said))
      }
      this.#host.restarted(this.#spec.process, reason)
      // One that ran well for a while is back at once; one that keeps dying costs less and less.
      if (readyForMs > Math.min(10 * pauseMs, RAN_WELL_MS)) pauseMs = this.#times.backoffMinMs
      this.#host.print(`${said}; starting it again in ${pauseMs} ms`)
      await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
      pauseMs = Math.min(pauseMs * 2, this.#times.backoffMaxMs)
    }
  }

  /** One process from start to exit. */
  async #life(): Promise<Life> {
    const child = fork(this.#spec.program, [], {
      // A session of its own: Ctrl-C in the terminal reaches the supervisor alone, which then drains in order.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: [...process.execArgv, ...GARBAGE_COLLECTION, ...(this.#spec.v8Options ?? [])],
    })
    let line: string | undefined
    let readyAt: number | undefined
    let hung = false
    this.#child = child
    this.#identity = child.pid === undefined ? undefined : identify(child.pid)
    const silence = new Silence(waitedForCpu(child.pid))
    this.#host.changed()
    child.on('message', (message: FromChild) => {
      silence.broken()
      switch (message.type) {
        case 'beat':
          return
        case 'ready':
          readyAt ??= performance.now()
          this.#wasReady = true
          return this.#resolveReady()
        case 'writer':
          this.#writer = message.writer
          return this.#host.changed()
        case 'identity':
          this.#served = message.served
          return
        case 'file':
          this.#files = { ...this.#files, [message.file]: message.text }
          return
        case 'last':
          this.#isLast = true
          return
        case 'engine':
          return this.#host.engines?.ask(message.ask, (onMessage) =>
            this.#send({ type: 'engine', engineMessage: onMessage }),
          )
        case 'exit':
          line = message.line
      }
    })
    const watch = setInterval(() => {
      if (silence.tick(TICK_MS) < this.#times.deadMs || hung) return
      hung = true
      this.#host.print(`${this.#spec.name} has been silent for ${this.#times.deadMs} ms: killing it`)
      child.kill('SIGKILL')
    }, TICK_MS)
    const exit = new Promise<number | string>((resolve) => {
      child.once('exit', (code, signalName) => resolve(code ?? signalName ?? 'unknown'))
      child.once('error', (error) => {
        line ??= `Cannot run ${this.#spec.name}: ${error.message}`
        if (child.pid === undefined) resolve('unknown')
      })
    })
    this.#exited = exit
    const start: ChildStart = {
      config: this.#spec.config,
      url: this.#host.url,
      deadWriter: this.#deadWriter,
      follow: this.#spec.standby === true || this.#wasReady,
      successor: this.#wasReady,
      restarts: this.#host.restarts(),
      identity: this.#served,
      ...(this.#files && { files: this.#files }),
      ...(this.#host.engines && { engines: this.#host.engines.child }),
    }
    this.#send({ type: 'start', start })
    const url = this.#host.database()
    if (url !== undefined) this.#send({ type: 'database', url })
    if (this.#host.socket !== undefined)
      for (let left = SOCKET_COPIES; left-- > 0;) this.#send({ type: 'socket', left }, this.#host.socket)

    const code = await exit
    clearInterval(watch)
    await this.#host.engines?.end()
    this.#child = undefined
    this.#identity = undefined
    // Seen to exit: its successor need not wait for its silence. Not so after a fence, when another one writes now,
    // nor after a drain, when it handed its place over.
    this.#deadWriter = code === EXIT_FENCED || code === EXIT_DRAINED ? undefined : (this.#writer ?? this.#deadWriter)
    this.#writer = undefined
    this.#host.changed()
    const readyForMs = readyAt === undefined ? 0 : performance.now() - readyAt
    return { code, reason: hung ? 'hang' : 'exit', line, readyForMs }
  }

  #send(message: ToChild, handle?: unknown): void {
    // The callback takes the error of a channel that closed: the exit is told by its own event.
    if (this.#child?.connected) this.#child.send(message, handle as SendHandle, {}, () => {})
  }
}

function describe(code: number | string, reason: RestartCount['reason']): string {
  if (reason === 'hang') return 'after its silence'
  return typeof code === 'number' ? `with exit code ${code}` : `by ${code}`
}

/** The system has no room for another process: a supervisor must outlive that too. */
function notStarted(error: Error): Life {
  return { code: 'unknown', reason: 'exit', line: error.message, readyForMs: 0 }
}
