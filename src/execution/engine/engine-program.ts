import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { EngineArguments } from './messages.ts'

/** A running program of an engine, as its parent holds it; its output goes to the listeners of `EngineStart`. */
export interface EngineProgram {
  /** -1 until the process is started. */
  pid(): number
  /** Writes a request; not to be called before the program has sent `ready`. */
  send(bytes: Buffer): void
  kill(): void
}

/** Listeners for the output of an engine's program, as bytes. The output must not be trusted. */
export interface EngineListeners {
  onReplies(bytes: Buffer): void
  onBeats(bytes: Buffer): void
  /** Text on its standard error. */
  onWords(text: string): void
  onPid(pid: number): void
  /** The program is gone; called once. */
  onGone(): void
}

export interface EngineStart extends EngineListeners {
  /** In kilobytes; a hard limit, where the operating system has one. */
  readonly dataLimit: number
  readonly arguments: EngineArguments
}

/** Child processes always run the built program: this Node may not run TypeScript. */
export const ENGINE_PROGRAM = new URL(
  './engine-process.js',
  import.meta.url.replace('/src/execution/engine/', '/dist/execution/engine/'),
)
// The engine is the first process to be killed when the machine runs out of memory, and has a limit under which malloc
// fails instead. Neither exists on macOS.
const SHELL = 'echo 1000 2>/dev/null >/proc/self/oom_score_adj; ulimit -d "$0" 2>/dev/null; exec "$@"'

/** Starts the program as a child of this process, with the same user. */
export function spawnProgram(start: EngineStart): EngineProgram {
  const command = [process.execPath, fileURLToPath(ENGINE_PROGRAM), JSON.stringify(start.arguments)]
  const child = spawn('/bin/sh', ['-c', SHELL, String(start.dataLimit), ...command], {
    // Standard output is not used: a statement can make DuckDB write there.
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], UV_THREADPOOL_SIZE: '16' },
    // A session of its own: Ctrl-C in a terminal reaches only the parent, which drains.
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
  // A broken pipe means that the process is ending: its exit is what counts.
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
