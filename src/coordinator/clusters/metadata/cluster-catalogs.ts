import type { Catalogs } from '../../../connectors/spi/catalogs.ts'
import type { Connector } from '../../../connectors/spi/connector.ts'
import type { ServerMetadata } from '../../../connectors/spi/server-metadata.ts'
import { settlesWithin } from '../../../shared/deadline.ts'
import {
  decidesItself,
  isClusterOpen,
  type ClusterDirectory,
  type ClusterTarget,
  type ClusterView,
} from '../cluster.ts'
import { OWN_CATALOGS, type GroupCatalogs, type RemoteCatalogs } from '../routing/route.ts'
import { isTarget } from '../slot-queue.ts'
import { createClusterMetadata, type ClusterMetadata, type ClusterMetadataDeps } from './cluster-metadata.ts'
import type { ChangedScope } from './recent-values.ts'

/**
 * The catalogs of clusters that this server does not have itself, with their content. Names come from the last list of
 * each cluster, so that no statement waits for a cluster that it does not need. Two groups may have a catalog of the
 * same name. Lists then show that of the first group, in the order of names, that has a cluster which takes statements.
 */
export interface ClusterCatalogs extends Catalogs {
  /**
   * Waits until this server or a cluster is known to have each of these catalogs. While one is missing, waits up to 5 s
   * for each cluster that has never listed its catalogs and is not UNHEALTHY.
   */
  untilKnown(names: readonly string[]): Promise<void>
  /** Waits up to 5 s for each cluster that has never listed its catalogs and is not UNHEALTHY. */
  untilListed(): Promise<void>
  /** The clusters that have never listed their catalogs. */
  unlisted(): readonly string[]
  /** The catalogs of this server, of each cluster and of each group. */
  targets(): GroupCatalogs
  /** The catalogs of this server and of one target. */
  at(target: ClusterTarget): Catalogs
  /** The content of the catalogs of a group, as its clusters show it to the user of this gateway. */
  metadataOf(group: string): ServerMetadata
  /** Whether only clusters that decide about the rights of users themselves have this catalog. */
  decidesItself(catalog: string): boolean
  /** Forgets the metadata that a statement at a target may have changed. */
  drop(target: ClusterTarget, changed: ChangedScope): void
}

export interface ConnectedCatalog {
  readonly catalog: string
  readonly group: string
  readonly metadata: ServerMetadata
  /** The content as the clusters show it to a user; undefined where this server decides about rights. */
  readonly forUser: ((user: string) => ServerMetadata) | undefined
}

export interface ClusterCatalogsDeps {
  readonly clusters: Pick<ClusterDirectory, 'list'>
  /** The catalogs of this server. */
  readonly local: Catalogs
  /** Makes the connector of a catalog of a group. */
  readonly connect: (catalog: ConnectedCatalog) => Connector
  /** How long a statement about metadata may take at a cluster, milliseconds. */
  readonly withinMs: (cluster: ClusterView) => number
  readonly runOnCluster: ClusterMetadataDeps<ClusterView>['runOnCluster']
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** How long a statement waits for clusters that have never listed their catalogs, milliseconds. */
const FIRST_LIST_MS = 5_000

export function createClusterCatalogs(deps: ClusterCatalogsDeps): ClusterCatalogs {
  const { clusters, local, connect, withinMs, runOnCluster, now } = deps
  const groups = new Map<string, ClusterMetadata<ClusterView>>()
  const localNames = new Set(local.names())
  /** The catalogs of lists that this server does not have. */
  const owns = new WeakMap<ReadonlySet<string>, ReadonlySet<string>>()

  function metadataOf(group: string): ClusterMetadata<ClusterView> {
    const known = groups.get(group)
    if (known) return known
    const made = createClusterMetadata<ClusterView>({
      group,
      nameOf: ({ name }) => name,
      // A cluster whose file has changed is another cluster.
      keyOf: ({ name, digest }) => `${name} ${digest}`,
      // A cluster that seems to be away is asked if there is no other: its checks may fail on a busy machine.
      open: (catalog) =>
        clusters
          .list()
          .filter(({ group: of, state }) => of === group && state === 'ACTIVE')
          .filter((cluster) => hasCatalog(cluster, catalog))
          .toSorted(
            (a, b) =>
              Number(isClusterOpen(b)) - Number(isClusterOpen(a)) || a.running / a.weight - b.running / b.weight,
          ),
      withinMs,
      runOnCluster,
      now,
    })
    groups.set(group, made)
    return made
  }

  /** The catalogs that only the cluster has; undefined while it has not listed them. */
  function listOf(cluster: ClusterView): ReadonlySet<string> | undefined {
    const given = cluster.catalogs ?? metadataOf(cluster.group).catalogs(cluster)
    if (!given) return undefined
    const made =
      owns.get(given) ?? new Set([...given].filter((name) => !localNames.has(name) && !OWN_CATALOGS.has(name)))
    owns.set(given, made)
    return made
  }

  const hasCatalog = (cluster: ClusterView, catalog: string): boolean =>
    cluster.mirrors.has(catalog) || ownOf(cluster).has(catalog)
  const ownOf = (cluster: ClusterView): ReadonlySet<string> => listOf(cluster) ?? new Set()
  const unlisted = (): readonly ClusterView[] => clusters.list().filter((cluster) => !listOf(cluster))

  async function untilListed(): Promise<void> {
    // A cluster that is known to be away is not waited for each time.
    const waited = unlisted()
      .filter(({ health }) => health !== 'UNHEALTHY')
      .map((cluster) => metadataOf(cluster.group).listed(cluster))
    if (waited.length > 0)
      await settlesWithin(
        Promise.all(waited).then(() => {}),
        FIRST_LIST_MS,
      )
  }

  /** The group whose metadata lists show for a catalog. */
  function groupOf(catalog: string): string | undefined {
    const having = clusters.list().filter((cluster) => ownOf(cluster).has(catalog))
    const names = (of: readonly ClusterView[]): string | undefined => of.map(({ group }) => group).toSorted()[0]
    return names(having.filter(isClusterOpen)) ?? names(having)
  }

  function decides(catalog: string): boolean {
    const all = clusters.list()
    const having = new Set(all.filter((cluster) => ownOf(cluster).has(catalog)).map(({ group }) => group))
    return having.size > 0 && all.every((cluster) => !having.has(cluster.group) || decidesItself(cluster))
  }

  function connectorOf(catalog: string, group: string, theyDecide: boolean): Connector {
    const { of } = metadataOf(group)
    return connect({ catalog, group, metadata: of(undefined), forUser: theyDecide ? of : undefined })
  }

  function targets(): GroupCatalogs {
    const byCluster = new Map<string, RemoteCatalogs>()
    const byGroup = new Map<string, RemoteCatalogs>()
    for (const cluster of clusters.list()) {
      const { name, group, mirrors } = cluster
      const listed = listOf(cluster)
      byCluster.set(name, { own: listed ?? new Set(), mirrors })
      const before = byGroup.get(group)
      // A cluster that has not listed its catalogs says nothing about the group.
      const own = before && listed ? common(before.own, listed) : (listed ?? before?.own)
      byGroup.set(group, { own: own ?? new Set(), mirrors: before ? common(before.mirrors, mirrors) : mirrors })
    }
    return { local: localNames, groups: byGroup, clusters: byCluster }
  }

  return {
    names: () => [...new Set(clusters.list().flatMap((cluster) => [...ownOf(cluster)]))].toSorted(),
    get(catalog) {
      const group = groupOf(catalog)
      return group === undefined ? undefined : connectorOf(catalog, group, decides(catalog))
    },
    async untilKnown(names) {
      const missing = names.filter((name) => !localNames.has(name))
      if (missing.length === 0) return
      const all = clusters.list()
      const isKnown = (name: string): boolean => all.some((cluster) => ownOf(cluster).has(name))
      if (!missing.every(isKnown)) await untilListed()
    },
    untilListed,
    unlisted: () => unlisted().map(({ name }) => name),
    targets,
    at(target) {
      const reached = clusters.list().filter((cluster) => isTarget(cluster, target))
      const { groups: byGroup, clusters: byCluster } = targets()
      const there = 'group' in target ? byGroup.get(target.group) : byCluster.get(target.cluster)
      const own = there?.own ?? new Set()
      const connectorThere = (catalog: string): Connector | undefined =>
        reached[0] && own.has(catalog)
          ? connectorOf(catalog, reached[0].group, reached.every(decidesItself))
          : undefined
      return {
        names: () => [...local.names(), ...own],
        get: (catalog) => local.get(catalog) ?? connectorThere(catalog),
      }
    },
    metadataOf: (group) => metadataOf(group).of(undefined),
    decidesItself: decides,
    drop(target, changed) {
      const changedGroups = clusters
        .list()
        .filter((cluster) => isTarget(cluster, target))
        .map(({ group }) => group)
      for (const group of new Set(changedGroups)) groups.get(group)?.drop(changed)
    },
  }
}

function common(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...a].filter((one) => b.has(one)))
}
