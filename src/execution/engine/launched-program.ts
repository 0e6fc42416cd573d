import type { EngineProgram, EngineStart } from './engine-program.ts'
import { listenForEngine } from './engine-channel.ts'

/**
 * Starts engines as users of their own. A process that runs as root does it for this process
 * (`supervisor/engine-launcher.ts`), which has the engines' groups and may neither start nor signal them itself.
 */
export interface EngineLauncher {
  /** The user id of a slot's engine, and its group id. @throws Error when there is no such slot */
  userOf(slot: number): number
  start(slot: number, start: LaunchedStart): { kill(): void }
}

export interface LaunchedStart {
  readonly dataKilobytes: number
  readonly beatMs: number
  onStarted(pid: number): void
  /** The program is gone, with all processes of its user. */
  onEnded(words: string): void
}

/**
 * Starts a slot's program through the launcher. The program gets the slot's folder, where it finds its parent's socket.
 */
export function launchProgram(
  launcher: EngineLauncher,
  slot: { readonly number: number; readonly folder: string },
  start: EngineStart,
): EngineProgram {
  let pid = -1
  const channel = listenForEngine(slot.folder, start)
  const launched = launcher.start(slot.number, {
    dataKilobytes: start.dataLimit,
    beatMs: start.arguments.beatMs,
    onStarted(itsPid) {
      pid = itsPid
      start.onPid(pid)
    },
    onEnded(words) {
      channel.close()
      start.onWords(words)
      start.onGone()
    },
  })
  return {
    pid: () => pid,
    send: (bytes) => channel.send(bytes),
    kill() {
      // Without the channel the program ends itself, even if the launcher can no longer pass on the kill.
      channel.close()
      launched.kill()
    },
  }
}
