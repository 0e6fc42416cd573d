import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { AskEngine, EngineTold, FromLauncher, LauncherPlan, ToLauncher } from './messages.ts'

/** The supervisor's end of the launcher: what its children ask is passed on, and its answers to them. */
export interface EngineLaunch {
  readonly plan: LauncherPlan
  /** Resolves when the launcher is gone: no engine can be started any more. */
  readonly gone: Promise<void>
  /** Passes a child's question on; what the launcher tells of its engines goes to `told`. */
  ask(process: number, asked: AskEngine, told: (message: EngineTold) => void): void
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

/** Forks the launcher; as root, before this process becomes another user. */
export function launchEngines(plan: LauncherPlan): EngineLaunch {
  const launcher = fork(PROGRAM, [JSON.stringify(plan)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {},
    execArgv: [],
    cwd: '/',
    detached: true,
  })
  // It ends with this process, and keeps it from no end of its own before the supervisor has it.
  launcher.unref()
  launcher.channel?.unref()
  const listeners = new Map<number, (message: EngineTold) => void>()
  const gone = new Promise<void>((resolve) => {
    launcher.once('exit', () => resolve())
    launcher.once('error', () => resolve())
  })
  const ending = new Map<number, () => void>()
  launcher.on('message', (message: FromLauncher) => {
    if (message.type === 'all ended') ending.get(message.process)?.()
    else listeners.get(message.process)?.(message)
  })
  const send = (message: ToLauncher): void => {
    if (launcher.connected) launcher.send(message, undefined, {}, () => {})
  }
  return {
    plan,
    gone,
    ask(process, asked, told) {
      listeners.set(process, told)
      send({ ...asked, process })
    },
    childEnded(process) {
      listeners.delete(process)
      const ended = new Promise<void>((resolve) => ending.set(process, resolve))
      send({ do: 'end', process })
      return Promise.race([ended, gone])
    },
    hold() {
      launcher.ref()
      launcher.channel?.ref()
    },
    stop() {
      if (launcher.connected) launcher.disconnect()
    },
  }
}
