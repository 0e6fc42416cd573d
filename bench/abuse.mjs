// What one client can do to the others: each abuse runs in a process of its own, from addresses of its own, while another
// user asks SELECT 1 again and again from another address. Told are that user's times, and those before the abuse began, how
// it was answered, and the coordinator's memory before, at most, and after; and the CPU time that the coordinator's event loop
// took from a statement's POST to its last answer, which is how long it had to wait there, also where others use the machine.
// BENCH_ABUSES=unread-pages,header-bombs measures these alone.
import { spawn } from 'node:child_process'
import { readFileSync, readdirSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { loadavg } from 'node:os'
import { createCredentials } from './credentials.mjs'
import { quantile, startServer } from './quipu-server.mjs'

const SECONDS = Number(process.env.BENCH_SECONDS ?? 15)
const names = process.env.BENCH_ABUSES?.split(',') ?? [
  'idle-connections',
  'slow-heads',
  'slow-bodies',
  'many-statements',
  'flood-of-one-user',
  'vanishing-clients',
  'unread-pages',
  'header-bombs',
  'nested-parentheses',
  'wrong-passwords',
  'idle-tls',
  'half-handshakes',
]
/** Against a server with TLS and passwords. */
const guarded = new Set(['wrong-passwords', 'idle-tls', 'half-handshakes'])
const credentials = createCredentials(['ana', 'mallory'])
const room = { QUIPU_CONNECTIONS: '12000', QUIPU_CONNECTIONS_PER_ADDRESS: '1000' }

for (const name of names) {
  // One each: what an abuse leaves behind is no part of the next.
  const isGuarded = guarded.has(name)
  const server = await startServer({
    env: { ...room, ...(isGuarded && { ...credentials.tls, ...credentials.authentication }) },
  })
  const coordinator = processOf(server.pid, /coordinator-process/)
  const ask = createAsker(server.base, isGuarded)
  const quiet = await probe(ask, coordinator, Math.min(5, SECONDS))
  const before = memoryOf(coordinator)
  const abuse = startAbuse(name, server.base)
  await abuse.begun
  const under = await probe(ask, coordinator, SECONDS)
  const counts = await abuse.end()
  await new Promise((resolve) => setTimeout(resolve, 3000))
  const after = memoryOf(coordinator)
  console.log(
    [
      name.padEnd(18),
      `SELECT 1 of another: ${timesOf(under)}; quiet: ${timesOf(quiet)}`,
      `memory ${mb(before)} → ${mb(under.most)} → ${mb(after)} MB`,
      name.startsWith('idle') ? `${Math.round((under.most - before) / 10_000)} bytes a connection` : '',
      `load ${loadavg()[0].toFixed(0)}`,
      counts,
    ].join('  '),
  )
  ask.close()
  await server.stop()
}
credentials.remove()

function timesOf({ times, loop, failed }) {
  return `${times.length} times, p50 ${ms(quantile(times, 0.5))}, p99 ${ms(quantile(times, 0.99))}, longest ${ms(times.at(-1))}, CPU of the loop p50 ${ms(quantile(loop, 0.5))}, p99 ${ms(quantile(loop, 0.99))}, failed ${failed}`
}

/** Of the coordinator's main thread so far, milliseconds. */
function loopCpu(pid) {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6
}

/** Another user, from another address. */
function createAsker(base, isGuarded) {
  const { hostname, port } = new URL(base)
  const agent = isGuarded ? new TlsAgent({ keepAlive: true, ca: credentials.ca }) : new Agent({ keepAlive: true })
  const headers = isGuarded ? { authorization: credentials.basic('ana') } : { 'x-trino-user': 'ana' }
  const send = (method, path, body) =>
    new Promise((resolve, reject) => {
      const options = { hostname, port, agent, method, path, headers, localAddress: '127.0.0.2' }
      const sent = (isGuarded ? tlsRequest : request)(options, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (part) => (text += part))
        answer.on('end', () => resolve({ status: answer.statusCode, text }))
        answer.on('error', reject)
      })
      sent.on('error', reject)
      sent.end(body)
    })
  return {
    async selectOne() {
      let { status, text } = await send('POST', '/v1/statement', 'SELECT 1')
      for (let next; status === 200 && (next = JSON.parse(text).nextUri);)
        ({ status, text } = await send('GET', new URL(next).pathname))
      if (status !== 200 || text.includes('"error"')) throw new Error(text)
    },
    close: () => agent.destroy(),
  }
}

/** SELECT 1 again and again, for a while. */
async function probe(ask, coordinator, seconds) {
  const times = []
  const loop = []
  let failed = 0
  let most = 0
  for (const until = performance.now() + seconds * 1000; performance.now() < until;) {
    const start = performance.now()
    const before = loopCpu(coordinator)
    await ask.selectOne().catch(() => failed++)
    times.push(performance.now() - start)
    loop.push(loopCpu(coordinator) - before)
    most = Math.max(most, memoryOf(coordinator))
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const inOrder = (values) => values.sort((a, b) => a - b)
  return { times: inOrder(times), loop: inOrder(loop), failed, most }
}

function startAbuse(name, base) {
  const child = spawn(process.execPath, [new URL('abuse-client.mjs', import.meta.url).pathname, name, base], {
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
