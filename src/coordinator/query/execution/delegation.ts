import type { Clock } from '../../../shared/clock.ts'
import type { ClusterDirectory, ClusterTarget } from '../../clusters/cluster.ts'
import type { ClusterCatalogs } from '../../clusters/metadata/cluster-catalogs.ts'
import type { RelayPort } from '../../clusters/relay/relay-port.ts'
import type { AddressSeal } from '../../clusters/relay/sealed-address.ts'
import type { RoutingRule } from '../../clusters/routing/routing-rules.ts'
import type { RemoteRouted } from '../stream/remote-routed.ts'

/** The collaborators of a statement that runs at a cluster. */
export interface RemoteDeps {
  readonly clusters: ClusterDirectory
  readonly relay: RelayPort
  readonly seal: Pick<AddressSeal, 'sealUri' | 'openUri'>
  readonly clock: Clock
}

/** The clusters behind this server, and the rules that send statements there. */
export interface Delegation extends RemoteDeps {
  readonly rules: () => readonly RoutingRule[]
  /** The catalogs of the clusters, with their content. */
  readonly catalogs: ClusterCatalogs
}

/** The group or cluster that a statement was routed to. */
export function targetOf({ to, name }: Pick<RemoteRouted, 'to' | 'name'>): ClusterTarget {
  return to === 'group' ? { group: name } : { cluster: name }
}
