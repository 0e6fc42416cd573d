import type { QueryInfo } from '../../../src/protocol/info/schemas/query.ts'
import { Facts, type Fact } from '../../parts/facts.tsx'
import { Count, Duration, Size } from '../../parts/figure.tsx'
import { Instant } from '../../parts/instant.tsx'
import { clusterText, routeText } from './route-text.ts'
import { EXPLANATIONS } from '../../parts/explanations.ts'
import { shownCost, shownCount } from '../../parts/units.ts'

/** The session and the figures of a query. */
export function QueryFacts({ query }: { readonly query: QueryInfo }) {
  const { session, queryStats: stats } = query
  const facts: readonly Fact[] = [
    ['User', session.user],
    ['Source', session.source],
    ['Catalog and schema', [session.catalog, session.schema].filter(Boolean).join('.')],
    ['Client', session.remoteUserAddress],
    ['Resource group', query.resourceGroupId.join(' › ')],
    ['Type', query.queryType],
    ['Route', routeText(query.route)],
    ['Cluster', clusterText(query.route)],
    ['Waits for', query.queuedReason],
    ['Created', <Instant key="created" iso={stats.createTime} />],
    ['Ended', stats.endTime === undefined ? undefined : <Instant key="ended" iso={stats.endTime} />],
    ['Elapsed', <Duration key="elapsed" of={stats.elapsedTime} />, EXPLANATIONS.elapsed],
    ['Queued', <Duration key="queued" of={stats.queuedTime} />, EXPLANATIONS.queued],
    ['Planning', <Duration key="planning" of={stats.planningTime} />, EXPLANATIONS.planning],
    ['CPU', <Duration key="cpu" of={stats.totalCpuTime} />, EXPLANATIONS.cpu],
    ['Scheduled', <Duration key="scheduled" of={stats.totalScheduledTime} />, EXPLANATIONS.scheduled],
    ['Blocked', <Duration key="blocked" of={stats.totalBlockedTime} />, EXPLANATIONS.blocked],
    ['Peak memory', <Size key="memory" of={stats.peakTotalMemoryReservation} />, EXPLANATIONS.peakMemory],
    ['Rows read', <Count key="rows-read" of={stats.rawInputPositions} />, EXPLANATIONS.rowsRead],
    ['Bytes read', <Size key="bytes-read" of={stats.rawInputDataSize} />, EXPLANATIONS.bytesRead],
    ['Rows of the result', <Count key="rows" of={stats.outputPositions} />, EXPLANATIONS.resultRows],
    ['Cost', shownCost(query), EXPLANATIONS.cost],
    ['Splits', `${shownCount(stats.completedSplits)} of ${shownCount(stats.totalSplits)}`, EXPLANATIONS.splits],
    ['Take-overs', query.recoveries || undefined, EXPLANATIONS.takeOvers],
  ]
  return <Facts title="Figures" facts={facts} />
}
