import { spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { AskEngine, EngineMessage, FromLauncher, LauncherPlan, LauncherRequest, ToLauncher } from './messages.ts'
import { onLines } from './lines.ts'

/** The supervisor's side of the launcher: passes on the children's requests, and the launcher's answers to them. */
export interface EngineLaunch {
  readonly plan: LauncherPlan
  /** Resolves when no launcher is left: no engine can be started any more. */
  readonly gone: Promise<void>
  /** Passes on a child's request. `onMessage` gets the launcher's messages about the child's engines. */
  ask(process: number, asked: AskEngine, onMessage: (message: EngineMessage) => void): void
  /** Ends the child's engines after the child has ended. Resolves when they are gone. */
  childEnded(process: number): Promise<void>
  /** From now on this process does not exit before the launcher. */
  hold(): void
  /** Ends the launcher and all engines. */
  stop(): void
}

/** The children run built programs, also when this file is run from `src`. */
const PROGRAM = fileURLToPath(
  new URL('./engine-launcher.js', import.meta.url.replace('/src/supervisor/', '/dist/supervisor/')),
)
const WORDS = 'The process that started the engine is gone'

/** An engine that a child requested and that has not ended. */
interface Run {
  readonly process: number
  readonly slot: number
  readonly run: number
}

/**
 * Starts the launcher. Needs root, so it is called before this process becomes another user. The launcher and its
 * watcher restart each other, and the channel to them stays open: see `engine-launcher.ts`.
 */
export function launchEngines(plan: LauncherPlan): EngineLaunch {
  const launcher = spawn(process.execPath, [PROGRAM, JSON.stringify(plan)], {
    stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
    env: {},
    cwd: '/',
    detached: true,
  })
  const channel = launcher.stdio[3] as Socket
  // The launcher ends with this process. Until the supervisor calls `hold`, it does not keep this process running.
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
  /** Handles the death of a launcher and all of its engines: reports the end of each engine to its child. */
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
        // An engine of an earlier launcher: its end was already reported.
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
