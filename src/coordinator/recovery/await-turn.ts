import { setTimeout as sleep } from 'node:timers/promises'
import type { Look, Turn } from './turn.ts'
import { LOOK_EVERY_MS } from './writer-pulse.ts'

type Pause = (milliseconds: number) => Promise<unknown>

const FIRST_LOOK_MS = 5

/** What it looks like once this process has read the log to its end; `waiting` when it stops before. */
export async function lookCaughtUp(
  turn: Pick<Turn, 'look'>,
  stopping?: AbortSignal,
  pause: Pause = sleep,
): Promise<Exclude<Look, 'behind'>> {
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LOOK_EVERY_MS)) {
    const look = await turn.look()
    if (look !== 'behind') return look
    if (stopping?.aborted) return 'waiting'
    await pause(pauseMs)
  }
}

/** Looks again and again until it is this one's turn, or it stops. */
export async function awaitTurn(turn: Pick<Turn, 'look'>, stopping: AbortSignal, pause: Pause = sleep): Promise<void> {
  let pauseMs = FIRST_LOOK_MS
  for (let look = await turn.look(); look !== 'claim' && !stopping.aborted; look = await turn.look()) {
    // It reads on, and may be there at once; a writer is asked no oftener than it must.
    pauseMs = look === 'behind' ? Math.min(pauseMs * 2, LOOK_EVERY_MS) : LOOK_EVERY_MS
    await pause(pauseMs)
  }
}
