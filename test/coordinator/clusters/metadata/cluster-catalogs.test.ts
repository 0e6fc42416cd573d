import { expect, it } from 'vitest'
import { createTrinoConnector } from '../../../../src/connectors/trino/trino-connector.ts'
import type { ClusterView } from '../../../../src/coordinator/clusters/cluster.ts'
import { createClusterCatalogs } from '../../../../src/coordinator/clusters/metadata/cluster-catalogs.ts'

it('messages about a cluster have its name and not the digest of its file', async () => {
  const cluster: Partial<ClusterView> = {
    name: 'trino-a' as ClusterView['name'],
    digest: '0badc0de',
    group: 'big',
    catalogs: new Set(['hive']),
    mirrors: new Set(),
    state: 'ACTIVE',
    health: 'HEALTHY',
  }
  const catalogs = createClusterCatalogs({
    clusters: { list: () => [cluster as ClusterView] },
    local: { names: () => [], get: () => undefined },
    connect: createTrinoConnector,
    withinMs: () => 600_000,
    runOnCluster: async () => [[7]],
    now: () => 0,
  })
  await expect(catalogs.metadataOf('big').schemas('hive')).rejects.toThrow(/^Cluster trino-a gave other rows/)
})
