import type { QueryListItem } from '../../src/protocol/info/schemas/query.ts'
import type { Column } from './data-table.tsx'
import { EXPLANATIONS } from './explanations.ts'
import { durationColumn, instantColumn, stateColumn } from './figure-columns.tsx'
import { QueryLink } from './query-link.tsx'

/** The id of a query, as a link to its page. */
export const queryColumn: Column<Pick<QueryListItem, 'queryId'>> = {
  id: 'query',
  title: 'Query',
  value: (query) => query.queryId,
  cell: (query) => <QueryLink queryId={query.queryId} />,
}

/** The text of a statement on one line; the title of a cell has all lines. */
export function statementColumn<T>(of: (row: T) => string): Column<T> {
  return {
    id: 'statement',
    title: 'Statement',
    value: of,
    cell: (row) => (
      <span className="statement" title={of(row)}>
        {of(row)}
      </span>
    ),
  }
}

/** The time at which a query was created. */
export const createdColumn: Column<QueryListItem> = instantColumn({
  id: 'created',
  title: 'Created',
  of: (query) => query.queryStats.createTime,
})

/** The user of a query. */
export const userColumn: Column<QueryListItem> = { id: 'user', title: 'User', value: (query) => query.session.user }

/** The state of a query. */
export const queryStateColumn: Column<Pick<QueryListItem, 'state'>> = stateColumn({
  id: 'state',
  title: 'State',
  of: (query) => query.state,
})

/** The time from the creation of a query to its end, or to now. */
export const elapsedColumn: Column<QueryListItem> = durationColumn({
  id: 'elapsed',
  title: 'Elapsed',
  explanation: EXPLANATIONS.elapsed,
  of: (query) => query.queryStats.elapsedTime,
})

/** The CPU time of a query. */
export const cpuColumn: Column<QueryListItem> = durationColumn({
  id: 'cpu',
  title: 'CPU',
  explanation: EXPLANATIONS.cpu,
  of: (query) => query.queryStats.totalCpuTime,
})
