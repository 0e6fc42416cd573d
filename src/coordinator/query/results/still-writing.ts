import { Fenced, LogUnavailable, type LogEnd } from '../../../events/event-log.ts'
import { withDeadline } from '../../../shared/deadline.ts'

/** A lookup that has begun gets at least this long, whatever is left of the request's time, milliseconds. */
const LOOK_UP_MS = 200

/** The time for a lookup that has begun. */
export function lookUpMs(leftMs: number): number {
  return Math.max(leftMs, LOOK_UP_MS)
}

/** Waits for a promise at most `ms`. @throws LogUnavailable when it takes longer; the lookup itself continues */
export function timely<T>(asked: Promise<T>, ms: number): Promise<T> {
  return withDeadline(asked, ms, () => new LogUnavailable('The event log does not answer'))
}

/**
 * Resolves when the log confirms in time that this coordinator still writes it.
 * @throws Fenced when another coordinator writes: that one decides; LogUnavailable when the log does not answer in time
 */
export type StillWriting = (waitMs: number) => Promise<void>

/**
 * Makes the check that this coordinator is still the writer. An answer "no such query", and one that ends a query,
 * speaks for the whole log, and this process may have been fenced while it was stopped.
 * @param epoch of this coordinator: a higher one in the log belongs to another
 */
export function createStillWriting(log: LogEnd, epoch: number): StillWriting {
  return async (waitMs) => {
    const tip = await timely(log.tip(), waitMs)
    if (tip.at.some(({ state }) => state.epoch > epoch)) throw new Fenced('Another coordinator writes the log')
  }
}
