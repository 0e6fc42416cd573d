// What the front end costs: parse, resolve, analyse and render a statement of the corpus, and what its SQL costs
// more than the statement as it stands on the 22 TPC-H queries. `node bench/sql-front-end.mjs [folder of TPC-H Parquet]`
import { readdirSync, readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { DuckDBInstance } from '@duckdb/node-api'
import { tpchTables, tpchDuckdbType } from '../dist/connectors/tpch/tables.js'
import { createStatementPlanner } from '../dist/planner/statement-planner.js'
import { StatementText } from '../dist/sql/parsed-statement.js'
import registerAll from '../dist/duckdb/scripts/register.js'
import { tpchQueries } from './tpch-queries.mjs'

const metadata = {
  catalogs: () => ['tpch', 'system'],
  schemas: async () => ['tiny', 'sf1', 'information_schema'],
  tables: async () => [],
  statistics: async () => ({}),
  table: async (_catalog, schema, table) =>
    tpchTables[table] && {
      schema,
      table,
      kind: 'TABLE',
      handle: {},
      columns: tpchTables[table].columns.map(([name, type]) => ({ name, type, nullable: false })),
    },
}
const session = {
  queryId: 'bench',
  user: 'bench',
  catalog: 'tpch',
  schema: 'tiny',
  timeZone: 'UTC',
  startTimeMillis: Date.now(),
  properties: {},
  preparedStatements: {},
  roles: {},
  clientCapabilities: ['PARAMETRIC_DATETIME'],
  headerFamily: 'Trino',
}
const planner = createStatementPlanner()
const plan = (sql) => planner.plan(planner.parse(new StatementText(sql), session), { session, metadata })

const percentile = (sorted, p) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))]

async function analyse() {
  const folder = new URL('../test/conformance/', import.meta.url)
  const statements = readdirSync(folder)
    .filter((file) => file.endsWith('.jsonl'))
    .flatMap((file) => readFileSync(new URL(file, folder), 'utf8').split('\n').filter(Boolean))
    .map((line) => JSON.parse(line).sql)
  const times = []
  for (let round = 0; round < 3; round++) {
    times.length = 0
    for (const sql of statements) {
      const start = performance.now()
      try {
        await plan(sql)
      } catch {
        // An error costs as well.
      }
      times.push(performance.now() - start)
    }
  }
  times.sort((a, b) => a - b)
  console.log(
    `parse + resolve + analyse + render, ${statements.length} statements: p50 ${percentile(times, 0.5).toFixed(3)} ms, p99 ${percentile(times, 0.99).toFixed(3)} ms`,
  )
}

async function overhead(folder) {
  const instance = await DuckDBInstance.create(':memory:', { threads: '2' })
  const connection = await instance.connect()
  await connection.run(`SET TimeZone='UTC'`)
  await registerAll(connection)
  for (const [table, { prefix, columns }] of Object.entries(tpchTables)) {
    const list = columns.map(([name, type]) => `CAST("${prefix}${name}" AS ${tpchDuckdbType(type)}) AS "${name}"`)
    await connection.run(
      `COPY (SELECT ${list.join(', ')} FROM read_parquet('${folder}/${table}.parquet')) TO '${folder}/${table}.trino' (FORMAT parquet)`,
    )
    await connection.run(`CREATE VIEW ${table} AS SELECT * FROM read_parquet('${folder}/${table}.trino')`)
  }
  const cpu = async (sql) => {
    let best = Infinity
    for (let round = 0; round < 3; round++) {
      const before = process.cpuUsage()
      await connection.runAndReadAll(sql)
      const used = process.cpuUsage(before)
      best = Math.min(best, (used.user + used.system) / 1000)
    }
    return best
  }
  let [plain, rendered] = [0, 0]
  for (const [name, sql] of Object.entries(tpchQueries)) {
    const { query } = await plan(sql)
    const scans = query.scans.map(({ table, columns }, i) => {
      const list = columns.length === 0 ? '1' : columns.map((column) => `"${column}"`).join(', ')
      return `"$s${i}" AS (SELECT ${list} FROM read_parquet('${folder}/${table}.trino'))`
    })
    const [a, b] = [await cpu(sql), await cpu(`WITH ${scans.join(', ')} SELECT * FROM (${query.sql})`)]
    plain += a
    rendered += b
    console.log(
      `${name.padEnd(4)} plain ${a.toFixed(0).padStart(6)} ms CPU, rendered ${b.toFixed(0).padStart(6)} ms, ratio ${(b / a).toFixed(2)}`,
    )
  }
  console.log(
    `all  plain ${plain.toFixed(0)} ms, rendered ${rendered.toFixed(0)} ms, ratio ${(rendered / plain).toFixed(3)}`,
  )
  connection.closeSync()
}

await analyse()
const folder = process.argv[2]
if (folder !== undefined) await overhead(folder)
