import { setTimeout as sleep } from 'node:timers/promises'
import type { ClaimCheck, WriterLiveness } from './writer-liveness.ts'
import { LOOK_EVERY_MS } from './writer-pulse.ts'

type Pause = (milliseconds: number) => Promise<unknown>

const FIRST_LOOK_MS = 5

/** The state of the writer once this process has read the log to its end; `waiting` when the process stops before. */
export async function lookCaughtUp(
  liveness: Pick<WriterLiveness, 'check'>,
  stopping?: AbortSignal,
  pause: Pause = sleep,
): Promise<Exclude<ClaimCheck, 'behind'>> {
  for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(pauseMs * 2, LOOK_EVERY_MS)) {
    const found = await liveness.check()
    if (found !== 'behind') return found
    if (stopping?.aborted) return 'waiting'
    await pause(pauseMs)
  }
}

/** Looks at the writer repeatedly until this process may claim, or stops. */
export async function waitToClaim(
  liveness: Pick<WriterLiveness, 'check'>,
  stopping: AbortSignal,
  pause: Pause = sleep,
): Promise<void> {
  let pauseMs = FIRST_LOOK_MS
  for (let found = await liveness.check(); found !== 'claim' && !stopping.aborted; found = await liveness.check()) {
    // A process that is behind may catch up at any moment; a writer is asked no more often than necessary.
    pauseMs = found === 'behind' ? Math.min(pauseMs * 2, LOOK_EVERY_MS) : LOOK_EVERY_MS
    await pause(pauseMs)
  }
}
