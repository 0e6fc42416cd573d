import { z } from 'zod'
import {
  queryEventSchemas,
  type PlanOutline,
  type QueryEventType,
  type QuerySession,
} from '../coordinator/query/stream/events.ts'
import { upcastQueryEvent } from '../coordinator/query/stream/upcasters.ts'
import { cloudEventType } from '../events/envelope.ts'
import type { SkipReason } from './verdict.ts'

/** A statement, read from its query's events. */
export interface RecordedStatement {
  readonly queryId: string
  /** ISO UTC. */
  readonly createdAt: string
  readonly sql: string
  readonly session: QuerySession
  /** Whether the statement asks for an order of its result. */
  readonly ordered: boolean
  readonly columns: readonly { readonly name: string; readonly type: string }[]
  /** The plan; absent if it is not in the record. */
  readonly outline: PlanOutline | undefined
}

export type ReadStatement =
  | { readonly kind: 'statement'; readonly statement: RecordedStatement }
  | { readonly kind: 'skipped'; readonly queryId: string; readonly createdAt: string; readonly reason: SkipReason }

/** The fields that are read of an event from `GET /v1/query/{id}/events`. */
export const listedEventSchema = z.object({ type: z.string(), time: z.string(), data: z.unknown() })
export type ListedEvent = z.infer<typeof listedEventSchema>

const created = queryEventSchemas.QueryCreated.pick({ sql: true, redacted: true, session: true })
const planned = queryEventSchemas.QueryPlanned.pick({
  queryType: true,
  tables: true,
  ordered: true,
  columns: true,
  outline: true,
}).extend({
  write: z.unknown().optional(),
})

/**
 * The statement of a query, or the reason why it must not run again: only statements that were recorded as reads do.
 * @param events the first events of the query, in order
 */
export function recordedStatement(queryId: string, events: readonly ListedEvent[]): ReadStatement {
  const first = events[0]
  const createdAt = first?.time ?? ''
  const skipped = (reason: SkipReason): ReadStatement => ({ kind: 'skipped', queryId, createdAt, reason })
  const creation = created.safeParse(dataOf(events, 'QueryCreated'))
  if (!creation.success) return skipped('forgotten')
  const { sql, redacted, session } = creation.data
  if (redacted) return skipped('secrets')
  const plan = planned.safeParse(dataOf(events, 'QueryPlanned'))
  if (!plan.success) return skipped('notAnalysed')
  const { queryType, tables, write, ordered, columns, outline } = plan.data
  if (write !== undefined || tables.some(({ mode }) => mode === 'WRITE')) return skipped('write')
  if (queryType !== 'SELECT') return skipped('notAQuery')
  return { kind: 'statement', statement: { queryId, createdAt, sql, session, ordered, columns, outline } }
}

/**
 * The snapshots of the tables that a query read, by `catalog.schema.table`. Tables without a known snapshot are
 * missing.
 */
export function snapshotsIn(events: readonly ListedEvent[]): ReadonlyMap<string, string> {
  const plan = planned.safeParse(dataOf(events, 'QueryPlanned'))
  const tables = plan.success ? plan.data.tables : []
  return new Map(
    tables.flatMap(({ catalog, schema, table, snapshot }) =>
      snapshot === undefined ? [] : [[[catalog, schema, table].join('.'), snapshot] as const],
    ),
  )
}

/** The data of the first event of a type, in the current version. */
function dataOf(events: readonly ListedEvent[], name: QueryEventType): unknown {
  const unversioned = cloudEventType(name, 0).slice(0, -1)
  const event = events.find(({ type }) => type.startsWith(unversioned))
  return event && upcastQueryEvent(name, Number(event.type.slice(unversioned.length)), event.data)
}
