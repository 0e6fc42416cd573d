import type { ClusterControl } from '../../coordinator/clusters/cluster-directory.ts'
import { createTrinoConnector } from '../../connectors/trino/trino-connector.ts'
import { createClusterCatalogs } from '../../coordinator/clusters/metadata/cluster-catalogs.ts'
import { createHttpRelay } from '../../coordinator/clusters/relay/http-relay.ts'
import { ClusterLost } from '../../coordinator/clusters/relay/relay-port.ts'
import { runOnCluster } from '../../coordinator/clusters/relay/run-on-cluster.ts'
import { createAddressSeal } from '../../coordinator/clusters/relay/sealed-address.ts'
import type { FetchAgain } from '../../coordinator/query/results/past-answers.ts'
import type { Delegation } from '../../coordinator/query/execution/delegation.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { CoordinatorBase } from './wire-base.ts'

/** How long a cluster may take to answer a statement about its metadata, milliseconds; less if it is not HEALTHY. */
const METADATA_MS = { healthy: 10_000, other: 3_000 } as const
/** The most bytes of an answer about metadata. */
const METADATA_BYTES = 16 * 1024 * 1024
/** The most rows of an answer about metadata. */
const METADATA_ROWS = 400_000

/** Makes the part that sends statements to clusters; undefined where no clusters are configured. */
export function wireDelegation(
  base: CoordinatorBase,
  clusters: ClusterControl,
): (Delegation & { readonly fetchAgain: FetchAgain; close(): void }) | undefined {
  if (base.access.clusters === undefined) return undefined
  const relay = createHttpRelay({ onOutcome: (name, error) => clusters.outcome(name, error) })
  const { routingRules } = base.access
  const seal = createAddressSeal(deriveKey(base.secret, 'remote-addresses'))
  const catalogs = createClusterCatalogs({
    clusters,
    local: base.localCatalogs,
    connect: createTrinoConnector,
    withinMs: ({ health }) => (health === 'HEALTHY' ? METADATA_MS.healthy : METADATA_MS.other),
    runOnCluster: (cluster, sql, user, withinMs) =>
      runOnCluster(relay, cluster, { sql, user, withinMs, mostBytes: METADATA_BYTES, mostRows: METADATA_ROWS }),
    now: clock.monotonicMs,
  })
  base.useClusters(catalogs)
  return {
    clusters,
    relay,
    clock,
    seal,
    rules: () => routingRules?.().rules ?? [],
    catalogs,
    async fetchAgain(page, signal) {
      const { cluster: name } = page
      await clusters.ready
      const cluster = clusters.byName(name)
      const uri = 'uri' in page ? page.uri : seal.openUri(page.first.taskId, page.first.sealedUri)
      if (!cluster || !uri) throw new ClusterLost(name, 'gone', 'is no longer configured')
      return relay.fetch(cluster, uri, signal)
    },
    close: () => relay.close(),
  }
}
