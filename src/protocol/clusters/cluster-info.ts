import type { ClusterView } from '../../coordinator/clusters/cluster.ts'
import { withoutAbsent } from '../edge/without-absent.ts'
import type { ClusterInfo } from '../info/schemas/server.ts'

/** A cluster as the cluster resource shows it. */
export function clusterInfo(cluster: ClusterView, isLocalCatalog: (name: string) => boolean): ClusterInfo {
  const { name, group, url, state, health, reason, by, since, running, waiting } = cluster
  const { maxRunning, weight, version, catalogs, mirrors, lastCheck } = cluster
  const refusedCatalogs = [...(catalogs ?? [])].filter((catalog) => isLocalCatalog(catalog) && !mirrors.has(catalog))
  return withoutAbsent({
    name,
    group,
    url: url.origin,
    state,
    health,
    reason,
    by,
    since,
    running,
    waiting,
    maxRunning,
    weight,
    version,
    catalogs: catalogs && [...catalogs].filter((catalog) => !refusedCatalogs.includes(catalog)),
    mirrors: [...mirrors],
    refusedCatalogs,
    lastCheck: lastCheck && { ...lastCheck },
  })
}
