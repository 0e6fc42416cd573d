import type { ArchivedName } from '../archive/archived-tables.ts'

/** How a column of the history is read from the read models. */
export interface HistoryColumn {
  /** SQL over the table's `from`. */
  readonly sql: string
  readonly type: 'text' | 'bigint' | 'double precision' | 'boolean' | 'timestamptz' | 'jsonb'
  /**
   * Whether the column can be NULL. Only then does an order say where NULL stands: an index on other columns would not
   * match it.
   */
  readonly nullable: boolean
  /** Number of first characters that its index holds. */
  readonly indexed?: number
  /** SQL over the archive's files, which have more columns than the tables. */
  readonly archived?: string
}

/** A table of the history, defined over the read models. */
export interface HistoryView {
  readonly from: string
  /** Tables of the `from` that are archived; none when all rows stay in the read models. */
  readonly archived: readonly ArchivedName[]
  readonly where?: string
  /** Says which users may see a row. */
  readonly owner: HistoryOwner
  readonly columns: Readonly<Record<string, HistoryColumn>>
}

/**
 * The users that may see a row. `query`: users who may see the query with the id in this column. `self`: the row is a
 * query; users who may see it. `person`: the user that the first text names, and the logged-in user that the second
 * text names, when they acted as another user.
 */
export type HistoryOwner =
  | { readonly kind: 'query'; readonly id: string }
  | { readonly kind: 'self' }
  | { readonly kind: 'person'; readonly user: string; readonly originalUser?: string }

type Type = HistoryColumn['type']

const column =
  (type: Type) =>
  (sql: string, more: Partial<HistoryColumn> = {}): HistoryColumn => ({ sql, type, nullable: true, ...more })
const text = column('text')
const bigint = column('bigint')
const double = column('double precision')
const bool = column('boolean')
const time = column('timestamptz')
const list = column('jsonb')

const NEVER_NULL = { nullable: false } as const

function access(mode: 'READ' | 'WRITE'): HistoryView {
  return {
    from: 'table_access t',
    archived: ['table_access'],
    where: `t.mode = '${mode}'`,
    owner: { kind: 'query', id: 't.query_id' },
    columns: {
      query_id: text('t.query_id', NEVER_NULL),
      user: text('t.user_name', NEVER_NULL),
      time: time('t.at', NEVER_NULL),
      catalog_name: text('t.catalog_name', { nullable: false, indexed: 100 }),
      schema_name: text('t.schema_name', { nullable: false, indexed: 100 }),
      table_name: text('t.table_name', { nullable: false, indexed: 200 }),
      columns: list('t.columns', NEVER_NULL),
    },
  }
}

export const historyViews = {
  queries: {
    from: 'queries q',
    archived: ['queries'],
    owner: { kind: 'self' },
    columns: {
      query_id: text('q.query_id', NEVER_NULL),
      state: text('q.state', NEVER_NULL),
      user: text('q.user_name', { nullable: false, indexed: 200 }),
      original_user: text(`(q.details->'session'->>'originalUser')`, { indexed: 200, archived: 'q.original_user' }),
      source: text('q.source'),
      catalog_name: text('q.catalog_name'),
      schema_name: text('q.schema_name'),
      resource_group: text('q.resource_group', NEVER_NULL),
      query_type: text('q.query_type'),
      update_type: text('q.update_type'),
      query: text('q.sql_text', NEVER_NULL),
      created: time('q.created_at', NEVER_NULL),
      started: time('q.execution_started_at'),
      ended: time('q.ended_at'),
      elapsed_ms: double('q.elapsed_ms'),
      queued_ms: double('q.queued_ms'),
      analysis_ms: double('q.analysis_ms'),
      planning_ms: double('q.planning_ms'),
      cpu_ms: double('q.cpu_ms'),
      scheduled_ms: double('q.scheduled_ms'),
      blocked_ms: double('q.blocked_ms'),
      peak_memory_bytes: bigint('q.peak_memory_bytes'),
      spilled_bytes: bigint('q.spilled_bytes'),
      raw_input_rows: bigint('q.raw_input_rows'),
      raw_input_bytes: bigint('q.raw_input_bytes'),
      processed_input_rows: bigint('q.processed_input_rows'),
      processed_input_bytes: bigint('q.processed_input_bytes'),
      output_rows: bigint('q.output_rows'),
      output_bytes: bigint('q.output_bytes'),
      update_count: bigint('q.update_count'),
      tasks: bigint('q.total_tasks'),
      splits: bigint('q.total_splits'),
      retries: bigint('q.retries', NEVER_NULL),
      recoveries: bigint('q.recoveries', NEVER_NULL),
      error_code: bigint('q.error_code'),
      error_name: text('q.error_name'),
      error_type: text('q.error_type'),
      error_message: text('q.error_message'),
      trace_id: text('q.trace_id'),
      partial: bool('q.partial', NEVER_NULL),
      result_lost: bool('q.result_lost', NEVER_NULL),
      incomplete: bool('q.incomplete', NEVER_NULL),
    },
  },
  tasks: {
    from: 'tasks t',
    archived: ['tasks'],
    owner: { kind: 'query', id: 't.query_id' },
    columns: {
      task_id: text('t.task_id', NEVER_NULL),
      query_id: text('t.query_id', NEVER_NULL),
      stage_id: bigint('t.stage_id', NEVER_NULL),
      attempt: bigint('t.attempt', NEVER_NULL),
      retry_of: text('t.retry_of'),
      retry_reason: text('t.retry_reason'),
      node_id: text('t.node_id', NEVER_NULL),
      state: text('t.state', NEVER_NULL),
      created: time('t.created_at', NEVER_NULL),
      started: time('t.started_at'),
      ended: time('t.ended_at'),
      elapsed_ms: double('t.elapsed_ms'),
      queued_ms: double('t.queued_ms'),
      cpu_ms: double('t.cpu_ms'),
      scheduled_ms: double('t.scheduled_ms'),
      blocked_ms: double('t.blocked_ms'),
      splits: bigint('t.splits', NEVER_NULL),
      completed_splits: bigint('t.completed_splits', NEVER_NULL),
      peak_memory_bytes: bigint('t.peak_memory_bytes'),
      spilled_bytes: bigint('t.spilled_bytes'),
      raw_input_rows: bigint('t.raw_input_rows'),
      raw_input_bytes: bigint('t.raw_input_bytes'),
      processed_input_rows: bigint('t.processed_input_rows'),
      processed_input_bytes: bigint('t.processed_input_bytes'),
      output_rows: bigint('t.output_rows'),
      output_bytes: bigint('t.output_bytes'),
      error_name: text('t.error_name'),
      error_message: text('t.error_message'),
    },
  },
  operators: {
    from: 'operators o',
    archived: ['operators'],
    owner: { kind: 'query', id: 'o.query_id' },
    columns: {
      query_id: text('o.query_id', NEVER_NULL),
      stage_id: bigint('o.stage_id', NEVER_NULL),
      task_id: text('o.task_id', NEVER_NULL),
      pipeline_id: bigint('o.pipeline_id', NEVER_NULL),
      operator_id: bigint('o.operator_id', NEVER_NULL),
      operator_type: text('o.operator_type', NEVER_NULL),
      engine_operator: text('o.engine_operator', NEVER_NULL),
      input_rows: bigint('o.input_rows', NEVER_NULL),
      output_rows: bigint('o.output_rows', NEVER_NULL),
      estimated_rows: double('o.estimated_rows'),
      input_bytes: bigint('o.input_bytes', NEVER_NULL),
      output_bytes: bigint('o.output_bytes', NEVER_NULL),
      time_ms: double('o.time_ms', NEVER_NULL),
      blocked_ms: double('o.blocked_ms', NEVER_NULL),
      ended: time('o.ended_at'),
    },
  },
  events: {
    from: 'query_events e',
    archived: ['query_events'],
    // Streams of the system and of nodes belong to no query: only users who see everything see their events.
    owner: { kind: 'query', id: 'e.stream' },
    columns: {
      stream: text('e.stream', NEVER_NULL),
      sequence: bigint('e.sequence', NEVER_NULL),
      epoch: bigint('e.epoch', NEVER_NULL),
      type: text('e.type', NEVER_NULL),
      version: bigint('e.v', NEVER_NULL),
      time: time('e."time"', NEVER_NULL),
      hash: text('e.hash', NEVER_NULL),
      forgotten: bool('e.forgotten', NEVER_NULL),
    },
  },
  tables_read: access('READ'),
  tables_written: access('WRITE'),
  columns_read: {
    from: 'columns_read c join table_access t on t.query_id = c.query_id and t.ordinal = c.table_ordinal',
    archived: ['columns_read', 'table_access'],
    owner: { kind: 'query', id: 'c.query_id' },
    columns: {
      query_id: text('c.query_id', NEVER_NULL),
      user: text('t.user_name', NEVER_NULL),
      time: time('t.at', NEVER_NULL),
      catalog_name: text('t.catalog_name', { nullable: false, indexed: 100 }),
      schema_name: text('t.schema_name', { nullable: false, indexed: 100 }),
      table_name: text('t.table_name', { nullable: false, indexed: 200 }),
      column_name: text('c.column_name', NEVER_NULL),
      output_name: text('c.output_name'),
      transformation: text('c.direct'),
      effects: list('c.indirect', NEVER_NULL),
      masked: bool('c.masked', NEVER_NULL),
    },
  },
  log_ins: {
    from: 'audit_log a',
    archived: [],
    where: `a.kind in ('LoggedIn', 'AuthenticationFailed')`,
    owner: { kind: 'person', user: `(a.details->>'user')` },
    columns: {
      time: time('a.at', NEVER_NULL),
      outcome: text(`(case a.kind when 'LoggedIn' then 'LOGGED_IN' else 'REFUSED' end)`),
      user: text(`(a.details->>'user')`, { indexed: 200 }),
      principal: text(`(a.details->>'principal')`),
      method: text(`(a.details->>'method')`),
      groups: list(`(a.details->'groups')`),
      remote_address: text('a.remote_address'),
      attempts: bigint('a.count', NEVER_NULL),
    },
  },
  refusals: {
    from: 'audit_log a',
    archived: [],
    where: `a.kind = 'AccessDenied'`,
    owner: { kind: 'person', user: `(a.details->>'user')`, originalUser: `(a.details->>'originalUser')` },
    columns: {
      time: time('a.at', NEVER_NULL),
      user: text(`(a.details->>'user')`, { indexed: 200 }),
      original_user: text(`(a.details->>'originalUser')`),
      action: text('a.action'),
      object: text('a.object'),
      query_id: text('a.query_id'),
      remote_address: text('a.remote_address'),
      attempts: bigint('a.count', NEVER_NULL),
    },
  },
  replays: {
    from: `audit_log a left join lateral (
      select l.at, l.kind, l.details from audit_log l
      where l.kind in ('ReplayProgressed', 'ReplayEnded')
        and left(l.details->>'replayId', 64) = left(a.details->>'replayId', 64)
        and l.details->>'replayId' = a.details->>'replayId' and l.details->>'by' = a.details->>'by'
      order by l.sequence desc limit 1) p on true`,
    archived: [],
    where: `a.kind = 'ReplayStarted'`,
    owner: { kind: 'person', user: `(a.details->>'by')`, originalUser: `(a.details->>'originalUser')` },
    columns: {
      replay_id: text(`(a.details->>'replayId')`),
      user: text(`(a.details->>'by')`),
      original_user: text(`(a.details->>'originalUser')`),
      started: time('a.at', NEVER_NULL),
      last_told: time('coalesce(p.at, a.at)', NEVER_NULL),
      ended: time(`(case p.kind when 'ReplayEnded' then p.at end)`),
      outcome: text(`(case p.kind when 'ReplayEnded' then p.details->>'outcome' end)`),
      mode: text(`(a.details->>'mode')`),
      baseline: text(`(a.details->>'baseline')`),
      against: text(`(a.details->>'against')`),
      as_recorded: bool(`((a.details->>'asRecorded')::boolean)`),
      statements: bigint(`((a.details->>'statements')::bigint)`),
      filter: text(`((a.details->'filter')::text)`),
      verdicts: text(`((p.details->'verdicts')::text)`),
    },
  },
} as const satisfies Readonly<Record<string, HistoryView>>

export type HistoryViewName = keyof typeof historyViews
