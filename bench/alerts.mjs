// From a fault to its alert, with the rules as shipped and the scrape and evaluation intervals of docker-compose.yml.
// Takes about eight minutes, nearly all of it waiting: the rules' own patience (`for`) is part of the figure.
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, startServer } from './quipu-server.mjs'

const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))
const root = new URL('..', import.meta.url).pathname

const program = [join(homedir(), '.cache/quipu/prometheus/usr/bin/prometheus'), '/usr/bin/prometheus'].find(existsSync)
if (!program) {
  console.log('SKIPPED: no Prometheus (apt-get install prometheus)')
  process.exit(0)
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

async function watch(targets) {
  const folder = mkdtempSync(join(tmpdir(), 'quipu-bench-alerts-'))
  const port = await freePort()
  let config = readFileSync(join(root, 'dashboards/provisioning/prometheus/quipu.yaml'), 'utf8')
    .replace('/etc/prometheus/rules/quipu.yaml', join(root, 'dashboards/rules/quipu.yaml'))
    .replace("'coordinator:8080'", `'${targets.coordinator}'`)
    .replace("'worker-1:8080', 'worker-2:8080'", `'${targets.worker}'`)
  writeFileSync(join(folder, 'prometheus.yaml'), config)
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  return {
    async firing() {
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`).catch(() => undefined)
      const { data } = answer?.ok ? await answer.json() : { data: { alerts: [] } }
      return data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname)
    },
    async stop() {
      child.kill('SIGTERM')
      await new Promise((resolve) => child.once('exit', resolve))
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Prints how long after `since` each of the alerts fires. */
async function seen(prometheus, fault, since, alerts) {
  const missing = new Set(alerts)
  while (missing.size > 0 && performance.now() - since < 600_000) {
    for (const name of await prometheus.firing())
      if (missing.delete(name)) console.log(`${fault} -> ${name}: ${((performance.now() - since) / 1000).toFixed(0)} s`)
    await sleep(500)
  }
  for (const name of missing) console.log(`${fault} -> ${name}: NOT SEEN`)
}

const state = (server) => JSON.parse(readFileSync(join(server.dataDir, 'supervisor.json'), 'utf8'))
const childrenOf = (pid) =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1].split(' ')[1] === String(pid)
      } catch {
        return false
      }
    })
    .map(Number)

async function addresses(server) {
  for (;;) {
    const nodes = await (await fetch(`${server.base}/v1/node`)).json()
    if (nodes.length > 0) return { coordinator: new URL(server.base).host, worker: new URL(nodes[0].uri).host }
    await sleep(100)
  }
}

async function turnedAway() {
  const server = await startServer({ env: { QUIPU_RUNNING_QUERIES: '1', QUIPU_QUEUED_QUERIES: '0' } })
  const prometheus = await watch(await addresses(server))
  await sleep(30_000)
  const client = createClient(server.base)
  const endless = client.rows('SELECT count(*) FROM lineitem a, lineitem b, lineitem c').catch(() => {})
  await sleep(1000)
  let going = true
  const turned = (async () => {
    while (going) {
      await client.rows('SELECT count(*) FROM nation').catch(() => {})
      await sleep(1000)
    }
  })()
  await seen(prometheus, 'statements are turned away', performance.now(), ['QuipuTurningAway'])
  going = false
  await turned
  client.close()
  await endless
  await prometheus.stop()
  await server.stop()
}

async function killed() {
  const secret = 'a secret of this measurement'
  const server = await startServer({ workers: 0, env: { QUIPU_SHARED_SECRET: secret } })
  const folder = mkdtempSync(join(tmpdir(), 'quipu-bench-worker-'))
  const worker = spawn(
    process.execPath,
    [join(root, 'dist/cli/quipu.js'), 'worker', '--port', '0', '--data-dir', folder, '--log-level', 'silent'],
    {
      env: { PATH: process.env.PATH, QUIPU_SHARED_SECRET: secret, QUIPU_COORDINATORS: server.base },
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  )
  const prometheus = await watch(await addresses(server))
  await sleep(45_000)
  const engine = () =>
    childrenOf(worker.pid)
      .flatMap(childrenOf)
      .find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('engine-process'))
  for (let kill = 0; kill < 3; kill++) {
    process.kill(engine(), 'SIGKILL')
    await sleep(6000)
  }
  await seen(prometheus, 'the third engine killed', performance.now() - 6000, ['QuipuEngineCrashing'])
  for (let kill = 0; kill < 3; kill++) {
    process.kill(state(server).children[0].pid, 'SIGKILL')
    await sleep(8000)
  }
  await seen(prometheus, 'the third coordinator killed', performance.now() - 8000, ['QuipuRestartLoop'])
  // Its processes end with it; inside `quipu start` another would take its place within a second.
  worker.kill('SIGKILL')
  await seen(prometheus, 'the only worker gone', performance.now(), ['QuipuNoActiveWorker', 'QuipuWorkerDown'])
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  const postmaster = Number(readFileSync(join(server.dataDir, 'postgres/postmaster.pid'), 'utf8').split('\n')[0])
  const all = [postmaster, ...childrenOf(postmaster)]
  for (const pid of all) process.kill(pid, 'SIGSTOP')
  const since = performance.now()
  void fetch(`${server.base}/v1/statement`, { method: 'POST', body: 'SELECT 1' }).catch(() => {})
  await seen(prometheus, 'the database stopped', since, ['QuipuEventLogDown'])
  for (const pid of all) process.kill(pid, 'SIGCONT')
  await sleep(3000)
  await prometheus.stop()
  await server.stop()
}

console.log(`load average ${execFileSync('cut', ['-d', ' ', '-f', '1', '/proc/loadavg']).toString().trim()}`)
await Promise.all([turnedAway(), killed()])
