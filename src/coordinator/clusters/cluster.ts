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
  /** The catalogs that it answers for; undefined: all that it has. */
  readonly catalogs: ReadonlySet<string> | undefined
  /** Local catalogs that it reads too, under the same name. */
  readonly mirrors: ReadonlySet<string>
  /** As whom statements run there: the user of the statement, or the user that authenticates this gateway. */
  readonly runAs: 'caller' | 'service'
  /** Whether its own rules decide about filters, masks and columns of the user. */
  readonly enforcesAccess: boolean
  /** Time after which it abandons a statement whose client does not ask, milliseconds. */
  readonly clientTimeoutMs: number
  /** Path of the resource that says whether it is ready. */
  readonly healthPath: string
  /**
   * Request headers that authenticate this gateway. Read at each use, so that the files may change.
   * @throws Error when a file cannot be read
   */
  readonly credentials: () => Promise<Readonly<Record<string, string>>>
  readonly tls: ClusterTls | undefined
  /** SHA-256 of the file, hex. */
  readonly digest: string
}

/** PEM texts for TLS connections to a cluster. */
export interface ClusterTls {
  /** Authorities that vouch for the cluster, in place of the public ones. */
  readonly ca?: Buffer
  /** Certificate that identifies this gateway, with its key. */
  readonly cert?: Buffer
  readonly key?: Buffer
}

/** A cluster with its condition now. */
export interface ClusterView extends Cluster {
  readonly state: ClusterState
  readonly health: ClusterHealth
  /** Why it is in this state; where it is ACTIVE, why it has this health. */
  readonly reason: string | undefined
  /** Who asked for the state; undefined where nobody asked. */
  readonly by: string | undefined
  /** When the state began; where it is ACTIVE, when the health began. ISO time. */
  readonly since: string | undefined
  /** Delegated statements that run there. */
  readonly running: number
  /** Statements that wait for a slot there. Those that wait for its group count at each cluster of the group. */
  readonly waiting: number
  /** Its version, as the last check found it. */
  readonly version: string | undefined
  readonly lastCheck: LastCheck | undefined
}

/** The last check that has ended. */
export interface LastCheck {
  /** ISO time of its beginning. */
  readonly at: string
  readonly milliseconds: number
  readonly result: 'ready' | 'starting' | 'failed'
  /** Why it failed. */
  readonly error?: string
}

/** The clusters, and slots to run statements there. */
export interface ClusterDirectory {
  /** Resolves once the clusters of the files are known. */
  readonly ready: Promise<void>
  list(): readonly ClusterView[]
  byName(name: string): ClusterView | undefined
  groups(): ReadonlyMap<string, readonly ClusterView[]>
  /**
   * Takes a slot at an ACTIVE and HEALTHY cluster: at the one with the fewest running statements for its weight. Waits
   * while all are full; users go in turn.
   * @param asker `avoid` names a cluster that just failed: it is taken only where no other one of the target is open
   * @throws EngineError NO_NODES_AVAILABLE when no cluster of the target is ACTIVE and HEALTHY for too long; the signal's
   * reason once it is aborted
   */
  slot(target: ClusterTarget, asker: SlotAsker): Promise<ClusterSlot>
  /**
   * Counts a statement that already runs at a cluster, whatever its limit is: a successor goes on with it.
   * @returns undefined when no file describes the cluster
   */
  adopt(name: string): ClusterSlot | undefined
  /** Takes the outcome of a request to a cluster, for its health. */
  outcome(name: string, error: Error | undefined): void
}

export type ClusterTarget = { readonly group: string } | { readonly cluster: string }

export interface SlotAsker {
  readonly user: string
  readonly signal: AbortSignal
  readonly avoid?: string
}

/** The right to run one statement at a cluster, until it is left. */
export interface ClusterSlot {
  readonly cluster: Cluster
  /** Frees the slot: nothing of the statement runs there any more. Safe to call twice. */
  leave(): void
}
