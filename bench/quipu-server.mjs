// A server for a measurement: started as a user starts it, on a data folder of its own.
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const PROGRAM = new URL('../dist/cli/quipu.js', import.meta.url).pathname

/**
 * @param catalogs name to properties; `tpch` is there always
 * @param program another build's, to be measured beside this one
 */
export async function startServer({ catalogs = {}, env = {}, workers = 1, program = PROGRAM } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'quipu-bench-'))
  chmodSync(folder, 0o711)
  const catalogDir = join(folder, 'catalog')
  mkdirSync(catalogDir)
  for (const [name, properties] of Object.entries({ tpch: { connector: 'tpch' }, ...catalogs }))
    writeFileSync(join(catalogDir, `${name}.json`), JSON.stringify(properties))
  const args = ['start', '--data-dir', join(folder, 'data'), '--port', '0', '--catalog-dir', catalogDir]
  const child = spawn(process.execPath, [program, ...args, '--workers', String(workers), '--log-level', 'error'], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const base = await new Promise((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (part) => {
      text += part
      const found = /^Quipu is up in .*: (http\S+)$/m.exec(text)
      if (found) resolve(found[1])
    })
    child.on('exit', (code) => reject(new Error(`quipu ended with ${code}`)))
  })
  return {
    base,
    dataDir: join(folder, 'data'),
    pid: child.pid,
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** A client on one keep-alive agent that reads answers whole. */
export function createClient(base, { catalog = 'tpch', schema = 'tiny', source = 'bench', user = 'bench' } = {}) {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const { hostname, port } = new URL(base)
  const headers = {
    'x-trino-user': user,
    'x-trino-catalog': catalog,
    'x-trino-schema': schema,
    'x-trino-source': source,
    'x-trino-client-capabilities': 'PARAMETRIC_DATETIME',
  }
  function send(method, path, body) {
    return new Promise((resolve, reject) => {
      const sent = request({ hostname, port, agent, method, path, headers }, (response) => {
        const parts = []
        response.on('data', (part) => parts.push(part))
        response.on('error', reject)
        response.on('end', () => resolve({ status: response.statusCode, body: Buffer.concat(parts) }))
      })
      sent.on('error', reject)
      sent.end(body)
    })
  }
  const next = /"nextUri":"([^"]+)"/
  return {
    send,
    /** @returns rows parsed */
    async rows(sql) {
      const rows = []
      let answer = JSON.parse((await send('POST', '/v1/statement', sql)).body)
      while (answer.nextUri) {
        answer = JSON.parse((await send('GET', new URL(answer.nextUri).pathname)).body)
        if (answer.error) throw new Error(`${answer.error.errorName}: ${answer.error.message}`)
        if (answer.data) rows.push(...answer.data)
      }
      return rows
    },
    /** Reads bytes alone, as fast as they come. @returns bytes and requests */
    async bytes(sql) {
      let bytes = 0
      let requests = 1
      let { body } = await send('POST', '/v1/statement', sql)
      for (;;) {
        const found = next.exec(body.toString('latin1', 0, 1000))
        if (!found) break
        ;({ body } = await send('GET', new URL(found[1]).pathname))
        requests++
        bytes += body.length
        if (body.includes('"error":{')) throw new Error(body.toString('utf8').slice(0, 500))
      }
      return { bytes, requests }
    },
    close: () => agent.destroy(),
  }
}

export function quantile(sorted, q) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))]
}

const KINDS = [
  ['engine', /engine-process\.js/],
  ['worker', /worker-process\.js/],
  ['coordinator', /coordinator-process\.js/],
  ['Postgres', /^postgres|\/postgres /],
]

/**
 * CPU milliseconds of all processes of a server so far, by what they are, from the scheduler's nanoseconds: ticks of a
 * hundredth are too coarse for small statements. Threads and processes that ended meanwhile are left out.
 */
export function cpuByKind({ pid }) {
  const parents = new Map()
  for (const name of readdirSync('/proc'))
    if (/^\d+$/.test(name)) {
      const parent = /^PPid:\s+(\d+)/m.exec(textOf(`/proc/${name}/status`))?.[1]
      if (parent) parents.set(name, parent)
    }
  const ours = (id) => id !== undefined && (id === String(pid) || ours(parents.get(id)))
  const found = {}
  for (const id of parents.keys()) {
    if (!ours(id)) continue
    const command = textOf(`/proc/${id}/cmdline`).replaceAll('\0', ' ')
    const kind = KINDS.find(([, pattern]) => pattern.test(command))?.[0] ?? 'other'
    found[kind] = (found[kind] ?? 0) + cpuOf(id)
  }
  return found
}

function cpuOf(id) {
  let threads = []
  try {
    threads = readdirSync(`/proc/${id}/task`)
  } catch {
    // It ended.
  }
  return threads.reduce((sum, one) => sum + Number(textOf(`/proc/${id}/task/${one}/schedstat`).split(' ')[0]) / 1e6, 0)
}

function textOf(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
