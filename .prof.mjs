import { createClient, startServer } from './bench/quipu-server.mjs'
import { tpchLake } from './bench/tpch-data.mjs'
import { tpchQueries } from './bench/tpch-queries.mjs'
const folder = await tpchLake(Number(process.env.SF ?? 1))
const server = await startServer({
  catalogs: { lake: { connector: 'lake', location: folder } },
  env: { NODE_OPTIONS: '--cpu-prof --cpu-prof-dir=/tmp/p2x/prof --cpu-prof-interval 250' },
})
const client = createClient(server.base, { catalog: 'lake', schema: 'tpch' })
await new Promise((r) => setTimeout(r, 4000))
const names = process.argv.slice(2),
  N = Number(process.env.N ?? 25)
for (let i = 0; i < N; i++) for (const n of names) await client.rows(tpchQueries[n])
client.close()
await server.stop()
