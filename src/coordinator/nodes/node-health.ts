import { addToCounter, countAt, zeroCounter, type DecayCounter } from './decay-counter.ts'

/** The health of a node, from requests to it and from its own announcements. Times are monotonic milliseconds. */
export interface NodeHealth {
  readonly requests: DecayCounter
  readonly failures: DecayCounter
  readonly successes: DecayCounter
  readonly failuresByType: ReadonlyMap<string, DecayCounter>
  /** When the node was last heard of. */
  readonly heardAt: number
  /** Whether the newest request had no answer. */
  readonly missed: boolean
  /** Announcements that were missing since the node was last heard of. */
  readonly missedBeats: number
  readonly lastFailure?: NodeFailure
}

/** The failure in the form that the node resource shows. */
export interface NodeFailure {
  /** Type name of the exception. */
  readonly type: string
  readonly message: string
  readonly stack: readonly string[]
  readonly suppressed: readonly unknown[]
}

export interface HealthLimits {
  /** Milliseconds between two announcements. */
  readonly beatMs: number
  /** Silence after which a node has failed. */
  readonly failedMs: number
  /** The share of failures above which a node has failed … @default 0.1 */
  readonly failureRatio: number
  /** … once it had this many recent requests. @default 30 */
  readonly judgedFrom: number
}

export type HealthVerdict =
  | { readonly state: 'active' }
  | { readonly state: 'suspect'; readonly reason: 'missed_answer' }
  | { readonly state: 'failed'; readonly reason: 'no_answer' | 'failure_ratio' }

export function newHealth(now: number): NodeHealth {
  return {
    requests: zeroCounter,
    failures: zeroCounter,
    successes: zeroCounter,
    failuresByType: new Map(),
    heardAt: now,
    missed: false,
    missedBeats: 0,
  }
}

export function answered(health: NodeHealth, now: number): NodeHealth {
  return {
    ...health,
    requests: addToCounter(health.requests, 1, now),
    successes: addToCounter(health.successes, 1, now),
    heardAt: now,
    missed: false,
    missedBeats: 0,
  }
}

export function notAnswered(health: NodeHealth, failure: NodeFailure, now: number): NodeHealth {
  const { type } = failure
  return {
    ...health,
    requests: addToCounter(health.requests, 1, now),
    failures: addToCounter(health.failures, 1, now),
    failuresByType: new Map(health.failuresByType).set(
      type,
      addToCounter(health.failuresByType.get(type) ?? zeroCounter, 1, now),
    ),
    missed: true,
    lastFailure: failure,
  }
}

/** Counts each announcement that should have come by now and did not as a failure; half a beat of delay is allowed. */
export function withMissedBeats(health: NodeHealth, limits: HealthLimits, now: number): NodeHealth {
  const due = Math.floor((now - health.heardAt) / limits.beatMs - 0.5)
  let counted = health
  for (let beat = health.missedBeats; beat < due; beat++)
    counted = { ...notAnswered(counted, missedBeat(limits.beatMs), now), missedBeats: beat + 1 }
  return counted
}

/** Share of failures among recent requests, 0 when there were none. */
export function failureRatio(health: NodeHealth, now: number): number {
  const requests = countAt(health.requests, now)
  return requests === 0 ? 0 : countAt(health.failures, now) / requests
}

export function assess(health: NodeHealth, limits: HealthLimits, now: number): HealthVerdict {
  if (now - health.heardAt >= limits.failedMs) return { state: 'failed', reason: 'no_answer' }
  if (countAt(health.requests, now) >= limits.judgedFrom && failureRatio(health, now) > limits.failureRatio)
    return { state: 'failed', reason: 'failure_ratio' }
  return health.missed ? { state: 'suspect', reason: 'missed_answer' } : { state: 'active' }
}

function missedBeat(beatMs: number): NodeFailure {
  return {
    type: 'io.quipu.HeartbeatMissed',
    message: `No announcement within ${beatMs} ms of the one before`,
    stack: [],
    suppressed: [],
  }
}
