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
  return new ListedCatalogs(deps)
}

class ListedCatalogs implements ClusterCatalogs {
  readonly #deps: ClusterCatalogsDeps
  readonly #groups = new Map<string, ClusterMetadata<ClusterView>>()
  readonly #localNames: ReadonlySet<string>
  /** The catalogs of lists that this server does not have. */
  readonly #owns = new WeakMap<ReadonlySet<string>, ReadonlySet<string>>()

  constructor(deps: ClusterCatalogsDeps) {
    this.#deps = deps
    this.#localNames = new Set(deps.local.names())
  }

  names(): string[] {
    return [...new Set(this.#clusters().flatMap((cluster) => [...this.#ownOf(cluster)]))].toSorted()
  }

  get(catalog: string): Connector | undefined {
    const group = this.#groupOf(catalog)
    return group === undefined ? undefined : this.#connectorOf(catalog, group, this.decidesItself(catalog))
  }

  async untilKnown(names: readonly string[]): Promise<void> {
    const missing = names.filter((name) => !this.#localNames.has(name))
    if (missing.length === 0) return
    const all = this.#clusters()
    const isKnown = (name: string): boolean => all.some((cluster) => this.#ownOf(cluster).has(name))
    if (!missing.every(isKnown)) await this.untilListed()
  }

  async untilListed(): Promise<void> {
    // A cluster that is known to be away is not waited for each time.
    const waited = this.#unlisted()
      .filter(({ health }) => health !== 'UNHEALTHY')
      .map((cluster) => this.#metadataOf(cluster.group).listed(cluster))
    if (waited.length > 0)
      await settlesWithin(
        Promise.all(waited).then(() => {}),
        FIRST_LIST_MS,
      )
  }

  unlisted(): readonly string[] {
    return this.#unlisted().map(({ name }) => name)
  }

  targets(): GroupCatalogs {
    const byCluster = new Map<string, RemoteCatalogs>()
    const byGroup = new Map<string, RemoteCatalogs>()
    for (const cluster of this.#clusters()) {
      const { name, group, mirrors } = cluster
      const listed = this.#listOf(cluster)
      byCluster.set(name, { own: listed ?? new Set(), mirrors })
      const before = byGroup.get(group)
      // A cluster that has not listed its catalogs says nothing about the group.
      const own = before && listed ? common(before.own, listed) : (listed ?? before?.own)
      byGroup.set(group, { own: own ?? new Set(), mirrors: before ? common(before.mirrors, mirrors) : mirrors })
    }
    return { local: this.#localNames, groups: byGroup, clusters: byCluster }
  }

  at(target: ClusterTarget): Catalogs {
    const { local } = this.#deps
    const reached = this.#clusters().filter((cluster) => isTarget(cluster, target))
    const { groups: byGroup, clusters: byCluster } = this.targets()
    const there = 'group' in target ? byGroup.get(target.group) : byCluster.get(target.cluster)
    const own = there?.own ?? new Set()
    const connectorThere = (catalog: string): Connector | undefined =>
      reached[0] && own.has(catalog)
        ? this.#connectorOf(catalog, reached[0].group, reached.every(decidesItself))
        : undefined
    return {
      names: () => [...local.names(), ...own],
      get: (catalog) => local.get(catalog) ?? connectorThere(catalog),
    }
  }

  metadataOf(group: string): ServerMetadata {
    return this.#metadataOf(group).of(undefined)
  }

  decidesItself(catalog: string): boolean {
    const all = this.#clusters()
    const having = new Set(all.filter((cluster) => this.#ownOf(cluster).has(catalog)).map(({ group }) => group))
    return having.size > 0 && all.every((cluster) => !having.has(cluster.group) || decidesItself(cluster))
  }

  drop(target: ClusterTarget, changed: ChangedScope): void {
    const changedGroups = this.#clusters()
      .filter((cluster) => isTarget(cluster, target))
      .map(({ group }) => group)
    for (const group of new Set(changedGroups)) this.#groups.get(group)?.drop(changed)
  }

  #clusters(): readonly ClusterView[] {
    return this.#deps.clusters.list()
  }

  #metadataOf(group: string): ClusterMetadata<ClusterView> {
    const known = this.#groups.get(group)
    if (known) return known
    const { withinMs, runOnCluster, now } = this.#deps
    const made = createClusterMetadata<ClusterView>({
      group,
      nameOf: ({ name }) => name,
      // A cluster whose file has changed is another cluster.
      keyOf: ({ name, digest }) => `${name} ${digest}`,
      open: (catalog) => this.#openIn(group, catalog),
      withinMs,
      runOnCluster,
      now,
    })
    this.#groups.set(group, made)
    return made
  }

  /**
   * The clusters of a group that may answer a question about a catalog, the best first. A cluster that seems to be away
   * is asked if there is no other: its checks may fail on a busy machine.
   */
  #openIn(group: string, catalog: string): readonly ClusterView[] {
    return this.#clusters()
      .filter((cluster) => cluster.group === group && cluster.state === 'ACTIVE')
      .filter((cluster) => cluster.mirrors.has(catalog) || this.#ownOf(cluster).has(catalog))
      .toSorted(
        (a, b) => Number(isClusterOpen(b)) - Number(isClusterOpen(a)) || a.running / a.weight - b.running / b.weight,
      )
  }

  /** The catalogs that only the cluster has; undefined while it has not listed them. */
  #listOf(cluster: ClusterView): ReadonlySet<string> | undefined {
    const given = cluster.catalogs ?? this.#metadataOf(cluster.group).catalogs(cluster)
    if (!given) return undefined
    const isOwn = (name: string): boolean => !this.#localNames.has(name) && !OWN_CATALOGS.has(name)
    const made = this.#owns.get(given) ?? new Set([...given].filter(isOwn))
    this.#owns.set(given, made)
    return made
  }

  #ownOf(cluster: ClusterView): ReadonlySet<string> {
    return this.#listOf(cluster) ?? new Set()
  }

  #unlisted(): readonly ClusterView[] {
    return this.#clusters().filter((cluster) => !this.#listOf(cluster))
  }

  /** The group whose metadata lists show for a catalog. */
  #groupOf(catalog: string): string | undefined {
    const having = this.#clusters().filter((cluster) => this.#ownOf(cluster).has(catalog))
    const names = (of: readonly ClusterView[]): string | undefined => of.map(({ group }) => group).toSorted()[0]
    return names(having.filter(isClusterOpen)) ?? names(having)
  }

  #connectorOf(catalog: string, group: string, theyDecide: boolean): Connector {
    const { of } = this.#metadataOf(group)
    return this.#deps.connect({ catalog, group, metadata: of(undefined), forUser: theyDecide ? of : undefined })
  }
}

function common(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...a].filter((one) => b.has(one)))
}
