import { hasEventsOf, type Checkpoint, type Recorded } from '../../events/event-log.ts'
import { clusterEventOf } from './decode-event.ts'
import { clusterStreamPrefix } from './events.ts'
import { evolveCluster, type RecordedCluster } from './evolve.ts'

/**
 * The clusters as the log has them. Every coordinator folds their events while it follows the log, so that the next
 * writer knows at once which states operators asked for.
 */
export interface ClusterStates {
  get(name: string): RecordedCluster | undefined
  list(): readonly RecordedCluster[]
  /** Takes clusters from the read models, which contain all events before `from`. */
  restore(stored: readonly (RecordedCluster & { readonly sequence: number })[], from: Checkpoint): void
  /** Applies events of the log, in order. An event that was applied before changes nothing. */
  apply(events: readonly Recorded[], next?: Checkpoint): void
  /** Whether all events before `target` were applied. */
  hasReached(target: Checkpoint): boolean
}

export function createClusterStates(): ClusterStates {
  const clusters = new Map<string, { readonly cluster: RecordedCluster | undefined; readonly sequence: number }>()
  let reached: Checkpoint | undefined

  function take(event: Recorded): void {
    if (!event.stream.startsWith(clusterStreamPrefix)) return
    const name = event.stream.slice(clusterStreamPrefix.length)
    const known = clusters.get(name)
    if (known && event.sequence <= known.sequence) return
    const cluster = evolved(known?.cluster, event)
    clusters.set(name, { cluster, sequence: event.sequence })
  }

  return {
    get: (name) => clusters.get(name)?.cluster,
    list: () => [...clusters.values()].flatMap(({ cluster }) => cluster ?? []),
    restore(stored, from) {
      for (const { sequence, ...cluster } of stored) clusters.set(cluster.name, { cluster, sequence })
      reached = from
    },
    apply(events, next) {
      for (const event of events) take(event)
      if (next) reached = next
    },
    hasReached: (target) => reached !== undefined && hasEventsOf(reached, target),
  }
}

/** An event that cannot be read, or was forgotten, leaves the cluster as it was. */
function evolved(before: RecordedCluster | undefined, event: Recorded): RecordedCluster | undefined {
  if (event.forgotten) return before
  try {
    const known = clusterEventOf(event)
    return known ? evolveCluster(before, known) : before
  } catch {
    return before
  }
}
