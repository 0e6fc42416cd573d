import { spawn, execFile, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { unpackedPackages } from '../support/debian-packages.ts'
import { freePort } from '../support/postgres.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { rowReaders } from '../support/row-readers.ts'
import { rolesOf, startStandbyCluster, type StandbyCluster } from '../support/standby-cluster.ts'

const root = new URL('../../', import.meta.url)
/** Takes some seconds to read, so that a kill falls into it. */
const STREAM = 'SELECT orderkey, linenumber, comment FROM lineitem'
const LINES = 60_175

interface ProxyProgram {
  readonly name: string
  readonly config: string
  /** The program with the arguments that run it in the foreground with a configuration file. */
  command(file: string): readonly [program: string, ...args: string[]]
  readonly env: Readonly<Record<string, string>>
  /** Changes what Debian's package assumes about the machine, not what the file says about Quipu. */
  adapt(text: string, folder: string): string
}

async function haproxy(): Promise<ProxyProgram> {
  const libraries = ['liblua5.3-0', 'libopentracing-c-wrapper0', 'libopentracing1']
  const folder = await unpackedPackages('haproxy', ['haproxy', ...libraries], 'usr/sbin/haproxy')
  const { stdout } = await promisify(execFile)('dpkg-architecture', ['-qDEB_HOST_MULTIARCH']).catch(() => ({
    stdout: `${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu`,
  }))
  return {
    name: 'HAProxy',
    config: 'deploy/proxy/haproxy.cfg',
    command: (file) => [join(folder, 'usr/sbin/haproxy'), '-db', '-f', file],
    env: { LD_LIBRARY_PATH: join(folder, 'usr/lib', stdout.trim()) },
    adapt: (text) => text,
  }
}

async function nginx(): Promise<ProxyProgram> {
  const folder = await unpackedPackages('nginx', ['nginx'], 'usr/sbin/nginx')
  return {
    name: 'nginx',
    config: 'deploy/proxy/nginx.conf',
    command: (file) => [join(folder, 'usr/sbin/nginx'), '-g', 'daemon off; error_log stderr;', '-c', file],
    env: {},
    adapt(text, scratch) {
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${scratch};`)
      const user = process.getuid?.() === 0 ? 'user root;' : ''
      return `${user} pid ${scratch}/nginx.pid;\n${text.replace('http {', `http {\naccess_log off;\n${paths.join('\n')}`)}`
    },
  }
}

async function found(find: () => Promise<ProxyProgram>, name: string): Promise<ProxyProgram | undefined> {
  return find().catch((error: unknown) => {
    if (process.env['CI'] === 'true') throw error
    process.stderr.write(`SKIPPED: no ${name} (apt-get download)\n`)
    return undefined
  })
}

const programs = [await found(haproxy, 'haproxy'), await found(nginx, 'nginx')].filter((one) => one !== undefined)

/**
 * The proxies' configurations as written: the names of servers, certificates and the port become those of this machine.
 */
describe('the proxy configurations in deploy/proxy', () => {
  let folder: string
  let authority: TestAuthority
  let cluster: StandbyCluster
  const running: ChildProcess[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'quipu-proxy-'))
    authority = await createAuthority()
    cluster = await startStandbyCluster({ QUIPU_TRUSTED_PROXIES: '127.0.0.1' })
  }, 240_000)
  afterAll(async () => {
    for (const child of running) if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit')
    await cluster?.stop()
    await authority?.remove()
    await rm(folder, { recursive: true, force: true })
  }, 240_000)

  async function start(program: ProxyProgram): Promise<string> {
    const port = await freePort()
    const scratch = await mkdtemp(join(folder, 'proxy-'))
    const { cert, key, both } = await authority.issue(`proxy-${port}`)
    const written = readFileSync(new URL(program.config, root), 'utf8')
      .replaceAll('quipu-1.example:8080', new URL(cluster.a.url).host)
      .replaceAll('quipu-2.example:8080', new URL(cluster.b.url).host)
      .replaceAll('/etc/haproxy/quipu.pem', both)
      .replaceAll('/etc/nginx/quipu.crt', cert)
      .replaceAll('/etc/nginx/quipu.key', key)
      .replace('bind :443', `bind 127.0.0.1:${port}`)
      .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
    const file = join(scratch, 'proxy.conf')
    await writeFile(file, program.adapt(written, scratch))
    const [path, ...args] = program.command(file)
    const child = spawn(path, args, { env: { ...process.env, ...program.env }, stdio: ['ignore', 'ignore', 'pipe'] })
    running.push(child)
    let stderr = ''
    child.stderr.on('data', (text: Buffer) => (stderr += text.toString()))
    await waitUntil(`${program.name} listens`, async () => {
      if (child.exitCode !== null) throw new Error(`${program.name} ended: ${stderr}`)
      return listens(port)
    })
    return `https://127.0.0.1:${port}`
  }

  describe.each(programs.map((program) => [program.name, program] as const))('%s', (_, program) => {
    it('leads clients to the writer, and to the other coordinator after kill -9 of the writer', async () => {
      const base = await start(program)
      const readers = await rowReaders()
      const logIn = { user: 'ana', ca: authority.ca }
      // Both lead through the proxy before anything fails.
      const { writer } = await rolesOf(cluster)
      for (const [name, reader] of readers)
        await waitUntil(`${name} gets an answer`, async () => {
          const { stdout } = await reader.read(base, 'SELECT count(*) FROM nation', logIn)
          return stdout.trim() === '25'
        })
      const reading = [...readers].map(async ([name, reader]) => ({
        name,
        ...(await reader.read(base, STREAM, logIn)),
      }))
      await sleep(500)
      await writer.kill()
      for (const { name, stdout, code, stderr } of await Promise.all(reading)) {
        expect({ name, code, stderr: stderr.slice(0, 500) }).toMatchObject({ code: 0 })
        const lines = stdout.trim().split('\n')
        expect({ name, rows: lines.length, different: new Set(lines).size }).toEqual({
          name,
          rows: LINES,
          different: LINES,
        })
      }
      await writer.start()
      await rolesOf(cluster)
    }, 400_000)
  })
})

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket.destroy() !== undefined))
    socket.once('error', () => resolve(false))
  })
}
