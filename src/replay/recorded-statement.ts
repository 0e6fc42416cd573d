import { z } from 'zod'
import {
  queryEventSchemas,
  tableAccessSchema,
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
  /** The snapshots of the tables that the query read, by `catalog.schema.table`, as far as the record has them. */
  readonly snapshots: ReadonlyMap<string, string>
  /** The shape of the statement, as the history shows it; undefined if it is not in the record. */
  readonly fingerprint: string | undefined
}

export type ReadStatement =
  | { readonly kind: 'statement'; readonly statement: RecordedStatement }
  | {
      readonly kind: 'skipped'
      readonly queryId: string
      readonly createdAt: string
      readonly reason: SkipReason
      /** Undefined if the record does not have it any more. */
      readonly session?: QuerySession | undefined
    }

/** The kinds of statements that a replay runs. */
const QUERIES: ReadonlySet<string> = new Set(['SELECT'])
/** The kinds of statements that a shadow runs: also those that show or explain something. */
export const READS: ReadonlySet<string> = new Set(['SELECT', 'DESCRIBE', 'EXPLAIN'])

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
  fingerprint: true,
}).extend({
  write: z.unknown().optional(),
})

/**
 * The statement of a query, or the reason why it must not run again: only statements that were recorded as reads do.
 * @param events the first events of the query, in order
 * @param types the kinds of statements that may run. A statement of these kinds that writes never runs
 */
export function recordedStatement(
  queryId: string,
  events: readonly ListedEvent[],
  types: ReadonlySet<string> = QUERIES,
): ReadStatement {
  const first = events[0]
  const createdAt = first?.time ?? ''
  const creation = created.safeParse(dataOf(events, 'QueryCreated'))
  const skipped = (reason: SkipReason): ReadStatement => ({
    kind: 'skipped',
    queryId,
    createdAt,
    reason,
    session: creation.data?.session,
  })
  if (!creation.success) return skipped('forgotten')
  const { sql, redacted, session } = creation.data
  if (redacted) return skipped('secrets')
  const plan = planned.safeParse(dataOf(events, 'QueryPlanned'))
  if (!plan.success) return skipped('notAnalysed')
  const { queryType, tables, write, ordered, columns, outline, fingerprint } = plan.data
  if (write !== undefined || tables.some(({ mode }) => mode === 'WRITE')) return skipped('write')
  if (!types.has(queryType)) return skipped('notAQuery')
  return {
    kind: 'statement',
    statement: {
      queryId,
      createdAt,
      sql,
      session,
      ordered,
      columns,
      outline,
      snapshots: snapshotsOf(tables),
      fingerprint: fingerprint && `v${fingerprint.version}-${fingerprint.hash}`,
    },
  }
}

/**
 * The snapshots of the tables that a query read, by `catalog.schema.table`. Tables without a known snapshot are
 * missing.
 */
export function snapshotsIn(events: readonly ListedEvent[]): ReadonlyMap<string, string> {
  const plan = planned.safeParse(dataOf(events, 'QueryPlanned'))
  return snapshotsOf(plan.success ? plan.data.tables : [])
}

function snapshotsOf(tables: readonly z.infer<typeof tableAccessSchema>[]): ReadonlyMap<string, string> {
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
