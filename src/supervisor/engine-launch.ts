import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { AskEngine, EngineMessage, FromLauncher, LauncherPlan, LauncherRequest, ToLauncher } from './messages.ts'
import { onLines } from './lines.ts'

/** The supervisor's end of the launcher: what its children ask is passed on, and its answers to them. */
export interface EngineLaunch {
  readonly plan: LauncherPlan
  /** Resolves when no launcher is left: no engine can be started any more. */
  readonly gone: Promise<void>
  /** Passes a child's question on; what the launcher tells of its engines goes to `told`. */
  ask(process: number, asked: AskEngine, onMessage: (message: EngineMessage) => void): void
  /** The child is gone: resolves when its engines are too. */
  childEnded(process: number): Promise<void>
  /** From now on this process waits for it. */
  hold(): void
  /** Ends the launcher and all engines. */
  stop(): void
}

/** Child programs are always built ones. */
const PROGRAM = fileURLToPath(
  new URL('./engine-launcher.js', import.meta.url.replace('/src/supervisor/', '/dist/supervisor/')),
)
const WORDS = 'The process that started it is gone'

/** An engine that was asked for and has not ended. */
interface Run {
  readonly process: number
  readonly slot: number
  readonly run: number
}

/**
 * Starts the launcher; as root, before this process becomes another user. The launcher and its watcher bring each other back,
 * and the channel to them stays: `engine-launcher.ts` says how.
 */
export function launchEngines(plan: LauncherPlan): EngineLaunch {
  const launcher = spawn(process.execPath, [PROGRAM, JSON.stringify(plan)], {
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    env: {},
    cwd: '/',
    detached: true,
  })
  const channel = launcher.stdio[3] as Socket
  // It ends with this process, and keeps it from no end of its own before the supervisor has it.
  launcher.unref()
  channel.unref()
  const listeners = new Map<number, (message: EngineMessage) => void>()
  const runs = new Map<string, Run>()
  const ending = new Map<number, () => void>()
  let life = 1
  const gone = new Promise<void>((resolve) => {
    channel.once('close', () => resolve())
    launcher.once('error', () => resolve())
  })
  channel.on('error', () => channel.destroy())

  const keyOf = ({ process: number, slot, run }: Run): string => `${number} ${slot} ${run}`
  /** A launcher died, and all engines with it: whoever waits for one is told. */
  const takeNewLauncher = (newLife: number): void => {
    life = newLife
    const lost = [...runs.values()]
    runs.clear()
    for (const { process: number, slot, run } of lost)
      listeners.get(number)?.({ type: 'ended', slot, run, words: WORDS })
    for (const resolve of ending.values()) resolve()
  }
  onLines(channel, (line) => {
    const message = line as FromLauncher
    switch (message.type) {
      case 'launcher':
        return takeNewLauncher(message.life)
      case 'all ended':
        return ending.get(message.process)?.()
      case 'ended':
        // One that a launcher before this one began was told to have ended.
        if (!runs.delete(keyOf(message))) return
        return listeners.get(message.process)?.(message)
      case 'started':
        return listeners.get(message.process)?.(message)
    }
  })
  const send = (message: ToLauncher): void => {
    if (channel.writable) channel.write(`${JSON.stringify({ ...message, life } satisfies LauncherRequest)}\n`)
  }
  return {
    plan,
    gone,
    ask(process, asked, onMessage) {
      listeners.set(process, onMessage)
      if (asked.do === 'start') {
        const run = { process, slot: asked.slot, run: asked.run }
        runs.set(keyOf(run), run)
      }
      send({ ...asked, process })
    },
    childEnded(process) {
      listeners.delete(process)
      for (const [key, run] of runs) if (run.process === process) runs.delete(key)
      const ended = new Promise<void>((resolve) => ending.set(process, resolve))
      send({ do: 'end', process })
      return Promise.race([ended, gone])
    },
    hold() {
      channel.ref()
    },
    stop() {
      channel.end()
    },
  }
}
