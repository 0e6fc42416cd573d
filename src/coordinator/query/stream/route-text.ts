import { roundSize } from '../../../shared/quantities.ts'
import type { Routed } from './events.ts'
import { isRemote } from './remote-routed.ts'

/** Where a statement runs, as a text for users: `local`, `group big`, `cluster trino-a`, `reject`. */
export function targetText(routed: Routed): string {
  return isRemote(routed) ? `${routed.to} ${routed.name}` : routed.to
}

/**
 * The line about the route that EXPLAIN shows:
 * `Route: group big, by rule 'large reads', 12.50GB; rule 'etl' was skipped: there is no group etl`.
 */
export function routeLine(routed: Routed): string {
  const { rule, fallback, bytes, skipped } = routed
  const decision = [
    targetText(routed),
    ...(rule === undefined ? [] : [`by ${fallback === true ? 'the fallback of ' : ''}rule '${rule}'`]),
    ...('grade' in routed && routed.grade === 'unchecked' ? ['unchecked'] : []),
    ...(bytes === undefined ? [] : [roundSize(bytes)]),
  ]
  const reasons = skipped.map((one) => `; rule '${one.rule}' was skipped: ${one.why}`)
  return `Route: ${decision.join(', ')}${reasons.join('')}`.replaceAll(/\s+/g, ' ')
}
