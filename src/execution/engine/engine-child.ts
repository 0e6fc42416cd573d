import { execFile } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { promisify } from 'node:util'
import { deferred } from '../../shared/deferred.ts'
import { reservedCodeBytes } from './code-range.ts'
import { EngineBeats, waitedForCpuMs } from './engine-beats.ts'
import { spawnProgram, type EngineProgram, type EngineStart } from './engine-program.ts'
import { createFrameDecoder, encodeFrame, MAX_REPLY_HEADER_BYTES, type Frame } from './frames.ts'
import { launchProgram, type EngineLauncher } from './launched-program.ts'
import { engineReplySchema, type EngineArguments, type EngineReply, type EngineRequest } from './messages.ts'
import { openResidentMemory, type ResidentMemory } from './resident-memory.ts'
import type { SandboxLimits } from './sandbox.ts'
import { makeSlotFolders, removeTree } from './slot-folders.ts'

/** The parent's end of one engine process. */
export interface EngineChild {
  readonly slot: number
  /** -1 until the process is started. */
  pid(): number
  /** The engine's own user; undefined when it runs as this process's user. */
  readonly user: number | undefined
  /** Holds the FIFOs and profiles; DuckDB may read it, and write its own files there. Trailing slash. */
  readonly folder: string
  readonly spillFolder: string
  /** Resolves once the engine takes requests; rejects when it cannot. */
  readonly ready: Promise<void>
  /** Resolves when the process is gone and its folders are removed. */
  readonly gone: Promise<void>
  /** Gives the engine its settings; resolves once they are locked. */
  configure(limits: SandboxLimits): Promise<void>
  send(request: EngineRequest): void
  kill(): void
  fifo(connection: number): string
  profile(connection: number): string
  /** The folder where an engine of another user writes a statement's files, for the parent to copy. */
  staging(id: number): string
  residentBytes(): number
  /** Monotonic milliseconds of the last beat. */
  lastBeat(): number
  /** CPU time of the process up to its last beat, milliseconds. */
  cpuMs(): number
  /** Whether a function in JavaScript held the thread that runs statements at the last beat. */
  isHeld(): boolean
  /** The end of the process's standard error, for logs. */
  lastWords(): string
}

export interface EngineChildOptions {
  readonly slot: number
  readonly folder: string
  readonly spillFolder: string
  readonly connections: number
  /** Hard limit on data memory, where the operating system has one. */
  readonly dataLimitBytes: number
  readonly arguments: EngineArguments
  /** Starts the process as a user of its own. */
  readonly launcher?: EngineLauncher
  /** Replies to statements, in the order they were sent. */
  onReply(frame: Frame<EngineReply>): void
  /** The process is gone, for any reason; called once. */
  onExit(): void
}

const START_TIMEOUT_MS = 30_000
const CONFIGURE_TIMEOUT_MS = 5_000
const LAST_WORDS = 2_000

export function startEngineChild(options: EngineChildOptions): EngineChild {
  const { launcher, slot } = options
  const user = launcher?.userOf(slot)
  const folders = makeSlotFolders(options, slot, user)
  const fifo = (connection: number): string => `${folders.folder}fifo-${connection}`
  const fifos = makeFifos(
    Array.from({ length: options.connections }, (_, index) => fifo(index)),
    user !== undefined,
  )

  let memory: ResidentMemory | undefined
  const beats = new EngineBeats(() => waitedForCpuMs(program.pid()))
  let lastWords = ''
  let exited = false

  const kill = (): void => {
    if (!exited) program.kill()
  }
  const { ready, configured, failBoth } = beginning(kill)
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
  const decode = createFrameDecoder<unknown>(
    ({ header, body }) => take({ header: engineReplySchema.parse(header), body }),
    MAX_REPLY_HEADER_BYTES,
  )

  const gone = deferred()
  const onGone = (): void => {
    if (exited) return
    exited = true
    memory?.close()
    failBoth(`The engine ended while starting: ${lastWords}`)
    options.onExit()
    void removeFolders(folders, fifos).then(() => gone.resolve())
  }

  const start: EngineStart = {
    dataLimit: Math.floor((options.dataLimitBytes + reservedCodeBytes()) / 1024),
    arguments: options.arguments,
    onReplies(bytes) {
      try {
        decode(bytes)
      } catch {
        // An engine of this program does not send such a message.
        kill()
      }
    },
    onBeats: (lines) => beats.take(lines),
    onWords: (text) => (lastWords = (lastWords + text).slice(-LAST_WORDS)),
    onPid: (pid) => (memory = openResidentMemory(pid)),
    onGone,
  }
  const program: EngineProgram = launcher
    ? launchProgram(launcher, { number: slot, folder: folders.folder }, start)
    : spawnProgram(start)

  return {
    slot,
    pid: () => program.pid(),
    user,
    folder: folders.folder,
    spillFolder: folders.spill,
    ready: ready.promise,
    gone: gone.promise,
    configure(limits) {
      program.send(encodeFrame({ type: 'configure', limits } satisfies EngineRequest))
      const timer = setTimeout(() => configured.reject(new Error('The engine took no settings')), CONFIGURE_TIMEOUT_MS)
      return configured.promise.finally(() => clearTimeout(timer))
    },
    send: (request) => program.send(encodeFrame(request)),
    kill,
    fifo,
    profile: (connection) => `${folders.own}profile-${connection}.json`,
    staging: (id) => `${folders.own}write-${id}`,
    residentBytes: () => memory?.read() ?? beats.bytes(),
    lastBeat: () => beats.last(),
    cpuMs: () => beats.cpuMs(),
    isHeld: () => beats.isHeld(),
    lastWords: () => lastWords,
  }
}

/** The promises of an engine's start and configuration, with the time limit of the start. */
function beginning(kill: () => void) {
  const ready = deferred()
  const configured = deferred()
  const failBoth = (message: string): void => {
    ready.reject(new Error(message))
    configured.reject(new Error(message))
  }
  const timer = setTimeout(() => {
    failBoth('The engine did not start in time')
    kill()
  }, START_TIMEOUT_MS)
  ready.promise.then(
    () => clearTimeout(timer),
    () => clearTimeout(timer),
  )
  return { ready, configured, failBoth }
}

/** Waits for mkfifo, which could otherwise write into a removed folder. */
async function removeFolders(folders: ReturnType<typeof makeSlotFolders>, fifos: Promise<void>): Promise<void> {
  await fifos.catch(() => undefined)
  // The disk takes no change: the next engine of this slot reports it.
  await Promise.all([folders.folder, folders.spill].map(removeTree)).catch(() => undefined)
}

/** Makes all FIFOs with one process, since a process costs 5 ms; runs in parallel with the engine's own start. */
async function makeFifos(paths: readonly string[], shared: boolean): Promise<void> {
  await promisify(execFile)('mkfifo', [...paths])
  // FIFOs have the group of their folder, which is the engine's.
  if (shared) for (const path of paths) chmodSync(path, 0o660)
}
