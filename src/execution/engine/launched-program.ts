import type { EngineProgram, EngineStart } from './engine-program.ts'
import { listenForEngine } from './engine-channel.ts'

/**
 * Starts engines as users of their own; a process of root's does it (`supervisor/engine-launcher.ts`), for this one, which
 * has their groups and may neither start nor signal them itself.
 */
export interface EngineLauncher {
  /** User, and group, of a slot's engine. @throws Error where there is no such slot */
  userOf(slot: number): number
  start(slot: number, start: LaunchedStart): { kill(): void }
}

export interface LaunchedStart {
  readonly dataKilobytes: number
  readonly beatMs: number
  onStarted(pid: number): void
  /** It is gone, with all that ran as its user. */
  onEnded(words: string): void
}

/** Starts a slot's program by the launcher, which tells it the slot's folder; there it finds its parent's socket. */
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
      // Without it the program ends itself, also where nobody is left to pass the word on.
      channel.close()
      launched.kill()
    },
  }
}
