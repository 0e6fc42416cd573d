import type { TablePanel } from './panel.ts'
import { PRICED_QUERIES } from './priced-queries.ts'
import { ROWS } from './tables.ts'

/** The resources that queries used, and their cost. */
const WORK = `count(*) as queries, sum(cpu_ms) / 1000 as cpu_seconds, sum(raw_input_bytes)::float8 as scanned_bytes,
  sum(cost) as cost, max(currency) as currency`

const units = { cpu_seconds: 's', scanned_bytes: 'bytes' } as const

/** A table of sums of costs. @param keys the columns to group by: their names in the answer, with their SQL */
function costBy(
  title: string,
  description: string,
  keys: Readonly<Record<string, string>>,
  { from = 'priced', where }: { readonly from?: string; readonly where?: string } = {},
): TablePanel {
  const columns = Object.entries(keys).map(([name, sql]) => `${sql} as ${name}`)
  return {
    kind: 'table',
    title,
    description: `${description} Cost is empty without a prices file.`,
    sql: `with ${PRICED_QUERIES}
select ${columns.join(', ')}, ${WORK}
from ${from}${where === undefined ? '' : ` where ${where}`}
group by ${columns.map((_, at) => at + 1).join(', ')} order by cost desc nulls last, cpu_seconds desc nulls last limit ${ROWS}`,
    units,
    leadsTo: [],
  }
}

export const costByUser = costBy('Cost by user', 'Users that run the most expensive queries.', {
  user_name: 'user_name',
  source: 'source',
})

export const costByGroup = costBy(
  'Cost by group of the user',
  'A query counts in full for each group of its user.',
  { user_group: 'g' },
  { from: `priced cross join jsonb_array_elements_text(case jsonb_typeof(groups) when 'array' then groups end) g` },
)

export const costByApp = costBy(
  'Cost by app and object',
  'Programs behind queries, as the client says, with the dashboard, model or DAG.',
  { app: 'app', app_object: 'app_object' },
  { where: 'app is not null' },
)

export const costByTable = costBy(
  'Cost by table',
  'A query counts in full for each table that it reads.',
  { catalog_name: 't.catalog_name', schema_name: 't.schema_name', table_name: 't.table_name' },
  {
    from: `priced join (select distinct query_id, catalog_name, schema_name, table_name from m.table_access
  where mode = 'READ' and $__timeFilter(at)) t using (query_id)`,
  },
)

export const costByCluster = costBy(
  'Cost by cluster',
  'Delegated queries by the cluster that ran them; local queries have no cluster.',
  { cluster: 'cluster', route: 'route' },
)

export const dearestQueries: TablePanel = {
  kind: 'table',
  title: 'Most expensive queries',
  description: 'Queries with the highest cost in the time shown. Cost is empty without a prices file.',
  sql: `with ${PRICED_QUERIES}
select created_at, query_id, user_name, app, cluster, cost, currency, cpu_ms, raw_input_bytes, left(sql_text, 120) as sql, trace_id
from priced order by cost desc nulls last, cpu_ms desc nulls last limit ${ROWS}`,
  units: { cpu_ms: 'ms', raw_input_bytes: 'bytes' },
  leadsTo: ['query', 'trace'],
}

export const dearestShapes: TablePanel = {
  kind: 'table',
  title: 'Statements that a cache could save',
  description:
    'Shapes of statements by CPU time. cacheable is the share of the time that ran the same text over the same rows again.',
  sql: `select fingerprint, max(query) as statement, sum(queries) as queries, sum(cpu) / 1000 as cpu_seconds,
  sum(case when cache_key is null then 0 else cpu * (queries - 1) / queries end) / nullif(sum(cpu), 0) as cacheable
from (select fingerprint, cache_key, left(max(normalized_query), 120) as query, count(*) as queries, sum(cpu_ms) as cpu
  from m.queries where fingerprint is not null and state = 'FINISHED' and $__timeFilter(created_at)
  group by fingerprint, cache_key) shapes
group by fingerprint order by cpu_seconds desc nulls last limit ${ROWS}`,
  units: { cpu_seconds: 's', cacheable: 'percentunit' },
  leadsTo: [],
}
