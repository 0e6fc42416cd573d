import type { EngineLauncher, LaunchedStart } from '../execution/engine/launched-program.ts'
import type { AskEngine, ChildEngines, EngineMessage } from '../supervisor/messages.ts'

/** A child's side of the launcher of engines. Its messages go through the supervisor. */
export interface ChildLauncher extends EngineLauncher {
  /** Takes messages that the supervisor passes on. */
  onMessage(message: EngineMessage): void
}

const RUNS = 2 ** 48

export function createChildLauncher(
  { firstUser, slots }: ChildEngines,
  ask: (asked: AskEngine) => void,
): ChildLauncher {
  const started = new Map<number, LaunchedStart>()
  // A random start, so that numbers differ from those of a previous process.
  let lastRun = Math.floor(Math.random() * RUNS)

  return {
    userOf(slot) {
      if (slot >= slots) throw new Error(`There are only user ids for ${slots} engines`)
      return firstUser + slot
    },
    start(slot, start) {
      const run = ++lastRun
      started.set(run, start)
      ask({ do: 'start', slot, run, dataKilobytes: start.dataKilobytes, beatMs: start.beatMs })
      return { kill: () => ask({ do: 'kill', slot, run }) }
    },
    onMessage(message) {
      const start = started.get(message.run)
      switch (message.type) {
        case 'started':
          return start?.onStarted(message.pid)
        case 'ended':
          started.delete(message.run)
          return start?.onEnded(message.words)
      }
    },
  }
}
