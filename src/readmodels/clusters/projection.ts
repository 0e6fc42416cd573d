import { z } from 'zod'
import { clusterEventOf } from '../../coordinator/clusters/decode-event.ts'
import { clusterStreamPrefix } from '../../coordinator/clusters/events.ts'
import { evolveCluster, type RecordedCluster } from '../../coordinator/clusters/evolve.ts'
import { clusterHealths, clusterStates } from '../../coordinator/clusters/state.ts'
import type { Recorded } from '../../events/event-log.ts'
import type { QueryRows, TableWrite } from '../../events/projection.ts'
import { storableText } from '../../events/storable-text.ts'
import { clusterNameSchema } from '../../shared/id-schemas.ts'
import { defineTable, selected } from '../table.ts'

export const clustersTable = defineTable('clusters', ['name'], {
  name: 'text',
  url: 'text',
  cluster_group: 'text',
  digest: 'text',
  present: 'boolean',
  state: 'text',
  state_by: 'text null',
  state_reason: 'text null',
  state_since: 'timestamptz null',
  health: 'text',
  health_reason: 'text null',
  health_since: 'timestamptz',
  last_sequence: 'bigint',
})

/** A cluster of the read models, with the sequence of its last event there. */
export interface StoredCluster extends RecordedCluster {
  readonly sequence: number
}

const COLUMNS = selected(clustersTable.row)
const clusterRow = clustersTable.row.extend({
  name: clusterNameSchema,
  state: z.enum(clusterStates),
  health: z.enum(clusterHealths),
})

/** All clusters that the read models know. */
export async function readKnownClusters(query: QueryRows): Promise<readonly StoredCluster[]> {
  return (await query(`select ${COLUMNS} from clusters order by name`, [])).map(storedCluster)
}

/** Begins a batch of cluster events: reads the rows of their clusters. */
export async function beginClusters(events: readonly Recorded[], query: QueryRows): Promise<ClusterBatch> {
  const names = [...new Set(events.map(nameOf))]
  const rows = names.length === 0 ? [] : await query(`select ${COLUMNS} from clusters where name = any($1)`, [names])
  return new ClusterBatch(rows.map(storedCluster))
}

class ClusterBatch {
  readonly #clusters: Map<string, StoredCluster>
  readonly #changed = new Set<string>()

  constructor(clusters: readonly StoredCluster[]) {
    this.#clusters = new Map(clusters.map((cluster) => [cluster.name, cluster]))
  }

  /** Applies an event. @throws ZodError when the data does not fit the type */
  apply(recorded: Recorded): void {
    const event = recorded.forgotten ? undefined : clusterEventOf(recorded)
    if (!event) return
    const name = nameOf(recorded)
    const next = evolveCluster(this.#clusters.get(name), event)
    if (!next) return
    this.#clusters.set(name, { ...next, sequence: recorded.sequence })
    this.#changed.add(name)
  }

  writes(): readonly TableWrite[] {
    const rows = [...this.#changed].map((name) => rowOf(this.#clusters.get(name)!))
    const write = clustersTable.upsert(rows)
    return write ? [write] : []
  }
}

function nameOf({ stream }: Recorded): string {
  return stream.slice(clusterStreamPrefix.length)
}

function rowOf(cluster: StoredCluster): z.output<typeof clustersTable.row> {
  const { name, url, group, digest, present, state, stateBy, stateReason, stateSince } = cluster
  const { health, healthReason, healthSince, sequence } = cluster
  return {
    name,
    url,
    cluster_group: group,
    digest,
    present,
    state,
    state_by: stateBy === undefined ? null : storableText(stateBy),
    state_reason: stateReason === undefined ? null : storableText(stateReason),
    state_since: stateSince ?? null,
    health,
    health_reason: healthReason === undefined ? null : storableText(healthReason),
    health_since: healthSince,
    last_sequence: sequence,
  }
}

function storedCluster(row: unknown): StoredCluster {
  const { cluster_group: group, last_sequence: sequence, ...stored } = clusterRow.parse(row)
  return {
    name: stored.name,
    url: stored.url,
    group,
    digest: stored.digest,
    present: stored.present,
    state: stored.state,
    stateBy: stored.state_by ?? undefined,
    stateReason: stored.state_reason ?? undefined,
    stateSince: stored.state_since ?? undefined,
    health: stored.health,
    healthReason: stored.health_reason ?? undefined,
    healthSince: stored.health_since,
    sequence,
  }
}
