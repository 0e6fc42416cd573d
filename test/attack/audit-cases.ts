import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { request, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { startLenientDirectory } from '../support/lenient-directory.ts'
import { spawnQuipu, temporaryFolder } from '../support/quipu-process.ts'
import { Fault } from './attack-case.ts'

/** Two servers that audits attacked: one that knows nobody, and one of a directory and tokens. */
export interface AuditBed {
  readonly open: string
  readonly guarded: string
  /** A token that names this user. */
  tokenOf(name: string): Promise<string>
  stop(): Promise<void>
}

/** An attack that once succeeded. It throws a `Fault` where it still does. */
export interface AuditCase {
  readonly name: string
  run(bed: AuditBed): Promise<void>
}

const PEOPLE = 'ou=people,dc=example,dc=com'
const PASSWORD = 'a password that alice has'

export async function startAuditBed(): Promise<AuditBed> {
  const folder = temporaryFolder()
  const directory = await startLenientDirectory({ [`uid=alice,${PEOPLE}`]: PASSWORD, [`uid=bob,${PEOPLE}`]: PASSWORD })
  const secret = randomBytes(32)
  writeFileSync(join(folder.path, 'token-key'), secret.toString('base64'))
  const asRoot = process.getuid?.() === 0 ? ['--run-as', 'root'] : []
  const start = (name: string, env: Readonly<Record<string, string>>) =>
    spawnQuipu(['start', '--port', '0', '--workers', '0', '--data-dir', join(folder.path, name), ...asRoot], {
      env: { QUIPU_LOG_LEVEL: 'warn', ...env },
    })
  const servers = [
    start('open', {}),
    start('guarded', {
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
    return {
      open: open!,
      guarded: guarded!,
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
  /** Of this machine, to come from. */
  readonly from?: string
  /** Answers with the head, and leaves the rest open. */
  readonly headAlone?: (drop: () => void) => void
}

function send(url: string, { method = 'GET', headers = {}, body, from, headAlone }: Sent = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const local = from === undefined ? {} : { localAddress: from }
    const sent = request(url, { method, headers, agent: false, ...local }, (response) => {
      const { statusCode: status = 0, headers: told } = response
      if (headAlone) {
        headAlone(() => sent.destroy())
        response.on('error', () => {}).resume()
        return resolve({ status, headers: told, text: '' })
      }
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('error', reject).on('end', () => resolve({ status, headers: told, text }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

interface Told {
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
    const told = JSON.parse(answer.text) as Told
    value ??= told.data?.[0]?.[0]
    if (told.error) return told.error.errorName
    if (told.nextUri === undefined) return String(value)
    answer = await send(told.nextUri, { headers })
  }
}

const basic = (user: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString('base64')}`,
})
const WHO = 'SELECT current_user'

function expectAll(what: string, wrong: readonly string[]): void {
  if (wrong.length > 0) throw new Fault(`${what}: ${wrong.slice(0, 5).join(', ')}`)
}

/** Names that a directory takes for alice, as it compares names (RFC 4518). */
const spellings = ['ALICE', 'al\u00adice', '\uff41lice', 'alice\u200b', 'alice\u00a0', '\ufeffalice']

const oneAccountIsOneUser: AuditCase = {
  name: 'an account of a directory under other spellings',
  async run({ guarded }) {
    const found: string[] = [await ask(guarded, WHO, basic('alice'))]
    for (const name of spellings) found.push(await ask(guarded, WHO, basic(name)))
    expectAll(
      'One account is another user',
      found.filter((user) => user !== 'alice' && user !== 'HTTP 401'),
    )
    if (found[0] !== 'alice') throw new Fault(`alice is ${found[0]}`)
  },
}

const nobodyBecomesAlice: AuditCase = {
  name: 'white space around the name of a token',
  async run({ guarded, tokenOf }) {
    const names = ['\u00a0alice', '\ufeffalice', 'alice\u2003', 'alice\u3000', ' alice', 'al\u00adice', '\uff41lice']
    const found: string[] = []
    for (const name of names) {
      const user = await ask(guarded, WHO, { authorization: `Bearer ${await tokenOf(name)}` })
      if (user !== 'HTTP 401') found.push(`${JSON.stringify(name)} is ${user}`)
    }
    expectAll('Another name is let in', found)
    const alice = await ask(guarded, WHO, { authorization: `Bearer ${await tokenOf('alice')}` })
    if (alice !== 'alice') throw new Fault(`alice is ${alice}`)
  },
}

const peopleBehindOneAddress: AuditCase = {
  name: '60 people behind one address, each with a feed and a statement',
  async run({ guarded, tokenOf }) {
    const drops: (() => void)[] = []
    try {
      const people = await Promise.all(
        Array.from({ length: 60 }, async (_, index) => ({ authorization: `Bearer ${await tokenOf(`user${index}`)}` })),
      )
      const statuses: number[] = []
      for (const headers of people) {
        const { status } = await send(`${guarded}/v1/events`, { headers, headAlone: (drop) => drops.push(drop) })
        statuses.push(status)
      }
      expectAll('A feed is refused', statuses.filter((status) => status !== 200).map(String))
      const answers = await Promise.all(people.map((headers) => ask(guarded, 'SELECT 1', headers)))
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
  name: 'replays under ever new names',
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
    let taken = 0
    for (let number = 0; number < 80; number++) {
      const headers = { 'x-trino-user': `nobody${number}`, 'content-type': 'application/json' }
      if ((await send(`${open}/v1/replay`, { method: 'POST', headers, body })).status === 200) taken++
    }
    // A minute may have ended meanwhile.
    if (taken > 60) throw new Fault(`${taken} replays of one address were recorded`)
    const headers = { 'x-trino-user': 'somebody', 'content-type': 'application/json' }
    const { status } = await send(`${open}/v1/replay`, { method: 'POST', headers, body, from: '127.0.7.1' })
    if (status !== 200) throw new Fault(`A replay from elsewhere is answered ${status}`)
  },
}

const feedReaders: AuditCase = {
  name: 'four addresses that take all readers of the feed',
  async run({ open }) {
    const drops: (() => void)[] = []
    const feed = (from: string): Promise<Answer> =>
      send(`${open}/v1/events`, { from, headers: { 'x-trino-user': 'a' }, headAlone: (drop) => drops.push(drop) })
    try {
      for (const from of ['127.0.5.1', '127.0.5.2', '127.0.5.3', '127.0.5.4'])
        for (let number = 0; number < 32; number++) await feed(from)
      const statuses: number[] = []
      for (let number = 1; number <= 10; number++) statuses.push((await feed(`127.0.99.${number}`)).status)
      expectAll('A newcomer is refused', statuses.filter((status) => status !== 200).map(String))
    } finally {
      for (const drop of drops) drop()
    }
  },
}

/** Statements of one user over `system.runtime`, until `meanwhile` is done. */
async function underFlood(
  base: string,
  headers: Readonly<Record<string, string>>,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const padding = 'x'.repeat(900_000)
  for (let number = 0; number < 10; number++) await ask(base, `SELECT ${number} /* ${padding} */`, headers)
  let over = false
  const ends: string[] = []
  const flood = Array.from({ length: 20 }, async () => {
    while (!over) ends.push(await ask(base, 'SELECT max(length(query)) FROM system.runtime.queries', headers))
  })
  try {
    await meanwhile()
  } finally {
    over = true
    await Promise.all(flood)
  }
  expectAll(
    'A statement is told what is untrue',
    ends.filter((end) => end === 'REMOTE_HOST_GONE'),
  )
}

const logOutUnderFlood: AuditCase = {
  name: 'log-outs while another user reads system.runtime',
  async run({ guarded }) {
    const form = { origin: guarded, 'content-type': 'application/x-www-form-urlencoded' }
    const cookies: string[] = []
    for (let number = 0; number < 4; number++) {
      const body = new URLSearchParams({ user: 'alice', password: PASSWORD, to: '/ui' }).toString()
      const { status, headers } = await send(`${guarded}/ui/log-in`, { method: 'POST', headers: form, body })
      const cookie = headers['set-cookie']?.[0]?.split(';')[0]
      if (status !== 200 || cookie === undefined) throw new Fault(`A log-in is answered ${status}`)
      cookies.push(cookie)
    }
    await underFlood(guarded, basic('bob'), async () => {
      const statuses: number[] = []
      for (const cookie of cookies)
        statuses.push((await send(`${guarded}/ui/log-out`, { method: 'POST', headers: { ...form, cookie } })).status)
      expectAll('A log-out is refused', statuses.filter((status) => status !== 200).map(String))
    })
  },
}

const readsUnderFlood: AuditCase = {
  name: 'reads of others while one address reads system.runtime',
  async run({ open }) {
    await underFlood(open, { 'x-trino-user': 'flood' }, async () => {
      const victim = { headers: { 'x-trino-user': 'victim' }, from: '127.0.0.9' }
      for (let number = 0; number < 4; number++) {
        const { status } = await send(`${open}/v1/query?limit=5&user=victim`, victim)
        if (status !== 200) throw new Fault(`The list of queries is answered ${status}`)
      }
    })
  },
}

export const auditCases: readonly AuditCase[] = [
  oneAccountIsOneUser,
  nobodyBecomesAlice,
  peopleBehindOneAddress,
  replayEvents,
  feedReaders,
  readsUnderFlood,
  logOutUnderFlood,
]
