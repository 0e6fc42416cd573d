// How fast the event log takes appends. `node bench/event-log.mjs`: Postgres (DATABASE_URL, else an embedded one in a
// temporary folder), and Kafka too where KAFKA_BROKERS is set. Every figure rests on the disk's fdatasync, printed first.
import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../dist/events/postgres/migrate.js'
import { createPostgresEventLog } from '../dist/events/postgres/postgres-event-log.js'
import { startEmbeddedPostgres } from '../dist/supervisor/embedded-postgres.js'

const SECONDS = Number(process.env.SECONDS ?? 3)
const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), 'quipu-bench-'))
// Postgres has a user of its own when this is root: it must be able to enter.
chmodSync(folder, 0o711)

function percentile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? NaN
}

function fdatasyncMs() {
  const file = openSync(join(folder, 'sync'), 'w')
  const times = []
  for (let round = 0; round < 200; round++) {
    writeSync(file, randomBytes(4096))
    const start = performance.now()
    fdatasyncSync(file)
    times.push(performance.now() - start)
  }
  closeSync(file)
  return percentile(times, 0.5)
}

/** Five events of the size a small statement has, as one append. */
function statement(n) {
  const time = new Date().toISOString()
  const data = { sql: 'select count(*) from nation where regionkey = 1', user: 'bench', n, details: 'x'.repeat(400) }
  return ['QueryCreated', 'QueryPlanned', 'TaskFinished', 'ResultPagesPublished', 'QueryFinished'].map((type) => ({
    type,
    v: 1,
    time,
    data,
  }))
}

async function measure(name, log, callers) {
  const page = [{ token: 0, bytes: Buffer.from('[[25]]\n') }]
  const run = randomBytes(4).toString('hex')
  const times = []
  let n = 0
  const appendFor = async (ms) => {
    const until = performance.now() + ms
    await Promise.all(
      Array.from({ length: callers }, async () => {
        while (performance.now() < until) {
          const start = performance.now()
          await log.append(`${run}-${++n}`, 0, statement(n), page)
          times.push(performance.now() - start)
        }
      }),
    )
  }
  await appendFor(500)
  times.length = 0
  const cpu = process.cpuUsage()
  const start = performance.now()
  await appendFor(SECONDS * 1000)
  const seconds = (performance.now() - start) / 1000
  const used = process.cpuUsage(cpu)
  const events = times.length * 5
  console.log(
    `${name.padEnd(9)} ${String(callers).padStart(4)} callers: append p50 ${percentile(times, 0.5).toFixed(2)} ms, ` +
      `p99 ${percentile(times, 0.99).toFixed(2)} ms, ${Math.round(events / seconds)} events/s, ` +
      `CPU ${((used.user + used.system) / events).toFixed(1)} µs an event here`,
  )
}

async function measureLog(name, log) {
  await log.open()
  await log.claim({ address: 'bench', version: '0' })
  for (const callers of [1, 16, 100]) await measure(name, log, callers)
  const start = performance.now()
  let read = 0
  for (let from = { logId: '', at: [{ offset: 0n }] }; ;) {
    const { events, next } = await log.read(from, 2000)
    if (events.length === 0) break
    read += events.length
    from = next
  }
  console.log(`${name.padEnd(9)} read and fold: ${Math.round(read / ((performance.now() - start) / 1000))} events/s`)
  await log.close()
}

async function main() {
  console.log(`fdatasync of 4 kB: p50 ${fdatasyncMs().toFixed(3)} ms`)
  const server = process.env.DATABASE_URL ? undefined : await startEmbeddedPostgres({ dataDir: folder })
  const base = process.env.DATABASE_URL ?? server.connectionString
  const name = `bench_${randomBytes(4).toString('hex')}`
  const admin = new pg.Client(base)
  await admin.connect()
  await admin.query(`create database ${name}`)
  const connection = { connectionString: base.replace(/\/[^/?]*(\?|$)/, `/${name}$1`) }
  try {
    await migrate(connection)
    await measureLog('postgres', createPostgresEventLog(connection))
    if (process.env.KAFKA_BROKERS) {
      const { createKafkaEventLog } = await import('../dist/events/kafka-beside-postgres.js')
      const brokers = process.env.KAFKA_BROKERS.split(',')
      await measureLog('kafka', createKafkaEventLog({ brokers, topic: name, database: connection }))
    }
  } finally {
    await admin.query(`drop database if exists ${name} with (force)`)
    await admin.end()
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

await main()
