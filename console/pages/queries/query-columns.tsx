import type { QueryListItem } from '../../../src/protocol/info/wire-schemas.ts'
import type { Column } from '../../parts/data-table.tsx'
import { countColumn, durationColumn, sizeColumn, stateColumn } from '../../parts/figure-columns.tsx'
import { createdColumn, queryColumn, userColumn } from '../../parts/listed-columns.tsx'

/** The columns of the list of queries. */
export const queryColumns: readonly Column<QueryListItem>[] = [
  queryColumn,
  stateColumn({ id: 'state', title: 'State', of: (query) => query.state }),
  userColumn,
  createdColumn,
  durationColumn({
    id: 'elapsed',
    title: 'Elapsed',
    explanation: 'Time from the creation of the query to its end, or to now',
    of: (query) => query.queryStats.elapsedTime,
  }),
  {
    id: 'statement',
    title: 'Statement',
    value: (query) => query.query,
    cell: (query) => (
      <span className="statement" title={query.query}>
        {query.query}
      </span>
    ),
  },
  {
    id: 'app',
    title: 'App',
    explanation: 'Program behind the query and its object, as the client says: a dashboard, a model, a DAG',
    value: (query) => [query.app, query.appObject].filter(Boolean).join(': '),
  },
  { id: 'source', title: 'Source', value: (query) => query.session.source },
  { id: 'group', title: 'Resource group', value: (query) => query.resourceGroupId.join(' › ') },
  { id: 'error', title: 'Error', value: (query) => query.errorCode?.name },
  durationColumn({
    id: 'cpu',
    title: 'CPU',
    explanation: 'CPU time of all tasks',
    of: (query) => query.queryStats.totalCpuTime,
  }),
  sizeColumn({
    id: 'read',
    title: 'Read',
    explanation: 'Bytes that the query read from tables, in units of 1,024',
    of: (query) => query.queryStats.rawInputDataSize,
  }),
  countColumn({
    id: 'rows',
    title: 'Rows',
    explanation: 'Rows of the result',
    of: (query) => query.queryStats.outputPositions,
  }),
]
