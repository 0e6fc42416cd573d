// What the event log costs a SELECT 1: servers of one build with the log in Postgres, in Kafka (with KAFKA_BROKERS), and
// with none at all (bench/noop-log), asked in turns so that what else runs on the machine hits all alike. Beside them
// probes without logic: a durable write of 2.5 kB in the same store and two HTTP round trips.
import { randomBytes } from 'node:crypto'
import { Agent, createServer, request } from 'node:http'
import { loadavg } from 'node:os'
import kafkajs from 'kafkajs'
import pg from 'pg'
import { embeddedConnection } from './embedded-connection.mjs'
import { createClient, quantile, startServer } from './quipu-server.mjs'

const COUNT = Number(process.env.BENCH_COUNT ?? 400)
const { KAFKA_BROKERS } = process.env
const body = 'x'.repeat(2500)

const servers = {
  none: await startServer({
    env: { NODE_OPTIONS: `--import ${new URL('./noop-log/register.mjs', import.meta.url).href}` },
  }),
}
servers.postgres = await startServer()
const topic = `bench-${randomBytes(4).toString('hex')}`
if (KAFKA_BROKERS) servers.kafka = await startServer({ env: { KAFKA_BROKERS, QUIPU_KAFKA_TOPIC: topic } })

const clients = Object.fromEntries(Object.entries(servers).map(([name, { base }]) => [name, createClient(base)]))
const work = Object.fromEntries(Object.entries(clients).map(([name, client]) => [name, () => client.bytes('SELECT 1')]))

const database = new pg.Client(embeddedConnection(servers.postgres.dataDir))
await database.connect()
await database.query('create table if not exists public.probe (at serial, data text)')
const writes = {
  postgres: () =>
    database.query({ name: 'probe', text: 'insert into public.probe (data) values ($1)', values: [body] }),
}
let producer
if (KAFKA_BROKERS) {
  const kafka = new kafkajs.Kafka({ brokers: KAFKA_BROKERS.split(','), logLevel: kafkajs.logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  const configEntries = [{ name: 'flush.messages', value: '1' }]
  const probe = `${topic}-probe`
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic: probe, numPartitions: 1, configEntries }] })
  await admin.disconnect()
  producer = kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  await producer.connect()
  writes.kafka = () => producer.send({ topic: probe, acks: -1, messages: [{ partition: 0, value: body }] })
}

const answering = createServer((incoming, answer) => {
  incoming.resume()
  if (incoming.method === 'POST') writes[incoming.url.slice(1)]().then(() => answer.end('{}'))
  else answer.end('{}')
})
await new Promise((resolve) => answering.listen(0, '127.0.0.1', resolve))
const agent = new Agent({ keepAlive: true })
const ask = (method, path) =>
  new Promise((resolve, reject) => {
    const { port } = answering.address()
    const sent = request({ port, host: '127.0.0.1', agent, method, path }, (answer) => {
      answer.resume()
      answer.on('end', resolve)
    })
    sent.on('error', reject)
    sent.end(method === 'POST' ? 'SELECT 1' : undefined)
  })
for (const name of Object.keys(writes))
  work[`probe ${name}`] = async () => {
    await ask('POST', `/${name}`)
    await ask('GET', '/')
  }

// Spare engines are started by then.
await new Promise((resolve) => setTimeout(resolve, 7000))
const times = Object.fromEntries(Object.keys(work).map((name) => [name, []]))
const names = Object.keys(work)
for (let round = -100; round < COUNT; round++) {
  // Another first in each round: none is always behind the same neighbour.
  for (let turn = 0; turn < names.length; turn++) {
    const name = names[(turn + Math.abs(round)) % names.length]
    const begun = performance.now()
    await work[name]()
    if (round >= 0) times[name].push(performance.now() - begun)
  }
}
const sorted = (values) => values.toSorted((a, b) => a - b)
const ms = (value) => `${value.toFixed(2)} ms`
console.log(
  `load ${loadavg()
    .map((one) => one.toFixed(1))
    .join(' ')}; ${COUNT} rounds, one client`,
)
for (const name of names) {
  const all = sorted(times[name])
  console.log(
    `${name.padEnd(15)} SELECT 1: p50 ${ms(quantile(all, 0.5))}, p99 ${ms(quantile(all, 0.99))}`.replace(
      /(probe \w+ +)SELECT 1:/,
      '$1',
    ),
  )
}
for (const name of ['postgres', 'kafka'].filter((each) => times[each])) {
  const more = sorted(times[name].map((value, round) => value - times.none[round]))
  const ratio = quantile(sorted(times[name]), 0.5) / quantile(sorted(times[`probe ${name}`]), 0.5)
  console.log(
    `durability by ${name}: ${ms(quantile(more, 0.5))} more in the median pair; ${ratio.toFixed(2)} of its probe`,
  )
}

for (const client of Object.values(clients)) client.close()
agent.destroy()
answering.close()
await producer?.disconnect()
await database.end()
for (const server of Object.values(servers)) await server.stop()
