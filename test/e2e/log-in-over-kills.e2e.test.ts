import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writePasswordFile } from '../support/password-file.ts'
import { startIdentityProvider, throughProvider, type TestProvider } from '../support/identity-provider.ts'
import { createPlainBrowser } from '../support/plain-browser.ts'
import { createMigratedDatabase } from '../support/event-log/migrated-database.ts'
import { freePort, sharedPostgres } from '../support/postgres.ts'
import {
  killAll,
  processesOf,
  spawnQuipu,
  temporaryFolder,
  waitUntil,
  type QuipuProcess,
} from '../support/quipu-process.ts'
import { raw } from '../support/statement-client.ts'

/**
 * Two coordinators share a database. A log-in belongs to the host that its browser knows, whichever coordinator
 * answers.
 */
const folder = temporaryFolder()
const nodes: { readonly base: string; readonly data: string; process: QuipuProcess }[] = []
let database: Awaited<ReturnType<typeof createMigratedDatabase>>
let provider: TestProvider
const PASSWORD = 'open sesame'

beforeAll(async () => {
  const ports = [await freePort(), await freePort()]
  provider = await startIdentityProvider(ports.map((port) => `http://127.0.0.1:${port}`))
  database = await createMigratedDatabase()
  writePasswordFile(`${folder.path}/passwords`, ['bob', 'carol'], PASSWORD, 2_000)
  for (const [index, port] of ports.entries()) {
    const data = `${folder.path}/${index}`
    const process = spawnAt(data, port)
    nodes.push({ base: await process.url, data, process })
  }
}, 240_000)
afterAll(async () => {
  for (const { process } of nodes) process.signal('SIGTERM')
  await Promise.all(nodes.map(({ process }) => process.exit))
  await provider.stop()
  await folder.remove()
  await database.drop()
}, 240_000)

function spawnAt(data: string, port: number): QuipuProcess {
  return spawnQuipu(['coordinator', '--standby', '--port', String(port), '--data-dir', data], {
    env: {
      DATABASE_URL: database.url,
      QUIPU_SHARED_SECRET: 'a secret that all of them know',
      QUIPU_LOG_LEVEL: 'error',
      QUIPU_WRITER_SILENT_MS: '5s',
      QUIPU_AUTHENTICATION: 'password,oauth2',
      QUIPU_PASSWORD_FILE: `${folder.path}/passwords`,
      QUIPU_OAUTH2_ISSUER: provider.issuer,
      QUIPU_OAUTH2_CLIENT_ID: provider.clientId,
      QUIPU_OAUTH2_CLIENT_SECRET: provider.clientSecret,
    },
  })
}

/** Returns the indexes of the writer and of the follower. */
async function roles(): Promise<{ readonly writer: number; readonly other: number }> {
  const isWriter = async (node: number): Promise<boolean> =>
    (JSON.parse((await raw(`${nodes[node]!.base}/v1/info`)).text) as { writer?: boolean }).writer === true
  let first = false
  await waitUntil('one writes', async () => (first = await isWriter(0)) !== (await isWriter(1)))
  return first ? { writer: 0, other: 1 } : { writer: 1, other: 0 }
}

/** The same path at the other coordinator. */
const at = (node: number, address: string): string => {
  const { pathname, search } = new URL(address)
  return `${nodes[node]!.base}${pathname}${search}`
}

async function challengeAt(node: number): Promise<{ readonly initiate: string; readonly token: string }> {
  const { headers } = await raw(`${nodes[node]!.base}/v1/statement`, { body: 'select 1' })
  const [, initiate, token] = /x_redirect_server="([^"]+)", x_token_server="([^"]+)"/.exec(
    String(headers['www-authenticate']),
  )!
  return { initiate: initiate!, token: token! }
}

async function statusAt(node: number, headers: Readonly<Record<string, string>>): Promise<number> {
  return (await raw(`${nodes[node]!.base}/v1/query`, { headers })).status
}

it(
  'a log-in that one coordinator began continues at another one, and over a take-over',
  { timeout: 240_000 },
  async () => {
    const { writer, other } = await roles()
    const { initiate, token } = await challengeAt(other)
    const browser = createPlainBrowser()
    // The first coordinator gives the address; the user confirms at the other one.
    const there = await browser.submit(await browser.open(at(writer, initiate)))
    const pid = processesOf(nodes[writer]!.data).children[0]!
    killAll([pid])
    await waitUntil('another coordinator is there', () => processesOf(nodes[writer]!.data).children[0] !== pid)
    const back = await throughProvider(browser, there, 'alice', provider.issuer)
    expect(back).toMatchObject({ status: 200, text: expect.stringContaining('Logged in') as string })
    // The token is fetched where the log-in began, and both coordinators accept it.
    const { token: given } = JSON.parse((await raw(token)).text) as { token: string }
    for (const node of [0, 1]) expect(await statusAt(node, { authorization: `Bearer ${given}` })).toBe(200)
    expect(JSON.parse((await raw(at(writer, token))).text)).toHaveProperty('error')
  },
)

/**
 * Begins a poll of a program. The request before it on the same connection is answered, so the poll has reached the
 * server.
 */
async function heldPoll(token: string): Promise<{ readonly answer: Promise<string> }> {
  const { hostname, port, host, pathname } = new URL(token)
  const socket = connect({ host: hostname, port: Number(port) })
  const ask = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${more}\r\n`
  socket.write(ask('/v1/info') + ask(pathname, 'Connection: close\r\n'))
  let text = ''
  socket.setEncoding('utf8').on('data', (part: string) => (text += part))
  await once(socket, 'data')
  return { answer: once(socket, 'close').then(() => text.split('\r\n\r\n').at(-1)!) }
}

it('a drain does not wait for log-ins, and pending log-ins continue', { timeout: 240_000 }, async () => {
  for (const role of ['other', 'writer'] as const) {
    const node = (await roles())[role]
    const [leaving, staying] = [nodes[node]!, 1 - node]
    const { initiate, token } = await challengeAt(node)
    const browser = createPlainBrowser()
    // The browser has opened the page of the coordinator that drains.
    const there = await browser.submit(await browser.open(initiate))
    const held = await Promise.all(Array.from({ length: 20 }, () => heldPoll(token)))
    leaving.process.signal('SIGTERM')
    for (const { answer } of held) expect(await answer).toBe(JSON.stringify({ nextUri: token }))
    expect((await leaving.process.exit).code).toBe(0)
    leaving.process = spawnAt(leaving.data, Number(new URL(leaving.base).port))
    await leaving.process.url
    const shown = await throughProvider(browser, there, 'fay', provider.issuer)
    expect(shown).toMatchObject({ status: 200, text: expect.stringContaining('Logged in') as string })
    expect(JSON.parse((await raw(at(staying, token))).text)).toHaveProperty('token')
  }
})

it('the database holds no usable secret of a pending log-in', { timeout: 240_000 }, async () => {
  const { initiate } = await challengeAt(0)
  const browser = createPlainBrowser()
  await browser.submit(await browser.open(initiate))
  const asked = new URL(browser.visited.find((address) => address.startsWith(`${provider.issuer}/auth?`))!)
  const secrets = [asked.searchParams.get('state')!, asked.searchParams.get('nonce')!]
  const client = new pg.Client(database.url)
  await client.connect()
  const { rows } = await client.query<{ all_of_it: string }>(
    `select encode(id, 'escape') || encode(state, 'escape') || encode(browser, 'escape') || encode(sealed, 'escape') as all_of_it
    from quipu_log.log_ins where phase = 'asked'`,
  )
  await client.end()
  expect(rows).toHaveLength(1)
  for (const secret of [...secrets, '127.0.0.1']) expect(rows[0]!.all_of_it).not.toContain(secret)
})

it('every coordinator learns of a log-out', { timeout: 240_000 }, async () => {
  const browser = createPlainBrowser()
  const page = await browser.open(`${nodes[0]!.base}/ui/log-in`)
  await throughProvider(browser, await browser.submit(page, {}, '/ui/log-in/provider'), 'alice', provider.issuer)
  const { base } = nodes[0]!
  const cookie = browser.cookies(`127.0.0.1${new URL(base).port}`)
  for (const node of [0, 1]) expect(await statusAt(node, { cookie })).toBe(200)
  const out = await raw(`${base}/ui/log-out`, { method: 'POST', headers: { cookie, origin: base } })
  expect(out.status).toBe(200)
  expect(await statusAt(0, { cookie })).toBe(401)
  await waitUntil('the other knows', async () => (await statusAt(1, { cookie })) === 401)
})

/** The sums of the counts of one event type in the log, by user and method. */
async function recorded(type: 'LoggedIn' | 'AuthenticationFailed'): Promise<ReadonlyMap<string, number>> {
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    const { rows } = await client.query<{ data: string }>('select data from quipu_log.events order by position')
    const counts = new Map<string, number>()
    for (const { data } of rows) {
      const event = JSON.parse(data) as { type?: string; data?: string }
      expect(data).not.toContain(PASSWORD)
      if (event.type !== type) continue
      const { user, method, count } = JSON.parse(event.data!) as { user: string; method: string; count: number }
      counts.set(`${user} ${method}`, (counts.get(`${user} ${method}`) ?? 0) + count)
    }
    return counts
  } finally {
    await client.end()
  }
}

it(
  'log-ins and refusals at the follower reach the log, and guesses count at both coordinators',
  { timeout: 240_000 },
  async () => {
    const { writer, other } = await roles()
    const as = (node: number, user: string, password: string): Promise<number> =>
      statusAt(node, { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` })
    expect(await as(other, 'carol', PASSWORD)).toBe(200)
    // A password that was typed as a name must not appear anywhere.
    expect(await as(other, PASSWORD, 'x')).toBe(401)
    // Four guesses block no user by themselves. On a slow machine the guesses before them may have expired: then the
    // test repeats with another name.
    const blocked = async (user: string): Promise<boolean> => {
      await Promise.all(Array.from({ length: 5 }, (_, guess) => as(other, user, `guess ${guess}`)))
      for (let guess = 0; guess < 4; guess++) {
        await sleep(500)
        if ((await as(writer, user, `another ${guess}`)) === 429) return true
      }
      return false
    }
    const names = ['bob', 'guessed 1', 'guessed 2', 'guessed 3']
    const nextName = (): string => {
      const name = names.shift()
      if (name === undefined) throw new Error('The writer blocked none of four users')
      return name
    }
    await waitUntil('the writer blocks the user too', async () => blocked(nextName()))
    expect(await as(writer, 'carol', PASSWORD)).toBe(200)
    await waitUntil('the log has the log-in', async () => (await recorded('LoggedIn')).has('carol password'))
    await waitUntil('the log has one of the guesses', async () =>
      (await recorded('AuthenticationFailed')).has('bob password'),
    )
    expect([...(await recorded('AuthenticationFailed')).keys()]).toContainEqual(
      expect.stringMatching(/^unknown-[0-9a-f]{12} password$/),
    )
    const forged = await raw(`${nodes[writer]!.base}/v1/system/sightings`, { body: '{}' })
    expect(forged.status).toBe(401)
  },
)

it('log-ins get 503 while Postgres is away, and they continue afterwards', { timeout: 240_000 }, async () => {
  const { initiate, token } = await challengeAt(0)
  const browser = createPlainBrowser()
  const asked = await browser.open(initiate)
  const name = new URL(database.url).pathname.slice(1)
  const admin = new pg.Client((await sharedPostgres()).url())
  await admin.connect()
  try {
    await admin.query(`alter database ${admin.escapeIdentifier(name)} allow_connections false`)
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
    const polled = await raw(token)
    expect([polled.status, polled.headers['retry-after']]).toEqual([503, '1'])
    expect(await browser.submit(asked)).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
  } finally {
    await admin.query(`alter database ${admin.escapeIdentifier(name)} allow_connections true`)
    await admin.end()
  }
  let there = asked
  await waitUntil(
    'the browser is at the provider',
    async () => (there = await browser.submit(asked)).address.startsWith(provider.issuer),
    60_000,
  )
  const back = await throughProvider(browser, there, 'alice', provider.issuer)
  expect(back).toMatchObject({ status: 200, text: expect.stringContaining('Logged in') as string })
  expect(JSON.parse((await raw(token)).text)).toHaveProperty('token')
})

// This test is the last: after it this address cannot log in for ten minutes.
it('one address cannot take all places for pending log-ins', { timeout: 240_000 }, async () => {
  const { base } = nodes[0]!
  const begin = async (): Promise<number> => {
    const { initiate } = await challengeAt(0)
    const { status, headers } = await raw(initiate, { method: 'POST', headers: { origin: base } })
    if (status === 429) expect(headers['retry-after']).toBe('60')
    return status
  }
  expect(await begin()).toBe(200)
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    // There are 10,000 places. One address gets three for each place that stays free. All but ten of these are taken
    // already.
    await client.query(
      `insert into quipu_log.log_ins (id, state, browser, source, phase, sealed, expires_at)
       select decode(md5(n::text), 'hex'), decode(md5('state' || n), 'hex'), '', source, 'asked', '', now() + interval '1 hour'
       from (select source from quipu_log.log_ins order by expires_at desc limit 1) latest, generate_series(1, 7489) n`,
    )
    const statuses: number[] = []
    for (let batch = 0; batch < 3; batch++) statuses.push(...(await Promise.all(Array.from({ length: 10 }, begin))))
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    expect(statuses.slice(-10)).toEqual(Array.from({ length: 10 }, () => 429))
    const { rows } = await client.query<{ count: string }>('select count(*) from quipu_log.log_ins')
    // Requests that begin at the same moment do not see one another.
    expect(Number(rows[0]!.count)).toBeLessThanOrEqual(7_500 + 10)
  } finally {
    await client.query(`delete from quipu_log.log_ins where sealed = ''`)
    await client.end()
  }
})
