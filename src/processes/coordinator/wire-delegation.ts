import type { ClusterControl } from '../../coordinator/clusters/cluster-directory.ts'
import { createKnownCatalogs } from '../../coordinator/clusters/known-catalogs.ts'
import { createClusterMetadata, type ClusterMetadata } from '../../coordinator/clusters/metadata/cluster-metadata.ts'
import { createHttpRelay } from '../../coordinator/clusters/relay/http-relay.ts'
import { ClusterLost, type RelayPort } from '../../coordinator/clusters/relay/relay-port.ts'
import { runOnCluster } from '../../coordinator/clusters/relay/run-on-cluster.ts'
import { createAddressSeal } from '../../coordinator/clusters/relay/sealed-address.ts'
import type { FetchAgain } from '../../coordinator/query/results/past-answers.ts'
import type { Delegation } from '../../coordinator/query/execution/delegation.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import type { CoordinatorBase } from './wire-base.ts'

/** How long a cluster may take to list its catalogs, and the columns of a schema, milliseconds. */
const CATALOGS_MS = 5_000
const COLUMNS_MS = 10_000

/** Makes the part that sends statements to clusters; undefined where no clusters are configured. */
export function wireDelegation(
  base: CoordinatorBase,
  clusters: ClusterControl,
): (Delegation & { readonly fetchAgain: FetchAgain; close(): void }) | undefined {
  if (base.access.clusters === undefined) return undefined
  const relay = createHttpRelay({ onOutcome: (name, error) => clusters.outcome(name, error) })
  const { routingRules } = base.access
  const metadata = new Map<string, ClusterMetadata>()
  const seal = createAddressSeal(deriveKey(base.secret, 'remote-addresses'))
  return {
    clusters,
    relay,
    clock,
    seal,
    rules: () => routingRules?.().rules ?? [],
    localCatalogs: () => base.catalogs.names(),
    catalogsOf: createKnownCatalogs({
      clock,
      async ask(cluster) {
        const rows = await runOnCluster(relay, cluster, 'SHOW CATALOGS', AbortSignal.timeout(CATALOGS_MS))
        return rows.map(([name]) => String(name))
      },
    }),
    columnsAt(group, { catalog, schema, table }) {
      const known = metadata.get(group) ?? metadataOf(group, clusters, relay)
      metadata.set(group, known)
      return known.columns(catalog, schema, table)
    },
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

function metadataOf(group: string, clusters: Pick<ClusterControl, 'groups'>, relay: RelayPort): ClusterMetadata {
  return createClusterMetadata({
    group,
    anyCluster: () =>
      clusters
        .groups()
        .get(group)
        ?.find(({ state, health }) => state === 'ACTIVE' && health === 'HEALTHY'),
    runOnCluster: (cluster, sql) => runOnCluster(relay, cluster, sql, AbortSignal.timeout(COLUMNS_MS)),
    now: clock.monotonicMs,
  })
}
