import { Fenced, LogUnavailable, type LogEnd } from '../../../events/event-log.ts'
import { withDeadline } from '../../../shared/deadline.ts'

/** What has begun to be looked up gets so long, whatever is left of the request's time, milliseconds. */
const LOOK_UP_MS = 200

/** The time for something that has begun to be looked up. */
export function lookUpMs(leftMs: number): number {
  return Math.max(leftMs, LOOK_UP_MS)
}

/** @throws LogUnavailable when it takes longer; what was asked goes on */
export function timely<T>(asked: Promise<T>, ms: number): Promise<T> {
  return withDeadline(asked, ms, () => new LogUnavailable('The event log does not answer'))
}

/**
 * Resolves when the log says in time that this coordinator still writes it.
 * @throws Fenced when another does: that one decides; LogUnavailable when the log does not say in time
 */
export type StillWriting = (waitMs: number) => Promise<void>

/**
 * A negative answer, and one that makes an end, speaks about the whole log: this process may have been fenced in its
 * sleep.
 * @param epoch of this coordinator: a higher one in the log is another's
 */
export function createStillWriting(log: LogEnd, epoch: number): StillWriting {
  return async (waitMs) => {
    const tip = await timely(log.tip(), waitMs)
    if (tip.at.some(({ state }) => state.epoch > epoch)) throw new Fenced('Another coordinator writes the log')
  }
}
