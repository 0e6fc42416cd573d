// What tracing and metrics cost: the same statements on two servers of one build, one exporting every trace it takes to
// a collector on this machine, one exporting nothing. Blocks alternate, so that a slow moment of the machine meets both.
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { cpuByKind, createClient, quantile, startServer } from './quipu-server.mjs'
import { tpchLake } from './tpch-data.mjs'
import { tpchQueries } from './tpch-queries.mjs'

/** Of TPC-H as Parquet: at what size a query's own work is that of real ones. */
const SCALE = Number(process.env.BENCH_SCALE ?? 1)
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

const location = await tpchLake(SCALE)
const sides = {}
for (const [name, env] of Object.entries({ off: {}, on: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } })) {
  const server = await startServer({ env, catalogs: { lake: { connector: 'lake', location } } })
  const { children } = JSON.parse(readFileSync(join(server.dataDir, 'supervisor.json'), 'utf8'))
  const client = createClient(server.base)
  const lake = createClient(server.base, { catalog: 'lake', schema: 'tpch' })
  sides[name] = { server, client, lake, coordinator: children[0].pid, figures: {} }
}
// Engines of both have their spare by then.
await new Promise((resolve) => setTimeout(resolve, 7000))

/**
 * CPU milliseconds of a process, all threads and the one of its event loop, from the scheduler's nanoseconds: ticks of a
 * hundredth are too coarse for a block, and wall time includes other processes of the machine.
 */
function cpuOf(pid) {
  let all = 0
  let loop = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    try {
      const [nanos] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')
      all += Number(nanos) / 1e6
      if (thread === String(pid)) loop = Number(nanos) / 1e6
    } catch {
      // It ended meanwhile.
    }
  }
  return { all, loop }
}

async function block(side, name, work, clients, count) {
  const cpu = cpuOf(side.coordinator)
  const ofAll = cpuOfAll(side.server)
  const start = performance.now()
  let left = count
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) await work(side)
    }),
  )
  const seconds = (performance.now() - start) / 1000
  const after = cpuOf(side.coordinator)
  ;(side.figures[name] ??= []).push({
    perSecond: count / seconds,
    cpuMs: (after.all - cpu.all) / count,
    loopMs: (after.loop - cpu.loop) / count,
    allMs: (cpuOfAll(side.server) - ofAll) / count,
  })
}

/** What a taken trace costs elsewhere is with workers, whose engines profile it, and with Postgres, whose events are larger. */
function cpuOfAll(server) {
  return Object.values(cpuByKind(server)).reduce((sum, ms) => sum + ms, 0)
}

const one = ({ client }) => client.bytes('SELECT 1')
const groupBy = ({ client }) =>
  client.bytes('SELECT orderpriority, count(*), sum(totalprice) FROM orders GROUP BY orderpriority')
const tpch = async (client) => {
  for (const sql of Object.values(tpchQueries)) await client.bytes(sql)
}
const kinds = [
  [`SELECT 1, ${CLIENTS} clients`, one, CLIENTS, STATEMENTS],
  ['SELECT 1, 1 client', one, 1, Math.ceil(STATEMENTS / 3)],
  [`GROUP BY over 15,000 rows, ${CLIENTS} clients`, groupBy, CLIENTS, Math.ceil(STATEMENTS / 2)],
  ['22 TPC-H queries, tiny', ({ client }) => tpch(client), 1, 1],
  [`22 TPC-H queries, scale ${SCALE}, Parquet`, ({ lake }) => tpch(lake), 1, 1, Math.ceil(ROUNDS / 2)],
]
for (const [name, work, clients, count, rounds = ROUNDS] of kinds) {
  for (const side of Object.values(sides)) await block(side, 'warm', work, clients, count)
  for (let round = 0; round < rounds; round++) {
    // Who begins changes, so that nobody always has the warmer machine.
    const order = round % 2 === 0 ? ['off', 'on'] : ['on', 'off']
    for (const which of order) await block(sides[which], name, work, clients, count)
  }
  const median = (which, field) =>
    quantile(
      sides[which].figures[name].map((one) => one[field]).sort((a, b) => a - b),
      0.5,
    )
  const pairs = (field) =>
    quantile(
      sides.on.figures[name]
        .map((one, round) => one[field] / sides.off.figures[name][round][field])
        .sort((a, b) => a - b),
      0.5,
    )
  const ms = (field) => `off ${median('off', field).toFixed(2)} ms, on ${median('on', field).toFixed(2)} ms`
  console.log(
    `${name}: off ${median('off', 'perSecond').toFixed(1)} a second, on ${median('on', 'perSecond').toFixed(1)}; ` +
      `on/off, medians of ${rounds} pairs: throughput ${pairs('perSecond').toFixed(3)}, ` +
      `CPU of the event loop ${pairs('loopMs').toFixed(3)} (${ms('loopMs')}), ` +
      `of the coordinator ${pairs('cpuMs').toFixed(3)} (${ms('cpuMs')}), ` +
      `of all processes ${pairs('allMs').toFixed(3)} (${ms('allMs')})`,
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

// A page of 2,000 series and more, as a coordinator has it after months: routes, errors and groups that all occur.
const { createMeters } = await import('../dist/telemetry/meters.js')
const meters = await createMeters({ on: 'coordinator', processMetrics: true })
const ROUTES = ['/v1/statement', '/v1/query', '/v1/query/{queryId}', '/v1/task', '/v1/task/{taskId}', '/v1/node']
for (const route of ROUTES)
  for (const method of ['GET', 'POST', 'DELETE', 'HEAD'])
    for (const code of ['2xx', '4xx', '5xx']) meters.observe('httpRequestDuration', { method, route, code }, 0.01)
for (let value = 0; value < 60; value++) {
  meters.count('queryErrors', { error_type: 'USER_ERROR', error_name: `ERROR_${value}` })
  meters.observe('planEstimateRatio', { operator: `OPERATOR_${value % 30}` }, 1)
  meters.count('userQueries', { user: `user${value}` })
}
for (const state of ['FINISHED', 'FAILED'])
  for (const route of ['local', 'coordinator']) meters.observe('queryDuration', { state, route }, 1)
const scrapes = 50
await meters.text()
const before = process.cpuUsage()
let page
for (let count = 0; count < scrapes; count++) page = (await meters.text()).body
const used = process.cpuUsage(before)
const series = page.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
console.log(
  `/metrics: ${series} series, ${page.length} bytes, ${((used.user + used.system) / 1000 / scrapes).toFixed(1)} ms of CPU a scrape`,
)
const live = sides.off
const liveBefore = cpuOf(live.coordinator)
for (let count = 0; count < scrapes; count++) page = (await live.client.send('GET', '/metrics')).body.toString()
console.log(
  `/metrics of the coordinator here: ${page.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length} series, ` +
    `${((cpuOf(live.coordinator).all - liveBefore.all) / scrapes).toFixed(1)} ms of CPU a scrape`,
)
for (const { client, lake, server } of Object.values(sides)) {
  client.close()
  lake.close()
  await server.stop()
}
collector.close()
collector.closeAllConnections()
