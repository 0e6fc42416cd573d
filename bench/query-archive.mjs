// What it costs to archive queries, and what lookups in the archive take. Beside a running server without archive settings:
//   node bench/query-archive.mjs <data folder> <port> [queries]
// A period of queries is made by SQL in the read models, out of one that the server has run, and archived; the other periods are its files
// with later times, made by DuckDB. The log knows nothing of them.
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { archivedTables } from '../dist/readmodels/archive/archived-tables.js'
import { createParquetEngine } from '../dist/readmodels/archive/parquet-engine.js'
import { archiveQueries } from '../dist/readmodels/archive/query-archive.js'
import { embeddedConnection } from './embedded-connection.mjs'

const [dataDir, port, count = '1000000'] = process.argv.slice(2)
const QUERIES = Number(count)
const PERIOD = 20_000
const SECONDS = 26 * PERIOD
const server = `http://127.0.0.1:${port}`
const database = embeddedConnection(dataDir)
const client = new pg.Client({
  ...database,
  options: '-c search_path=m,public -c synchronous_commit=off -c timezone=UTC',
})
await client.connect()

async function statement(sql) {
  const began = performance.now()
  let answer = await (
    await fetch(`${server}/v1/statement`, { method: 'POST', body: sql, headers: { 'x-trino-user': 'auditor' } })
  ).json()
  const rows = []
  for (;;) {
    rows.push(...(answer.data ?? []))
    if (answer.error) throw new Error(answer.error.message)
    if (!answer.nextUri) return { rows, ms: performance.now() - began }
    answer = await (await fetch(answer.nextUri, { headers: { 'x-trino-user': 'auditor' } })).json()
  }
}

const idOf = `to_char(t, 'YYYYMMDD_HH24MISS') || '_' || lpad((n % 100000)::text, 5, '0') || '_00001'`
/** A query each 26 seconds, so that a million are 300 days. */
const numbers = `(select n, timestamptz '2025-01-01' + n * interval '26 seconds' as t from generate_series($1::int, $2::int) n) s`

/** Rows of a table of one query, again for each number. */
async function multiply(table, columns, where) {
  const { rows } = await client.query(
    `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
    [table],
  )
  const listed = rows.map(({ name }) => columns[name] ?? `o."${name}"`)
  const result = await client.query(
    `insert into ${table} select ${listed.join(', ')} from ${table} o, ${numbers} where ${where}`,
    [0, PERIOD - 1],
  )
  return result.rowCount
}

await statement(
  'SELECT count(*), n.name FROM tpch.tiny.nation n JOIN tpch.tiny.region r ON n.regionkey = r.regionkey GROUP BY 2',
)
await statement('SELECT count(*) FROM system.history.queries')
const { rows: found } = await client.query(
  `select query_id from queries where sql_text like 'SELECT count(*), n.name%' and ended_at is not null order by created_at limit 1`,
)
const template = `'${found[0].query_id}'`
await new Promise((resolve) => setTimeout(resolve, 1000))
const { rows: sized } =
  await client.query(`select (select sum(octet_length(data)) from query_events where stream = ${template}) as events,
  (select count(*) from query_events where stream = ${template}) as many`)
console.log(`a query: ${sized[0].many} events with ${sized[0].events} bytes of data`)
const { rows: logs } = await client.query("select checkpoint::json->>'logId' as id from checkpoints")
const folder = join(dataDir, 'archive', logs[0].id, 'queries')
const engine = createParquetEngine(folder)

for (let day = 0; day < 10; day++) {
  const [start, end] = [0, 1].map((more) =>
    new Date(Date.parse('2025-01-01') + (day + more) * 86_400_000).toISOString(),
  )
  const name = `query_events_${start.slice(0, 10).replaceAll('-', '')}`
  await client.query(
    `create table if not exists ${name} partition of query_events for values from ('${start}') to ('${end}')`,
  )
}
const times = {
  created_at: 't',
  planned_at: 't',
  execution_started_at: 't',
  last_event_at: `t + interval '1 second'`,
  ended_at: `t + interval '1 second'`,
}
const own = `o.query_id = ${template}`
const made = [
  await multiply('queries', { ...times, query_id: idOf, user_name: `'user' || n % 5000` }, own),
  await multiply('stages', { query_id: idOf }, own),
  await multiply(
    'tasks',
    { query_id: idOf, task_id: `${idOf} || substr(o.task_id, 28)`, created_at: 't', ended_at: 't' },
    own,
  ),
  await multiply('operators', { query_id: idOf, task_id: `${idOf} || substr(o.task_id, 28)` }, own),
  await multiply('table_access', { query_id: idOf, user_name: `'user' || n % 5000`, at: 't' }, own),
  await multiply('columns_read', { query_id: idOf }, own),
  await multiply('query_events', { stream: idOf, time: 't', position: '-n' }, `o.stream = ${template}`),
]
const { rows: sizes } = await client.query(
  `select sum(pg_total_relation_size(c.oid)) as bytes from pg_class c where c.relnamespace = 'm'::regnamespace and c.relkind in ('r')`,
)
const memory = process.memoryUsage().rss
const started = performance.now()
const cpu = process.cpuUsage()
const periods = await archiveQueries(
  { database, engine, folder },
  { before: '2025-06-01T00:00:00.000Z', keepQueries: undefined, leastQueries: 1, leastMs: 0 },
)
const seconds = (performance.now() - started) / 1000
const { user, system } = process.cpuUsage(cpu)
const bytes = periods.reduce(
  (sum, { tables }) => sum + Object.values(tables).reduce((all, one) => all + one.bytes, 0),
  0,
)
const MiB = 2 ** 20
console.log(
  `${PERIOD} queries, ${made.reduce((a, b) => a + b)} rows, ${(sizes[0].bytes / MiB).toFixed(0)} MiB in Postgres: ${periods.length} periods in ${seconds.toFixed(1)} s ` +
    `(${(sizes[0].bytes / MiB / seconds).toFixed(1)} MiB/s, ${Math.round(PERIOD / seconds)} queries/s; ${((user + system) / 1e6).toFixed(1)} s of CPU here), ${(bytes / MiB).toFixed(1)} MiB of files; ` +
    `memory ${(memory / MiB).toFixed(0)} → ${(process.memoryUsage().rss / MiB).toFixed(0)} MiB`,
)

const of = (column) =>
  `strftime(strptime(left(${column}, 15), '%Y%m%d_%H%M%S') + to_seconds($3), '%Y%m%d_%H%M%S') || substr(${column}, 16)`
for (let number = 1; number * PERIOD < QUERIES; number++)
  for (const period of periods) {
    const to = `${period.folder}-${number}`
    mkdirSync(join(folder, to), { mode: 0o700 })
    for (const table of archivedTables) {
      const replaced = Object.entries(table.columns).flatMap(([column, type]) =>
        column === table.id || column === 'task_id'
          ? [`${of(column)} as ${column}`]
          : type.startsWith('timestamptz')
            ? [`"${column}" + to_seconds($3) as "${column}"`]
            : [],
      )
      const paths = [period.folder, to].map((one) => join(folder, one, `${table.name}.parquet`))
      await engine.run(
        `copy (select * replace (${replaced.join(', ')}) from read_parquet($1)) to $2 (format parquet, compression zstd, row_group_size 8192)`,
        [...paths, BigInt(SECONDS * number)],
      )
    }
    await client.query(
      `insert into quipu_log.query_periods (folder, queries, created_from, created_to, ended_from, ended_to, first_id, last_id, tables, users)
       select $2, queries, created_from + d, created_to + d, ended_from + d, ended_to + d, to_char(created_from + d, 'YYYYMMDD_HH24MISS'),
         to_char(created_to + d, 'YYYYMMDD_HH24MISS') || 'z', tables, '[]'
       from quipu_log.query_periods, (select $3 * interval '1 second' as d) s where folder = $1`,
      [period.folder, to, SECONDS * number],
    )
  }
await engine.close()

const middle = Math.floor(QUERIES / 2)
const { rows: chosen } = await client.query(`select ${idOf} as id, t from ${numbers}`, [middle, middle])
const { t } = chosen[0]
const { rows: there } = await statement(
  `SELECT query_id FROM system.history.queries WHERE created >= TIMESTAMP '${t.toISOString().slice(0, 19).replace('T', ' ')}' ORDER BY created LIMIT 1`,
)
const id = there[0][0]
const day = t.toISOString().slice(0, 10)
for (const [what, sql] of [
  ['by id', `SELECT * FROM system.history.queries WHERE query_id = '${id}'`],
  ['tasks by id', `SELECT * FROM system.history.tasks WHERE query_id = '${id}'`],
  ['events by id', `SELECT type, data FROM system.history.events WHERE stream = '${id}'`],
  ['a user, all time', `SELECT query_id, created FROM system.history.queries WHERE user = 'user77'`],
  [
    'a user, a month',
    `SELECT query_id, created, query FROM system.history.queries WHERE user = 'user77' AND created >= DATE '${day}' AND created < DATE '${day}' + INTERVAL '30' DAY`,
  ],
  [
    'a day',
    `SELECT state, count(*), sum(cpu_ms) FROM system.history.queries WHERE created >= DATE '${day}' AND created < DATE '${day}' + INTERVAL '1' DAY GROUP BY state`,
  ],
  [
    'readers of a table',
    `SELECT user, count(*) FROM system.history.tables_read WHERE table_name = 'nation' AND time >= DATE '${day}' GROUP BY user`,
  ],
  ['newest ten', `SELECT query_id FROM system.history.queries ORDER BY created DESC LIMIT 10`],
  ['count', 'SELECT count(*) FROM system.history.queries'],
  ['by day with CPU', 'SELECT CAST(created AS date), count(*), sum(cpu_ms) FROM system.history.queries GROUP BY 1'],
]) {
  const runs = []
  for (let i = 0; i < 5; i++) runs.push(await statement(sql))
  const sorted = runs.map(({ ms }) => ms).toSorted((a, b) => a - b)
  console.log(
    `${what}: ${runs[0].rows.length} rows, first ${(runs[0].ms / 1000).toFixed(2)} s, median ${(sorted[2] / 1000).toFixed(2)} s`,
  )
}
for (const path of [`/v1/query/${id}`, `/v1/query?user=user77&limit=20`, '/v1/query?limit=50&state=FINISHED']) {
  const runs = []
  for (let i = 0; i < 5; i++) {
    const began = performance.now()
    const response = await fetch(server + path, { headers: { 'x-trino-user': 'auditor' } })
    await response.text()
    runs.push([response.status, performance.now() - began])
  }
  console.log(
    `${path}: ${runs[0][0]}, first ${(runs[0][1] / 1000).toFixed(2)} s, median ${(runs.map(([, ms]) => ms).toSorted((x, y) => x - y)[2] / 1000).toFixed(2)} s`,
  )
}
console.log(
  `files: ${readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => statSync(join(folder, name)).isFile()).length}`,
)
await client.end()
