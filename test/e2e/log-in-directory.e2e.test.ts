import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createBoundedWork } from '../../src/security/authentication/bounded-work.ts'
import { createLdapVerifier } from '../../src/security/authentication/ldap-verifier.ts'
import { createAuthority, type TestAuthority } from '../support/certificates.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { directoryServer, type DirectoryServer } from '../support/directory-server.ts'
import { spawnQuipu, temporaryFolder, waitUntil, type QuipuProcess } from '../support/quipu-process.ts'
import { startLenientDirectory } from '../support/lenient-directory.ts'
import { raw, run } from '../support/statement-client.ts'

const startDirectory = await directoryServer()
const folder = temporaryFolder()
const ending: (() => Promise<unknown>)[] = [() => folder.remove()]
afterAll(async () => {
  for (const end of ending) await end().catch(() => {})
}, 240_000)

const PEOPLE = 'ou=people,dc=example,dc=com'
const PATTERN = `uid=\${USER},${PEOPLE}`

function entry(dn: string, uid: string, password: string): string {
  return `dn: ${dn}\nobjectClass: account\nobjectClass: simpleSecurityObject\nuid: ${uid}\nuserPassword: ${password}\n`
}

const LDIF = [
  'dn: dc=example,dc=com\nobjectClass: domain\ndc: example\n',
  `dn: ${PEOPLE}\nobjectClass: organizationalUnit\nou: people\n`,
  entry(`uid=alice,${PEOPLE}`, 'alice', 'open sesame'),
  entry(`uid=Carol,${PEOPLE}`, 'Carol', 'carols own'),
  entry(`uid=doe\\, jane,${PEOPLE}`, 'doe, jane', 'janes own'),
  // An attacker would reach this entry with a name that is written into the pattern unescaped.
  entry(`uid=robots,${PEOPLE}`, 'robots', 'closed'),
  entry(`uid=svc,uid=robots,${PEOPLE}`, 'svc', 'of robots'),
].join('\n')

describe.runIf(startDirectory)('A log-in with a password that a directory checks', () => {
  let directory: DirectoryServer
  let quipu: QuipuProcess
  let base: string

  beforeAll(async () => {
    directory = await startDirectory!({ folder: folder.path, ldif: LDIF })
    ending.unshift(() => directory.stop())
    const database = await createMigratedDatabase()
    ending.unshift(() => database.drop())
    const asRoot = process.getuid?.() === 0 ? ['--run-as', 'root'] : []
    quipu = spawnQuipu(['start', '--port', '0', '--data-dir', join(folder.path, 'data'), ...asRoot], {
      env: {
        DATABASE_URL: database.url,
        QUIPU_LOG_LEVEL: 'warn',
        QUIPU_AUTHENTICATION: 'password',
        QUIPU_LDAP_URL: `ldap://127.0.0.1:${directory.port}`,
        QUIPU_LDAP_USER_BIND_PATTERN: PATTERN,
      },
    })
    ending.unshift(async () => {
      quipu.signal('SIGTERM')
      await quipu.exit
    })
    base = await quipu.url
  }, 240_000)

  const headersOf = (user: string, password: string) => ({
    authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
  })
  const logIn = async (user: string, password: string) =>
    raw(`${base}/v1/statement`, { body: 'SELECT current_user', headers: headersOf(user, password) })

  it.each([['alice'], ['ALICE'], ['Alice']])('maps the typed name %s to the one user alice', async (typed) => {
    // Clients send the name as it was typed, beside the password.
    const headers = { ...headersOf(typed, 'open sesame'), 'X-Trino-User': typed }
    const { rows } = await run(base, 'SELECT current_user', headers)
    expect(rows).toEqual([['alice']])
  })

  it('accepts the users of the directory', async () => {
    expect((await logIn('alice', 'open sesame')).status).toBe(200)
    expect((await logIn('doe, jane', 'janes own')).status).toBe(200)
  })

  it.each([
    ['another password', 'alice', 'guess'],
    ['an empty password, which a directory accepts as anonymous', 'alice', ''],
    ['an unknown user', 'bob', 'open sesame'],
    ['a name that leads to another entry', 'svc,uid=robots', 'of robots'],
    ['a name that ends early', `alice,${PEOPLE}`, 'open sesame'],
    ['a name with a second part', 'alice+uid=alice', 'open sesame'],
    ['a name in the form of a search', 'alice)(uid=*', 'open sesame'],
    ['a wildcard as the name', '*', 'open sesame'],
    ['a null byte in the name', 'alice\0', 'open sesame'],
    ['spaces that a directory ignores', ' alice', 'open sesame'],
    ['letters without a unique lower-case form', 'straße', 'open sesame'],
  ])('refuses %s', async (_what, user, password) => {
    expect((await logIn(user, password)).status).toBe(401)
  })

  it('gets 503 while the directory is away, unless the password was verified a moment ago', async () => {
    const { port } = directory
    await directory.stop()
    const away = await logIn('robots', 'closed')
    expect([away.status, away.headers['retry-after']]).toEqual([503, '1'])
    expect((await logIn('alice', 'guess')).status).toBe(503)
    expect((await logIn('alice', 'open sesame')).status).toBe(200)
    directory = await startDirectory!({ folder: folder.path, ldif: LDIF, port })
    await waitUntil('it vouches again', async () => (await logIn('robots', 'closed')).status === 200)
    expect((await logIn('alice', 'guess')).status).toBe(401)
    expect(quipu.stdout() + quipu.stderr()).not.toMatch(/open sesame|janes own/)
  })
})

describe('A directory that ignores more differences than case', () => {
  const spellings = [
    'alice',
    'ALICE',
    'al\u00adice',
    '\uff41lice',
    'alice\u200b',
    'alice ',
    'alice\u00a0',
    '\ufeffalice',
  ]

  it('is asked for one spelling of each name only; names that are not in normal form are refused', async () => {
    const lenient = await startLenientDirectory({ [`uid=alice,${PEOPLE}`]: 'open sesame' })
    ending.push(() => lenient.stop())
    const verifier = createLdapVerifier({
      url: lenient.url,
      bindPattern: PATTERN,
      ca: () => undefined,
      names: 'lower',
      work: createBoundedWork(8, 32),
      waitMs: 30_000,
    })
    const verdicts = []
    for (const spelling of spellings) verdicts.push(await verifier.check(spelling, 'open sesame', '-'))
    const right = { kind: 'right', name: 'alice' }
    expect(verdicts).toEqual([right, right, ...Array.from({ length: 6 }, () => ({ kind: 'wrong' }))])
    expect(new Set(lenient.asked)).toEqual(new Set([`uid=alice,${PEOPLE}`]))
  })
})

describe.runIf(startDirectory)('A directory over TLS', () => {
  let authority: TestAuthority
  let directory: DirectoryServer
  beforeAll(async () => {
    authority = await createAuthority()
    ending.push(() => authority.remove())
    const secure = join(folder.path, 'secure')
    mkdirSync(secure)
    directory = await startDirectory!({ folder: secure, ldif: LDIF, tls: await authority.issue('directory') })
    ending.unshift(() => directory.stop())
  }, 240_000)

  const verifierBy = (
    ca: string | undefined,
    url = `ldaps://127.0.0.1:${directory.port}`,
    names: 'lower' | 'directory' = 'lower',
  ) =>
    createLdapVerifier({
      url,
      bindPattern: PATTERN,
      ca: () => ca,
      names,
      work: createBoundedWork(8, 32),
      waitMs: 30_000,
    })

  it('gives its own spelling of the user name, if the option asks for it', async () => {
    const verifier = verifierBy(readFileSync(authority.ca, 'utf8'), undefined, 'directory')
    for (const typed of ['Carol', 'carol', 'CAROL'])
      expect(await verifier.check(typed, 'carols own', '-')).toEqual({ kind: 'right', name: 'Carol' })
    expect(await verifier.check('carol', 'guess', '-')).toEqual({ kind: 'wrong' })
  })

  it('is asked if the configured authority signed its certificate', async () => {
    const verifier = verifierBy(readFileSync(authority.ca, 'utf8'))
    expect(await verifier.check('alice', 'open sesame', '-')).toEqual({ kind: 'right', name: 'alice' })
    expect(await verifier.check('alice', 'guess', '-')).toEqual({ kind: 'wrong' })
  })

  it('gets no password if another authority or none signed its certificate', async () => {
    const others = await createAuthority()
    ending.push(() => others.remove())
    for (const ca of [readFileSync(others.ca, 'utf8'), undefined])
      expect(await verifierBy(ca).check('alice', 'open sesame', '-')).toMatchObject({ kind: 'unavailable' })
  })

  it('gets no password over an unencrypted connection', async () => {
    const verifier = verifierBy(readFileSync(authority.ca, 'utf8'), `ldap://127.0.0.1:${directory.port}`)
    expect(await verifier.check('alice', 'open sesame', '-')).toMatchObject({ kind: 'unavailable' })
  })
})
