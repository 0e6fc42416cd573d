import type { ArchivedName } from '../archive/archived-tables.ts'
import { ACT_EVENTS, REPLAY_EVENTS } from '../audit/last-event.ts'
import { columnsReadTable, operatorsTable, queriesTable, tableAccessTable, tasksTable } from '../queries/tables.ts'
import { queryEventsTable } from '../query-events/table.ts'
import { historyQuestions } from './questions.ts'
import { splitColumn, type Columns, type ReadModelTable } from '../table.ts'

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
  /** The column is computed from the prices of the configuration. Without prices, its `sql` is used. */
  readonly priced?: 'cost' | 'currency'
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

const column =
  (type: HistoryColumn['type']) =>
  (sql: string, more: Partial<HistoryColumn> = {}): HistoryColumn => ({ sql, type, nullable: true, ...more })
const text = column('text')
const bigint = column('bigint')
const bool = column('boolean')
const time = column('timestamptz')
const list = column('jsonb')

const NEVER_NULL = { nullable: false } as const

type HistoryColumns = Readonly<Record<string, HistoryColumn>>

/** How the history shows the columns of a table; all that are not omitted. */
interface Showing<C extends Columns> {
  readonly omit: readonly (keyof C & string)[]
  /** Names in the history, where they differ. */
  readonly names?: Partial<Readonly<Record<keyof C, string>>>
  readonly indexed?: Partial<Readonly<Record<keyof C, number>>>
}

/** @param alias of the table in the view's `from` */
function columnsOf<C extends Columns>(table: ReadModelTable<C>, alias: string, showing: Showing<C>): HistoryColumns {
  const names = Object.keys(table.columns) as (keyof C & string)[]
  const shown = names.filter((name) => !showing.omit.includes(name))
  return Object.fromEntries(
    shown.map((name) => {
      const { type, nullable } = splitColumn(table.columns[name]!)
      const characters = showing.indexed?.[name]
      const made: HistoryColumn = {
        // A name that is also a type.
        sql: name === 'time' ? `${alias}."time"` : `${alias}.${name}`,
        type: type === 'integer' ? 'bigint' : type,
        nullable,
        ...(characters !== undefined && { indexed: characters }),
      }
      return [showing.names?.[name] ?? name, made]
    }),
  )
}

/** @param moved columns that do not stand where their table has them: each with the column that it follows */
function inOrder(columns: HistoryColumns, moved: Readonly<Record<string, string>>): HistoryColumns {
  const names = Object.keys(columns).filter((name) => moved[name] === undefined)
  for (const [name, before] of Object.entries(moved)) names.splice(names.indexOf(before) + 1, 0, name)
  return Object.fromEntries(names.map((name) => [name, columns[name]!]))
}

const TIMES = { created_at: 'created', started_at: 'started', ended_at: 'ended' } as const

/** @param table the name of the column with the name of the table or view */
function accessColumns(table: 'table_name' | 'view_name'): HistoryColumns {
  const columns = columnsOf(tableAccessTable, 't', {
    omit: ['ordinal', 'mode'],
    names: { user_name: 'user', at: 'time', table_name: table, via: 'views' },
    indexed: { catalog_name: 100, schema_name: 100, table_name: 200 },
  })
  return inOrder(
    { ...columns, access: text(`(case when t.via is null then 'DIRECT' else 'VIEW' end)`, NEVER_NULL) },
    { user: 'query_id', time: 'user', columns: table, access: 'columns', views: 'access' },
  )
}

function access(mode: 'READ' | 'WRITE' | 'VIEW', columns: HistoryColumns): HistoryView {
  return {
    from: 'table_access t',
    archived: ['table_access'],
    where: `t.mode = '${mode}'`,
    owner: { kind: 'query', id: 't.query_id' },
    columns,
  }
}

const readTable = accessColumns('table_name')
const { columns: _lists, ...accessedTable } = readTable
const { access: _access, views: _views, ...writtenTable } = readTable

export const historyViews = {
  queries: {
    from: 'queries q',
    archived: ['queries'],
    owner: { kind: 'self' },
    columns: inOrder(
      {
        ...columnsOf(queriesTable, 'q', {
          omit: [
            'header_family',
            'planned_at',
            'last_event_at',
            'wall_ms',
            'total_drivers',
            'completed_drivers',
            'completed_splits',
            'last_sequence',
            'epoch',
            'details',
          ],
          names: {
            user_name: 'user',
            sql_text: 'query',
            created_at: 'created',
            execution_started_at: 'started',
            ended_at: 'ended',
            total_tasks: 'tasks',
            total_splits: 'splits',
          },
          indexed: { user_name: 200, app: 100 },
        }),
        cost: column('double precision')('null::double precision', { archived: 'null::double', priced: 'cost' }),
        currency: text('null::text', { archived: 'null::varchar', priced: 'currency' }),
        // The name that OpenMetadata reads.
        end: time('q.ended_at'),
        original_user: text(`(q.details->'session'->>'originalUser')`, { indexed: 200, archived: 'q.original_user' }),
        rerun_of: text(`(q.details->'rerun'->>'queryId')`, {
          archived: `json_extract_string(q.details, '$.rerun.queryId')`,
        }),
      },
      {
        original_user: 'user',
        rerun_of: 'original_user',
        app: 'source',
        app_object: 'app',
        app_user: 'app_object',
        end: 'ended',
        route: 'trace_id',
      },
    ),
  },
  tasks: {
    from: 'tasks t',
    archived: ['tasks'],
    owner: { kind: 'query', id: 't.query_id' },
    columns: inOrder(
      columnsOf(tasksTable, 't', {
        omit: [
          'task_number',
          'node_url',
          'last_heartbeat_at',
          'queued_splits',
          'running_splits',
          'wall_ms',
          'memory_bytes',
          'details',
        ],
        names: TIMES,
      }),
      { cpu_ms: 'queued_ms', splits: 'blocked_ms', completed_splits: 'splits' },
    ),
  },
  operators: {
    from: 'operators o',
    archived: ['operators'],
    owner: { kind: 'query', id: 'o.query_id' },
    columns: inOrder(columnsOf(operatorsTable, 'o', { omit: [], names: { ended_at: 'ended' } }), {
      task_id: 'stage_id',
      pipeline_id: 'task_id',
      operator_id: 'pipeline_id',
    }),
  },
  events: {
    from: 'query_events e',
    archived: ['query_events'],
    // Streams of the system and of nodes belong to no query: only users who see everything see their events.
    owner: { kind: 'query', id: 'e.stream' },
    columns: columnsOf(queryEventsTable, 'e', {
      omit: ['position', 'partition', 'traceparent', 'prevhash', 'digest', 'enc', 'data'],
      names: { v: 'version' },
    }),
  },
  tables_read: access('READ', readTable),
  tables_written: access('WRITE', writtenTable),
  views_read: access('VIEW', accessColumns('view_name')),
  columns_read: {
    from: 'columns_read c join table_access t on t.query_id = c.query_id and t.ordinal = c.table_ordinal',
    archived: ['columns_read', 'table_access'],
    owner: { kind: 'query', id: 'c.query_id' },
    columns: {
      ...accessedTable,
      ...columnsOf(columnsReadTable, 'c', {
        omit: ['ordinal', 'table_ordinal'],
        names: { direct: 'transformation', indirect: 'effects' },
      }),
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
  erasures: {
    from: `audit_log a left join audit_log e on e.kind = 'ErasureEnded'
      and left(e.details->>'erasureId', 64) = left(a.details->>'erasureId', 64)`,
    archived: [],
    where: `a.kind = 'ErasureStarted'`,
    owner: { kind: 'person', user: `(a.details->>'by')`, originalUser: `(a.details->>'originalUser')` },
    columns: {
      erasure_id: text(`(a.details->>'erasureId')`),
      user: text(`(a.details->>'by')`),
      original_user: text(`(a.details->>'originalUser')`),
      kind: text(`(a.details->>'kind')`),
      subject_hash: text(`(a.details->>'subjectHash')`),
      mentions: bool(`((a.details->>'mentions')::boolean)`),
      reason: text(`(a.details->>'reason')`),
      started: time('a.at', NEVER_NULL),
      ended: time('e.at'),
      queries: bigint(`((e.details->>'queries')::bigint)`),
      records: bigint(`((e.details->>'records')::bigint)`),
      waiting: bigint(`((e.details->>'waiting')::bigint)`),
      searched: bigint(`((e.details->>'searched')::bigint)`),
      remains: text(`((e.details->'remains')::text)`),
    },
  },
  acts: {
    from: ACT_EVENTS,
    archived: [],
    where: `a.kind = 'ActStarted'`,
    owner: { kind: 'person', user: `(a.details->>'by')`, originalUser: `(a.details->>'originalUser')` },
    columns: {
      act_id: text(`(a.details->>'actId')`),
      act: text(`(a.details->>'act')`),
      user: text(`(a.details->>'by')`),
      original_user: text(`(a.details->>'originalUser')`),
      remote_address: text('a.remote_address'),
      reason: text(`(a.details->>'reason')`),
      filter: text(`((a.details->'filter')::text)`),
      started: time('a.at', NEVER_NULL),
      ended: time(`(case p.kind when 'ActEnded' then p.at end)`),
      matched: bigint(`((a.details->>'matched')::bigint)`),
      done: bigint(
        `(case p.kind when 'ActEnded' then (a.details->>'matched')::bigint else coalesce((p.details->>'through')::bigint, 0) end)`,
      ),
      outcomes: text(`((p.details->'outcomes')::text)`),
    },
  },
  replays: {
    from: REPLAY_EVENTS,
    archived: [],
    where: `a.kind = 'ReplayStarted'`,
    owner: { kind: 'person', user: `(a.details->>'by')`, originalUser: `(a.details->>'originalUser')` },
    columns: {
      replay_id: text(`(a.details->>'replayId')`),
      user: text(`(a.details->>'by')`),
      original_user: text(`(a.details->>'originalUser')`),
      started: time('a.at', NEVER_NULL),
      last_progress: time('coalesce(p.at, a.at)', NEVER_NULL),
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

export function isHistoryView(table: string): table is HistoryViewName {
  return Object.hasOwn(historyViews, table)
}

/** A table of the schema `history` of the catalog `system`. */
interface SystemTable {
  /** Types by name, in order; as Trino writes them. */
  readonly columns: Readonly<Record<string, string>>
  /** Columns that questions may be about: all except lists, and except an event's data, which depends on the user. */
  readonly answers: readonly string[]
  readonly view?: string
}

const trinoTypes = {
  text: 'varchar',
  bigint: 'bigint',
  'double precision': 'double',
  boolean: 'boolean',
  timestamptz: 'timestamp(3) with time zone',
  jsonb: 'array(varchar)',
} as const satisfies Record<HistoryColumn['type'], string>

/** Columns that are made from whole rows instead of being read by a statement. */
const madeColumns: Partial<Record<HistoryViewName, Readonly<Record<string, string>>>> = { events: { data: 'varchar' } }

function historyTable(name: HistoryViewName): SystemTable {
  const columns = Object.entries<HistoryColumn>(historyViews[name].columns)
  const typed = Object.fromEntries(columns.map(([column, { type }]) => [column, trinoTypes[type]]))
  return {
    columns: { ...typed, ...madeColumns[name] },
    answers: columns.flatMap(([column, { type }]) => (type === 'jsonb' ? [] : [column])),
  }
}

/** The history as the catalog `system` shows it: everything in the record, of any age. Times are UTC. */
export const historyTables: ReadonlyMap<string, SystemTable> = new Map([
  ...Object.keys(historyViews).map((name) => [name, historyTable(name as HistoryViewName)] as const),
  ...Object.entries(historyQuestions).map(
    ([name, { columns, sql }]) => [name, { columns, answers: [], view: sql }] as const,
  ),
])
