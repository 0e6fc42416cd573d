import { quotedText } from '../../api/statement/read-rows.ts'

/** A question to the record. */
export interface RecordView {
  /** The parameter `view` of the address. */
  readonly id: string
  readonly title: string
  readonly explanation: string
  /** Fields that narrow the question, besides the number of days. */
  readonly fields: readonly RecordField[]
  /** @param given values of the fields that are not empty, and `days` */
  readonly sql: (given: ReadonlyMap<string, string>) => string
}

export interface RecordField {
  readonly name: string
  readonly label: string
  readonly required?: true
}

/** The most rows of an answer: what a page may hold. */
const MOST_ROWS = 1000

const USER: RecordField = { name: 'user', label: 'User' }

/** Events of administrators: who ended, forgot, drained, rebuilt, replayed, or changed files. */
const ACTS = [
  'QueryKilled',
  'DataForgotten',
  'NodeDrainAsked',
  'EpochsForgotten',
  'ProjectionRebuilt',
  'ReplayStarted',
  'FileTaken',
  'FileRefused',
  'CertificateTaken',
  'ConfigurationLoaded',
  'ClusterStateAsked',
]

/** The questions of the page, in the order of its list. */
export const RECORD_VIEWS: readonly [RecordView, ...RecordView[]] = [
  {
    id: 'reads',
    title: 'Who read a table',
    explanation: 'Each query that read the table, newest first; with a column, each use of the column.',
    fields: [
      { name: 'table', label: 'Table (catalog.schema.table)', required: true },
      { name: 'column', label: 'Column' },
      USER,
    ],
    sql(given) {
      const [catalog = '', schema = '', table = ''] = (given.get('table') ?? '').split('.')
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
    explanation: 'Who killed queries, forgot data, drained workers, changed clusters, files and certificates.',
    fields: [],
    sql: (given) =>
      rowsOf('time, type, stream, data', 'events', [`type IN (${ACTS.map(quotedText).join(', ')})`], given),
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

function rowsOf(
  columns: string,
  table: string,
  conditions: readonly string[],
  given: ReadonlyMap<string, string>,
  time = 'time',
): string {
  const days = Number(given.get('days'))
  const since = `${time} >= now() - INTERVAL '${Number.isInteger(days) && days > 0 ? days : 1}' DAY`
  return `SELECT ${columns} FROM system.history.${table} WHERE ${[since, ...conditions].join(' AND ')} ORDER BY ${time} DESC LIMIT ${MOST_ROWS}`
}

function equal(column: string, value: string | undefined): readonly string[] {
  return value === undefined ? [] : [`${column} = ${quotedText(value)}`]
}
