import type { GroupState } from '../../coordinator/dispatch/groups/group-state.ts'
import { groupPath } from '../../coordinator/dispatch/groups/group-path.ts'
import { groupOfQuery, isTerminal } from '../../coordinator/query/stream/state.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'
import type { ResourceGroupInfo } from '../info/schemas/server.ts'
import { withoutAbsent } from '../edge/without-absent.ts'
import type { LiveQueryView } from '../query/live-queries.ts'
import { totalsNow } from '../query/query-info.ts'
import { beginningOf } from '../query/query-list.ts'

const shownPolicies = {
  fair: 'FAIR',
  weighted: 'WEIGHTED',
  weighted_fair: 'WEIGHTED_FAIR',
  query_priority: 'QUERY_PRIORITY',
} as const satisfies Record<GroupState['schedulingPolicy'], string>

/** A resource group in the form of Trino. Limits that it does not have are written as Trino writes them. */
export function groupInfo(group: GroupState, running: readonly LiveQueryView[], now: number): ResourceGroupInfo {
  return {
    ...groupSummary(group),
    subGroups: group.subGroups.map(groupSummary),
    runningQueries: running.map((view) => runningQuery(view, now)),
  }
}

/** The same without subgroups and queries. */
export function groupSummary(group: Omit<GroupState, 'subGroups'>) {
  return {
    id: group.path,
    state: group.state,
    schedulingPolicy: shownPolicies[group.schedulingPolicy],
    schedulingWeight: group.schedulingWeight,
    softMemoryLimit: size(group.softMemoryLimitBytes),
    softConcurrencyLimit: count(group.softConcurrencyLimit),
    hardConcurrencyLimit: count(group.hardConcurrencyLimit),
    hardPhysicalDataScanLimit: size(group.hardScanLimitBytes),
    maxQueuedQueries: count(group.maxQueued),
    memoryUsage: size(group.memoryBytes),
    cpuUsage: formatDuration(group.cpuMillis * 1e6),
    physicalInputDataUsage: size(group.scannedBytes),
    numQueuedQueries: group.queued,
    numRunningQueries: group.running,
    numEligibleSubGroups: group.eligibleSubGroups,
  }
}

/** Whether a query runs in a group, or in a subgroup at any depth. */
export function runsIn({ query }: LiveQueryView, path: readonly string[]): boolean {
  if (query.kind === 'QUEUED' || isTerminal(query.kind)) return false
  const own = groupPath(groupOfQuery(query))
  return path.every((name, depth) => own[depth] === name)
}

function runningQuery(view: LiveQueryView, now: number) {
  const { query, liveStats } = view
  const { session, sql } = query.created
  const totals = totalsNow(view, now)
  let currentMemoryBytes = 0
  for (const stats of liveStats.values()) if (stats.endTime === undefined) currentMemoryBytes += stats.memoryBytes
  return withoutAbsent({
    queryId: query.queryId,
    queryState: query.kind,
    resourceGroupId: groupPath(groupOfQuery(query)),
    query: beginningOf(sql),
    createTime: query.createdAt,
    user: session.user,
    source: session.source,
    clientInfo: session.clientInfo,
    catalog: session.catalog,
    schema: session.schema,
    progress: {
      elapsedTimeMillis: millis(totals.elapsedNanos),
      queuedTimeMillis: millis(totals.queuedNanos),
      cpuTimeMillis: millis(totals.cpuNanos),
      scheduledTimeMillis: millis(totals.scheduledNanos),
      currentMemoryBytes,
      peakMemoryBytes: totals.peakMemoryBytes,
      inputRows: totals.processedInputPositions,
      inputBytes: totals.processedInputBytes,
      blocked: false,
      ...(totals.totalSplits > 0 && { progressPercentage: (100 * totals.completedSplits) / totals.totalSplits }),
    },
  })
}

const millis = (nanos: number): number => Math.floor(nanos / 1e6)

/** A limit in bytes; where there is none, the largest long, as in Trino. */
function size(bytes: number): string {
  return bytes === Infinity ? '9223372036854775807B' : formatSize(bytes)
}

function count(queries: number): number {
  return Math.min(queries, 2 ** 31 - 1)
}
