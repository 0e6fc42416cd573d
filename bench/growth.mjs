// What a record that grows costs: bytes a query, and how long what people ask takes, at some tens of thousands of queries and
// at ten times as many. Events go the way that a coordinator's go: append, fold, projection. `node bench/growth.mjs`;
// BENCH_QUERIES=100000,1000000 for others. Postgres by DATABASE_URL, else an embedded one in a temporary folder.
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { migrate } from '../dist/events/postgres/migrate.js'
import { startEmbeddedPostgres } from '../dist/supervisor/embedded-postgres.js'
import { append } from './grow-log.mjs'
import { createClient, quantile, startServer } from './quipu-server.mjs'
import { queryEvents } from './query-events.mjs'

const SIZES = (process.env.BENCH_QUERIES ?? '10000,100000').split(',').map(Number)
const LOOKS = 20
const QUIPU = new URL('../dist/cli/quipu.js', import.meta.url).pathname

const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), 'quipu-bench-'))
// Postgres has a user of its own when this is root: it must be able to enter.
chmodSync(folder, 0o711)
const embedded = process.env.DATABASE_URL ? undefined : await startEmbeddedPostgres({ dataDir: folder, tell() {} })
const url = process.env.DATABASE_URL ?? embedded.connectionString

try {
  for (const queries of SIZES) await grown(queries)
} finally {
  await embedded?.stop()
  rmSync(folder, { recursive: true, force: true })
}

async function grown(queries) {
  console.log(`\n${queries} queries`)
  const name = `growth_${process.pid}_${queries}`
  await sql(url, `create database ${name}`)
  const database = new URL(url)
  database.pathname = `/${name}`
  try {
    await migrate({ connectionString: database.href })
    const events = await append(database.href, queries)
    await sizes(database.href, queries, events)
    await command('rebuild', ['rebuild'], database.href)
    await asked(database.href, queries)
    await command('audit verify', ['audit', 'verify'], database.href)
  } finally {
    await sql(url, `drop database ${name} with (force)`)
  }
}

async function sizes(connectionString, queries, events) {
  await sql(connectionString, 'vacuum analyze')
  const { rows } = await sql(
    connectionString,
    `select n.nspname as schema, coalesce(p.relname, c.relname) as name,
       sum(pg_table_size(c.oid))::float8 as rows, sum(pg_indexes_size(c.oid))::float8 as indexes
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
       left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
     where c.relkind = 'r' and n.nspname in ('m', 'quipu_log')
     group by 1, 2 having sum(pg_total_relation_size(c.oid)) > 1000000 order by 1, 3 desc`,
  )
  const bytes = (of) => rows.filter(({ schema }) => schema === of).reduce((sum, row) => sum + row.rows + row.indexes, 0)
  console.log(
    `bytes a query of ${events / queries} events: log ${each(bytes('quipu_log'))}, read models ${each(bytes('m'))}: ` +
      rows
        .filter(({ schema }) => schema === 'm')
        .map((row) => `${row.name} ${each(row.rows)} + ${each(row.indexes)}`)
        .join(', '),
  )
  function each(total) {
    return Math.round(total / queries)
  }
}

/** What people and pages ask of a server, and how long it takes to be there. */
async function asked(connectionString, queries) {
  const started = performance.now()
  const server = await startServer({ env: { DATABASE_URL: connectionString }, workers: 0 })
  console.log(`start: ${Math.round(performance.now() - started)} ms`)
  const client = createClient(server.base)
  try {
    const { queryId } = queryEvents(Math.floor(queries / 2))
    const now = new Date(Date.now() - 60_000).toISOString()
    const paths = {
      'the newest 100': '/v1/query?limit=100&user=user7&state=FINISHED',
      'of a user': '/v1/query?limit=100&user=user7',
      'of nobody': '/v1/query?limit=100&user=nobody',
      'that failed': '/v1/query?limit=100&state=FAILED',
      since: `/v1/query?limit=100&since=${encodeURIComponent(now)}`,
      'a text that many have': '/v1/query?limit=100&q=regionkey',
      'a text that one has': `/v1/query?limit=100&q=${encodeURIComponent(`nationkey <> ${Math.floor(queries / 2)} `)}`,
      'a text that none has': '/v1/query?limit=100&q=no%20such%20text',
      'three letters that none has': '/v1/query?limit=100&q=zqx',
      'two letters that none has': '/v1/query?limit=100&q=zq',
      'one query': `/v1/query/${queryId}`,
      'its events': `/v1/query/${queryId}/events`,
      status: '/v1/status',
      metrics: '/metrics',
    }
    for (const [what, path] of Object.entries(paths)) {
      const times = []
      for (let look = 0; look < LOOKS; look++) {
        const before = performance.now()
        const { status, body } = await client.send('GET', path)
        times.push(performance.now() - before)
        if (status !== 200) throw new Error(`${path}: ${status} ${body}`)
        if (times[0] > 5_000) break
      }
      times.sort((a, b) => a - b)
      console.log(`${what}: p50 ${quantile(times, 0.5).toFixed(1)} ms, most ${times.at(-1).toFixed(1)} ms`)
    }
  } finally {
    client.close()
    await server.stop()
  }
}

async function command(what, args, connectionString) {
  const started = performance.now()
  const child = spawn(process.execPath, [QUIPU, ...args, '--data-dir', join(folder, 'data')], {
    env: { PATH: process.env.PATH, DATABASE_URL: connectionString },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const code = await new Promise((resolve) => child.once('exit', resolve))
  console.log(
    `${what}: ${((performance.now() - started) / 1000).toFixed(1)} s${code === 0 ? '' : `, exit code ${code}`}`,
  )
}

async function sql(connectionString, text) {
  const client = new pg.Client(connectionString)
  await client.connect()
  try {
    return await client.query(text)
  } finally {
    await client.end()
  }
}
