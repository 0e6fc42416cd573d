import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Files (PEM) of an authority and of the certificates that it signs. */
export interface TestAuthority {
  readonly folder: string
  readonly ca: string
  /** Issues a certificate with key, for 127.0.0.1 and localhost or other names. The file `both` has key and certificate. */
  issue(name: string, names?: string): Promise<{ readonly cert: string; readonly key: string; readonly both: string }>
  remove(): Promise<void>
}

/** Creates an authority with openssl, valid for a day. */
export async function createAuthority(): Promise<TestAuthority> {
  const folder = await mkdtemp(join(tmpdir(), 'quipu-test-ca-'))
  const at = (name: string): string => join(folder, name)
  const openssl = (...args: string[]): Promise<unknown> => run('openssl', args, { cwd: folder })
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  await openssl('req', '-x509', ...ec, '-days', '1', '-subj', '/CN=quipu test', '-keyout', 'ca.key', '-out', 'ca.pem')
  return {
    folder,
    ca: at('ca.pem'),
    async issue(name, names = 'IP:127.0.0.1,DNS:localhost') {
      await openssl('req', ...ec, '-subj', `/CN=${name}`, '-keyout', `${name}.key`, '-out', `${name}.csr`)
      await writeFile(at(`${name}.ext`), `subjectAltName=${names}\n`)
      const signed = ['-in', `${name}.csr`, '-CA', 'ca.pem', '-CAkey', 'ca.key', '-set_serial', serialNumber()]
      const lasting = ['-days', '1', '-extfile', `${name}.ext`, '-out', `${name}.pem`]
      await openssl('x509', '-req', ...signed, ...lasting)
      await writeFile(at(`${name}.both`), `${await readFile(at(`${name}.key`))}${await readFile(at(`${name}.pem`))}`)
      return { cert: at(`${name}.pem`), key: at(`${name}.key`), both: at(`${name}.both`) }
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** A random serial number, so that two certificates can be made at the same time: openssl counts numbers in a file. */
function serialNumber(): string {
  return `0x${randomBytes(16).toString('hex')}`
}
