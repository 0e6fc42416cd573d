import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestAuthority } from './certificates.ts'
import { unpackedPackages } from './debian-packages.ts'
import { freePort } from './postgres.ts'
import { waitUntil } from './quipu-process.ts'
import { repository } from './repository.ts'

/** A proxy program with its configuration in deploy/proxy. */
export interface ProxyProgram {
  readonly name: string
  readonly config: string
  /** The command that runs the program in the foreground with a configuration file. */
  command(file: string): readonly [program: string, ...args: string[]]
  readonly env: Readonly<Record<string, string>>
  /** Adapts the assumptions of Debian's package about the machine, and keeps the settings for Quipu. */
  adapt(text: string, folder: string): string
}

/** HAProxy of Debian, unpacked into the cache of the tests. @throws Error when it cannot be downloaded */
export async function haproxy(): Promise<ProxyProgram> {
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

/** nginx of Debian, unpacked into the cache of the tests. @throws Error when it cannot be downloaded */
export async function nginx(): Promise<ProxyProgram> {
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

/** Without the program its tests are skipped with a message. In CI a missing program is a failure. */
export async function found(find: () => Promise<ProxyProgram>, name: string): Promise<ProxyProgram | undefined> {
  return find().catch((error: unknown) => {
    if (process.env['CI'] === 'true') throw error
    process.stderr.write(`SKIPPED: no ${name} (apt-get download)\n`)
    return undefined
  })
}

export interface RunningProxy {
  readonly url: string
  stop(): Promise<void>
}

export interface ProxyOptions {
  readonly program: ProxyProgram
  readonly authority: TestAuthority
  /** The addresses of the two coordinators. HAProxy verifies their certificates if they use HTTPS. */
  readonly coordinators: readonly [string, string]
  /** The folder for the files of the proxy. */
  readonly folder: string
}

/** Starts a proxy with its shipped configuration, in which names of servers, certificates and the port are replaced. */
export async function startProxy({ program, authority, coordinators, folder }: ProxyOptions): Promise<RunningProxy> {
  const port = await freePort()
  const scratch = await mkdtemp(join(folder, 'proxy-'))
  const { cert, key, both } = await authority.issue(`proxy-${port}`)
  const [first, second] = coordinators.map((url) => new URL(url))
  const check = first!.protocol === 'https:' ? `check ssl verify required ca-file ${authority.ca}` : 'check'
  const written = readFileSync(join(repository, program.config), 'utf8')
    .replaceAll('quipu-1.example:8080 check', `${first!.host} ${check}`)
    .replaceAll('quipu-2.example:8080 check', `${second!.host} ${check}`)
    .replaceAll('quipu-1.example:8080', first!.host)
    .replaceAll('quipu-2.example:8080', second!.host)
    .replaceAll('/etc/haproxy/quipu.pem', both)
    .replaceAll('/etc/nginx/quipu.crt', cert)
    .replaceAll('/etc/nginx/quipu.key', key)
    .replace('bind :443', `bind 127.0.0.1:${port}`)
    .replace('listen 443 ssl', `listen 127.0.0.1:${port} ssl`)
  const file = join(scratch, 'proxy.conf')
  await writeFile(file, program.adapt(written, scratch))
  const [path, ...args] = program.command(file)
  const child = spawn(path, args, { env: { ...process.env, ...program.env }, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (text: Buffer) => (stderr += text.toString()))
  await waitUntil(`${program.name} listens`, async () => {
    if (child.exitCode !== null) throw new Error(`${program.name} ended: ${stderr}`)
    return listens(port)
  })
  return {
    url: `https://127.0.0.1:${port}`,
    async stop() {
      if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit')
    },
  }
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket.destroy() !== undefined))
    socket.once('error', () => resolve(false))
  })
}
