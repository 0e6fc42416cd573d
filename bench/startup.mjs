// How long `quipu start` takes, and what it costs. `node bench/startup.mjs`: the first start on an empty data folder,
// later starts, a start after kill -9 of everything, and the pause for clients when the coordinator is killed. CPU is
// that of each process from its start until all are ready (user and system, from /proc).
import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const ROUNDS = Number(process.env.ROUNDS ?? 5)
const PROGRAM = new URL('../dist/cli/quipu.js', import.meta.url).pathname
const TICKS_A_SECOND = 100
const folder = mkdtempSync(join(process.env.BENCH_FOLDER ?? tmpdir(), 'quipu-bench-'))
chmodSync(folder, 0o711)

/** Starts Quipu; resolves when it says that it is up. */
function start(data) {
  const began = performance.now()
  const child = spawn(process.execPath, [
    PROGRAM,
    'start',
    '--port',
    '0',
    '--data-dir',
    data,
    '--log-level',
    'error',
    '--restart-backoff-max-ms',
    '100',
  ])
  child.stderr.pipe(process.stderr)
  const ended = new Promise((resolve) => child.once('exit', resolve))
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (part) => {
      text += part
      const url = /^Quipu is up in .*: (http\S+)$/m.exec(text)?.[1]
      if (url) resolve({ pid: child.pid, url, ms: performance.now() - began, ended })
    })
    ended.then((code) => reject(new Error(`quipu ended with ${code}`)))
  })
}

/** All processes below one, each with its CPU in milliseconds and what it is. */
function tree(root) {
  const found = []
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const cpuMs = ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_A_SECOND
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
      found.push({ pid: Number(name), parent: Number(fields[1]), cpuMs, what: nameOf(command) })
    } catch {
      // Ended meanwhile.
    }
  }
  const below = new Set([root])
  for (let size = 0; size !== below.size;) {
    size = below.size
    for (const one of found) if (below.has(one.parent)) below.add(one.pid)
  }
  return found.filter((one) => below.has(one.pid))
}

function nameOf(command) {
  const text = command.join(' ')
  if (text.includes('coordinator-process')) return 'coordinator'
  if (text.includes('worker-process')) return 'worker'
  if (text.includes('quipu.js')) return 'supervisor'
  if (text.includes('postgres')) return 'postgres'
  return 'engine'
}

function cpuOf(processes) {
  const sums = {}
  for (const { what, cpuMs } of processes) sums[what] = (sums[what] ?? 0) + cpuMs
  return Object.entries(sums)
    .map(([what, ms]) => `${what} ${ms}`)
    .join(', ')
}

async function stop({ pid, ended }) {
  const began = performance.now()
  process.kill(pid, 'SIGTERM')
  await ended
  return performance.now() - began
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
const rounded = (values) => values.map((value) => Math.round(value)).join(' ')

async function main() {
  const data = join(folder, 'data')
  const first = await start(data)
  console.log(`first start   ${Math.round(first.ms)} ms; CPU ms: ${cpuOf(tree(first.pid))}`)
  const stops = [await stop(first)]

  const starts = []
  let cpu = ''
  for (let round = 0; round < ROUNDS; round++) {
    const running = await start(data)
    starts.push(running.ms)
    cpu = cpuOf(tree(running.pid))
    stops.push(await stop(running))
  }
  console.log(`later starts  median ${Math.round(median(starts))} ms (${rounded(starts)}); CPU ms: ${cpu}`)
  console.log(`stops         median ${Math.round(median(stops))} ms (${rounded(stops)})`)

  const doomed = await start(data)
  for (const { pid } of tree(doomed.pid)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // Its parent's end was its own.
    }
  }
  await doomed.ended
  const after = await start(data)
  console.log(`after kill -9 of everything  ${Math.round(after.ms)} ms`)

  const pauses = []
  for (let round = 0; round < ROUNDS; round++) {
    const coordinator = tree(after.pid).find(({ what }) => what === 'coordinator')
    const began = performance.now()
    process.kill(coordinator.pid, 'SIGKILL')
    for (let starting = true; starting;) {
      const answer = await fetch(`${after.url}/v1/info`, { headers: { connection: 'close' } }).catch(() => undefined)
      starting = (await answer?.json().catch(() => undefined))?.starting ?? true
      await sleep(5)
    }
    pauses.push(performance.now() - began)
    await sleep(1500)
  }
  console.log(`coordinator killed, ready again  median ${Math.round(median(pauses))} ms (${rounded(pauses)})`)
  await stop(after)
  rmSync(folder, { recursive: true, force: true })
}

await main()
