import { distributionOf, endStateOf } from '../coordinator/query/query-metrics.ts'
import type { LifetimeCounts } from '../readmodels/lifetime-counts.ts'
import type { Meters } from '../telemetry/meters.ts'

/**
 * Counters go on where the coordinators before left them, so that the increase over a day is right across a crash: what
 * was counted between the last scrape and the crash shows at the next. Not for what only its process knew (requests,
 * times) and for labels whose values change with the load (users, sources): those begin anew, which Prometheus sees.
 */
export function restoreCounters(counts: LifetimeCounts, meters: Meters): void {
  for (const one of counts.queries) {
    const { state, route, count, resourceGroup: group } = one
    const errorType = one.errorType ?? 'none'
    meters.count(
      'queries',
      { state, error_type: errorType, query_type: one.queryType ?? 'none', route: route ?? 'none' },
      count,
    )
    if (one.errorName !== null) meters.count('queryErrors', { error_type: errorType, error_name: one.errorName }, count)
    if (one.errorName === 'QUERY_QUEUE_FULL') meters.count('groupRejections', { group, reason: 'queue_full' }, count)
    meters.count('queryCpuSeconds', { group }, notLess(one.cpuSeconds))
    meters.count('queryRows', { direction: 'input' }, one.inputRows)
    meters.count('queryRows', { direction: 'output' }, one.outputRows)
    meters.count('queryBytes', { direction: 'input' }, one.inputBytes)
    meters.count('queryBytes', { direction: 'output' }, one.outputBytes)
    if (route === 'local' || route === 'coordinator' || route === 'delegated')
      meters.count('plans', { distribution: distributionOf(route) }, count)
  }
  for (const { state, retryReason, count } of counts.tasks) {
    meters.count('tasks', { state: endStateOf(state) }, count)
    if (retryReason !== null) meters.count('taskRetries', { reason: retryReason }, count)
  }
  for (const { type, count } of counts.events) meters.count('eventsAppended', { event: type }, count)
}

/** Sums of fractions depend on their order: one that came out less by a hair would look like a counter's new beginning. */
function notLess(seconds: number): number {
  return seconds === 0 ? 0 : seconds * (1 + 1e-9) + 1e-6
}
