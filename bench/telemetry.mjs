// What tracing and metrics cost: the same statements on two servers of one build, one exporting every trace it takes to
// a collector on this machine, one exporting nothing. Blocks alternate, so that a slow moment of the machine meets both.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createClient, quantile, startServer } from './quipu-server.mjs'
import { tpchQueries } from './tpch-queries.mjs'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 10)
const STATEMENTS = Number(process.env.BENCH_COUNT ?? 300)
const CLIENTS = 16

const received = { bytes: 0, spans: 0 }
const collector = createServer((request, response) => {
  request.on('data', (part) => {
    received.bytes += part.length
    received.spans += part.toString('latin1').split('"spanId"').length - 1
  })
  request.on('end', () => response.setHeader('content-type', 'application/json').end('{}'))
})
await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve))
const endpoint = `http://127.0.0.1:${collector.address().port}`

const sides = {}
for (const [name, env] of Object.entries({ off: {}, on: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } })) {
  const server = await startServer({ env })
  const { children } = JSON.parse(readFileSync(join(server.dataDir, 'supervisor.json'), 'utf8'))
  sides[name] = { server, client: createClient(server.base), coordinator: children[0].pid, figures: {} }
}
// Engines of both have their spare by then.
await new Promise((resolve) => setTimeout(resolve, 7000))

/** CPU seconds of a process, from the kernel's hundredths. */
function cpuOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function block(side, name, work, clients, count) {
  const cpu = cpuOf(side.coordinator)
  const start = performance.now()
  let left = count
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) await work(side.client)
    }),
  )
  const seconds = (performance.now() - start) / 1000
  ;(side.figures[name] ??= []).push({
    perSecond: count / seconds,
    cpuMs: ((cpuOf(side.coordinator) - cpu) * 1000) / count,
  })
}

const one = (client) => client.bytes('SELECT 1')
const tpch = async (client) => {
  for (const sql of Object.values(tpchQueries)) await client.bytes(sql)
}
const kinds = [
  [`SELECT 1, ${CLIENTS} clients`, one, CLIENTS, STATEMENTS],
  ['SELECT 1, 1 client', one, 1, Math.ceil(STATEMENTS / 3)],
  ['22 TPC-H queries, tiny', tpch, 1, 1],
]
for (const [name, work, clients, count] of kinds) {
  for (const side of Object.values(sides)) await block(side, 'warm', work, clients, count)
  for (let round = 0; round < ROUNDS; round++) {
    // Who begins changes, so that nobody always has the warmer machine.
    const order = round % 2 === 0 ? ['off', 'on'] : ['on', 'off']
    for (const which of order) await block(sides[which], name, work, clients, count)
  }
  const median = (which, field) =>
    quantile(
      sides[which].figures[name].map((one) => one[field]).sort((a, b) => a - b),
      0.5,
    )
  const ratios = sides.on.figures[name].map((one, round) => one.perSecond / sides.off.figures[name][round].perSecond)
  const ratio = quantile(
    ratios.sort((a, b) => a - b),
    0.5,
  )
  console.log(
    `${name}: off ${median('off', 'perSecond').toFixed(1)} a second, on ${median('on', 'perSecond').toFixed(1)}; ` +
      `throughput on/off, median of ${ROUNDS} pairs ${ratio.toFixed(3)}; ` +
      `coordinator's CPU off ${median('off', 'cpuMs').toFixed(2)} ms, on ${median('on', 'cpuMs').toFixed(2)} ms`,
  )
}

// Spans and bytes of one statement, each alone: below the sampler's ceiling every one is taken.
for (const [name, sql] of [
  ['SELECT 1', 'SELECT 1'],
  ['TPC-H 3', Object.values(tpchQueries)[2]],
]) {
  await new Promise((resolve) => setTimeout(resolve, 2500))
  const before = { ...received }
  for (let count = 0; count < 10; count++) await sides.on.client.bytes(sql)
  await new Promise((resolve) => setTimeout(resolve, 2500))
  console.log(
    `${name}: ${((received.spans - before.spans) / 10).toFixed(1)} spans, ${((received.bytes - before.bytes) / 10).toFixed(0)} bytes exported`,
  )
}

const side = sides.off
const scrapes = 50
const cpu = cpuOf(side.coordinator)
let page
for (let count = 0; count < scrapes; count++) page = (await side.client.send('GET', '/metrics')).body
const lines = page
  .toString()
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#')).length
console.log(
  `/metrics: ${lines} series, ${page.length} bytes, ${(((cpuOf(side.coordinator) - cpu) * 1000) / scrapes).toFixed(1)} ms of CPU a scrape`,
)
for (const { client, server } of Object.values(sides)) {
  client.close()
  await server.stop()
}
collector.close()
collector.closeAllConnections()
