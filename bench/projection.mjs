// How fast events become rows. `node bench/projection.mjs`: Postgres by DATABASE_URL, else an embedded one in a temporary
// folder. Seven events a query over a worker stage with an operator tree, as `SELECT … FROM nation` gives them.
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createProjectionRunner } from '../dist/events/projection-runner.js'
import { migrate } from '../dist/events/postgres/migrate.js'
import { createPostgresEventLog } from '../dist/events/postgres/postgres-event-log.js'
import { createReadModelsProjection } from '../dist/readmodels/projection.js'
import { rebuildReadModels } from '../dist/readmodels/rebuild.js'
import { systemClock } from '../dist/shared/clock.js'
import { startEmbeddedPostgres } from '../dist/supervisor/embedded-postgres.js'
import { queryEvents } from './query-events.mjs'

const QUERIES = Number(process.env.QUERIES ?? 3000)
const TOGETHER = 32

const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), 'quipu-bench-'))
// Postgres has a user of its own when this is root: it must be able to enter.
chmodSync(folder, 0o711)
const embedded = process.env.DATABASE_URL ? undefined : await startEmbeddedPostgres({ dataDir: folder, tell() {} })
const url = process.env.DATABASE_URL ?? embedded.connectionString
const name = `bench_${process.pid}`
await admin(`create database ${name}`)
const database = { connectionString: withDatabase(url, name) }

async function admin(sql) {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(sql)
  await client.end()
}

function withDatabase(address, databaseName) {
  const parsed = new URL(address)
  parsed.pathname = `/${databaseName}`
  return parsed.toString()
}

/** CPU of the projection's backend so far in microseconds, where Linux tells. */
async function backendCpu(pool) {
  const { rows } = await pool.query(`select pid from pg_stat_activity where application_name = 'quipu projection'`)
  try {
    const fields = readFileSync(`/proc/${rows[0].pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return (Number(fields[11]) + Number(fields[12])) * 10_000
  } catch {
    return NaN
  }
}

const clear = `truncate queries, stages, tasks, operators, nodes, table_access, audit_log, query_events, checkpoints, dead_letters`

try {
  await migrate(database)
  const log = createPostgresEventLog(database)
  await log.open()
  await log.claim({ address: 'bench', version: '0' })
  const pool = new pg.Pool({ ...database, options: '-c search_path=m' })
  for (let done = 0; done < QUERIES; done += TOGETHER) {
    const batch = Array.from({ length: Math.min(TOGETHER, QUERIES - done) }, (_, i) => queryEvents(done + i))
    for (let step = 0; step < batch[0].events.length; step++)
      await Promise.all(batch.map(({ queryId, events }) => log.append(queryId, step, [events[step]])))
  }
  const total = (await log.tip()).at[0].state.count
  console.log(`${total} events of ${QUERIES} queries, ${TOGETHER} at a time`)

  for (const maxBatch of [10, 100, 500, 2000, 5000]) {
    await pool.query(clear)
    const commits = []
    const runner = createProjectionRunner({
      log,
      projection: createReadModelsProjection(),
      database,
      clock: systemClock,
      maxBatch,
      enough: Math.min(500, maxBatch),
      onBatch: ({ milliseconds }) => commits.push(milliseconds),
    })
    const cpu = process.cpuUsage()
    const started = performance.now()
    await runner.start()
    await runner.barrier(600_000)
    const seconds = (performance.now() - started) / 1000
    const { user, system } = process.cpuUsage(cpu)
    const postgres = await backendCpu(pool)
    await runner.stop()
    commits.sort((a, b) => a - b)
    console.log(
      `project, batches of ${maxBatch}: ${rate(total, seconds)}, batch p50 ${commits[commits.length >> 1].toFixed(1)} ms, ` +
        `${((user + system) / total).toFixed(0)} µs of Node's CPU and ${(postgres / total).toFixed(0)} µs of Postgres's an event`,
    )
  }

  for (const batch of [2000, 5000]) {
    const { milliseconds } = await rebuildReadModels({ log, database, clock: systemClock, batch })
    console.log(
      `rebuild, batches of ${batch}: ${rate(total, milliseconds / 1000)} with indexes and swap, ${milliseconds.toFixed(0)} ms`,
    )
  }

  const runner = createProjectionRunner({ log, projection: createReadModelsProjection(), database, clock: systemClock })
  await runner.start()
  await runner.barrier(60_000)
  const waits = []
  for (let n = 0; n < 300; n++) {
    const { queryId, events } = queryEvents(QUERIES + n)
    const position = await log.append(queryId, 0, events)
    const started = performance.now()
    await runner.waitFor(position, 10_000)
    waits.push(performance.now() - started)
  }
  waits.sort((a, b) => a - b)
  console.log(`own write read, after its append: p50 ${waits[150].toFixed(1)} ms, p99 ${waits[296].toFixed(1)} ms`)
  await runner.stop()
  await pool.end()
  await log.close()
} finally {
  await admin(`drop database ${name} with (force)`)
  await embedded?.stop()
  rmSync(folder, { recursive: true, force: true })
}

function rate(events, seconds) {
  return `${Math.round(events / seconds)} events/s`
}
