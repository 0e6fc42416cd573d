import { metricNames } from '../../telemetry/metric-names.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { ResourceGroups } from './resource-groups.ts'

const { reason: reasons } = metricNames.groupRejections.labels

/** Before each scrape, sets the running and waiting queries of each resource group, and their limits. */
export function observeGroups(groups: Pick<ResourceGroups, 'figures'>, meters: Meters): void {
  meters.onScrape(() => {
    for (const { group, running, queued, limits: room } of groups.figures()) {
      meters.set('groupRunningQueries', { group }, running)
      meters.set('groupQueuedQueries', { group }, queued)
      meters.set('groupRunningLimitQueries', { group }, room.running)
      meters.set('groupQueuedLimitQueries', { group }, room.queued)
      // The first rejection of a group is an increase only if Prometheus saw 0 before it.
      for (const reason of reasons) meters.count('groupRejections', { group, reason }, 0)
    }
  })
}
