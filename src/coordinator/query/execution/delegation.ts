import type { Clock } from '../../../shared/clock.ts'
import type { ClusterDirectory, ClusterView } from '../../clusters/cluster.ts'
import type { RelayPort } from '../../clusters/relay/relay-port.ts'
import type { AddressSeal } from '../../clusters/relay/sealed-address.ts'
import type { RoutingRule } from '../../clusters/routing/routing-rules.ts'
import type { QueryEventOf } from '../stream/events.ts'

/** The record of where a statement was delegated to, and why. */
export type Routed = NonNullable<QueryEventOf<'QueryPlanned'>['data']['routed']>

/** What a statement that runs at a cluster needs. */
export interface RemoteDeps {
  readonly clusters: ClusterDirectory
  readonly relay: RelayPort
  readonly seal: Pick<AddressSeal, 'sealUri' | 'openUri'>
  readonly clock: Clock
}

/** The clusters behind this server, and the rules that send statements there. */
export interface Delegation extends RemoteDeps {
  readonly rules: () => readonly RoutingRule[]
  readonly localCatalogs: () => readonly string[]
  /** The catalogs of the clusters, as far as they are known: asked of them where their files name none. */
  readonly catalogsOf: (cluster: ClusterView) => Promise<ReadonlySet<string>>
}
