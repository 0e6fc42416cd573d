// Figures of a worker in its own process: 1,000,000 rows to a reader that counts bytes, peak memory of worker and
// engine at 1M and 5M rows, a small GROUP BY; each beside plain DuckDB in the same run.
// usage: node bench/worker.mjs   (after a build; makes TPC-H SF1 below .cache the first time, which needs python3)
import { DuckDBInstance } from '@duckdb/node-api'
import { execFileSync, fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig } from '../dist/config/load-config.js'
import { lakeConnector } from '../dist/connectors/lake/lake-connector.js'
import { internalHeaders, taskStatusJson } from '../dist/execution/api/task.js'
import { internalBearer } from '../dist/security/cluster-secret.js'

const project = fileURLToPath(new URL('..', import.meta.url))
const generated = join(project, '.cache/tpch/sf1')
const lake = join(project, '.cache/bench-lake')
if (!existsSync(join(generated, 'manifest.json'))) {
  execFileSync(join(project, 'etc/tpch/make-tiny.sh'), ['1', generated], { stdio: 'inherit' })
}
for (const file of readdirSync(generated).filter((name) => name.endsWith('.parquet'))) {
  const folder = join(lake, 'sf1', file.replace('.parquet', ''))
  mkdirSync(folder, { recursive: true })
  if (!existsSync(join(folder, file))) linkSync(join(generated, file), join(folder, file))
}
const shipped = join(lake, 'tiny/orders')
mkdirSync(shipped, { recursive: true })
if (!existsSync(join(shipped, 'orders.parquet'))) {
  writeFileSync(join(shipped, 'orders.parquet'), readFileSync(join(project, 'etc/tpch/tiny/orders.parquet')))
}

const folder = mkdtempSync(join(tmpdir(), 'quipu-bench-'))
const catalogDir = join(folder, 'catalog')
mkdirSync(catalogDir)
writeFileSync(join(catalogDir, 'lake.json'), JSON.stringify({ connector: 'lake', location: lake }))

const duckdb = await (await DuckDBInstance.create(':memory:', { threads: '2' })).connect()
const rowsOf = async (sql) => (await duckdb.runAndReadAll(sql)).getRowObjectsJson()
const connector = lakeConnector.create(
  'lake',
  { connector: 'lake', location: lake },
  { dataDir: folder, tablesDir: folder, shippedDir: folder, catalogDir, query: rowsOf, duckdbType: String },
)

const secret = 'secret of the benchmark'
const environment = {
  QUIPU_DATA_DIR: join(folder, 'worker-1'),
  QUIPU_CATALOG_DIR: catalogDir,
  QUIPU_SHARED_SECRET: secret,
}
const config = { ...loadConfig([], environment), port: 0, coordinators: [] }

/** A worker process, with its address. */
async function startWorker() {
  const child = fork(join(project, 'dist/processes/worker/worker-process.js'))
  const ready = new Promise((resolve) => child.on('message', ({ type }) => type === 'ready' && resolve()))
  child.send({ type: 'start', start: { config, url: undefined, deadWriter: undefined, restarts: [] } })
  await ready
  const sockets = execFileSync('ss', ['-ltnpH'], { encoding: 'utf8' })
  const port = new RegExp(`127\\.0\\.0\\.1:(\\d+).*pid=${child.pid},`).exec(sockets)[1]
  return { child, base: `http://127.0.0.1:${port}` }
}

/** CPU milliseconds that a process has used. */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

/** Peak resident megabytes of the worker, and of the largest of its engines. */
function peakMemory(pid) {
  const peak = (id) => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0) / 1024
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return { worker: peak(pid), engine: Math.max(...children.map(peak)) }
}

const agent = new Agent({ keepAlive: true })
const bearer = internalBearer(secret)
function call(base, method, path, { body, headers } = {}) {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const sent = request(
      new URL(path, base),
      {
        method,
        agent,
        headers: {
          authorization: `Bearer ${bearer}`,
          [internalHeaders.epoch]: '1',
          accept: taskStatusJson,
          ...(text && { 'content-length': Buffer.byteLength(text) }),
          ...headers,
        },
      },
      (response) => {
        const parts = []
        response.on('data', (part) => parts.push(part))
        response.on('end', () =>
          resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }),
        )
      },
    )
    sent.on('error', reject)
    sent.end(text)
  })
}

let counter = 0
const nextTaskId = () => `20260101_000000_${String(counter++).padStart(5, '0')}_00001.1.0`

async function updateFor(schema, table, columns, sql, output, fragment) {
  const { handle } = await connector.getTable(schema, table)
  const splits = (await connector.listSplits(handle)).map((split) => ({ scan: 0, ...split }))
  return {
    session: { queryId: '20260101_000000_00000_00001', user: 'bench', startTimeMillis: Date.now() },
    fragment: {
      sql,
      scans: [{ catalog: 'lake', schema, table, handle, columns }],
      output: output.map((wire, i) => ({ name: `c${i}`, type: 'unknown', typeSignature: null, wire })),
      streams: false,
      ordered: false,
      estimate: { small: false },
      risky: false,
      ...fragment,
    },
    splits,
    noMoreSplits: true,
    outputBuffers: { buffers: ['0'] },
    attempt: 0,
    profile: false,
  }
}

const columns = ['l_orderkey', 'l_partkey', 'l_extendedprice', 'l_shipdate']
const wires = ['c0', 'c1', 'CAST(c2 AS VARCHAR)', 'c3']
const select = (rows) =>
  `SELECT ${columns.map((column, i) => `${column} AS c${i}`).join(', ')} FROM "$s0" LIMIT ${rows}`

/** Follows a task's pages, acknowledging each, and counts. */
async function readAll(base, rows, { check = false } = {}) {
  const update = await updateFor('sf1', 'lineitem', columns, select(rows), wires, {})
  const taskId = nextTaskId()
  const start = performance.now()
  await call(base, 'POST', `/v1/task/${taskId}`, { body: update })
  let bytes = 0
  let pages = 0
  let first
  for (let token = 0; ;) {
    const answer = await call(base, 'GET', `/v1/task/${taskId}/results/0/${token}`, {
      headers: { ...(token > 0 && { [internalHeaders.acknowledge]: String(token) }), [internalHeaders.maxWait]: '10s' },
    })
    if (answer.headers[internalHeaders.taskFailed]) throw new Error('the task failed')
    first ??= performance.now() - start
    bytes += answer.body.length
    if (answer.body.length > 0) pages++
    if (
      check &&
      answer.status === 200 &&
      createHash('sha256').update(answer.body).digest('hex') !== answer.headers[internalHeaders.pageSha256]
    )
      throw new Error('wrong hash')
    token = Number(answer.headers[internalHeaders.pageNextToken])
    if (answer.headers[internalHeaders.bufferComplete] === 'true') break
  }
  const milliseconds = performance.now() - start
  const { stats } = JSON.parse((await call(base, 'DELETE', `/v1/task/${taskId}`)).body)
  if (stats.outputPositions !== rows) throw new Error(`${stats.outputPositions} rows`)
  return { milliseconds, first, bytes, pages, stats }
}

/** The same text by plain DuckDB in this process, to nowhere. */
async function plainCopy(rows) {
  const from = select(rows).replace('"$s0"', `'${lake}/sf1/lineitem/lineitem.parquet'`)
  const start = performance.now()
  await duckdb.run(`COPY (SELECT json_array(${wires.join(', ')})::VARCHAR || ',' FROM (${from}))
    TO '/dev/null' (FORMAT csv, HEADER false, QUOTE '', ESCAPE '', DELIMITER E'\\x01')`)
  return performance.now() - start
}

const least = (values) => Math.min(...values)
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
const at = (values, part) => values.toSorted((a, b) => a - b)[Math.floor(values.length * part)]

console.log(`machine: ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}`)
let worker = await startWorker()
try {
  await duckdb.run('SET preserve_insertion_order=false')
  const plain = []
  const through = []
  for (let run = 0; run < 5; run++) {
    plain.push(await plainCopy(1_000_000))
    const before = cpuMs(worker.child.pid)
    const own = process.cpuUsage()
    const result = await readAll(worker.base, 1_000_000, { check: true })
    const { user, system } = process.cpuUsage(own)
    through.push({ ...result, workerCpu: cpuMs(worker.child.pid) - before, readerCpu: (user + system) / 1000 })
  }
  const best = through.toSorted((a, b) => a.milliseconds - b.milliseconds)[0]
  console.log(
    `1,000,000 rows x 4 columns: ${best.milliseconds.toFixed(0)} ms (median ${median(through.map(({ milliseconds }) => milliseconds)).toFixed(0)}), ` +
      `first page ${best.first.toFixed(0)} ms, ${(best.bytes / 2 ** 20).toFixed(1)} MB in ${best.pages} pages, ` +
      `CPU engine ${(best.stats.cpuNanos / 1e6).toFixed(0)}, worker ${best.workerCpu}, reader ${best.readerCpu.toFixed(0)} ms; plain DuckDB to /dev/null ${least(plain).toFixed(0)} ms; ` +
      `ratio ${(best.milliseconds / least(plain)).toFixed(2)}`,
  )

  for (const rows of [1_000_000, 5_000_000]) {
    worker.child.kill('SIGKILL')
    worker = await startWorker()
    const { milliseconds } = await readAll(worker.base, rows)
    const { worker: own, engine } = peakMemory(worker.child.pid)
    console.log(
      `${rows / 1e6}M rows: ${milliseconds.toFixed(0)} ms, peak memory worker ${own.toFixed(0)} MB, engine ${engine.toFixed(0)} MB`,
    )
  }

  const groupBy = 'SELECT o_orderpriority AS c0, count(*) AS c1, sum(o_totalprice) AS c2 FROM "$s0" GROUP BY 1'
  const update = await updateFor(
    'tiny',
    'orders',
    ['o_orderpriority', 'o_totalprice'],
    groupBy,
    ['c0', 'c1', 'CAST(c2 AS VARCHAR)'],
    {
      estimate: { small: true },
    },
  )
  const one = async () => {
    const taskId = nextTaskId()
    const start = performance.now()
    const status = JSON.parse((await call(worker.base, 'POST', `/v1/task/${taskId}`, { body: update })).body)
    // A POST waits 20 ms; on a busy machine the page is asked for.
    if (!status.inlinePages) {
      const page = await call(worker.base, 'GET', `/v1/task/${taskId}/results/0/0`, {
        headers: { [internalHeaders.maxWait]: '10s' },
      })
      if (page.status !== 200) throw new Error(`HTTP ${page.status}`)
    }
    const milliseconds = performance.now() - start
    await call(worker.base, 'DELETE', `/v1/task/${taskId}`)
    return milliseconds
  }
  const plainOne = async () => {
    const start = performance.now()
    await duckdb.runAndReadAll(groupBy.replace('"$s0"', `'${lake}/tiny/orders/orders.parquet'`))
    return performance.now() - start
  }
  for (let run = 0; run < 100; run++) await one()
  const alone = []
  const plainSmall = []
  for (let run = 0; run < 300; run++) {
    alone.push(await one())
    plainSmall.push(await plainOne())
  }
  const start = performance.now()
  const done = []
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      while (performance.now() - start < 3_000) done.push(await one())
    }),
  )
  const seconds = (performance.now() - start) / 1000
  console.log(
    `GROUP BY over 15,000 rows of Parquet, POST to last row: p50 ${median(alone).toFixed(2)} ms, p99 ${at(alone, 0.99).toFixed(2)} ms; ` +
      `plain DuckDB p50 ${median(plainSmall).toFixed(2)} ms; ${(done.length / seconds).toFixed(0)} a second by 16 clients (POST and DELETE)`,
  )
} finally {
  worker.child.kill('SIGKILL')
  agent.destroy()
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
