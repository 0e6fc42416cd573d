// How far the read models are behind the log while statements come at a fixed rate, whether or not they are answered in
// time (open loop). The lag is the age of the oldest event that is not projected, asked of /v1/status.
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, quantile, startServer } from './quipu-server.mjs'

const RATE = Number(process.env.BENCH_RATE ?? 200)
const SECONDS = Number(process.env.BENCH_SECONDS ?? 30)

const server = await startServer({
  env: process.env.KAFKA_BROKERS
    ? { KAFKA_BROKERS: process.env.KAFKA_BROKERS, QUIPU_KAFKA_TOPIC: `bench-lag-${process.pid}` }
    : {},
})
const client = createClient(server.base)
await sleep(7000)
for (let warm = 0; warm < 200; warm++) await client.bytes('SELECT 1')

const times = []
const lags = []
let failed = 0
let sampling = true
const sampler = (async () => {
  while (sampling) {
    const { lag } = JSON.parse((await client.send('GET', '/v1/status')).body)
    lags.push(lag)
    await sleep(50)
  }
})()
const pending = []
const start = performance.now()
for (let n = 0; n < RATE * SECONDS; n++) {
  const due = start + (n * 1000) / RATE
  const early = due - performance.now()
  if (early > 1) await sleep(early)
  // Counted from when it was due: a server that falls behind is not spared.
  pending.push(
    client.bytes('SELECT 1').then(
      () => times.push(performance.now() - due),
      () => failed++,
    ),
  )
}
await Promise.all(pending)
const seconds = (performance.now() - start) / 1000
sampling = false
await sampler
const of = (values, q) =>
  quantile(
    values.toSorted((a, b) => a - b),
    q,
  )
const ages = lags.map((lag) => lag.oldestMillis)
const events = lags.map((lag) => lag.events)
console.log(
  `load ${loadavg()
    .map((one) => one.toFixed(1))
    .join(' ')}; log in ${process.env.KAFKA_BROKERS ? 'Kafka' : 'Postgres'}`,
)
console.log(
  `${RATE} statements a second asked, ${(times.length / seconds).toFixed(0)} answered, ${failed} failed; p50 ${of(times, 0.5).toFixed(1)} ms, p99 ${of(times, 0.99).toFixed(1)} ms from when each was due`,
)
console.log(
  `projection lag over ${lags.length} looks: p50 ${of(ages, 0.5).toFixed(0)} ms, p99 ${of(ages, 0.99).toFixed(0)} ms, most ${Math.max(...ages).toFixed(0)} ms; events p99 ${of(events, 0.99)}`,
)
client.close()
await server.stop()
