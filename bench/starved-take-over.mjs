// Two coordinators on one log while busy processes take the processors: how often the writer changes though nobody kills it,
// and how long clients wait after a kill. `node bench/starved-take-over.mjs`; BENCH_BUSY busy processes (20), BENCH_MINUTES
// without a kill (20), BENCH_KILLS (3). The busy processes are this script's own, and end with it.
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startEmbeddedPostgres } from '../dist/supervisor/embedded-postgres.js'

const BUSY = Number(process.env.BENCH_BUSY ?? 20)
const MINUTES = Number(process.env.BENCH_MINUTES ?? 20)
const KILLS = Number(process.env.BENCH_KILLS ?? 3)
const CLIENTS = 4
const QUIPU = new URL('../dist/cli/quipu.js', import.meta.url).pathname
const STATEMENTS = [
  ['SELECT 1', '[[1]]'],
  ['SELECT count(*) FROM tpch.tiny.lineitem', '[[60175]]'],
  ['SELECT regionkey, count(*) FROM tpch.tiny.nation GROUP BY regionkey ORDER BY 1', '[[0,5],[1,5],[2,5],[3,5],[4,5]]'],
]

const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), 'quipu-starved-'))
// Postgres has a user of its own when this is root: it must be able to enter.
chmodSync(folder, 0o711)
const children = []
let stopping = false

function start(name, args, env) {
  const child = spawn(process.execPath, [QUIPU, ...args, '--data-dir', join(folder, name), '--port', '0'], {
    env: { ...process.env, QUIPU_SHARED_SECRET: 'a secret of this measurement', QUIPU_LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  const lines = []
  child.stderr.on('data', (text) => lines.push(String(text)))
  const url = new Promise((resolve) =>
    child.stdout.on('data', (text) => {
      const [, found] = /is up in [\d.]+ s: (\S+)/.exec(String(text)) ?? []
      if (found) resolve(found)
      else if (String(text).startsWith('Worker up')) resolve(undefined)
    }),
  )
  return { name, child, lines, url }
}

async function info(url) {
  try {
    const answer = await fetch(`${url}/v1/info`, { signal: AbortSignal.timeout(10_000) })
    return await answer.json()
  } catch {
    return undefined
  }
}

const counts = { right: 0, wrong: 0, failed: {}, http: {} }
const add = (where, what) => (where[what] = (where[what] ?? 0) + 1)

/** As a proxy does that tries the next address: what is refused or cut is sent again. */
async function ask(bases, path, options) {
  for (let at = 0; !stopping; at++) {
    try {
      const answer = await fetch(bases[at % bases.length] + path, { ...options, signal: AbortSignal.timeout(120_000) })
      if (answer.status === 200) return await answer.json()
      add(counts.http, `${options?.method ?? 'GET'} ${answer.status}`)
    } catch (error) {
      add(counts.http, `${options?.method ?? 'GET'} ${error.cause?.code ?? error.name}`)
    }
    await sleep(200)
  }
  return {}
}

async function statement(bases, [sql, wanted]) {
  const rows = []
  let answer = await ask(bases, '/v1/statement', { method: 'POST', body: sql, headers: { 'x-trino-user': 'bench' } })
  rows.push(...(answer.data ?? []))
  while (answer.nextUri) {
    answer = await ask(bases, new URL(answer.nextUri).pathname)
    rows.push(...(answer.data ?? []))
  }
  if (stopping) return
  if (answer.error) add(counts.failed, `${answer.error.errorName}: ${answer.error.message.slice(0, 90)}`)
  else if (JSON.stringify(rows) === wanted) counts.right++
  else counts.wrong++
}

/** Pids of the processes that a process has started. */
function childrenOf(pid) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((one) => {
      try {
        const stat = readFileSync(`/proc/${one}/stat`, 'utf8')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid
      } catch {
        return false
      }
    })
}

const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), tell() {} })
const epochs = []
try {
  const env = { DATABASE_URL: postgres.connectionString }
  const nodes = [start('a', ['coordinator', '--standby'], env), start('b', ['coordinator', '--standby'], env)]
  const bases = await Promise.all(nodes.map(({ url }) => url))
  const worker = start('worker', ['worker', '--coordinators', bases.join()], {})
  await worker.url
  await statement(bases, STATEMENTS[1])
  for (let n = 0; n < BUSY; n++) children.push(spawn(process.execPath, ['-e', 'for (;;);']))
  const clients = Array.from({ length: CLIENTS }, async (_, n) => {
    for (let at = n; !stopping; at++) await statement(bases, STATEMENTS[at % STATEMENTS.length])
  })
  const watch = (async () => {
    while (!stopping) {
      for (const said of await Promise.all(bases.map(info)))
        if (said?.writer && said.epoch !== epochs.at(-1)?.epoch) epochs.push({ epoch: said.epoch, at: Date.now() })
      await sleep(500)
    }
  })()
  const began = Date.now()
  while (Date.now() - began < MINUTES * 60_000) {
    await sleep(Math.min(60_000, MINUTES * 60_000))
    console.log(
      `${Math.round((Date.now() - began) / 1000)} s: load ${loadavg()[0].toFixed(1)}, epochs ${epochs.map(({ epoch }) => epoch).join(' ')}, ${counts.right} right`,
    )
  }
  console.log('Without a kill:', { changes: epochs.length - 1, ...counts })
  for (let kill = 0; kill < KILLS; kill++) {
    const said = await Promise.all(bases.map(info))
    const writer = said.findIndex((one) => one?.writer)
    if (writer < 0) {
      await sleep(2000)
      kill--
      continue
    }
    const before = epochs.length
    const [coordinator] = childrenOf(nodes[writer].child.pid)
    const load = loadavg()[0]
    const at = Date.now()
    process.kill(coordinator, 'SIGKILL')
    await sleep(500)
    await statement(bases, STATEMENTS[2])
    const seconds = (Date.now() - at) / 1000
    const allowed = 5 * Math.max(1, load / availableParallelism())
    console.log(
      `kill ${kill + 1}: a new statement is answered after ${seconds.toFixed(1)} s; allowed ${allowed.toFixed(1)} s at load ${load.toFixed(1)}; epochs since ${epochs.length - before}`,
    )
    await sleep(20_000)
  }
  stopping = true
  await Promise.race([Promise.all([watch, ...clients]), sleep(20_000)])
  console.log('At the end:', { epochs: epochs.map(({ epoch }) => epoch), ...counts })
  for (const { name, lines } of [...nodes, worker]) {
    const told = lines.join('').split('\n').filter(Boolean)
    console.log(
      name,
      told.length,
      'lines; restarts',
      told.filter((line) => line.includes('starting it again')).length,
      '; worker lost',
      told.filter((line) => line.includes('worker.lost')).length,
    )
    for (const line of told.filter((one) => !one.startsWith('{')).slice(-6)) console.log('  ', line.slice(0, 200))
  }
} finally {
  stopping = true
  for (const child of children) child.kill(child.spawnargs.includes('-e') ? 'SIGKILL' : 'SIGTERM')
  await Promise.race([
    Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve)))),
    sleep(30_000),
  ])
  for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  await postgres.stop()
  rmSync(folder, { recursive: true, force: true })
}
process.exit()
