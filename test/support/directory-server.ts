import { execFile, spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { waitUntil } from './quipu-process.ts'
import { shortLived } from './java.ts'
import { fetchedJar, missing } from './real-clients.ts'

const VERSION = '7.0.3'

/** A running directory (LDAP). */
export interface DirectoryServer {
  readonly port: number
  stop(): Promise<void>
}

export interface DirectoryOptions {
  /** The folder for its files. */
  readonly folder: string
  /** The entries of the directory. */
  readonly ldif: string
  /** Files (PEM). With them the directory accepts TLS only. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** The port; a free port if absent. */
  readonly port?: number
}

/** UnboundID's in-memory directory, downloaded by Maven once on each machine; undefined if the download fails. */
export async function directoryServer(): Promise<
  ((options: DirectoryOptions) => Promise<DirectoryServer>) | undefined
> {
  try {
    const artifact = `com.unboundid:unboundid-ldapsdk:${VERSION}`
    const jar = await fetchedJar(artifact, 'unboundid-ldapsdk', `unboundid-ldapsdk-${VERSION}.jar`)
    return (options) => start(jar, options)
  } catch (error) {
    return missing(`LDAP server (UnboundID ${VERSION})`, error)
  }
}

async function start(jar: string, { folder, ldif, tls, port }: DirectoryOptions): Promise<DirectoryServer> {
  const entries = join(folder, 'entries.ldif')
  await writeFile(entries, ldif)
  const args = ['--ldifFile', entries, '--port', String(port ?? 0), ...(tls ? await secured(folder, tls) : [])]
  const tool = 'com.unboundid.ldap.listener.InMemoryDirectoryServerTool'
  const child = spawn('java', [...shortLived, '-cp', jar, tool, '--baseDN', 'dc=example,dc=com', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let reported = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (reported += text))
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  let over = false
  void ended.then(() => (over = true))
  const listening = (): string | undefined => /[Ll]istening for.* on port (\d+)\./.exec(reported)?.[1]
  await waitUntil('the directory listens', () => over || listening() !== undefined)
  if (over) throw new Error(reported)
  return {
    port: Number(listening()),
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Java needs certificate and key together in a key store. */
async function secured(folder: string, { cert, key }: NonNullable<DirectoryOptions['tls']>): Promise<string[]> {
  const store = join(folder, 'directory.p12')
  const password = 'of no worth'
  const files = ['-in', cert, '-inkey', key, '-out', store]
  await promisify(execFile)('openssl', ['pkcs12', '-export', ...files, '-passout', `pass:${password}`])
  return ['--useSSL', '--keyStorePath', store, '--keyStorePassword', password, '--keyStoreType', 'PKCS12']
}
