// What clients notice of an upgrade whose read models are made anew: how long the first statement waits, and the longest that
// any request waits while it goes on. `node bench/upgrade.mjs`; BENCH_QUERIES=10000 for fewer. Postgres by DATABASE_URL, else an
// embedded one in a temporary folder.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { migrate } from '../dist/events/postgres/migrate.js'
import { READ_MODELS } from '../dist/readmodels/projection.js'
import { startEmbeddedPostgres } from '../dist/supervisor/embedded-postgres.js'
import { append } from './grow-log.mjs'
import { startServer } from './quipu-server.mjs'

const QUERIES = Number(process.env.BENCH_QUERIES ?? 100_000)
// Tables of a version below the readable ones are made anew before anybody is served.
const VERSION = Number(process.env.BENCH_VERSION ?? READ_MODELS.readable)
const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), 'quipu-bench-'))
// Postgres has a user of its own when this is root: it must be able to enter.
chmodSync(folder, 0o711)
const embedded = process.env.DATABASE_URL ? undefined : await startEmbeddedPostgres({ dataDir: folder, tell() {} })
const database = new URL(process.env.DATABASE_URL ?? embedded.connectionString)
const name = `upgrade_${process.pid}`
await sql(`create database ${name}`)
const admin = database.href
database.pathname = `/${name}`
try {
  await migrate({ connectionString: database.href })
  const events = await append(database.href, QUERIES)
  await sql('update m.checkpoints set version = $1', [VERSION])
  await sql('delete from m.columns_read')
  console.log(`${QUERIES} queries, ${events} events, tables of version ${VERSION}`)
  const started = performance.now()
  const server = await startServer({ env: { DATABASE_URL: database.href }, workers: 1 })
  console.log(`start: ${since(started)} ms`)
  try {
    await asked(server.base, started)
  } finally {
    await server.stop()
  }
} finally {
  database.pathname = new URL(admin).pathname
  await sql(`drop database ${name} with (force)`)
  await embedded?.stop()
  rmSync(folder, { recursive: true, force: true })
}

async function asked(base, started) {
  const longest = { statement: 0, list: 0 }
  let refused = 0
  let rounds = 0
  do {
    longest.statement = Math.max(longest.statement, await timed(() => statement(base)))
    longest.list = Math.max(longest.list, await timed(() => list(base)))
    if (rounds++ === 0) console.log(`first statement and list: ${since(started)} ms after the start`)
    await sleep(50)
  } while (await isOlder())
  console.log(`upgraded ${since(started)} ms after the start, ${rounds} rounds, ${refused} requests refused`)
  console.log(`longest: statement ${Math.round(longest.statement)} ms, list ${Math.round(longest.list)} ms`)

  async function answered(request) {
    const answer = await fetch(request)
    if (answer.ok) return answer.json()
    refused++
    return {}
  }

  async function statement() {
    const post = new Request(`${base}/v1/statement`, {
      method: 'POST',
      headers: { 'x-trino-user': 'bench' },
      body: 'SELECT count(*) FROM tpch.tiny.nation',
    })
    for (let { nextUri } = await answered(post); nextUri;) ({ nextUri } = await answered(new Request(nextUri)))
  }

  function list() {
    return answered(new Request(`${base}/v1/query?limit=100&user=user7`))
  }
}

async function isOlder() {
  const { rows } = await sql(`select from m.checkpoints where version < $1`, [READ_MODELS.version])
  return rows.length > 0
}

async function timed(work) {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function since(start) {
  return Math.round(performance.now() - start)
}

async function sql(text, values) {
  const client = new pg.Client(database.href)
  await client.connect()
  try {
    return await client.query(text, values)
  } finally {
    await client.end()
  }
}
