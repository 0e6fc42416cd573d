import { unreachable } from '../../shared/unreachable.ts'
import { answered, assess, newHealth, notAnswered, type HealthLimits, type NodeHealth } from '../nodes/node-health.ts'
import type { ClusterHealth } from './state.ts'
import type { HealthReason } from './events.ts'

/**
 * The health of a cluster, from checks and from requests to it.
 *
 * ```
 * PENDING ─ 2 answers in a row ─► HEALTHY ─ 3 failures in a row, or too many ─► UNHEALTHY
 *    ▲  ▲                            │                                              │
 *    │  └───────── it starts ────────┘                                              │
 *    └───────────────────────────── an answer ◄─────────────────────────────────────┘
 * ```
 *
 * A single failure never changes the health, because a busy cluster may answer a check late. Failures at about the same
 * time count as one, because one broken connection fails many requests.
 */
export interface ClusterCondition {
  readonly health: ClusterHealth
  /** Counts of requests that decay with time. */
  readonly counts: NodeHealth
  /** Answers since the last failure, and failures since the last answer. */
  readonly answersInARow: number
  readonly failuresInARow: number
  /** When the last failure was counted, monotonic milliseconds. */
  readonly failureCountedAt: number
}

/** The result of a check or a request at a cluster. */
export type ClusterSighting =
  | { readonly kind: 'ready' }
  /** The cluster answers that it does not take statements yet. */
  | { readonly kind: 'starting' }
  | { readonly kind: 'failed'; readonly error: Error }

export interface HealthChange {
  readonly before: ClusterHealth
  readonly after: ClusterHealth
  readonly reason: HealthReason
  readonly detail?: string
}

const HEALTHY_AFTER_ANSWERS = 2
const UNHEALTHY_AFTER_FAILURES = 3
/** Failures within this part of the time between two checks count as one. */
const ONE_FAILURE = 0.1
const MAX_DETAIL = 300

export function newCondition(health: ClusterHealth, now: number): ClusterCondition {
  return { health, counts: newHealth(now), answersInARow: 0, failuresInARow: 0, failureCountedAt: -Infinity }
}

/** Limits for the share of failed requests. There is no limit for silence: a check without an answer is a failure. */
export function limitsOf(beatMs: number): HealthLimits {
  return { beatMs, failedMs: Infinity, failureRatio: 0.5, judgedFrom: 10 }
}

/** @param now monotonic milliseconds */
export function afterSighting(
  condition: ClusterCondition,
  sighting: ClusterSighting,
  limits: HealthLimits,
  now: number,
): { readonly condition: ClusterCondition; readonly change: HealthChange | undefined } {
  const seen = count(condition, sighting, limits, now)
  const next = nextHealth(seen, sighting, limits, now)
  if (!next || next.after === condition.health) return { condition: seen, change: undefined }
  const change = {
    before: condition.health,
    ...next,
    ...(sighting.kind === 'failed' && { detail: sighting.error.message.slice(0, MAX_DETAIL) }),
  }
  // For a cluster that answers again, earlier failures no longer count.
  const counts = next.after === 'PENDING' ? newHealth(now) : seen.counts
  return { condition: { ...seen, counts, health: next.after }, change }
}

function count(
  condition: ClusterCondition,
  sighting: ClusterSighting,
  { beatMs }: HealthLimits,
  now: number,
): ClusterCondition {
  const { counts, answersInARow, failuresInARow, failureCountedAt } = condition
  switch (sighting.kind) {
    case 'ready':
      return { ...condition, counts: answered(counts, now), answersInARow: answersInARow + 1, failuresInARow: 0 }
    case 'starting':
      return { ...condition, counts: answered(counts, now), answersInARow: 0, failuresInARow: 0 }
    case 'failed': {
      const { name: type, message } = sighting.error
      const failed = {
        ...condition,
        counts: notAnswered(counts, { type, message, stack: [], suppressed: [] }, now),
        answersInARow: 0,
      }
      const isNew = failuresInARow === 0 || now - failureCountedAt >= beatMs * ONE_FAILURE
      return isNew ? { ...failed, failuresInARow: failuresInARow + 1, failureCountedAt: now } : failed
    }
    default:
      return unreachable(sighting)
  }
}

function nextHealth(
  { health, counts, answersInARow, failuresInARow }: ClusterCondition,
  { kind }: ClusterSighting,
  limits: HealthLimits,
  now: number,
): Pick<HealthChange, 'after' | 'reason'> | undefined {
  switch (kind) {
    case 'starting':
      return { after: 'PENDING', reason: 'starting' }
    case 'failed': {
      if (failuresInARow >= UNHEALTHY_AFTER_FAILURES) return { after: 'UNHEALTHY', reason: 'no_answer' }
      const isFailing = health === 'HEALTHY' && failuresInARow > 1 && assess(counts, limits, now).state === 'failed'
      return isFailing ? { after: 'UNHEALTHY', reason: 'failure_ratio' } : undefined
    }
    case 'ready':
      if (health === 'UNHEALTHY') return { after: 'PENDING', reason: 'answers_again' }
      if (health === 'PENDING' && answersInARow >= HEALTHY_AFTER_ANSWERS) return { after: 'HEALTHY', reason: 'ready' }
      return undefined
    default:
      return unreachable(kind)
  }
}
