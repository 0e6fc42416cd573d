// Measures how long pages of GET /v1/query and its totals take over a million ended queries: for each filter in each order, the first
// page and a page after a thousand others, for frequent and rare values. The queries of `monitor` are a tenth of all and the cheapest:
// in descending order they are behind all others. `node bench/query-list.mjs`; BENCH_QUERIES=100000 sets the number of queries,
// BENCH_ONLY=group the filters. BENCH_EXPLAIN=1 prints the plans of reads that take longer than 300 ms.
import pg from 'pg'
import { readQueries, readStateTotals } from '../dist/readmodels/queries/queries.js'
import { embeddedConnection } from './embedded-connection.mjs'
import { createClient, quantile, startServer } from './quipu-server.mjs'

const QUERIES = Number(process.env.BENCH_QUERIES ?? 1_000_000)
const RUNS = Number(process.env.BENCH_RUNS ?? 7)
const SLOW_MS = 300
/** Only filters whose name has this text are measured. */
const ONLY = process.env.BENCH_ONLY ?? ''
const server = await startServer()
const database = new pg.Client({ ...embeddedConnection(server.dataDir), options: '-c search_path=m,quipu_log,public' })
await database.connect()
const client = createClient(server.base)
/** The statements of the last read in this process. */
const sent = []
const read = async (text, values) => {
  sent.push({ text, values })
  return (await database.query(text, values)).rows
}

const FILTERS = [
  ['all', {}],
  ['user, frequent', { user: 'user-0' }],
  ['user, cheap', { user: 'monitor' }],
  ['user, rare', { user: 'seldom' }],
  ['source, frequent', { source: 'dashboard' }],
  ['source, cheap', { source: 'monitor' }],
  ['source, rare', { source: 'seldom' }],
  ['app, frequent', { app: 'metabase' }],
  ['app, cheap', { app: 'monitor' }],
  ['app, rare', { app: 'seldom' }],
  ['state FINISHED', { state: 'FINISHED' }],
  ['state FAILED', { state: 'FAILED' }],
  ['state RUNNING', { state: 'RUNNING' }],
  ['error, frequent', { error: 'TABLE_NOT_FOUND' }],
  ['error, rare', { error: 'SELDOM' }],
  ['group, all', { group: 'all' }],
  ['group, frequent', { group: 'group-0' }],
  ['group, cheap', { group: 'monitor' }],
  ['group, rare', { group: 'seldom' }],
  ['tag, rare', { tag: 'seldom' }],
  ['resource group', { resourceGroup: 'global.g6' }],
  ['resource group, cheap', { resourceGroup: 'global.monitor' }],
  ['resource group, rare', { resourceGroup: 'global.seldom' }],
  ['cluster, frequent', { cluster: 'big' }],
  ['cluster, cheap', { cluster: 'monitor' }],
  ['cluster, rare', { cluster: 'seldom' }],
  ['table, frequent', { table: 'lake.shop.t0' }],
  ['table, rare', { table: 'lake.shop.seldom' }],
  ['a day', (middle) => middle.day],
  ['text, frequent', { q: 'orders' }],
  ['text, rare', { q: 'needle in the hay' }],
  ['text, none', { q: 'nowhere at all' }],
  ['text of two letters', { q: 'zq' }],
  ['text of two letters, found', { q: 'or' }],
  ['text of one letter', { q: '~' }],
  ['user and state', { user: 'user-1', state: 'FAILED' }],
  ['app and text', { app: 'dbt', q: 'customer' }],
  ['fingerprint', { fingerprint: 'v1-7' }],
]
const ORDERS = ['created', 'elapsed', 'queued', 'cpu', 'memory', 'read', 'rows']
/** The user `gateway` posted a twentieth of all queries as other users. */
const READERS = ['user-0', 'user-150', 'monitor', 'seldom', 'gateway']

try {
  await fill()
  const middle = await middleOfList()
  for (const [name, parameters] of FILTERS.filter(([name]) => name.includes(ONLY))) {
    const wanted = typeof parameters === 'function' ? parameters(middle) : parameters
    const filter = { since: '2020-01-01T00:00:00Z', ...wanted }
    for (const sort of ORDERS) await page(`${name}, by ${sort}`, { ...filter, sort })
    await page(`${name}, by cpu, cheapest first`, { ...filter, sort: 'cpu', order: 'asc' })
    await page(`${name}, deep`, { ...filter, cursor: middle.created })
    await page(`${name}, by cpu, deep`, { ...filter, sort: 'cpu', cursor: middle.cpu })
    await measured(`${name}, totals`, () => get('/v1/query/totals', filter))
  }
  for (const user of READERS) {
    const seen = { users: [user], poster: user, self: user }
    await measured(`as ${user}`, () => readQueries(read, { seen }, 101, 4097))
    for (const by of ORDERS)
      await measured(`as ${user}, by ${by}`, () =>
        readQueries(read, { seen, order: { by, descending: true } }, 101, 4097),
      )
    await measured(`as ${user}, totals`, () => readStateTotals(read, { seen }, undefined))
  }
} finally {
  client.close()
  await database.end()
  await server.stop()
}

async function get(path, parameters) {
  const { status, body } = await client.send('GET', `${path}?${new URLSearchParams(parameters)}`)
  // A read that takes longer than `timeouts.historyReadMs` is refused.
  if (status !== 200 && status !== 503) throw new Error(`${path} ${JSON.stringify(parameters)}: ${status} ${body}`)
  return status === 503 ? [] : JSON.parse(body)
}

async function page(name, parameters) {
  await measured(name, () => get('/v1/query', { limit: 100, ...parameters }))
}

async function measured(name, work) {
  const times = []
  let rows = 0
  sent.length = 0
  await work()
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now()
    rows = (await work()).length ?? 1
    times.push(performance.now() - began)
  }
  const median = quantile(
    times.toSorted((a, b) => a - b),
    0.5,
  )
  console.log(
    `${name.padEnd(40)} ${median.toFixed(0).padStart(6)} ms  ${String(rows).padStart(4)} rows${median > SLOW_MS ? '  SLOW' : ''}`,
  )
  const last = sent.at(-1)
  if (median > SLOW_MS && process.env.BENCH_EXPLAIN && last)
    for (const row of (await database.query(`explain (analyze, buffers) ${last.text}`, last.values)).rows)
      console.log(`    ${row['QUERY PLAN']}`)
}

/** Cursors in the middle of two orders of the list, and the day there. */
async function middleOfList() {
  const half = Math.floor(QUERIES / 2)
  const { rows } = await database.query(
    `(select created_at, cpu_ms, query_id from queries order by created_at offset $1 limit 1)
     union all (select created_at, cpu_ms, query_id from queries order by cpu_ms offset $1 limit 1)`,
    [half],
  )
  const encoded = (value, id) => Buffer.from(JSON.stringify([value, id])).toString('base64url')
  const at = rows[0].created_at
  return {
    created: encoded(at.toISOString(), rows[0].query_id),
    cpu: encoded(rows[1].cpu_ms, rows[1].query_id),
    day: { since: at.toISOString(), until: new Date(at.getTime() + 86_400_000).toISOString() },
  }
}

/** Fills the tables without their indexes, then creates the indexes: a million insertions into each index would take minutes. */
async function fill() {
  const began = performance.now()
  const { rows: indexes } = await database.query(
    `select indexname as name, indexdef as def from pg_indexes
     where schemaname = 'm' and tablename in ('queries', 'table_access') and indexdef not like '%UNIQUE%'`,
  )
  for (const { name } of indexes) await database.query(`drop index m.${name}`)
  await database.query(
    `insert into queries (query_id, state, user_name, source, resource_group, header_family, query_type, route, sql_text, created_at,
       last_event_at, ended_at, elapsed_ms, queued_ms, analysis_ms, planning_ms, cpu_ms, scheduled_ms, blocked_ms, wall_ms,
       peak_memory_bytes, spilled_bytes, raw_input_rows, raw_input_bytes, processed_input_rows, processed_input_bytes, output_rows,
       output_bytes, total_tasks, total_splits, completed_splits, retries, recoveries, error_code, error_name, error_type,
       error_message, cluster, app, app_object, client_tags, groups, fingerprint, partial, result_lost, incomplete, last_sequence,
       epoch, details)
     select to_char(at at time zone 'UTC', 'YYYYMMDD_HH24MISS_') || lpad((n % 100000)::text, 5, '0') || '_bench',
       case when failed then 'FAILED' else 'FINISHED' end,
       case when n % (total / 3) = 1 then 'seldom' when cheap then 'monitor' else 'user-' || floor(200 * r ^ 3) end,
       case when n % (total / 3) = 2 then 'seldom' when cheap then 'monitor' when n % 2 = 0 then 'dashboard' else 'source-' || n % 20 end,
       case when n % (total / 3) = 3 then 'global.seldom' when cheap then 'global.monitor' else 'global.g' || n % 20 end, 'trino', 'SELECT', 'local',
       case when n % (total / 3) = 4 then 'SELECT ''needle in the hay''' else
         'SELECT customer, sum(price) FROM lake.shop.' || (array['orders', 'customers', 'items', 'returns'])[n % 4 + 1] ||
         ' WHERE id = ' || n || ' GROUP BY customer ORDER BY 2 DESC LIMIT 100' end,
       at, at + interval '1 s', at + interval '1 s', 1000 * r, 10 * r, 1, 1, 5000 * s, 5000 * s, 10, 1000 * r,
       1e9 * s, 0, 1e6 * r, 1e8 * r, 1e6 * r, 1e8 * r, 1e4 * s, 1e6 * s, 3, 20, 20, 0, 0,
       case when failed then 8 end,
       case when n % (total / 3) = 5 then 'SELDOM' when failed then (array['DIVISION_BY_ZERO', 'TABLE_NOT_FOUND'])[n % 2 + 1] end,
       case when failed then 'USER_ERROR' end, case when failed then 'Division by zero' end,
       case when n % (total / 3) = 6 then 'seldom' when cheap then 'monitor' when n % 10 = 0 then 'big' end,
       case when n % (total / 3) = 7 then 'seldom' when cheap then 'monitor' when n % 5 < 2 then 'metabase' when n % 5 = 2 then 'dbt' end,
       case when n % 5 < 3 then 'object-' || n % 1000 end,
       jsonb_build_array(case when n % (total / 3) = 8 then 'seldom' else 'daily' end),
       jsonb_build_array(case when cheap then 'monitor' else 'group-' || floor(20 * r) end,
         case when n % (total / 3) = 9 then 'seldom' else 'all' end),
       'v1-' || n % 5000, false, false, false, 8, 1,
       case when n % 20 = 11 then '{"session":{"user":"x","originalUser":"gateway","properties":{}}}'::jsonb
         else '{"session":{"user":"x","properties":{}}}' end
     from (select *, case when cheap or failed then random() / 1e4 else random() end as r,
         case when cheap or failed then random() / 1e4 else random() end as s
       from (select n, $1::int as total, now() - n * interval '90 days' / $1 as at, n % 20 = 5 as failed, n % 10 = 7 as cheap
         from generate_series(1, $1::int) n) numbered) made`,
    [QUERIES],
  )
  await database.query(
    `insert into table_access (query_id, ordinal, catalog_name, schema_name, table_name, mode, columns, user_name, at)
     select query_id, part, 'lake', 'shop',
       case when row_number() over () % ($1 / 2) = 1 then 'seldom' else 't' || floor(500 * random() ^ 3) end, 'READ',
       '["id"]', user_name, created_at
     from queries, generate_series(0, 1) part`,
    [QUERIES],
  )
  console.log(`${QUERIES} queries after ${((performance.now() - began) / 1000).toFixed(0)} s`)
  for (const { def } of indexes) await database.query(def)
  await database.query('vacuum analyze queries').catch(() => database.query('analyze queries'))
  await database.query('vacuum analyze table_access')
  const { rows } = await database.query(
    `select indexrelname as name, round(pg_relation_size(indexrelid) / 1e6) as mb from pg_stat_user_indexes
     where schemaname = 'm' and relname = 'queries' order by 2 desc`,
  )
  console.log(
    `ready after ${((performance.now() - began) / 1000).toFixed(0)} s; indexes in MB: ${rows.map(({ name, mb }) => `${name} ${mb}`).join(', ')}`,
  )
}
