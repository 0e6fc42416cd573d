import type { Clock } from '../../shared/clock.ts'
import type { Cluster } from './cluster.ts'

interface Known {
  readonly names: ReadonlySet<string>
  /** Milliseconds, monotonic. */
  readonly at: number
}

export interface KnownCatalogsDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Asks a cluster for its catalogs. */
  readonly ask: (cluster: Cluster) => Promise<readonly string[]>
}

/** After this time the catalogs of a cluster are asked for again. Until the answer comes, the last answer counts. */
const FRESH_MS = 60_000
/** A cluster that did not answer is asked again after this time. */
const AGAIN_MS = 5_000

/**
 * Finds the catalogs of clusters: the catalogs that the file of a cluster names, else all catalogs of the cluster.
 * @returns a function that gives the catalogs of a cluster: an empty set if the cluster has never answered
 */
export function createKnownCatalogs({
  clock,
  ask,
}: KnownCatalogsDeps): (cluster: Cluster) => Promise<ReadonlySet<string>> {
  const known = new Map<string, Known>()
  const asking = new Map<string, Promise<ReadonlySet<string>>>()

  function refresh(cluster: Cluster): Promise<ReadonlySet<string>> {
    const { name, digest } = cluster
    const key = `${name} ${digest}`
    const running = asking.get(key)
    if (running) return running
    const asked = ask(cluster)
      .then((names) => known.set(key, { names: new Set(names), at: clock.monotonicMs() }))
      .catch(() =>
        known.set(key, { names: known.get(key)?.names ?? new Set(), at: clock.monotonicMs() - FRESH_MS + AGAIN_MS }),
      )
      .then(() => known.get(key)!.names)
      .finally(() => asking.delete(key))
    asking.set(key, asked)
    return asked
  }

  return async (cluster) => {
    if (cluster.catalogs) return cluster.catalogs
    const last = known.get(`${cluster.name} ${cluster.digest}`)
    if (!last) return refresh(cluster)
    if (clock.monotonicMs() - last.at > FRESH_MS) void refresh(cluster)
    return last.names
  }
}
