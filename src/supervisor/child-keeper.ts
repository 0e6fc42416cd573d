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
  /** The child's name in log lines: `coordinator`, `worker 1`. */
  readonly name: string
  /** The child's name in metrics: `coordinator`, `worker`. */
  readonly process: string
  /** Path of the program, a JavaScript file. */
  readonly program: string
  readonly config: unknown
  /** Options of V8 that this child gets in addition to those of every child. */
  readonly v8Options?: readonly string[]
  /** Whether the child may follow another writer of the log from its first start on. */
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
  /** The listening socket, if this child is the process that accepts on it. */
  readonly socket: unknown
  restarts(): readonly RestartCount[]
  /** The database's address, once it is known. */
  database(): string | undefined
  /** Present where engines run as users of their own. */
  readonly engines?: {
    readonly child: ChildEngines
    ask(asked: AskEngine, onMessage: (message: EngineMessage) => void): void
    /** Called when the child has exited. Resolves when its engines have exited too. */
    end(): Promise<void>
  }
  /** Called when the child has ended on request. The keeper does not start it again. */
  retired(): void
  /** Called when a child began, ended or became the writer. */
  changed(): void
  restarted(process: string, reason: RestartCount['reason']): void
  print(line: string): void
}

/** How often the supervisor tries a child that never becomes ready before it gives up. */
const FIRST_TRIES = 3
/** If a child was ready for this long, its start was not the reason that it ended. */
const RAN_WELL_MS = 5_000
const TICK_MS = 500
/**
 * How often the child gets the listening socket. In each pass of the event loop Node accepts one connection per handle.
 * With a single handle, the last of a thousand new connections waits for a thousand passes, and a pass under load is
 * long.
 */
const SOCKET_COPIES = 16

/**
 * Options for V8's garbage collector. A statement keeps about half a megabyte alive for as long as it runs. With V8's
 * default young generation, which begins with 1 MB, the collector copies much of it twice before it dies. These options
 * cost up to 64 MB per process. One thread copies, not up to five: five took more CPU. On machines with few cores that
 * thread does all of the collecting, because V8's helper threads took a tenth of a statement's CPU away from the
 * engines and Postgres. With more cores, the helpers keep the pauses of a large heap short.
 */
const GARBAGE_COLLECTION = [
  '--min-semi-space-size=16',
  '--max-semi-space-size=32',
  availableParallelism() <= 2 ? '--single-threaded-gc' : '--no-parallel-scavenge',
]

/** How one run of the child's process went. */
interface Life {
  /** Exit code, or the signal that ended it. */
  readonly code: number | string
  readonly reason: RestartCount['reason']
  /** The last line that the process reported for the operator. */
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
  /** The TLS identity that the child served last. Its successor uses it while the files cannot be used. */
  #served: ServedIdentity | undefined
  /** Files that the child had in force last. Its successor uses them in the same case. */
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
    // The caller sees the rejection. A supervisor that stops early does not wait for this promise.
    this.firstReady.catch(() => {})
  }

  /** The running child. If this supervisor dies, the next supervisor ends that process. */
  get identity(): ProcessIdentity | undefined {
    return this.#identity
  }

  /**
   * The name under which the child wrote the log; before the child claims, that of its predecessor if it is known to be
   * dead.
   */
  get writer(): string | undefined {
    return this.#writer ?? this.#deadWriter
  }

  /** Whether the child has ended on request. */
  get retired(): boolean {
    return this.#retired
  }

  start(): void {
    this.#run ??= this.#keep()
  }

  send(message: ToChild): void {
    this.#send(message)
  }

  /** Sends SIGTERM, then SIGKILL if the child takes too long. Later calls return the first call's promise. */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#stop())
  }

  /** Sends SIGKILL at once. */
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
        this.#host.print(`${this.#spec.name} has ended as requested${how}`)
        return this.#host.retired()
      }
      const said = line ?? `${this.#spec.name} ended ${describe(code, reason)}`
      if (!this.#wasReady) {
        const final = code === EXIT_CONFIGURATION || code === EXIT_DEPENDENCY || tries === FIRST_TRIES
        if (final) return this.#rejectReady(new Error(said))
      }
      this.#host.restarted(this.#spec.process, reason)
      // A child that ran well for a while starts again at once. A child that keeps dying starts at ever longer
      // intervals.
      if (readyForMs > Math.min(10 * pauseMs, RAN_WELL_MS)) pauseMs = this.#times.backoffMinMs
      this.#host.print(`${said}; starting it again in ${pauseMs} ms`)
      await sleep(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => {})
      pauseMs = Math.min(pauseMs * 2, this.#times.backoffMaxMs)
    }
  }

  /** Runs one process from start to exit. */
  async #life(): Promise<Life> {
    const child = fork(this.#spec.program, [], {
      // The child has its own process session: Ctrl-C in the terminal reaches only the supervisor, which then drains in
      // order.
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
    // This supervisor saw the writer exit, so the successor need not wait until the writer counts as silent. This does
    // not hold after a fence, because another coordinator writes now, nor after a drain, because the child handed the
    // log over.
    this.#deadWriter = code === EXIT_FENCED || code === EXIT_DRAINED ? undefined : (this.#writer ?? this.#deadWriter)
    this.#writer = undefined
    this.#host.changed()
    const readyForMs = readyAt === undefined ? 0 : performance.now() - readyAt
    return { code, reason: hung ? 'hang' : 'exit', line, readyForMs }
  }

  #send(message: ToChild, handle?: unknown): void {
    // The callback takes the error of a closed channel. The `exit` event reports the exit itself.
    if (this.#child?.connected) this.#child.send(message, handle as SendHandle, {}, () => {})
  }
}

function describe(code: number | string, reason: RestartCount['reason']): string {
  if (reason === 'hang') return 'after it was silent'
  return typeof code === 'number' ? `with exit code ${code}` : `by ${code}`
}

/** Describes a start for which the system had no room. The supervisor must survive that too. */
function notStarted(error: Error): Life {
  return { code: 'unknown', reason: 'exit', line: error.message, readyForMs: 0 }
}
