import { createClient, startServer, cpuByKind } from './bench/quipu-server.mjs'
import { tpchLake } from './bench/tpch-data.mjs'
import { tpchQueries } from './bench/tpch-queries.mjs'
const folder = await tpchLake(1)
const server = await startServer({
  catalogs: { lake: { connector: 'lake', location: folder } },
  ...(process.env.PROG && { program: process.env.PROG }),
})
const client = createClient(server.base, { catalog: 'lake', schema: 'tpch' })
await new Promise((r) => setTimeout(r, 5000))
const names = process.argv.slice(2),
  N = Number(process.env.N ?? 15)
for (const n of names) for (let i = 0; i < 3; i++) await client.rows(tpchQueries[n])
for (const n of names) {
  const a = cpuByKind({ pid: server.pid })
  const ts = []
  for (let i = 0; i < N; i++) {
    const t = performance.now()
    await client.rows(tpchQueries[n])
    ts.push(performance.now() - t)
  }
  const b = cpuByKind({ pid: server.pid })
  ts.sort((x, y) => x - y)
  console.log(
    n,
    'min',
    ts[0].toFixed(0),
    'p50',
    ts[N >> 1].toFixed(0),
    Object.keys(b)
      .map((k) => `${k} ${((b[k] - a[k]) / N).toFixed(1)}`)
      .join('  '),
  )
}
client.close()
await server.stop()
