// Figures of the engines: latency of a small inline statement, rows through the FIFO, start of an engine.
// usage: node bench/engine.mjs   (after a build)
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEnginePool } from '../dist/execution/engine/engine-pool.js'

const MB = 2 ** 20
const folder = mkdtempSync(join(tmpdir(), 'quipu-bench-'))
const started = []
const settings = {
  folder: join(folder, 'engines'),
  spillFolder: join(folder, 'spill'),
  allowedDirectories: [],
  memoryLimitBytes: 1024 * MB,
  maxSpillBytes: 1024 * MB,
  cores: Math.min(2, cpus().length),
  sharedConnections: 16,
  dedicatedConnections: 2,
  prepareDeadlineMs: 2500,
  interruptToKillMs: 150,
  beatMs: 250,
  deadAfterMs: 2000,
  spareAfterMs: 3_600_000,
  functionsModule: new URL('../test/support/engine-module.mjs', import.meta.url).href,
  translateError: (text) => new Error(text),
  onEvent: (event) => {
    if (event.type === 'started') started.push(event.milliseconds)
  },
}

const percentile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
const summary = (values) => {
  const sorted = values.toSorted((a, b) => a - b)
  return `p50 ${percentile(sorted, 0.5).toFixed(2)} ms, p99 ${percentile(sorted, 0.99).toFixed(2)} ms, min ${sorted[0].toFixed(2)} ms`
}

const pool = createEnginePool(settings)
const startedAt = performance.now()
await pool.start()
console.log(`machine: ${cpus().length} cores, load ${loadavg()[0].toFixed(1)}`)
console.log(
  `start of a pool: ${(performance.now() - startedAt).toFixed(0)} ms, of its engine ${started[0].toFixed(0)} ms`,
)

const textQuery = (sql) => ({ sql, scans: [], row: { kind: 'text' } })
const statement = (overrides) => ({
  id: 'bench',
  query: textQuery(`SELECT json_array(1)::VARCHAR`),
  placement: 'shared',
  risky: false,
  profile: false,
  cachePrepared: false,
  output: { kind: 'inline', maxBytes: MB },
  ...overrides,
})

async function latency(title, overrides, count = 2000, clients = 1) {
  for (let i = 0; i < 100; i++) await pool.run(statement(overrides)).done
  const times = []
  const cpu = process.cpuUsage()
  let engineNanos = 0
  const since = performance.now()
  let left = count
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) {
        const start = performance.now()
        const result = await pool.run(statement(overrides)).done
        times.push(performance.now() - start)
        engineNanos += result.cpuNanos
      }
    }),
  )
  const used = process.cpuUsage(cpu)
  const perSecond = (count / (performance.now() - since)) * 1000
  console.log(
    `${title}: ${summary(times)}, ${perSecond.toFixed(0)}/s; CPU a statement: parent ` +
      `${((used.user + used.system) / count).toFixed(0)} µs, engine ${(engineNanos / count / 1000).toFixed(0)} µs`,
  )
}

await latency('SELECT 1, unprepared, 1 client', {})
await latency('SELECT 1, prepared, 1 client', { cachePrepared: true })
await latency('SELECT 1, prepared, 16 clients', { cachePrepared: true }, 4000, 16)
await latency('SELECT 1, prepared, profiled, 1 client', { cachePrepared: true, profile: true })
await latency(
  'SELECT 1, streamed, 1 client',
  { cachePrepared: true, output: { kind: 'stream', onRows: () => undefined } },
  1000,
)

const rows = 1_000_000
const sql = `SELECT json_array(i, (i * 31) % 200000, ((i * 7) % 90000 / 100)::DECIMAL(12,2)::VARCHAR,
  DATE '1995-01-01' + (i % 2000)::INTEGER)::VARCHAR FROM range(${rows}) r(i)`
await pool.run(statement({ placement: 'dedicated' })).done
for (let time = 0; time < 3; time++) {
  let bytes = 0
  let first = 0
  const cpu = process.cpuUsage()
  const start = performance.now()
  const output = {
    kind: 'stream',
    onRows: (lines) => {
      first ||= performance.now() - start
      bytes += lines.length
    },
  }
  const result = await pool.run(statement({ query: textQuery(sql), placement: 'dedicated', output })).done
  const used = process.cpuUsage(cpu)
  console.log(
    `${result.rows / 1e6}M rows × 4 columns through the FIFO: ${(performance.now() - start).toFixed(0)} ms, first rows ` +
      `${first.toFixed(0)} ms, ${(bytes / 1e6).toFixed(1)} MB; CPU: parent ${((used.user + used.system) / 1000).toFixed(0)} ms, ` +
      `engine ${(result.cpuNanos / 1e6).toFixed(0)} ms; peak memory ${(result.peakMemoryBytes / 1e6).toFixed(0)} MB`,
  )
}

const cancels = []
for (let time = 0; time < 10; time++) {
  const long = `SELECT count(*)::VARCHAR FROM range(1000000) a(i), range(1000000) b(j) WHERE i + j = 7`
  const run = pool.run(statement({ query: textQuery(long), placement: 'dedicated' }))
  run.done.catch(() => undefined)
  await new Promise((resolve) => setTimeout(resolve, 60))
  const start = performance.now()
  run.cancel()
  while (pool.children().some(({ running }) => running > 0)) await new Promise((resolve) => setImmediate(resolve))
  cancels.push(performance.now() - start)
}
console.log(`cancel until the engine is idle: ${summary(cancels)}`)
await pool.stop()
rmSync(folder, { recursive: true, force: true })
