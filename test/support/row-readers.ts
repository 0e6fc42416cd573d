import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { archivedClasses, shortLived } from './java.ts'
import { fetchedJar, finished, missing, pythonClients, REFUSING, trinoCli, type Finished } from './real-clients.ts'
import { repository } from './repository.ts'
import { testCache, withCached } from './test-cache.ts'

const run = promisify(execFile)
const PROGRAMS = join(repository, 'test', 'support', 'clients')

/** The credential of a client over TLS: one of three kinds. */
export interface LogIn {
  readonly user: string
  /** The file of the authority of the server. */
  readonly ca: string
  readonly password?: string
  readonly token?: string
  /** Files (PEM) of certificate and key. */
  readonly certificate?: { readonly cert: string; readonly key: string; readonly both: string }
}

/** A published client that prints the rows of a statement, one on each line, with values joined by commas. */
export interface RowReader {
  /** Runs a statement in tpch.tiny. @param base the address of a server */
  read(base: string, sql: string, logIn?: LogIn): Promise<Finished>
  /** Whether the client retries when an answer breaks off. Other clients end with an error then. */
  readonly repeatsBrokenAnswers: boolean
  /** The number of failed answers in a row after which the client gives up. */
  readonly attempts: number
}

/** The clients by name. A missing client is reported. In CI it is a failure. */
export async function rowReaders(): Promise<ReadonlyMap<string, RowReader>> {
  const readers = new Map<string, RowReader>()
  for (const [name, make] of [
    ['Trino CLI 476', cli],
    ['trino-jdbc 476', jdbc],
    ['trino for Python', python],
    ['trino-go-client 1.4.1', go],
  ] as const) {
    const reader = await make()
    if (reader) readers.set(name, reader)
  }
  return readers
}

async function cli(): Promise<RowReader | undefined> {
  const execute = await trinoCli()
  const session = ['--catalog', 'tpch', '--schema', 'tiny', '--output-format', 'CSV_UNQUOTED']
  return (
    execute && {
      read: (base, sql, logIn) =>
        execute(['--server', base, ...session, ...(logIn ? cliLogIn(logIn) : []), '--execute', sql], {
          TRINO_PASSWORD: logIn?.password ?? '',
        }),
      repeatsBrokenAnswers: true,
      attempts: Infinity,
    }
  )
}

function cliLogIn({ user, ca, password, token, certificate }: LogIn): string[] {
  return [
    '--truststore-path',
    ca,
    '--user',
    user,
    ...(password === undefined ? [] : ['--password']),
    ...(token === undefined ? [] : ['--access-token', token]),
    ...(certificate === undefined ? [] : ['--keystore-path', certificate.both]),
  ]
}

const SOURCE = join(PROGRAMS, 'StreamRows.java')

/** The arguments of `java` that run a statement with the published JDBC driver; undefined if it is not available. */
export async function jdbcProgram(): Promise<
  | ((...program: readonly [url: string, sql: string, user?: string, connections?: string]) => readonly string[])
  | undefined
> {
  const folder = join(testCache, 'trino-jdbc')
  try {
    const driver = await fetchedJar('io.trino:trino-jdbc:476', 'trino-jdbc', 'trino-jdbc-476.jar')
    // This compiler needs a Java runtime only.
    const compiler = await fetchedJar('org.eclipse.jdt:ecj:3.33.0', 'trino-jdbc', 'ecj-3.33.0.jar')
    const digest = createHash('sha256')
      .update(await readFile(SOURCE))
      .digest('hex')
    // A jar, because archives of classes take none from folders.
    const classes = join(folder, `${digest.slice(0, 16)}.jar`)
    await withCached(classes, 'ecj', async () => {
      const fresh = `${classes}.${process.pid}`
      await run('java', [...shortLived, '-jar', compiler, '-17', '-d', fresh, SOURCE], { timeout: 120_000 })
      await run('python3', ['-m', 'zipfile', '-c', join(fresh, 'jar'), 'StreamRows.class'], { cwd: fresh })
      await rename(join(fresh, 'jar'), classes)
      await rm(fresh, { recursive: true })
    })
    const main = ['-cp', `${driver}:${classes}`, 'StreamRows']
    const archive = await archivedClasses(classes.replace('.jar', '.jsa'), (options) =>
      finished('java', [...shortLived, ...options, ...main, `jdbc:trino://${REFUSING}/tpch/tiny`, 'SELECT 1']),
    )
    return (...program) => [...shortLived, ...archive, ...main, ...program.filter((one) => one !== undefined)]
  } catch (error) {
    return missing('JDBC driver of Trino 476', error)
  }
}

async function jdbc(): Promise<RowReader | undefined> {
  const program = await jdbcProgram()
  return (
    program && {
      read(base, sql, logIn) {
        const url = `jdbc:trino://${new URL(base).host}/tpch/tiny${logIn ? `?${jdbcLogIn(logIn)}` : ''}`
        return finished('java', program(url, sql, logIn?.user))
      },
      repeatsBrokenAnswers: true,
      attempts: Infinity,
    }
  )
}

function jdbcLogIn({ ca, password, token, certificate }: LogIn): string {
  const properties = {
    SSL: 'true',
    SSLTrustStorePath: ca,
    ...(password === undefined ? {} : { password }),
    ...(token === undefined ? {} : { accessToken: token }),
    ...(certificate === undefined ? {} : { SSLKeyStorePath: certificate.both }),
  }
  // The driver does not decode `+` as a space.
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')
}

const SCRIPT = `
import sys, json, trino
from trino.auth import BasicAuthentication, JWTAuthentication, CertificateAuthentication
scheme, at = sys.argv[1].split('://')
host, port = at.split(':')
who = json.loads(sys.argv[3])
auth = None
if 'password' in who: auth = BasicAuthentication(who['user'], who['password'])
if 'token' in who: auth = JWTAuthentication(who['token'])
if 'certificate' in who: auth = CertificateAuthentication(who['certificate']['cert'], who['certificate']['key'])
cur = trino.dbapi.connect(host=host, port=int(port), http_scheme=scheme, user=who['user'], auth=auth, verify=who.get('ca', True), catalog='tpch', schema='tiny').cursor()
cur.execute(sys.argv[2])
for row in cur: print(*row, sep=',')`

async function python(): Promise<RowReader | undefined> {
  const execute = await pythonClients()
  return (
    execute && {
      read: (base, sql, logIn) =>
        execute(
          SCRIPT,
          [base, sql, JSON.stringify(logIn ?? { user: 'python' })],
          // The client prefers a variable of the environment to its arguments.
          logIn ? { REQUESTS_CA_BUNDLE: logIn.ca } : {},
        ),
      repeatsBrokenAnswers: false,
      attempts: 3,
    }
  )
}

async function go(): Promise<RowReader | undefined> {
  try {
    const built = await run(join(PROGRAMS, 'build-go-client'), { timeout: 600_000 })
    const binary = built.stdout.trim()
    return {
      read: (base, sql, logIn) => finished(binary, [goSource(base, logIn), sql]),
      repeatsBrokenAnswers: false,
      attempts: Infinity,
    }
  } catch (error) {
    return missing('Go client of Trino', error)
  }
}

function goSource(base: string, logIn: LogIn | undefined): string {
  const url = new URL(base)
  url.search = 'catalog=tpch&schema=tiny'
  url.username = logIn?.user ?? 'go'
  if (!logIn) return url.href
  url.searchParams.set('SSLCertPath', logIn.ca)
  if (logIn.password !== undefined) url.password = logIn.password
  if (logIn.token !== undefined) url.searchParams.set('accessToken', logIn.token)
  if (logIn.certificate) {
    url.searchParams.set('SSLClientCertPath', logIn.certificate.cert)
    url.searchParams.set('SSLClientKeyPath', logIn.certificate.key)
  }
  return url.href
}
