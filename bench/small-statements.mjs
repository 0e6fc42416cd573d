// Small statements through HTTP, POST to last page, keep-alive: SELECT 1 (literals, no engine), SELECT 1 + 1 (the
// coordinator's engine) and a GROUP BY over 15,000 rows of Parquet (a worker).
// Each with the CPU of the server's processes a statement. Beside each, in the same run, a probe: one durable commit of 2.5 kB and two HTTP round trips, with no logic at all.
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import { join } from 'node:path'
import pg from 'pg'
import { embeddedConnection } from './embedded-connection.mjs'
import { cpuByKind, createClient, quantile, startServer } from './quipu-server.mjs'

const COUNT = Number(process.env.BENCH_COUNT ?? 500)
const GROUP_BY = 'SELECT orderpriority, count(*), sum(totalprice) FROM orders GROUP BY orderpriority'

const server = await startServer()
const client = createClient(server.base)
const database = new pg.Client(embeddedConnection(server.dataDir))
await database.connect()
await database.query('create table if not exists public.probe (at serial, data text)')

/** Statement by statement or many at once. */
async function measure(work, clients, count) {
  const times = []
  let left = count
  const cpu = cpuByKind(server)
  const start = performance.now()
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) {
        const begun = performance.now()
        await work()
        times.push(performance.now() - begun)
      }
    }),
  )
  const seconds = (performance.now() - start) / 1000
  const after = cpuByKind(server)
  const cpuMs = Object.keys(after).map((kind) => [kind, (after[kind] - (cpu[kind] ?? 0)) / times.length])
  times.sort((a, b) => a - b)
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99), perSecond: times.length / seconds, cpuMs }
}

const body = 'x'.repeat(2500)
const probeServer = createServer((incoming, answer) => {
  incoming.resume()
  if (incoming.method === 'POST')
    database
      .query({ name: 'probe', text: 'insert into public.probe (data) values ($1)', values: [body] })
      .then(() => answer.end('{}'))
  else answer.end('{}')
})
await new Promise((resolve) => probeServer.listen(0, '127.0.0.1', resolve))
const agent = new Agent({ keepAlive: true })
const ask = (method) =>
  new Promise((resolve, reject) => {
    const sent = request(
      { port: probeServer.address().port, host: '127.0.0.1', agent, method, path: '/' },
      (answer) => {
        answer.resume()
        answer.on('end', resolve)
      },
    )
    sent.on('error', reject)
    sent.end(method === 'POST' ? 'SELECT 1' : undefined)
  })
const probe = async () => {
  await ask('POST')
  await ask('GET')
}

function fdatasync() {
  const file = openSync(join(server.dataDir, 'sync'), 'w')
  const times = []
  for (let round = 0; round < 200; round++) {
    writeSync(file, body)
    const start = performance.now()
    fdatasyncSync(file)
    times.push(performance.now() - start)
  }
  closeSync(file)
  return quantile(
    times.sort((a, b) => a - b),
    0.5,
  )
}

const shownCpu = (cpuMs) =>
  `CPU ${cpuMs.reduce((sum, [, ms]) => sum + ms, 0).toFixed(2)} ms (${cpuMs
    .filter(([, ms]) => ms >= 0.05)
    .map(([kind, ms]) => `${kind} ${ms.toFixed(2)}`)
    .join(', ')})`
const shown = (figures) =>
  `p50 ${figures.p50.toFixed(2)} ms, p99 ${figures.p99.toFixed(2)} ms, ${figures.perSecond.toFixed(0)} a second; ` +
  shownCpu(figures.cpuMs)

await new Promise((resolve) => setTimeout(resolve, 7000))
const selectOne = () => client.bytes('SELECT 1')
const addition = () => client.bytes('SELECT 1 + 1')
const groupBy = () => client.bytes(GROUP_BY)
for (const warm of [selectOne, addition, groupBy, probe]) await measure(warm, 4, 100)
console.log(`fdatasync of this disk, 2.5 kB: p50 ${fdatasync().toFixed(2)} ms`)
const one = await measure(selectOne, 1, COUNT)
const base = await measure(probe, 1, COUNT)
console.log(`SELECT 1, 1 client: ${shown(one)}`)
console.log(`probe, 1 client: ${shown(base)}; ratio ${(one.p50 / base.p50).toFixed(2)}`)
console.log(`SELECT 1, 16 clients: ${shown(await measure(selectOne, 16, COUNT * 6))}`)
const sum = await measure(addition, 1, COUNT)
console.log(`SELECT 1 + 1, 1 client: ${shown(sum)}; ratio to the probe ${(sum.p50 / base.p50).toFixed(2)}`)
console.log(`SELECT 1 + 1, 16 clients: ${shown(await measure(addition, 16, COUNT * 4))}`)
const group = await measure(groupBy, 1, COUNT)
console.log(
  `GROUP BY over 15,000 rows, 1 client: ${shown(group)}; ratio to the probe ${(group.p50 / base.p50).toFixed(2)}`,
)
console.log(`GROUP BY over 15,000 rows, 16 clients: ${shown(await measure(groupBy, 16, COUNT * 2))}`)
client.close()
agent.destroy()
probeServer.close()
await database.end()
await server.stop()
