import type { z } from 'zod'
import {
  nodeEventSchemas,
  nodeStreamPrefix,
  type NodeEvent,
  type NodeEventType,
} from '../../coordinator/nodes/events.ts'
import type { Recorded } from '../../events/event-log.ts'
import type { QueryRows, TableWrite } from '../../events/projection.ts'
import { storableJson, storableText } from '../../events/storable-text.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { defineTable, selected } from '../table.ts'

export const nodesTable = defineTable('nodes', ['node_id'], {
  node_id: 'text',
  url: 'text',
  version: 'text',
  role: 'text',
  state: 'text',
  cores: 'double precision null',
  memory_bytes: 'bigint null',
  joined_at: 'timestamptz',
  changed_at: 'timestamptz',
  reason: 'text null',
  last_failure: 'jsonb null',
  last_sequence: 'bigint',
})

type NodeRow = z.output<typeof nodesTable.row>

/** Begins a batch of node events: reads the rows of their nodes. */
export async function beginNodes(events: readonly Recorded[], query: QueryRows): Promise<NodeBatch> {
  const ids = [...new Set(events.map((event) => event.stream.slice(nodeStreamPrefix.length)))]
  const rows =
    ids.length === 0 ? [] : await query(`select ${selected(nodesTable.row)} from nodes where node_id = any($1)`, [ids])
  return new NodeBatch(rows.map((row) => nodesTable.row.parse(row)))
}

class NodeBatch {
  readonly #rows: Map<string, NodeRow>
  readonly #changed = new Set<string>()

  constructor(rows: readonly NodeRow[]) {
    this.#rows = new Map(rows.map((row) => [row.node_id, row]))
  }

  /** Applies an event. @throws ZodError when the data does not fit the type */
  apply(recorded: Recorded): void {
    const event = parseNodeEvent(recorded)
    if (!event) return
    const { nodeId } = event.data
    this.#rows.set(nodeId, nextRow(this.#rows.get(nodeId), event, recorded.sequence))
    this.#changed.add(nodeId)
  }

  writes(): readonly TableWrite[] {
    const write = nodesTable.upsert([...this.#changed].map((nodeId) => this.#rows.get(nodeId)!))
    return write ? [write] : []
  }
}

function parseNodeEvent({ type, time, data, forgotten }: Recorded): NodeEvent | undefined {
  if (forgotten || !Object.hasOwn(nodeEventSchemas, type)) return undefined
  return { type, time, data: nodeEventSchemas[type as NodeEventType].parse(data) } as NodeEvent
}

function nextRow(before: NodeRow | undefined, event: NodeEvent, sequence: number): NodeRow {
  const { nodeId, url, version, role } = event.data
  const row: NodeRow = {
    cores: null,
    memory_bytes: null,
    joined_at: event.time,
    last_failure: null,
    ...before,
    node_id: storableText(nodeId),
    url: storableText(url),
    version: storableText(version),
    role,
    state: 'active',
    changed_at: event.time,
    reason: null,
    last_sequence: sequence,
  }
  switch (event.type) {
    case 'NodeJoined':
      return {
        ...row,
        joined_at: event.time,
        cores: event.data.cores,
        memory_bytes: Math.round(event.data.memoryBytes),
      }
    case 'NodeSuspected':
      return { ...row, state: 'suspect', reason: storableText(event.data.reason) }
    case 'NodeFailed':
      return {
        ...row,
        state: 'failed',
        reason: event.data.reason,
        last_failure: event.data.lastFailure ? storableJson(event.data.lastFailure) : row.last_failure,
      }
    case 'NodeRecovered':
      return row
    case 'NodeLeft':
      return { ...row, state: 'gone', reason: 'left' }
    default:
      return unreachable(event)
  }
}
