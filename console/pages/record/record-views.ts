import { parseTableName } from '../../../src/shared/table-name.ts'
import { quotedText } from '../../api/statement/read-rows.ts'

/** A question to the record. */
export interface RecordView {
  /** The parameter `view` of the address. */
  readonly id: string
  readonly title: string
  readonly explanation: string
  /** Fields that narrow the question, besides the number of days. */
  readonly fields: readonly RecordField[]
  /** The number of days that the question is about until the user chooses another. @default 1 */
  readonly days?: number
  /**
   * @param given values of the fields that are not empty, and `days`
   * @returns undefined if a field cannot be read
   */
  readonly sql: (given: ReadonlyMap<string, string>) => string | undefined
}

export interface RecordField {
  readonly name: string
  readonly label: string
  readonly required?: true
  /** The values of the field; the page first chooses the first value. Absent: any text. */
  readonly choices?: readonly string[]
}

/** The most rows of an answer: what a page may hold. */
const MOST_ROWS = 1000

/** A name with a dot is in double quotes. */
const TABLE = 'Table (catalog.schema.table)'
const USER: RecordField = { name: 'user', label: 'User' }

/** Events of administrators: who ended, forgot, erased, drained, rebuilt, replayed, or changed files. */
const ACTS = [
  'ActStarted',
  'ActEnded',
  'QueryKilled',
  'DataForgotten',
  'ErasureStarted',
  'ErasureEnded',
  'NodeDrainAsked',
  'EpochsForgotten',
  'ProjectionRebuilt',
  'ReplayStarted',
  'ReplayEnded',
  'FileTaken',
  'FileRefused',
  'CertificateTaken',
  'ConfigurationLoaded',
  'ClusterStateAsked',
  'LogVerified',
  'LogDropped',
  'LogContinued',
]

/** Ways to group costs: the view of `system.history`, its columns to group by, and a condition on its rows. */
const COSTS: Readonly<Record<string, { readonly view: string; readonly columns: string; readonly where?: string }>> = {
  user: { view: 'cost_by_day', columns: 'user' },
  'group of the user': { view: 'cost_by_group', columns: 'user_group' },
  app: { view: 'cost_by_day', columns: 'app' },
  'dashboard, model, DAG': { view: 'cost_by_object', columns: 'app, app_object', where: 'app_object IS NOT NULL' },
  source: { view: 'cost_by_day', columns: 'source' },
  table: { view: 'cost_by_table', columns: 'catalog_name, schema_name, table_name' },
  cluster: { view: 'cost_by_day', columns: 'cluster' },
  'resource group': { view: 'cost_by_day', columns: 'resource_group' },
  day: { view: 'cost_by_day', columns: 'day' },
}

/** The questions of the page, in the order of its list. */
export const RECORD_VIEWS: readonly [RecordView, ...RecordView[]] = [
  {
    id: 'reads',
    title: 'Who read a table',
    explanation: 'Each query that read the table, newest first; with a column, each use of the column.',
    fields: [{ name: 'table', label: TABLE, required: true }, { name: 'column', label: 'Column' }, USER],
    sql(given) {
      const name = parseTableName(given.get('table') ?? '')
      if (!name) return undefined
      const { catalog, schema, table } = name
      const names = [
        `catalog_name = ${quotedText(catalog)}`,
        `schema_name = ${quotedText(schema)}`,
        `table_name = ${quotedText(table)}`,
        ...equal('user', given.get('user')),
      ]
      return given.has('column')
        ? rowsOf(
            'time, user, query_id, output_name, transformation, effects, masked',
            'columns_read',
            [...names, ...equal('column_name', given.get('column'))],
            given,
          )
        : rowsOf('time, user, query_id, columns', 'tables_read', names, given)
    },
  },
  {
    id: 'cost',
    title: 'Cost',
    explanation:
      'What queries cost by the prices of the server. Without prices the cost is NULL. A query counts in full for each table that it reads and for each group of its user; these two are by whole months.',
    fields: [{ name: 'by', label: 'By', choices: Object.keys(COSTS) }],
    days: 30,
    sql: costsOf,
  },
  {
    id: 'unused',
    title: 'Unused tables',
    explanation:
      'Tables and views of the catalogs that no query of the record read within these days, with their size; the largest first.',
    fields: [],
    days: 90,
    sql: unusedOf,
  },
  {
    id: 'refusals',
    title: 'Refusals',
    explanation: 'Actions that the access rules refused, by user and minute.',
    fields: [USER],
    sql: (given) =>
      rowsOf(
        'time, user, original_user, action, object, query_id, remote_address, attempts',
        'refusals',
        equal('user', given.get('user')),
        given,
      ),
  },
  {
    id: 'log-ins',
    title: 'Log-ins',
    explanation: 'Log-ins and refused log-ins, by name, address and minute.',
    fields: [USER, { name: 'outcome', label: 'Outcome (LOGGED_IN, REFUSED)' }],
    sql: (given) =>
      rowsOf(
        'time, outcome, user, principal, method, groups, remote_address, attempts',
        'log_ins',
        [...equal('user', given.get('user')), ...equal('outcome', given.get('outcome')?.toUpperCase())],
        given,
      ),
  },
  {
    id: 'acts',
    title: 'Acts of administrators',
    explanation:
      'Who killed queries, forgot and erased data, drained workers, replayed, verified the log, changed clusters, files and certificates.',
    fields: [],
    sql: (given) =>
      rowsOf('time, type, stream, data', 'events', [`type IN (${ACTS.map(quotedText).join(', ')})`], given),
  },
  {
    id: 'erasures',
    title: 'Erasures',
    explanation:
      'Who erased a user or a value, and what a search found afterwards. The record never has the erased user or value.',
    fields: [USER, { name: 'result', label: 'Result (NOTHING_LEFT, SOMETHING_LEFT, NOT_ENDED)' }],
    days: 365,
    sql: (given) =>
      rowsOf(
        'started, ended, user, original_user, kind, mentions, result, queries, records, waiting, searched, remains',
        'erasure_results',
        [...equal('user', given.get('user')), ...equal('result', given.get('result')?.toUpperCase())],
        given,
        'started',
      ),
  },
  {
    id: 'events',
    title: 'Events',
    explanation: 'All events that you may see, newest first.',
    fields: [
      { name: 'stream', label: "Stream (a query's id, node/…, system)" },
      { name: 'type', label: 'Type (QueryFailed …)' },
    ],
    sql: (given) =>
      rowsOf(
        'time, stream, sequence, type, epoch, forgotten, data',
        'events',
        [...equal('stream', given.get('stream')), ...equal('type', given.get('type'))],
        given,
      ),
  },
  {
    id: 'replays',
    title: 'Replays',
    explanation: 'Replays of recorded statements, with the number of statements for each verdict.',
    fields: [USER],
    sql: (given) =>
      rowsOf(
        'started, ended, user, outcome, mode, baseline, against, statements, verdicts, filter',
        'replays',
        equal('user', given.get('user')),
        given,
        'started',
      ),
  },
]

/** Views with a row for each month. A question to them begins with the whole month of its first day. */
const BY_MONTH = new Set(['cost_by_group', 'cost_by_table'])

function costsOf(given: ReadonlyMap<string, string>): string | undefined {
  const by = given.get('by') ?? 'user'
  const found = Object.hasOwn(COSTS, by) ? COSTS[by] : undefined
  if (!found) return undefined
  const { view, columns, where } = found
  const first = `current_date - INTERVAL '${daysOf(given, 30)}' DAY`
  const since = BY_MONTH.has(view) ? `month >= date_trunc('month', ${first})` : `day >= ${first}`
  return `SELECT ${columns}, sum(queries) AS queries, sum(cpu_seconds) AS cpu_seconds, sum(scanned_bytes) AS scanned_bytes,
  sum(cost) AS cost, currency
FROM system.history.${view} WHERE ${[since, where].filter(Boolean).join(' AND ')}
GROUP BY ${columns}, currency ORDER BY ${columns === 'day' ? 'day' : 'cost'} DESC NULLS LAST, cpu_seconds DESC LIMIT ${MOST_ROWS}`
}

function unusedOf(given: ReadonlyMap<string, string>): string {
  return `SELECT catalog_name, schema_name, table_name, kind, last_read, last_written, row_count, bytes
FROM system.history.table_usage
WHERE (last_read IS NULL OR last_read < now() - INTERVAL '${daysOf(given, 90)}' DAY)
ORDER BY bytes DESC NULLS LAST, last_read NULLS FIRST LIMIT ${MOST_ROWS}`
}

function rowsOf(
  columns: string,
  table: string,
  conditions: readonly string[],
  given: ReadonlyMap<string, string>,
  time = 'time',
): string {
  const since = `${time} >= now() - INTERVAL '${daysOf(given, 1)}' DAY`
  return `SELECT ${columns} FROM system.history.${table} WHERE ${[since, ...conditions].join(' AND ')} ORDER BY ${time} DESC LIMIT ${MOST_ROWS}`
}

/** The number of days that a question is about. */
function daysOf(given: ReadonlyMap<string, string>, otherwise: number): number {
  const days = Number(given.get('days'))
  return Number.isInteger(days) && days > 0 ? days : otherwise
}

function equal(column: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [`${column} = ${quotedText(value)}`]
}
