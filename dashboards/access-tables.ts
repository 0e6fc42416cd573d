import type { TablePanel } from './panel.ts'
import { ROWS } from './tables.ts'

export const readersOfTable: TablePanel = {
  kind: 'table',
  title: 'Readers of tables like $table',
  description:
    'Users that read a table, and the views that they used. `%` stands for any text in the name of the table.',
  sql: `select catalog_name, schema_name, table_name, user_name, coalesce(via::text, 'DIRECT') as via,
  count(distinct query_id) as queries, min(at) as first_read, max(at) as last_read
from m.table_access where mode = 'READ' and table_name like \${table:sqlstring} and $__timeFilter(at)
group by 1, 2, 3, 4, 5 order by queries desc limit ${ROWS}`,
  leadsTo: [],
}

export const readersOfColumns: TablePanel = {
  kind: 'table',
  title: 'Readers of columns of tables like $table',
  description: 'Uses of each column: by which user, masked or not, and in how many queries.',
  sql: `select t.catalog_name, t.schema_name, t.table_name, c.column_name, t.user_name, c.masked,
  count(distinct c.query_id) as queries, max(t.at) as last_read
from m.columns_read c join m.table_access t on t.query_id = c.query_id and t.ordinal = c.table_ordinal
where t.table_name like \${table:sqlstring} and $__timeFilter(t.at)
group by 1, 2, 3, 4, 5, 6 order by queries desc limit ${ROWS}`,
  leadsTo: [],
}

export const newReaders: TablePanel = {
  kind: 'table',
  title: 'New readers of tables like $table',
  description: 'Users that read a table for the first time in the time shown.',
  sql: `select * from (
  select catalog_name, schema_name, table_name, user_name, min(at) as first_read, count(distinct query_id) as queries
  from m.table_access where mode = 'READ' and table_name like \${table:sqlstring} group by 1, 2, 3, 4
) readers where $__timeFilter(first_read) order by first_read desc limit ${ROWS}`,
  leadsTo: [],
}

export const leastRead: TablePanel = {
  kind: 'table',
  title: 'Tables by last read, the oldest first',
  description:
    'Tables that queries of the record read or wrote. The view `system.history.table_usage` also has tables without any.',
  sql: `select catalog_name, schema_name, table_name, max(at) filter (where mode = 'READ') as last_read,
  max(at) filter (where mode = 'WRITE') as last_written, count(*) filter (where mode = 'READ') as reads
from m.table_access where mode in ('READ', 'WRITE')
group by 1, 2, 3 order by last_read asc nulls first limit ${ROWS}`,
  leadsTo: [],
}

export const refusedObjects: TablePanel = {
  kind: 'table',
  title: 'Refused accesses',
  description:
    'Actions that the access rules refused, by user and object. Many of one user: a right is missing, or misused.',
  sql: `select user_name, details->>'user' as as_user, action, object, sum(count)::float8 as attempts, min(at) as first, max(at) as last
from m.audit_log where kind = 'AccessDenied' and $__timeFilter(at)
group by 1, 2, 3, 4 order by attempts desc limit ${ROWS}`,
  leadsTo: [],
}

export const logIns: TablePanel = {
  kind: 'table',
  title: 'Log-ins by user and address',
  description: 'Accepted and refused log-ins. An unknown name is shown as a digest, because it may be a password.',
  sql: `select kind, user_name, action as method, remote_address, sum(count)::float8 as attempts, max(at) as last
from m.audit_log where kind in ('LoggedIn', 'AuthenticationFailed') and $__timeFilter(at)
group by 1, 2, 3, 4 order by last desc limit ${ROWS}`,
  leadsTo: [],
}

export const impersonated: TablePanel = {
  kind: 'table',
  title: 'Queries as another user',
  description: 'Users that ran queries as another user, for example through a dashboard.',
  sql: `select details->'session'->>'originalUser' as by, user_name as as_user, count(*) as queries, max(created_at) as last
from m.queries where details->'session'->>'originalUser' is not null and $__timeFilter(created_at)
group by 1, 2 order by queries desc limit ${ROWS}`,
  leadsTo: [],
}

export const largeResults: TablePanel = {
  kind: 'table',
  title: 'Largest results',
  description: 'Results with the most rows, and the address that fetched them. Look at those out of hours.',
  sql: `select created_at, query_id, user_name, app, remote_address, output_rows, output_bytes, trace_id
from m.queries where query_type = 'SELECT' and output_rows > 0 and $__timeFilter(created_at)
order by output_rows desc nulls last limit ${ROWS}`,
  units: { output_bytes: 'bytes' },
  leadsTo: ['query', 'trace'],
}

export const audits: TablePanel = {
  kind: 'table',
  title: 'Audits of the event log',
  description: 'Results of `quipu audit verify`, the latest first. findings is empty for an audit that found nothing.',
  sql: `select at, user_name as by, details->'findings' as findings, (details->>'events')::float8 as events,
  (details->>'anchors')::float8 as anchors, (details->>'signatures')::float8 as signatures, (details->>'tables')::float8 as tables
from m.audit_log where kind = 'LogVerified' and $__timeFilter(at)
order by at desc limit ${ROWS}`,
  leadsTo: [],
}
