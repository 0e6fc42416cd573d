import type { QueryListItem } from '../../src/protocol/info/wire-schemas.ts'
import type { Column } from './data-table.tsx'
import { instantColumn } from './figure-columns.tsx'
import { QueryLink } from './query-link.tsx'

/** The ids of listed queries, as links to their pages. */
export const queryColumn: Column<Pick<QueryListItem, 'queryId'>> = {
  id: 'query',
  title: 'Query',
  value: (query) => query.queryId,
  cell: (query) => <QueryLink queryId={query.queryId} />,
}

/** When listed queries were created. */
export const createdColumn: Column<QueryListItem> = instantColumn({
  id: 'created',
  title: 'Created',
  of: (query) => query.queryStats.createTime,
})

/** The users of listed queries. */
export const userColumn: Column<QueryListItem> = { id: 'user', title: 'User', value: (query) => query.session.user }
