// 1,000,000 and 5,000,000 rows of lineitem (4 columns) to a client that only reads bytes; peak memory of each process.
import { readFileSync } from 'node:fs'
import { createClient, startServer } from './quipu-server.mjs'
import { tpchLake } from './tpch-data.mjs'

const folder = await tpchLake(1)
const server = await startServer({ catalogs: { lake: { connector: 'lake', location: folder } } })
const client = createClient(server.base, { catalog: 'lake', schema: 'tpch' })

const childrenOf = (pid) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
const commandOf = (pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')

/** Resident megabytes now, by what the process is. */
function resident() {
  const found = {}
  for (const child of childrenOf(server.pid)) {
    // Engines are the launcher's children where root started them.
    const kind = /(coordinator|worker)-process|engine-launcher/.exec(commandOf(child))
    if (!kind) continue
    const name = kind[1] ?? 'launcher'
    const add = (name, pid) => {
      try {
        const kB = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
        found[name] = Math.max(found[name] ?? 0, kB / 1024)
      } catch {
        // It ended between the look and the read.
      }
    }
    add(name, child)
    for (const engine of childrenOf(child)) add(`engine of ${name}`, engine)
  }
  return found
}

await new Promise((resolve) => setTimeout(resolve, 7000))
for (const limit of [1_000_000, 1_000_000, 1_000_000, 5_000_000]) {
  const peak = {}
  const timer = setInterval(() => {
    for (const [name, megabytes] of Object.entries(resident())) peak[name] = Math.max(peak[name] ?? 0, megabytes)
  }, 50)
  const start = performance.now()
  const { bytes, requests } = await client.bytes(
    `SELECT orderkey, partkey, suppkey, extendedprice FROM lineitem LIMIT ${limit}`,
  )
  const seconds = (performance.now() - start) / 1000
  clearInterval(timer)
  const memory = Object.entries(peak).map(([name, megabytes]) => `${name} ${megabytes.toFixed(0)} MB`)
  console.log(
    `${limit} rows: ${seconds.toFixed(2)} s, ${(bytes / 1e6).toFixed(0)} MB in ${requests} answers; peak ${memory.join(', ')}`,
  )
}
client.close()
await server.stop()
