import type { ClusterName } from '../../shared/ids.ts'
import type { ClusterHealth, ClusterState } from './state.ts'

/** A cluster that answers delegated statements, as its file describes it. */
export interface Cluster {
  readonly name: ClusterName
  /** Origin of its coordinator, without credentials, path and query. */
  readonly url: URL
  readonly group: string
  /** Share of the group's statements that it gets, relative to the other clusters of the group. */
  readonly weight: number
  /** How many delegated statements run there at once; undefined: no limit. */
  readonly maxRunning: number | undefined
  /** The catalogs that statements may use there; undefined: all catalogs of the cluster. */
  readonly catalogs: ReadonlySet<string> | undefined
  /** Catalogs of this server that the cluster can read too, under the same name. */
  readonly mirrors: ReadonlySet<string>
  /**
   * The user of statements there. `caller`: the user of the statement. `service`: the user of this gateway's
   * credentials.
   */
  readonly runAs: 'caller' | 'service'
  /** Whether the cluster checks the rights of users. If all clusters of a route do so, this server checks none. */
  readonly enforcesAccess: boolean
  /** The cluster abandons a statement whose client sends no request for this time, milliseconds. */
  readonly clientTimeoutMs: number
  /** The path that health checks request. */
  readonly healthPath: string
  /**
   * Request headers that authenticate this gateway. Read at each use, so that their files may be replaced.
   * @throws Error when a file cannot be read
   */
  readonly credentials: () => Promise<Readonly<Record<string, string>>>
  readonly tls: ClusterTls | undefined
  /** SHA-256 of the file, hex. */
  readonly digest: string
}

/** Whether a cluster checks the rights of the statement's own user. */
export function decidesItself({ enforcesAccess, runAs }: Pick<Cluster, 'enforcesAccess' | 'runAs'>): boolean {
  return enforcesAccess && runAs === 'caller'
}

/** PEM texts for TLS connections to a cluster. */
export interface ClusterTls {
  /** The authorities whose certificates the cluster may have, in place of the public ones. */
  readonly ca?: Buffer
  /** Certificate that identifies this gateway, with its key. */
  readonly cert?: Buffer
  readonly key?: Buffer
}

/** A cluster with its condition now. */
export interface ClusterView extends Cluster {
  readonly state: ClusterState
  readonly health: ClusterHealth
  /** The reason for the state; for an ACTIVE cluster, the reason for its health. */
  readonly reason: string | undefined
  /** The user that asked for the state; undefined if no user did. */
  readonly by: string | undefined
  /** The time since which it has the state; for an ACTIVE cluster, the time since which it has the health. ISO time. */
  readonly since: string | undefined
  /** Delegated statements that run there. */
  readonly running: number
  /** Statements that wait for a slot there. A statement that waits for a group counts at each cluster of the group. */
  readonly waiting: number
  /** The version that the last successful check found. */
  readonly version: string | undefined
  readonly lastCheck: LastCheck | undefined
}

/** Whether a cluster takes new statements. */
export function isClusterOpen({ state, health }: Pick<ClusterView, 'state' | 'health'>): boolean {
  return state === 'ACTIVE' && health === 'HEALTHY'
}

/** The newest check that has ended. */
export interface LastCheck {
  /** ISO time of its beginning. */
  readonly at: string
  readonly milliseconds: number
  readonly result: 'ready' | 'starting' | 'failed'
  /** The reason of a failure. */
  readonly error?: string
}

/** The clusters, and the slots for statements at them. */
export interface ClusterDirectory {
  /** Resolves once the clusters of the files are known. */
  readonly ready: Promise<void>
  list(): readonly ClusterView[]
  byName(name: string): ClusterView | undefined
  groups(): ReadonlyMap<string, readonly ClusterView[]>
  /**
   * Takes a slot at an ACTIVE and HEALTHY cluster: at the one with the fewest running statements for its weight. Waits
   * while all of them are full. Users that wait get slots in rotation.
   * @param asker `avoid` names a cluster that just failed. It is used only if no other cluster of the target is open
   * @throws EngineError NO_NODES_AVAILABLE when no cluster of the target is ACTIVE and HEALTHY for too long; the signal's
   * reason once it is aborted
   */
  slot(target: ClusterTarget, asker: SlotAsker): Promise<ClusterSlot>
  /**
   * Takes a slot for a statement of an earlier coordinator that already runs at the cluster, even beyond its limit.
   * @returns undefined when no file describes the cluster
   */
  adopt(name: string): ClusterSlot | undefined
  /** Reports the outcome of a request to a cluster, which counts for its health. */
  outcome(name: string, error: Error | undefined): void
}

export type ClusterTarget = { readonly group: string } | { readonly cluster: string }

export interface SlotAsker {
  readonly user: string
  readonly signal: AbortSignal
  readonly avoid?: string
}

/** The right to run one statement at a cluster, until `leave` is called. */
export interface ClusterSlot {
  readonly cluster: Cluster
  /** Frees the slot, once the statement no longer runs at the cluster. A second call does nothing. */
  leave(): void
}
