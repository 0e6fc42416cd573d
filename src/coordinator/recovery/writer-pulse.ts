/**
 * A follower's knowledge of the writer's life. All times are milliseconds of this process's own running time: while it
 * was stopped, or waited for a processor, it could hear nothing, and that silence is not the writer's.
 */
export interface Pulse {
  /** Own running time until now. */
  readonly ownMs: number
  /** Monotonic time of the last check. */
  readonly lookedAt: number
  /** The last sign of life. */
  readonly heardAt: number
  /** The last time the writer itself answered. */
  readonly answeredAt: number
  /** The recent delay of this process's event loop. */
  readonly lagMs: number
  /** The writer's recent time to answer, TLS included. */
  readonly answerMs: number
}

export interface SilenceLimits {
  /** How long a writer may be silent on a machine that is not busy. */
  readonly silentMs: number
  /** Added to it, so that two followers do not claim at once. */
  readonly jitterMs: number
}

/** How often the writer is looked at. A much longer time between two looks was a pause of this process. */
export const LOOK_EVERY_MS = 200
/** The time between two looks counts up to this. */
const MOST_STEP_MS = 3 * LOOK_EVERY_MS
/** A process whose event loop is late by d hears answers late by several d: it allows the writer this many. */
const LAGS = 8
const ANSWERS = 4
/** Peaks of delay and of answer time are halved in this time. */
const HALF_MS = 60_000
/** Each change of writer doubles the patience, at most this many times. */
const MOST_DOUBLINGS = 4
/** However busy the machine is, a writer that is silent for longer is considered dead. */
const LONGEST_SILENCE_MS = 30_000
/** A writer that still writes the log, but answers no requests, is considered dead after this time. */
const NEWS_FOR_MS = 30_000

export function beginPulse(now: number): Pulse {
  return { ownMs: 0, lookedAt: now, heardAt: 0, answeredAt: 0, lagMs: 0, answerMs: 0 }
}

/** Takes a check's time. @param lagMs the longest delay of the event loop since the last check */
export function looked(pulse: Pulse, now: number, lagMs: number): Pulse {
  const passed = Math.max(0, now - pulse.lookedAt)
  const left = 0.5 ** (passed / HALF_MS)
  return {
    ...pulse,
    ownMs: pulse.ownMs + Math.min(passed, MOST_STEP_MS),
    lookedAt: now,
    lagMs: Math.max(lagMs, pulse.lagMs * left),
    answerMs: pulse.answerMs * left,
  }
}

/** The writer answered that it writes. @param tookMs the time since it was asked */
export function gaveAnswer(pulse: Pulse, tookMs: number): Pulse {
  const { ownMs } = pulse
  return { ...pulse, heardAt: ownMs, answeredAt: ownMs, answerMs: Math.max(pulse.answerMs, tookMs) }
}

/** An event of the writer was read. @param ageMs the time since it was written, as far as clocks agree */
export function wrote(pulse: Pulse, ageMs: number): Pulse {
  const at = Math.min(pulse.ownMs - Math.max(0, ageMs), pulse.answeredAt + NEWS_FOR_MS)
  return at > pulse.heardAt ? { ...pulse, heardAt: at } : pulse
}

/** Another process writes: it gets its own time, and has not answered yet. */
export function begunAnew(pulse: Pulse): Pulse {
  return { ...pulse, heardAt: pulse.ownMs, answeredAt: pulse.ownMs }
}

/** Milliseconds since the last sign of life. */
export function silenceOf({ ownMs, heardAt }: Pulse): number {
  return ownMs - heardAt
}

/**
 * The silence after which the writer is considered dead: longer where this process runs late or the writer answers
 * slowly, and longer after each unplanned change of writer.
 * @param takeOvers the number of such changes in the last quarter of an hour
 */
export function silenceLimit(
  { lagMs, answerMs }: Pulse,
  { silentMs, jitterMs }: SilenceLimits,
  takeOvers: number,
): number {
  const busy = Math.max(silentMs, LAGS * lagMs, ANSWERS * answerMs)
  const grown = (busy + jitterMs) * 2 ** Math.min(takeOvers, MOST_DOUBLINGS)
  return Math.min(grown, Math.max(LONGEST_SILENCE_MS, silentMs) + jitterMs)
}

/** Whether the writer is to be considered dead. */
export function isSilent(pulse: Pulse, limits: SilenceLimits, takeOvers: number): boolean {
  return silenceOf(pulse) > silenceLimit(pulse, limits, takeOvers)
}
