import type { Logger } from '../../telemetry/logger.ts'
import type { Meters } from '../../telemetry/meters.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { clusterHealths, clusterStates } from './state.ts'
import { isClusterOpen } from './cluster.ts'
import type { ClusterControl, ClusterTelemetry } from './cluster-directory.ts'
import type { ClusterEvent } from './events.ts'

/** Reports events, checks and waits of clusters as log lines and in metrics. */
export function createClusterTelemetry(meters: () => Meters, logger: Logger): ClusterTelemetry {
  return {
    onEvent: (event) => report(event, meters(), logger),
    onCheck({ name: cluster }, { result, milliseconds }) {
      meters().count('clusterChecks', { cluster, result })
      if (result !== 'failed') meters().observe('clusterCheckDuration', { cluster }, milliseconds / 1000)
    },
    onWaited: (milliseconds, result) => meters().observe('clusterWaitDuration', { result }, milliseconds / 1000),
  }
}

function report({ type, data }: ClusterEvent, meters: Meters, logger: Logger): void {
  const about = { cluster: data.name }
  switch (type) {
    case 'ClusterFound':
      return logger.info('cluster.found', { ...about, url: data.url, group: data.group }, 'A file describes a cluster')
    case 'ClusterGone':
      return logger.info('cluster.gone', about, 'No file describes the cluster any more')
    case 'ClusterStateAsked': {
      const { before, after, by, reason } = data
      return logger.info('cluster.state', { ...about, before, after, by, reason }, 'A user put a cluster into a state')
    }
    case 'ClusterHealthChanged': {
      const { before, after, reason, detail } = data
      meters.count('clusterHealthChanges', { cluster: data.name, health: after })
      const level = after === 'UNHEALTHY' ? 'warn' : 'info'
      return logger[level](
        'cluster.health',
        { ...about, before, after, reason, detail },
        'A cluster has another health',
      )
    }
    default:
      return unreachable(data)
  }
}

const GAUGES = ['clusterHealth', 'clusterState', 'clustersOpen', 'clusterRunning', 'clusterWaiting'] as const

/** Before each scrape, sets the gauges of all clusters. */
export function observeClusters(clusters: Pick<ClusterControl, 'groups' | 'waitingIn'>, meters: Meters): void {
  meters.onScrape(() => {
    for (const name of GAUGES) meters.unset(name)
    for (const [group, members] of clusters.groups()) {
      const open = members.filter(isClusterOpen)
      meters.set('clustersOpen', { group }, open.length)
      meters.set('clusterWaiting', { group }, clusters.waitingIn(group))
      for (const { name: cluster, health, state, running } of members) {
        for (const one of clusterHealths) {
          meters.set('clusterHealth', { cluster, health: one }, one === health ? 1 : 0)
          // The first change is an increase only if Prometheus saw 0 before it.
          meters.count('clusterHealthChanges', { cluster, health: one }, 0)
        }
        for (const one of clusterStates) meters.set('clusterState', { cluster, state: one }, one === state ? 1 : 0)
        meters.set('clusterRunning', { cluster }, running)
      }
    }
  })
}
