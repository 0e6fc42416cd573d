import type pg from 'pg'
import { distributionOfRoute, endStateOf, type FigureNames } from '../../coordinator/query/telemetry/query-metrics.ts'
import { readLifetimeCounts, type LifetimeCounts, type RecordedCounts } from '../../readmodels/lifetime-counts.ts'
import type { PastObservations } from '../../telemetry/instruments.ts'
import {
  metricNames,
  type CounterName,
  type HistogramName,
  type LabelsOf,
  type MetricName,
} from '../../telemetry/metric-names.ts'
import { buckets } from '../../telemetry/metrics/metric-definition.ts'
import type { PastCounters } from '../telemetry/process-telemetry.ts'
import { withDeadline } from '../../shared/deadline.ts'
import { figureNames, type NamedFigures } from './figure-names.ts'
import { deniedPermission, writeOutcome } from '../../coordinator/query/telemetry/event-counters.ts'

const { user, source } = {
  user: metricNames.userQueries.labels.user,
  source: metricNames.sourceQueries.labels.source,
}

export interface PastOfCoordinator {
  readonly base: NamedFigures & { readonly address: string; readonly connection: pg.ClientConfig }
  /** Resolves when the read models hold everything that coordinators at this address wrote. */
  readonly caughtUp: () => Promise<unknown>
  /** Only epochs below this one count. */
  readonly before: number
}

/**
 * Counters that continue from the values of earlier coordinators at this address. The increase over a day is therefore
 * right even after a crash. Counts between the last scrape and the crash appear at the next scrape, whichever
 * coordinator wrote the log in the meantime. Other coordinators have their counts under their own addresses. Figures
 * that were only in the memory of a process (requests, most times) are not restored. `restore` throws when it takes too
 * long or the read models do not answer: then no counter is restored, and Prometheus sees a reset.
 */
export function pastCounters({ base, caughtUp, before }: PastOfCoordinator): PastCounters {
  return {
    metrics: restoredMetrics,
    async restore(meters) {
      await withDeadline(
        caughtUp(),
        CAUGHT_UP_MS,
        () => new Error(`the read models are more than ${CAUGHT_UP_MS / 1000} s behind`),
      )
      const { connection, address } = base
      const counts = await readLifetimeCounts(connection, { address, before, bounds: buckets.query })
      restoreCounters(counts, meters, figureNames(base))
    },
  }
}

/** These counters are held back for at most this long: half a count would show as a jump. */
const CAUGHT_UP_MS = 30_000

const restoredMetrics = [
  'epochClaims',
  'queries',
  'queryErrors',
  'groupRejections',
  'accessDenied',
  'queryCpuSeconds',
  'queryRows',
  'queryBytes',
  'plans',
  'userQueries',
  'sourceQueries',
  'queryDuration',
  'tasks',
  'taskRetries',
  'splits',
  'eventsAppended',
  'eventBytes',
  'writes',
  'pagesLost',
] as const satisfies readonly MetricName[]

/** Meters for these metrics only. A metric that was exposed before is never restored. */
interface RestoredMeters {
  count<N extends CounterName & (typeof restoredMetrics)[number]>(name: N, labels: LabelsOf<N>, by?: number): void
  restore<N extends HistogramName & (typeof restoredMetrics)[number]>(
    name: N,
    labels: LabelsOf<N>,
    past: PastObservations,
  ): void
}

export function restoreCounters(
  { epochs, recorded }: LifetimeCounts,
  meters: RestoredMeters,
  names: FigureNames,
): void {
  // An alert counts the epochs: it must see them even after data was forgotten.
  meters.count('epochClaims', { result: 'won' }, epochs)
  if (recorded) restoreRecorded(recorded, meters, names)
}

function restoreRecorded(
  counts: RecordedCounts,
  meters: RestoredMeters,
  { connectorOf, groupLabel }: FigureNames,
): void {
  for (const one of counts.queries) {
    const { state, route, count, resourceGroup } = one
    const group = groupLabel(resourceGroup)
    const errorType = one.errorType ?? 'none'
    const queryType = one.queryType ?? 'none'
    meters.count('queries', { state, error_type: errorType, query_type: queryType, route: route ?? 'none' }, count)
    if (one.errorName !== null) meters.count('queryErrors', { error_type: errorType, error_name: one.errorName }, count)
    if (one.errorName === 'QUERY_QUEUE_FULL') meters.count('groupRejections', { group, reason: 'queue_full' }, count)
    meters.count('queryCpuSeconds', { group }, notLess(one.cpuSeconds))
    meters.count('queryRows', { direction: 'input' }, one.inputRows)
    meters.count('queryRows', { direction: 'output' }, one.outputRows)
    meters.count('queryBytes', { direction: 'input' }, one.inputBytes)
    meters.count('queryBytes', { direction: 'output' }, one.outputBytes)
    if (route === 'local' || route === 'coordinator' || route === 'delegated')
      meters.count('plans', { distribution: distributionOfRoute(route) }, count)
  }
  // If there were more users (or sources) than labels, it is unknown which of them had a label: then these counters
  // start at zero.
  if (counts.users.length <= user.top)
    for (const { value, count } of counts.users) meters.count('userQueries', { user: value }, count)
  if (counts.sources.length <= source.top)
    for (const { value, count } of counts.sources) meters.count('sourceQueries', { source: value ?? 'none' }, count)
  for (const { state, route, bucket, count, seconds } of counts.durations)
    meters.restore(
      'queryDuration',
      { state, route: route ?? 'none' },
      { counts: [...Array<number>(bucket).fill(0), count], sum: notLess(seconds) },
    )
  for (const { state, retryReason, count } of counts.tasks) {
    meters.count('tasks', { state: endStateOf(state) }, count)
    if (retryReason !== null) meters.count('taskRetries', { reason: retryReason }, count)
  }
  for (const { catalog, count } of counts.splits) meters.count('splits', { connector: connectorOf(catalog) }, count)
  for (const { type, count, bytes } of counts.events) {
    meters.count('eventsAppended', { event: type }, count)
    meters.count('eventBytes', {}, bytes)
  }
  if (counts.refusedWrites > 0) meters.count('writes', { outcome: 'refused' }, counts.refusedWrites)
  for (const { type, detail, count } of counts.facts)
    if (type === 'WriteCommitted') meters.count('writes', { outcome: writeOutcome(detail ?? '') }, count)
    else if (type === 'ResultPagesLost') meters.count('pagesLost', { kind: 'result' }, count)
    else meters.count('accessDenied', { action: deniedPermission(detail ?? '') }, count)
}

/**
 * Sums of fractions depend on their order. A sum that is slightly smaller than before would look like a reset of the
 * counter.
 */
function notLess(seconds: number): number {
  return seconds === 0 ? 0 : seconds * (1 + 1e-9) + 1e-6
}
