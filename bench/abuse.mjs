// What one client can do to the others: each abuse runs in a process of its own, from addresses of its own, while another
// user asks SELECT 1 again and again from another address. Told are that user's times, how the abuse was answered, and
// the coordinator's memory before, at most, and after.
import { spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { quantile, startServer } from './quipu-server.mjs'

const SECONDS = Number(process.env.BENCH_SECONDS ?? 15)
const names = process.env.BENCH_ABUSES?.split(',') ?? [
  'none',
  'idle-connections',
  'slow-heads',
  'slow-bodies',
  'many-statements',
  'flood-of-one-user',
  'vanishing-clients',
  'unread-pages',
  'header-bombs',
  'nested-parentheses',
]

const server = await startServer({
  env: { QUIPU_CONNECTIONS: '12000', QUIPU_CONNECTIONS_PER_ADDRESS: '1000' },
})
const coordinator = processOf(server.pid, /coordinator-process/)

for (const name of names) {
  const before = memoryOf(coordinator)
  const abuse = name === 'none' ? undefined : startAbuse(name)
  if (abuse) await abuse.begun
  const { times, failed, most } = await probe()
  const told = await abuse?.end()
  await new Promise((resolve) => setTimeout(resolve, 3000))
  console.log(
    [
      name.padEnd(18),
      `SELECT 1 of another: ${times.length} times, p50 ${ms(quantile(times, 0.5))}, p99 ${ms(quantile(times, 0.99))}, longest ${ms(times.at(-1))}, failed ${failed}`,
      `memory ${mb(before)} → ${mb(most)} → ${mb(memoryOf(coordinator))} MB`,
      told ?? '',
    ].join('  '),
  )
}
await server.stop()

/** SELECT 1 as another user, from another address, for a while. */
async function probe() {
  const { hostname, port } = new URL(server.base)
  const agent = new Agent({ keepAlive: true })
  const send = (method, path, body) =>
    new Promise((resolve, reject) => {
      const headers = { 'x-trino-user': 'ana' }
      const sent = request({ hostname, port, agent, method, path, headers, localAddress: '127.0.0.2' }, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (part) => (text += part))
        answer.on('end', () => resolve({ status: answer.statusCode, text }))
        answer.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(body)
    })
  const times = []
  let failed = 0
  let most = 0
  for (const until = performance.now() + SECONDS * 1000; performance.now() < until;) {
    const start = performance.now()
    try {
      let { status, text } = await send('POST', '/v1/statement', 'SELECT 1')
      for (let next; status === 200 && (next = JSON.parse(text).nextUri);)
        ({ status, text } = await send('GET', new URL(next).pathname))
      if (status !== 200 || text.includes('"error"')) failed++
    } catch {
      failed++
    }
    times.push(performance.now() - start)
    most = Math.max(most, memoryOf(coordinator))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  agent.destroy()
  return { times: times.sort((a, b) => a - b), failed, most }
}

function startAbuse(name) {
  const child = spawn(process.execPath, [new URL('abuse-client.mjs', import.meta.url).pathname, name, server.base], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (part) => (text += part))
  const exited = new Promise((resolve) => child.once('exit', resolve))
  return {
    begun: new Promise((resolve) => child.stdout.on('data', () => text.includes('begun') && resolve())),
    async end() {
      child.stdin.end()
      await exited
      return text.replace('begun\n', '').trim()
    },
  }
}

function processOf(parent, pattern) {
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      if (!pattern.test(readFileSync(`/proc/${name}/cmdline`, 'utf8'))) continue
      if (/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))[1] === String(parent)) return name
    } catch {
      // It ended meanwhile.
    }
  }
  throw new Error('no coordinator')
}

/** Resident, bytes. */
function memoryOf(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024
}

function mb(bytes) {
  return Math.round(bytes / 2 ** 20)
}

function ms(value) {
  return `${value.toFixed(1)} ms`
}
