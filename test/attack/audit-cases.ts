import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { request, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { SignJWT } from 'jose'
import pg from 'pg'
import { READ_MODEL_SCHEMA } from '../../src/events/postgres/migrate.ts'
import { embeddedConnection } from '../support/embedded-connection.ts'
import { startLenientDirectory } from '../support/lenient-directory.ts'
import { spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'
import { Fault } from './attack-case.ts'
import { planningBombs } from './planning-bombs.ts'

/** The load of the cases. The limits of the servers follow it, so that each size reaches the same limits. */
export interface AuditSize {
  /** Limits of the servers (`feeds`, `feedsPerAddress`). */
  readonly feeds: number
  readonly feedsPerAddress: number
  /** Users behind one address: more than `feedsPerAddress`. */
  readonly people: number
  /** Concurrent statements over `system.runtime`: more than the servers run at once. */
  readonly readers: number
  /**
   * The reason why those statements are slow: long texts, or a lock on the table of tasks, which keeps each reader in
   * the database even on a fast machine.
   */
  readonly slowBy: { readonly texts: number; readonly textLength: number } | 'lock'
  /** Whether statements run that take seconds or gigabytes of an engine. */
  readonly heavyBombs: boolean
}

/** The size for `npm run attack`, with the default limits of the servers. */
export const largeAudit: AuditSize = {
  feeds: 100,
  feedsPerAddress: 32,
  people: 60,
  readers: 20,
  slowBy: { texts: 10, textLength: 900_000 },
  heavyBombs: true,
}

/** The size for the test suite. */
export const smallAudit: AuditSize = {
  feeds: 24,
  feedsPerAddress: 8,
  people: 16,
  readers: 20,
  slowBy: 'lock',
  heavyBombs: false,
}

/** Two servers for the attacks of audits: one without authentication, and one with a directory and tokens. */
export interface AuditBed {
  readonly open: AuditServer
  readonly guarded: AuditServer
  readonly size: AuditSize
  /** A token that names this user. */
  tokenOf(name: string): Promise<string>
  stop(): Promise<void>
}

export interface AuditServer {
  readonly url: string
  /** A connection to its Postgres. */
  connect(): Promise<pg.Client>
}

/** An attack that once succeeded. It throws a `Fault` if it still succeeds. */
export interface AuditCase {
  readonly name: string
  run(bed: AuditBed): Promise<void>
}

const PEOPLE = 'ou=people,dc=example,dc=com'
const PASSWORD = 'a password that alice has'

export async function startAuditBed(size: AuditSize): Promise<AuditBed> {
  const folder = temporaryFolder()
  const directory = await startLenientDirectory({ [`uid=alice,${PEOPLE}`]: PASSWORD, [`uid=bob,${PEOPLE}`]: PASSWORD })
  const secret = randomBytes(32)
  writeFileSync(join(folder.path, 'token-key'), secret.toString('base64'))
  const asRoot = process.getuid?.() === 0 ? ['--run-as', 'root'] : []
  const start = (name: string, workers: number, env: Readonly<Record<string, string>>) =>
    spawnQuipu(
      ['start', '--port', '0', '--workers', String(workers), '--data-dir', join(folder.path, name), ...asRoot],
      {
        env: {
          QUIPU_LOG_LEVEL: 'warn',
          QUIPU_FEEDS: String(size.feeds),
          QUIPU_FEEDS_PER_ADDRESS: String(size.feedsPerAddress),
          // The lock also stops the projection, so readers must not wait for it.
          ...(size.slowBy === 'lock' && { QUIPU_OWN_WRITES_WAIT_MS: '100ms' }),
          ...env,
        },
      },
    )
  const servers = [
    start('open', 1, {}),
    start('guarded', 0, {
      QUIPU_AUTHENTICATION: 'password,jwt',
      QUIPU_LDAP_URL: directory.url,
      QUIPU_LDAP_USER_BIND_PATTERN: `uid=\${USER},${PEOPLE}`,
      QUIPU_JWT_KEY_FILE: join(folder.path, 'token-key'),
    }),
  ]
  async function stop(): Promise<void> {
    for (const server of servers) server.signal('SIGTERM')
    await Promise.all(servers.map((server) => server.exit))
    await directory.stop()
    await folder.remove()
  }
  try {
    const [open, guarded] = await Promise.all(servers.map((server) => server.url))
    const server = (name: string, url: string): AuditServer => ({
      url,
      async connect() {
        const client = new pg.Client(embeddedConnection(join(folder.path, name)))
        await client.connect()
        return client
      },
    })
    return {
      open: server('open', open!),
      guarded: server('guarded', guarded!),
      size,
      tokenOf: (name) =>
        new SignJWT({ sub: name }).setProtectedHeader({ alg: 'HS256' }).setExpirationTime('1h').sign(secret),
      stop,
    }
  } catch (error) {
    await stop().catch(() => {})
    throw error
  }
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

interface Sent {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The local address from which the request comes. */
  readonly from?: string
  /** Resolves with the head of the answer and leaves the body open. */
  readonly headAlone?: (drop: () => void) => void
}

function send(url: string, { method = 'GET', headers = {}, body, from, headAlone }: Sent = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const local = from === undefined ? {} : { localAddress: from }
    const sent = request(url, { method, headers, agent: false, ...local }, (response) => {
      const { statusCode: status = 0, headers: reported } = response
      if (headAlone) {
        headAlone(() => sent.destroy())
        response.on('error', () => {}).resume()
        return resolve({ status, headers: reported, text: '' })
      }
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('error', reject).on('end', () => resolve({ status, headers: reported, text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

interface Reported {
  readonly nextUri?: string
  readonly data?: readonly (readonly unknown[])[]
  readonly error?: { readonly errorName: string }
}

/** @returns `HTTP n`, the name of an error, or the first value */
async function ask(base: string, sql: string, headers: Readonly<Record<string, string>>): Promise<string> {
  let value: unknown
  let answer = await send(`${base}/v1/statement`, { method: 'POST', headers, body: sql })
  for (;;) {
    if (answer.status !== 200) return `HTTP ${answer.status}`
    const reported = JSON.parse(answer.text) as Reported
    value ??= reported.data?.[0]?.[0]
    if (reported.error) return reported.error.errorName
    if (reported.nextUri === undefined) return String(value)
    answer = await send(reported.nextUri, { headers })
  }
}

const basic = (user: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString('base64')}`,
})
const WHO = 'SELECT current_user'

function expectAll(what: string, wrong: readonly string[]): void {
  if (wrong.length > 0) throw new Fault(`${what}: ${wrong.slice(0, 5).join(', ')}`)
}

/** Names that are equal to alice by the comparison rules of directories (RFC 4518). */
const spellings = ['ALICE', 'al\u00adice', '\uff41lice', 'alice\u200b', 'alice\u00a0', '\ufeffalice']

const oneAccountIsOneUser: AuditCase = {
  name: 'a log-in with other spellings of a directory account',
  async run({ guarded }) {
    const found: string[] = [await ask(guarded.url, WHO, basic('alice'))]
    for (const name of spellings) found.push(await ask(guarded.url, WHO, basic(name)))
    expectAll(
      'One account is another user',
      found.filter((user) => user !== 'alice' && user !== 'HTTP 401'),
    )
    if (found[0] !== 'alice') throw new Fault(`alice is ${found[0]}`)
  },
}

const noUserBecomesAlice: AuditCase = {
  name: 'a token with white space around the user name',
  async run({ guarded, tokenOf }) {
    const names = ['\u00a0alice', '\ufeffalice', 'alice\u2003', 'alice\u3000', ' alice', 'al\u00adice', '\uff41lice']
    const found: string[] = []
    for (const name of names) {
      const user = await ask(guarded.url, WHO, { authorization: `Bearer ${await tokenOf(name)}` })
      if (user !== 'HTTP 401') found.push(`${JSON.stringify(name)} is ${user}`)
    }
    expectAll('Another name is let in', found)
    const alice = await ask(guarded.url, WHO, { authorization: `Bearer ${await tokenOf('alice')}` })
    if (alice !== 'alice') throw new Fault(`alice is ${alice}`)
  },
}

const peopleBehindOneAddress: AuditCase = {
  name: 'many users behind one address, each with a feed and a statement',
  async run({ guarded, size, tokenOf }) {
    const drops: (() => void)[] = []
    try {
      const people = await Promise.all(
        Array.from({ length: size.people }, async (_, index) => ({
          authorization: `Bearer ${await tokenOf(`user${index}`)}`,
        })),
      )
      const statuses: number[] = []
      for (const headers of people) {
        const { status } = await send(`${guarded.url}/v1/events`, { headers, headAlone: (drop) => drops.push(drop) })
        statuses.push(status)
      }
      expectAll('A feed is refused', statuses.filter((status) => status !== 200).map(String))
      const answers = await Promise.all(people.map((headers) => ask(guarded.url, 'SELECT 1', headers)))
      expectAll(
        'A statement is refused',
        answers.filter((answer) => answer !== '1'),
      )
    } finally {
      for (const drop of drops) drop()
    }
  },
}

const replayEvents: AuditCase = {
  name: 'many replays from one address under different user names',
  async run({ open }) {
    const filter = { where: 'x'.repeat(4000) }
    const body = JSON.stringify({
      mode: 'run',
      baseline: 'http://a/',
      against: 'http://b/',
      statements: 1,
      asRecorded: false,
      filter,
    })
    const post = async (number: number): Promise<number> => {
      const headers = { 'x-trino-user': `nobody${number}`, 'content-type': 'application/json' }
      return (await send(`${open.url}/v1/replay`, { method: 'POST', headers, body })).status
    }
    const statuses = await Promise.all(Array.from({ length: 80 }, (_, number) => post(number)))
    const taken = statuses.filter((status) => status === 200).length
    // The requests may have run in two minutes.
    if (taken > 60) throw new Fault(`${taken} replays of one address were recorded`)
    const headers = { 'x-trino-user': 'somebody', 'content-type': 'application/json' }
    const { status } = await send(`${open.url}/v1/replay`, { method: 'POST', headers, body, from: '127.0.7.1' })
    if (status !== 200) throw new Fault(`A replay from elsewhere is answered ${status}`)
  },
}

const feedReaders: AuditCase = {
  name: 'four addresses that open as many feeds as they may',
  async run({ open, size }) {
    const drops: (() => void)[] = []
    const feed = (from: string): Promise<Answer> =>
      send(`${open.url}/v1/events`, { from, headers: { 'x-trino-user': 'a' }, headAlone: (drop) => drops.push(drop) })
    try {
      for (const from of ['127.0.5.1', '127.0.5.2', '127.0.5.3', '127.0.5.4'])
        await Promise.all(Array.from({ length: size.feedsPerAddress }, () => feed(from)))
      const statuses: number[] = []
      for (let number = 1; number <= 10; number++) statuses.push((await feed(`127.0.99.${number}`)).status)
      expectAll('A newcomer is refused', statuses.filter((status) => status !== 200).map(String))
    } finally {
      for (const drop of drops) drop()
    }
  },
}

/** Runs statements of one user over `system.runtime` until `meanwhile` has resolved. */
async function underFlood(
  server: AuditServer,
  { readers, slowBy }: AuditSize,
  headers: Readonly<Record<string, string>>,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const sql =
    slowBy === 'lock'
      ? 'SELECT count(*) FROM system.runtime.tasks'
      : 'SELECT max(length(query)) FROM system.runtime.queries'
  const texts = slowBy === 'lock' ? { texts: 1, textLength: 10 } : slowBy
  const padding = 'x'.repeat(texts.textLength)
  for (let number = 0; number < texts.texts; number++)
    await ask(server.url, `SELECT ${number} /* ${padding} */`, headers)
  const lock = slowBy === 'lock' ? await lockTasks(server) : undefined
  let over = false
  const endings: string[] = []
  const flood = Array.from({ length: readers }, async () => {
    while (!over) endings.push(await ask(server.url, sql, headers))
  })
  try {
    await lock?.readersWait()
    await meanwhile()
  } finally {
    over = true
    await lock?.release()
    await Promise.all(flood)
  }
  expectAll(
    'A statement is told what is untrue',
    endings.filter((end) => end === 'REMOTE_HOST_GONE'),
  )
}

/** Locks the table of tasks against all readers. */
async function lockTasks(
  server: AuditServer,
): Promise<{ readonly readersWait: () => Promise<void>; readonly release: () => Promise<void> }> {
  const [holder, watcher] = [await server.connect(), await server.connect()]
  await holder.query(`begin; lock table ${READ_MODEL_SCHEMA}.tasks in access exclusive mode`)
  const waiting = async (): Promise<number> => {
    const { rows } = await watcher.query<{ waiting: number }>(
      `select count(*)::int as waiting from pg_locks where not granted and relation = '${READ_MODEL_SCHEMA}.tasks'::regclass`,
    )
    return rows[0]!.waiting
  }
  return {
    /** Resolves when the number of waiting readers does not grow any more. */
    async readersWait() {
      for (let [before, same] = [0, 0]; same < 10;) {
        await sleep(50)
        const now = await waiting()
        // One of the waiting sessions is the projection.
        same = now > 1 && now === before ? same + 1 : 0
        before = now
      }
    },
    async release() {
      await holder.end()
      await watcher.end()
    },
  }
}

const logOutUnderFlood: AuditCase = {
  name: 'a flood of reads of system.runtime during the log-outs of another user',
  async run({ guarded, size }) {
    const form = { origin: guarded.url, 'content-type': 'application/x-www-form-urlencoded' }
    const cookies: string[] = []
    for (let number = 0; number < 4; number++) {
      const body = new URLSearchParams({ user: 'alice', password: PASSWORD, to: '/ui' }).toString()
      const { status, headers } = await send(`${guarded.url}/ui/log-in`, { method: 'POST', headers: form, body })
      const cookie = headers['set-cookie']?.[0]?.split(';')[0]
      if (status !== 200 || cookie === undefined) throw new Fault(`A log-in is answered ${status}`)
      cookies.push(cookie)
    }
    await underFlood(guarded, size, basic('bob'), async () => {
      const statuses: number[] = []
      for (const cookie of cookies)
        statuses.push(
          (await send(`${guarded.url}/ui/log-out`, { method: 'POST', headers: { ...form, cookie } })).status,
        )
      expectAll('A log-out is refused', statuses.filter((status) => status !== 200).map(String))
    })
  },
}

const readsUnderFlood: AuditCase = {
  name: 'a flood of reads of system.runtime during the reads of another address',
  async run({ open, size }) {
    await underFlood(open, size, { 'x-trino-user': 'flood' }, async () => {
      const victim = { headers: { 'x-trino-user': 'victim' }, from: '127.0.0.9' }
      for (let number = 0; number < 4; number++) {
        const { status } = await send(`${open.url}/v1/query?limit=5&user=victim`, victim)
        if (status !== 200) throw new Fault(`The list of queries is answered ${status}`)
      }
    })
  },
}

const planningBombsHurtNoUser: AuditCase = {
  name: 'short statements with very expensive plans, during statements of another user',
  async run({ open, size }) {
    const bomber = { 'x-trino-user': 'bomber' }
    const wrong: string[] = []
    const epoch = await epochOf(open)
    let over = false
    const victim = (async () => {
      while (!over) {
        const answer = await ask(open.url, 'SELECT 1', { 'x-trino-user': 'victim' })
        if (answer !== '1') wrong.push(`SELECT 1 of another user is answered ${answer}`)
      }
    })()
    try {
      for (const { name, sql, setup = [], heavy = false } of planningBombs) {
        if (heavy && !size.heavyBombs) continue
        for (const statement of setup) await ask(open.url, statement, bomber)
        const answer = await ask(open.url, sql, bomber)
        if (/^HTTP|GENERIC_INTERNAL_ERROR|REMOTE_/.test(answer)) wrong.push(`${name}: ${answer}`)
      }
    } finally {
      over = true
      await victim
    }
    if ((await epochOf(open)) !== epoch) wrong.push('The coordinator was started again')
    expectAll('A statement hurts', wrong)
  },
}

/** The epoch in a new query id. It changes when another coordinator takes over. */
async function epochOf({ url }: AuditServer): Promise<string | undefined> {
  const { text } = await send(`${url}/v1/statement`, {
    method: 'POST',
    headers: { 'x-trino-user': 'a' },
    body: 'SELECT 1',
  })
  return /_([0-9]+)"/.exec(text)?.[1]
}

export const auditCases: readonly AuditCase[] = [
  oneAccountIsOneUser,
  noUserBecomesAlice,
  peopleBehindOneAddress,
  replayEvents,
  feedReaders,
  readsUnderFlood,
  logOutUnderFlood,
  planningBombsHurtNoUser,
]
