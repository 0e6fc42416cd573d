// TPC-H through HTTP against the same files in plain DuckDB: warm minimum of 3, ratio of the sums.
import { DuckDBInstance } from '@duckdb/node-api'
import { createClient, startServer } from './quipu-server.mjs'
import { tpchLake, tpchViews } from './tpch-data.mjs'
import { tpchQueries } from './tpch-queries.mjs'

const scale = Number(process.env.BENCH_SCALE ?? 1)
const rounds = Number(process.env.BENCH_ROUNDS ?? 3)
const folder = await tpchLake(scale)
const server = await startServer({ catalogs: { lake: { connector: 'lake', location: folder } } })
const client = createClient(server.base, { catalog: 'lake', schema: 'tpch' })
const instance = await DuckDBInstance.create(':memory:', { threads: '2' })
const duckdb = await instance.connect()
for (const view of tpchViews(folder)) await duckdb.run(view)

const best = {}
const measure = async (name, side, work) => {
  const start = performance.now()
  await work()
  const ms = performance.now() - start
  best[name] ??= {}
  best[name][side] = Math.min(best[name][side] ?? Infinity, ms)
}
await new Promise((resolve) => setTimeout(resolve, 6000))
// Side by side in time, so that a slow moment of the machine meets both.
for (let round = 0; round <= rounds; round++)
  for (const [name, sql] of Object.entries(tpchQueries)) {
    await measure(name, 'quipu', () => client.rows(sql))
    await measure(name, 'duckdb', async () => (await duckdb.run(sql)).getRowsJson())
    if (round === 0) delete best[name]
  }
let quipu = 0
let plain = 0
for (const [name, figures] of Object.entries(best)) {
  quipu += figures.quipu
  plain += figures.duckdb
  console.log(
    `${name.padEnd(4)} quipu ${figures.quipu.toFixed(0).padStart(6)} ms  duckdb ${figures.duckdb.toFixed(0).padStart(6)} ms  ${(figures.quipu / figures.duckdb).toFixed(2)}`,
  )
}
console.log(
  `TPC-H scale ${scale}, 22 queries, minimum of ${rounds}: quipu ${(quipu / 1000).toFixed(2)} s, duckdb ${(plain / 1000).toFixed(2)} s, ratio ${(quipu / plain).toFixed(2)}`,
)
client.close()
await server.stop()
