// Measures an erasure in a large log: preview, erasure and verification by a running server, with the peak memory of the coordinator
// and the latency of `SELECT 1` meanwhile. One query in a hundred contains the value. `node bench/erasure.mjs`; BENCH_QUERIES=100000 sets
// the number of queries of five events each. Postgres by DATABASE_URL, else an embedded one in a temporary folder.
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { checkpointToJson } from '../dist/events/event-log.js'
import { migrate } from '../dist/events/postgres/migrate.js'
import { createPostgresEventLog } from '../dist/events/postgres/postgres-event-log.js'
import { createProjectionRunner } from '../dist/events/projection-runner.js'
import { createReadModelsProjection } from '../dist/readmodels/projection.js'
import { systemClock } from '../dist/shared/clock.js'
import { startEmbeddedPostgres } from '../dist/supervisor/embedded-postgres.js'
import { createClient, quantile, startServer } from './quipu-server.mjs'
import { queryEvents } from './query-events.mjs'

const QUERIES = Number(process.env.BENCH_QUERIES ?? 1_000_000)
const QUIPU = new URL('../dist/cli/quipu.js', import.meta.url).pathname
const VALUE = 'eva.lund@example.com'
/** Queries whose rows are projected; the rows of all others are copies of theirs. */
const PROJECTED = 100
const TOGETHER = 256
const EVENTS = new Set(['QueryCreated', 'QueryPlanned', 'TaskCreated', 'ResultPagesPublished', 'QueryFinished'])

const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), 'quipu-bench-'))
// Postgres runs as another user when this is root: that user must be able to enter.
chmodSync(folder, 0o711)
const embedded = process.env.DATABASE_URL ? undefined : await startEmbeddedPostgres({ dataDir: folder, tell() {} })
const url = new URL(process.env.DATABASE_URL ?? embedded.connectionString)

try {
  const name = `erasure_${process.pid}`
  await sql(url.href, `create database ${name}`)
  const database = new URL(url)
  database.pathname = `/${name}`
  try {
    await migrate({ connectionString: database.href })
    await fill(database.href)
    await measure(database.href)
  } finally {
    await sql(url.href, `drop database ${name} with (force)`)
  }
} finally {
  await embedded?.stop()
  rmSync(folder, { recursive: true, force: true })
}

/** One query in a hundred contains the value. */
function lifeOf(number) {
  const { queryId, events } = queryEvents(number)
  const life = events.filter(({ type }) => EVENTS.has(type))
  if (number % 100 === 7) life[0].data.sql = `SELECT name FROM nation WHERE name = '${VALUE}' OR nationkey = ${number}`
  return { queryId, life }
}

async function fill(connectionString) {
  const started = performance.now()
  const log = createPostgresEventLog({ connectionString })
  await log.open()
  await log.claim({ address: 'bench', version: '0' })
  const append = async (from, until) => {
    for (let first = from; first < until; first += TOGETHER)
      await Promise.all(
        Array.from({ length: Math.min(TOGETHER, until - first) }, (_, index) => {
          const { queryId, life } = lifeOf(first + index)
          return log.append(queryId, 0, life)
        }),
      )
  }
  await append(0, PROJECTED)
  await project(log, connectionString)
  await append(PROJECTED, QUERIES)
  console.log(`${QUERIES} queries are in the log after ${seconds(started)} s`)
  await copyRows(connectionString)
  const { at, logId } = await log.tip()
  await sql(connectionString, 'update m.checkpoints set checkpoint = $1', [checkpointToJson({ at, logId })])
  await log.close()
  await sql(connectionString, 'vacuum analyze')
  console.log(`${at[0].state.count} events; the read models have their rows after ${seconds(started)} s`)
}

async function project(log, connectionString) {
  const projection = createReadModelsProjection()
  const runner = createProjectionRunner({ log, projection, database: { connectionString }, clock: systemClock })
  await runner.start()
  await runner.barrier(60_000)
  await runner.stop()
}

/** Copies the rows of the projected queries, with the ids of the other queries. */
async function copyRows(connectionString) {
  const { rows } = await sql(
    connectionString,
    `select table_name as table, array_agg(column_name::text order by ordinal_position) as columns,
       array_agg(data_type::text order by ordinal_position) as types, bool_or(column_name = 'stream') as has_stream
     from information_schema.columns join information_schema.tables using (table_schema, table_name)
     where table_schema = 'm' and table_type = 'BASE TABLE' and is_generated = 'NEVER' group by 1
     having bool_or(column_name in ('query_id', 'stream')) and table_name not in ('dead_letters', 'audit_log')`,
  )
  const ids = `select n, to_char(n, 'fm') as label, '20260301_100000_' || lpad((n % 100000)::text, 5, '0') || '_' ||
    lpad((1 + n / 100000)::text, 5, '0') as id, '20260301_100000_' || lpad((n % ${PROJECTED})::text, 5, '0') || '_00001' as template
    from generate_series(${PROJECTED}, ${QUERIES - 1}) n`
  for (const { table, columns, types, has_stream: hasStream } of rows) {
    const key = columns.includes('query_id') ? 'query_id' : hasStream ? 'stream' : undefined
    const values = columns.map((column, at) =>
      types[at] === 'text' && column !== 'sql_text' ? `replace(t."${column}", ids.template, ids.id)` : `t."${column}"`,
    )
    const into = columns.map((column) => `"${column}"`).join(', ')
    const text = `insert into m."${table}" (${into}) select ${values.join(', ')} from (${ids}) ids
      join m."${table}" t on t.${key} = ids.template on conflict do nothing`
    const { rowCount } = await sql(connectionString, text)
    console.log(`  ${table}: ${rowCount} rows`)
  }
}

async function measure(connectionString) {
  const server = await startServer({ env: { DATABASE_URL: connectionString } })
  const client = createClient(server.base)
  try {
    await client.rows('SELECT 1')
    const { children } = JSON.parse(readFileSync(join(server.dataDir, 'supervisor.json'), 'utf8'))
    const coordinator = children[0].pid
    await phase('idle', coordinator, client, () => new Promise((resolve) => setTimeout(resolve, 20_000)))
    const quipu = (...args) => command(connectionString, server.dataDir, args)
    await phase('preview by the command', coordinator, client, quipu('erase', '--value', VALUE, '--preview'))
    await phase('erase by the coordinator', coordinator, client, quipu('erase', '--value', VALUE, '--yes'))
    await phase('verify by the command', coordinator, client, quipu('erase', 'verify', '--value', VALUE))
  } finally {
    client.close()
    await server.stop()
  }
}

/** A function that runs `quipu` on the database. It calls back with the process, and returns the last lines of its output. */
function command(connectionString, dataDir, args) {
  return async (onChild) => {
    const child = spawn(process.execPath, [QUIPU, ...args, '--data-dir', dataDir], {
      env: { PATH: process.env.PATH, DATABASE_URL: connectionString },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onChild(child.pid)
    let text = ''
    child.stdout.on('data', (part) => (text += part))
    const code = await new Promise((resolve) => child.once('close', resolve))
    return `exit code ${code}: ${text.trim().split('\n').slice(0, 3).join('; ')}`
  }
}

/** Does the work, and prints its time, the peak memory of both processes, and the latency of a statement meanwhile. */
async function phase(name, coordinator, client, work) {
  const started = performance.now()
  const peaks = new Map([[coordinator, 0]])
  let done = false
  const sampling = setInterval(() => {
    for (const [pid, peak] of peaks) peaks.set(pid, Math.max(peak, residentMb(pid)))
  }, 100)
  const times = []
  const serving = (async () => {
    while (!done) {
      const before = performance.now()
      await client.rows('SELECT 1')
      times.push(performance.now() - before)
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  })()
  const result = await work((pid) => peaks.set(pid, 0))
  done = true
  await serving
  clearInterval(sampling)
  times.sort((a, b) => a - b)
  const [own, other] = [...peaks.values()]
  console.log(
    `${name}: ${seconds(started)} s, peak of the coordinator ${own} MB${other === undefined ? '' : `, of the command ${other} MB`}, ` +
      `SELECT 1: p50 ${quantile(times, 0.5).toFixed(0)} ms, p99 ${quantile(times, 0.99).toFixed(0)} ms, most ${times.at(-1).toFixed(0)} ms`,
  )
  if (result !== undefined) console.log(`  ${result}`)
}

/** 0 for a process that has ended. */
function residentMb(pid) {
  if (!existsSync(`/proc/${pid}/status`)) return 0
  const found = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Math.round((found?.[1] ?? 0) / 1024)
}

function seconds(since) {
  return ((performance.now() - since) / 1000).toFixed(1)
}

async function sql(connectionString, text, values = []) {
  const client = new pg.Client(connectionString)
  await client.connect()
  try {
    return await client.query(text, values)
  } finally {
    await client.end()
  }
}
