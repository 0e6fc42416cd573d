import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { EngineArguments } from './messages.ts'

/** A running program of an engine, as its parent holds it; what it says goes to the listeners it was started with. */
export interface EngineProgram {
  /** -1 until it is known. */
  pid(): number
  /** Writes to its requests; nothing before it has said that it is ready. */
  send(bytes: Buffer): void
  kill(): void
}

/** What an engine's program says, as bytes; nothing of it is to be trusted. */
export interface EngineListeners {
  onReplies(bytes: Buffer): void
  onBeats(bytes: Buffer): void
  /** On its standard error. */
  onWords(text: string): void
  onPid(pid: number): void
  /** It is gone; called once. */
  onGone(): void
}

export interface EngineStart extends EngineListeners {
  /** In kilobytes; hard, where the system has one. */
  readonly dataLimit: number
  readonly arguments: EngineArguments
}

/** Child processes are always the built program: this Node may not run TypeScript. */
export const ENGINE_PROGRAM = new URL(
  './engine-process.js',
  import.meta.url.replace('/src/execution/engine/', '/dist/execution/engine/'),
)
// First to go when the machine runs out of memory, and a limit under which malloc fails instead; neither exists on macOS.
const SHELL = 'echo 1000 2>/dev/null >/proc/self/oom_score_adj; ulimit -d "$0" 2>/dev/null; exec "$@"'

/** Starts the program as a child of this process, and as its user. */
export function spawnProgram(start: EngineStart): EngineProgram {
  const command = [process.execPath, fileURLToPath(ENGINE_PROGRAM), JSON.stringify(start.arguments)]
  const child = spawn('/bin/sh', ['-c', SHELL, String(start.dataLimit), ...command], {
    // Standard output is no channel: DuckDB can be made to write there.
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], UV_THREADPOOL_SIZE: '16' },
    // An own session: Ctrl-C in a terminal is for the parent, which drains.
    detached: true,
  })
  const pid = child.pid ?? -1
  const requests = child.stdio[3] as Socket
  const beats = child.stdio[4] as Socket
  let gone = false
  const onGone = (): void => {
    if (gone) return
    gone = true
    start.onGone()
  }
  requests.on('data', start.onReplies)
  beats.on('data', start.onBeats)
  child.stderr!.on('data', (bytes: Buffer) => start.onWords(bytes.toString()))
  // A broken pipe means that the process is going: its exit is what counts.
  for (const stream of [requests, beats, child.stderr!]) stream.on('error', () => undefined)
  child.on('error', (error) => {
    start.onWords(error.message)
    onGone()
  })
  child.on('exit', onGone)
  start.onPid(pid)
  return {
    pid: () => pid,
    send: (bytes) => void requests.write(bytes),
    kill: () => void (gone || child.kill('SIGKILL')),
  }
}
