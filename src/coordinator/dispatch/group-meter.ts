import type { Meters } from '../../telemetry/meters.ts'
import type { ResourceGroups } from './resource-groups.ts'

/** Before each scrape, sets the running and waiting queries of each resource group, and their limits. */
export function observeGroups(groups: Pick<ResourceGroups, 'figures'>, meters: Meters): void {
  meters.onScrape(() => {
    for (const { group, running, queued, limits: room } of groups.figures()) {
      meters.set('groupRunningQueries', { group }, running)
      meters.set('groupQueuedQueries', { group }, queued)
      meters.set('groupRunningLimitQueries', { group }, room.running)
      meters.set('groupQueuedLimitQueries', { group }, room.queued)
    }
  })
}
