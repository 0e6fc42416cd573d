import { execFile, spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fileURLToPath } from 'node:url'
import { reservedCodeBytes } from './code-range.ts'
import { createFrameDecoder, encodeFrame, type Frame } from './frames.ts'
import type { EngineArguments, EngineReply, EngineRequest } from './messages.ts'
import type { SandboxLimits } from './sandbox.ts'
import { openResidentMemory } from './resident-memory.ts'

/** The parent's end of one engine process. */
export interface EngineChild {
  readonly slot: number
  readonly pid: number
  /** Holds the FIFOs and profiles; DuckDB may read and write it. Trailing slash. */
  readonly folder: string
  readonly spillFolder: string
  /** Resolves once the engine takes requests; rejects when it cannot. */
  readonly ready: Promise<void>
  /** Resolves when the process is gone and its folders are removed. */
  readonly gone: Promise<void>
  /** Gives it its role; resolves once its settings are locked. */
  configure(limits: SandboxLimits): Promise<void>
  send(request: EngineRequest): void
  kill(): void
  fifo(connection: number): string
  profile(connection: number): string
  residentBytes(): number
  /** Monotonic milliseconds of the last beat. */
  lastBeat(): number
  /** Was the thread that runs statements held by a function in JavaScript when the process beat last? */
  isHeld(): boolean
  /** The last that the process wrote on its standard error, for logs. */
  lastWords(): string
}

export interface EngineChildOptions {
  readonly slot: number
  readonly folder: string
  readonly spillFolder: string
  readonly connections: number
  /** Hard limit on data memory, where the system has one. */
  readonly dataLimitBytes: number
  readonly arguments: EngineArguments
  /** Replies to statements, in the order they were sent. */
  onReply(frame: Frame<EngineReply>): void
  /** The process is gone, for whatever reason; called once. */
  onExit(): void
}

/** Child processes are always the built program: this Node may not run TypeScript. */
const PROGRAM = fileURLToPath(
  new URL('./engine-process.js', import.meta.url.replace('/src/execution/engine/', '/dist/execution/engine/')),
)
// First to go when the machine runs out of memory, and a limit under which malloc fails instead; neither exists on macOS.
const SHELL = 'echo 1000 2>/dev/null >/proc/self/oom_score_adj; ulimit -d "$0" 2>/dev/null; exec "$@"'
const START_TIMEOUT_MS = 30_000
const CONFIGURE_TIMEOUT_MS = 5_000
const LAST_WORDS = 2_000

export function startEngineChild(options: EngineChildOptions): EngineChild {
  const folder = join(options.folder, `${options.slot}`, '/')
  const spillFolder = join(options.spillFolder, `${options.slot}`, '/')
  const fifo = (connection: number): string => `${folder}fifo-${connection}`
  mkdirSync(folder, { recursive: true, mode: 0o700 })

  // A process costs 5 ms: one for all, beside the engine's own start.
  const fifos = promisify(execFile)(
    'mkfifo',
    Array.from({ length: options.connections }, (_, index) => fifo(index)),
  )

  const dataLimit = Math.floor((options.dataLimitBytes + reservedCodeBytes()) / 1024)
  const command = [process.execPath, PROGRAM, JSON.stringify(options.arguments)]
  const child = spawn('/bin/sh', ['-c', SHELL, String(dataLimit), ...command], {
    // Standard output is no channel: DuckDB can be made to write there.
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], UV_THREADPOOL_SIZE: '16' },
    // An own session: Ctrl-C in a terminal is for the parent, which drains.
    detached: true,
  })
  const pid = child.pid ?? -1
  const memory = openResidentMemory(pid)
  const requests = child.stdio[3] as Socket
  const beats = child.stdio[4] as Socket

  let lastBeat = performance.now()
  let beatenBytes = 0
  let held = false
  let lastWords = ''
  let exited = false

  beats.on('data', (bytes: Buffer) => {
    lastBeat = performance.now()
    const lines = bytes.toString('latin1').trimEnd()
    const [bytesText, thread] = lines.slice(lines.lastIndexOf('\n') + 1).split(' ')
    beatenBytes = Number(bytesText) || beatenBytes
    held = thread === 'held'
  })
  child.stderr!.on('data', (bytes: Buffer) => {
    lastWords = (lastWords + bytes.toString()).slice(-LAST_WORDS)
  })

  const ready = promiseWithSettlers()
  const configured = promiseWithSettlers()
  const failBoth = (message: string): void => {
    ready.reject(new Error(message))
    configured.reject(new Error(message))
  }
  const startTimer = setTimeout(() => {
    failBoth('The engine did not start in time')
    kill()
  }, START_TIMEOUT_MS)
  ready.promise.then(
    () => clearTimeout(startTimer),
    () => clearTimeout(startTimer),
  )

  const kill = (): void => {
    if (!exited) child.kill('SIGKILL')
  }
  const take = (frame: Frame<EngineReply>): void => {
    switch (frame.header.type) {
      case 'ready':
        fifos.then(
          () => ready.resolve(),
          (error: unknown) => failBoth(`mkfifo failed: ${String(error)}`),
        )
        return
      case 'configured':
        return configured.resolve()
      case 'failed':
        failBoth(frame.header.message)
        return kill()
      default:
        options.onReply(frame)
    }
  }
  const decode = createFrameDecoder<EngineReply>(take)
  requests.on('data', (bytes: Buffer) => {
    try {
      decode(bytes)
    } catch {
      kill()
    }
  })
  // A broken pipe means that the process is going: its exit is what counts.
  for (const stream of [requests, beats, child.stderr!]) stream.on('error', () => undefined)

  const gone = promiseWithSettlers()
  const onGone = (): void => {
    if (exited) return
    exited = true
    memory.close()
    failBoth(`The engine ended while starting: ${lastWords}`)
    options.onExit()
    // Once mkfifo is through, else it could write into a folder that is gone.
    void fifos
      .catch(() => undefined)
      .then(() => {
        rmSync(folder, { recursive: true, force: true })
        rmSync(spillFolder, { recursive: true, force: true })
        gone.resolve()
      })
  }
  child.on('error', (error) => {
    lastWords = error.message
    onGone()
  })
  child.on('exit', onGone)

  return {
    slot: options.slot,
    pid,
    folder,
    spillFolder,
    ready: ready.promise,
    gone: gone.promise,
    configure(limits) {
      requests.write(encodeFrame({ type: 'configure', limits } satisfies EngineRequest))
      const timer = setTimeout(() => configured.reject(new Error('The engine took no settings')), CONFIGURE_TIMEOUT_MS)
      return configured.promise.finally(() => clearTimeout(timer))
    },
    send: (request) => void requests.write(encodeFrame(request)),
    kill,
    fifo,
    profile: (connection) => `${folder}profile-${connection}.json`,
    residentBytes: () => memory.read() ?? beatenBytes,
    lastBeat: () => lastBeat,
    isHeld: () => held,
    lastWords: () => lastWords,
  }
}

interface Settlers {
  readonly promise: Promise<void>
  resolve(): void
  reject(error: Error): void
}

function promiseWithSettlers(): Settlers {
  let resolve!: () => void
  let reject!: (error: Error) => void
  const promise = new Promise<void>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  promise.catch(() => undefined)
  return { promise, resolve, reject }
}
