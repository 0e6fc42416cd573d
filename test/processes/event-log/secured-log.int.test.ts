import { randomBytes } from 'node:crypto'
import { chown, copyFile, chmod, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dataKeysOf, eventLogOf, recordStoreOf } from '../../../src/processes/event-log/event-log-of.ts'
import { loadConfig, type Config } from '../../../src/config/load-config.ts'
import { migrate } from '../../../src/events/postgres/migrate.ts'
import { createAuthority, type TestAuthority } from '../../support/certificates.ts'
import { events, me } from '../../support/event-log/log-fixture.ts'
import { createMigratedDatabase } from '../../support/event-log/migrated-database.ts'
import { waitUntil } from '../../support/quipu-process.ts'
import { kafkaIsAvailable, startSecuredKafka, type SecuredKafka } from '../../support/kafka.ts'
import { startPostgres, type TestDatabase, type TestPostgres } from '../../support/postgres.ts'

let authority: TestAuthority
let other: TestAuthority
beforeAll(async () => {
  authority = await createAuthority()
  other = await createAuthority()
})
afterAll(async () => {
  await authority.remove()
  await other.remove()
})

const PAGE = Buffer.from('[[1]]')

/** Writes to the log, and reads the events back, as a coordinator and an audit do. */
async function writesAndReads(config: Config, url: string): Promise<void> {
  const stream = `s${randomBytes(4).toString('hex')}`
  const log = await eventLogOf(config, url, { pagesKey: randomBytes(32) })
  try {
    await log.open()
    await log.claim(me)
    const kept = await log.keepPages(stream, [{ token: 0, bytes: PAGE }])
    await log.append(stream, 0, events(2), kept.beside)
    expect(Buffer.from((await log.readPage(stream, 0, kept.offsets[0]))!)).toEqual(PAGE)
    const { events: read } = await log.read({ logId: '', at: [{ offset: 0n }] }, 1000)
    expect(read.filter((event) => event.stream === stream)).toHaveLength(2)
    const store = await recordStoreOf(config, url)
    expect(await store.end(0)).toBeGreaterThanOrEqual(3n)
    await store.close()
    await (await dataKeysOf(config, url))?.close()
  } finally {
    await log.close()
  }
}

async function refused(config: Config, url: string): Promise<string> {
  const log = await eventLogOf(config, url, {})
  return log
    .open()
    .then(
      () => 'opened',
      (error: Error) => `${error.name}: ${error.message}`,
    )
    .finally(() => log.close())
}

describe.skipIf(!(await kafkaIsAvailable()))('The event log in a Kafka with authentication', () => {
  const password = 'p"a$$=s'.replaceAll(/["=]/g, '_')
  let kafka: SecuredKafka
  let database: TestDatabase
  let certificate: Awaited<ReturnType<TestAuthority['issue']>>

  beforeAll(async () => {
    certificate = await authority.issue('client')
    const server = await authority.issue('broker')
    kafka = await startSecuredKafka({ keystore: server.both, truststore: authority.ca, user: 'quipu', password })
    database = await createMigratedDatabase()
  })
  afterAll(async () => {
    await kafka?.stop()
    await database?.drop()
  })

  /** A configuration with a new topic. */
  const config = (broker: string, ...flags: string[]): Config =>
    loadConfig(
      [
        '--kafka-brokers',
        broker,
        '--kafka-topic',
        `t${randomBytes(4).toString('hex')}`,
        '--data-dir',
        authority.folder,
        ...flags,
      ],
      {},
    )

  it.each(['plain', 'scram-sha-256', 'scram-sha-512'])('opens with user and password: %s', async (mechanism) => {
    const file = join(authority.folder, 'password')
    await writeFile(file, `${password}\n`)
    const known = ['--kafka-ca-file', authority.ca, '--kafka-sasl-mechanism', mechanism, '--kafka-user', 'quipu']
    await writesAndReads(config(kafka.sasl, ...known, '--kafka-password-file', file), database.url)
    expect(await refused(config(kafka.sasl, ...known, '--kafka-password', 'another'), database.url)).toMatch(
      /^LogUnavailable: Kafka does not answer: .*authentication/i,
    )
  })

  it('opens with a client certificate', async () => {
    const known = ['--kafka-cert-file', certificate.cert, '--kafka-key-file', certificate.key]
    await writesAndReads(config(kafka.tls, '--kafka-ca-file', authority.ca, ...known), database.url)
  })

  it('does not open without credentials, or with a certificate of another authority on either side', async () => {
    const stranger = await other.issue('client')
    for (const flags of [
      ['--kafka-ca-file', authority.ca],
      ['--kafka-tls'],
      [],
      ['--kafka-ca-file', other.ca, '--kafka-cert-file', certificate.cert, '--kafka-key-file', certificate.key],
      ['--kafka-ca-file', authority.ca, '--kafka-cert-file', stranger.cert, '--kafka-key-file', stranger.key],
    ])
      expect(await refused(config(kafka.tls, ...flags), database.url)).toMatch(/^LogUnavailable: Kafka does not answer/)
  })

  it('names the missing file of certificates', async () => {
    await expect(eventLogOf(config(kafka.tls, '--kafka-ca-file', '/nowhere'), database.url, {})).rejects.toThrow(
      'QUIPU_KAFKA_CA_FILE: cannot read /nowhere: ENOENT',
    )
  })
})

describe('The event log in a Postgres that requires TLS', () => {
  let server: TestPostgres
  let database: TestDatabase

  beforeAll(async () => {
    server = await startPostgres()
    database = await server.createDatabase()
    const admin = new pg.Client(database.url)
    await admin.connect()
    const { rows } = await admin.query<{ folder: string }>(`select current_setting('data_directory') as folder`)
    const { folder } = rows[0]!
    const { cert, key } = await authority.issue('postgres')
    const { uid, gid } = await stat(folder)
    for (const [from, name] of [
      [cert, 'tls.pem'],
      [key, 'tls.key'],
    ] as const) {
      await copyFile(from, join(folder, name))
      await chmod(join(folder, name), 0o600)
      await chown(join(folder, name), uid, gid)
    }
    await writeFile(join(folder, 'pg_hba.conf'), 'hostssl all all 127.0.0.1/32 trust\n')
    await admin.query(`alter system set ssl_cert_file = 'tls.pem'`)
    await admin.query(`alter system set ssl_key_file = 'tls.key'`)
    await admin.query(`alter system set ssl = on`)
    await admin.query('select pg_reload_conf()')
    await admin.end()
    await waitUntil('Postgres takes TLS alone', refusedInTheClear)
  })
  afterAll(() => server?.stop())

  async function refusedInTheClear(): Promise<boolean> {
    const client = new pg.Client(database.url)
    client.on('error', () => {})
    return client.connect().then(
      () => client.end().then(() => false),
      (error: Error) => /no encryption/.test(error.message),
    )
  }

  const config = (url: string, ...flags: string[]): Config => loadConfig(['--database-url', url, ...flags], {})

  it.each([
    ['a file of certificates', [], '', {}],
    ['a file of certificates, and a mode', [], '?sslmode=require', {}],
    ['sslmode and sslrootcert in the address', undefined, '?sslmode=verify-full&sslrootcert=CA', {}],
    ['sslmode=no-verify', undefined, '?sslmode=no-verify', {}],
    ['PGSSLMODE', undefined, '', { PGSSLMODE: 'no-verify' }],
  ] as const)('opens with %s', async (_, own, parameters, env) => {
    const url = `${database.url}${parameters.replace('CA', () => encodeURIComponent(authority.ca))}`
    const found = config(url, ...(own ? ['--database-ca-file', authority.ca] : []))
    Object.assign(process.env, env)
    try {
      await migrate({ connectionString: found.databaseUrl! })
      await writesAndReads(found, found.databaseUrl!)
    } finally {
      for (const name of Object.keys(env)) delete process.env[name]
    }
  })

  it('does not open if another authority signed the certificate of the server, or without TLS', async () => {
    expect(
      await refused(
        config(database.url, '--database-ca-file', other.ca),
        config(database.url, '--database-ca-file', other.ca).databaseUrl!,
      ),
    ).toMatch(/certificate/)
    expect(await refused(config(database.url), database.url)).toMatch(/no encryption/)
  })
})

describe('The settings of TLS and identity', () => {
  const refusal = (...argv: string[]): string => {
    try {
      loadConfig(argv, {})
    } catch (error) {
      return (error as Error).message
    }
    return 'accepted'
  }

  it.each([
    [['--kafka-cert-file', 'a'], 'must be set together'],
    [['--kafka-key-file', 'a'], 'must be set together'],
    [['--kafka-sasl-mechanism', 'scram-sha-256'], 'must be set together'],
    [['--kafka-user', 'a'], 'must be set together'],
    [['--kafka-sasl-mechanism', 'scram-sha-256', '--kafka-user', 'a'], 'must be set together'],
    [['--kafka-sasl-mechanism', 'gssapi', '--kafka-user', 'a', '--kafka-password', 'b'], 'plain'],
    [['--kafka-sasl-mechanism', 'plain', '--kafka-user', 'a', '--kafka-password', 'b'], 'QUIPU_KAFKA_TLS'],
    [
      [
        '--kafka-sasl-mechanism',
        'scram-sha-256',
        '--kafka-user',
        'a',
        '--kafka-password',
        'b',
        '--kafka-password-file',
        'c',
      ],
      'not both',
    ],
    [['--database-ca-file', 'a'], 'DATABASE_URL'],
    [['--database-ca-file', 'a', '--database-url', 'postgres://h/d?sslmode=disable'], 'sslmode'],
  ])('refuse %j', (argv, message) => expect(refusal(...argv)).toContain(message))

  it.each([
    [['--kafka-sasl-mechanism', 'scram-sha-512', '--kafka-user', 'a', '--kafka-password', 'b']],
    [['--kafka-sasl-mechanism', 'plain', '--kafka-user', 'a', '--kafka-password-file', 'b', '--kafka-tls']],
    [['--kafka-cert-file', 'a', '--kafka-key-file', 'b']],
  ])('accept %j', (argv) => expect(refusal(...argv)).toBe('accepted'))
})
