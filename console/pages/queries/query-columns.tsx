import type { QueryListItem } from '../../../src/protocol/info/schemas/query.ts'
import type { Column } from '../../parts/data-table.tsx'
import { costColumn, countColumn, sizeColumn } from '../../parts/figure-columns.tsx'
import {
  cpuColumn,
  createdColumn,
  elapsedColumn,
  queryColumn,
  queryStateColumn,
  statementColumn,
  userColumn,
} from '../../parts/listed-columns.tsx'
import { EXPLANATIONS } from '../../parts/explanations.ts'

/** The columns of the list of queries. */
export const queryColumns: readonly Column<QueryListItem>[] = [
  queryColumn,
  queryStateColumn,
  userColumn,
  { ...createdColumn, serverSort: 'created' },
  { ...elapsedColumn, serverSort: 'elapsed' },
  statementColumn((query) => query.query),
  {
    id: 'app',
    title: 'App',
    explanation: {
      text: 'Program behind the query and its object, as the client says: a dashboard, a model, a DAG',
    },
    value: (query) => [query.app, query.appObject].filter(Boolean).join(': '),
  },
  { id: 'source', title: 'Source', value: (query) => query.session.source },
  { id: 'group', title: 'Resource group', value: (query) => query.resourceGroupId.join(' › ') },
  { id: 'error', title: 'Error', value: (query) => query.errorCode?.name },
  { ...cpuColumn, serverSort: 'cpu' },
  sizeColumn({
    id: 'read',
    title: 'Read',
    explanation: EXPLANATIONS.bytesRead,
    serverSort: 'read',
    of: (query) => query.queryStats.rawInputDataSize,
  }),
  costColumn({
    id: 'cost',
    title: 'Cost',
    explanation: EXPLANATIONS.cost,
    of: (query) => query,
  }),
  countColumn({
    id: 'rows',
    title: 'Rows',
    explanation: EXPLANATIONS.resultRows,
    serverSort: 'rows',
    of: (query) => query.queryStats.outputPositions,
  }),
]
