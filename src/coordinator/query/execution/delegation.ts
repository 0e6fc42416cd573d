import type { ConnectorColumn } from '../../../connectors/spi/connector.ts'
import type { Clock } from '../../../shared/clock.ts'
import type { Cluster, ClusterDirectory, ClusterTarget, ClusterView } from '../../clusters/cluster.ts'
import type { RelayPort } from '../../clusters/relay/relay-port.ts'
import type { AddressSeal } from '../../clusters/relay/sealed-address.ts'
import type { MirroredTable } from '../../clusters/routing/mirror-fault.ts'
import type { RoutingRule } from '../../clusters/routing/routing-rules.ts'
import type { Routed } from '../stream/events.ts'

/** The part of QueryPlanned that says where a statement was delegated to, and why. */
export type RemoteRouted = Extract<Routed, { to: 'group' | 'cluster' }>

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
  readonly localCatalogs: () => readonly string[]
  /** The catalogs of a cluster: those that its file names, else those that the cluster itself reported. */
  readonly catalogsOf: (cluster: ClusterView) => Promise<ReadonlySet<string>>
  /**
   * The columns of a table at the clusters of a group, in their order; undefined if there is no such table.
   * @throws EngineError if they are not known
   */
  readonly columnsAt: (group: string, table: MirroredTable) => Promise<readonly ConnectorColumn[] | undefined>
}

/** The group or cluster that a statement was routed to. */
export function targetOf({ to, name }: Pick<RemoteRouted, 'to' | 'name'>): ClusterTarget {
  return to === 'group' ? { group: name } : { cluster: name }
}

/** Whether a cluster checks the rights of the statement's own user. */
export function decidesItself({ enforcesAccess, runAs }: Pick<Cluster, 'enforcesAccess' | 'runAs'>): boolean {
  return enforcesAccess && runAs === 'caller'
}
