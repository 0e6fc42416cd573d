import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { CHROMIUM, hasChromium } from '../support/chromium.ts'
import { writePasswordFile } from '../support/password-file.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import {
  rolesOf,
  startStandbyCluster,
  writes,
  type ClusterNode,
  type StandbyCluster,
} from '../support/standby-cluster.ts'
import { raw, type RawAnswer, type StatementJson } from '../support/statement-client.ts'

const PROGRAM = new URL('../../dist/cli/quipu.js', import.meta.url).pathname
const PASSWORD = 'open sesame'
const browser = hasChromium('no query is killed in one')
const NO_MESSAGE = 'Query killed. No message provided.'
/** Stays open while nobody reads its rows: its engine waits when the worker holds 8 MB of them, and takes no CPU. */
const ENDLESS = 'select a.comment from tpch.tiny.lineitem a, tpch.tiny.lineitem b'
/** Computes longer than any test. */
const COMPUTING =
  'select count(*) from tpch.tiny.lineitem a, tpch.tiny.lineitem b, tpch.tiny.nation c where a.comment < b.comment || c.name'

const folder = temporaryFolder()
let cluster: StandbyCluster
let writer: ClusterNode
let other: ClusterNode

beforeAll(async () => {
  const passwords = join(folder.path, 'passwords')
  const rules = join(folder.path, 'rules.json')
  writePasswordFile(passwords, ['alice', 'bob', 'kim', 'root'], PASSWORD)
  const sections = {
    queries: [
      { user: 'kim', allow: ['execute', 'kill'] },
      { user: 'root', allow: ['execute', 'view', 'kill'] },
      { allow: ['execute'] },
    ],
    procedures: [{ user: 'alice|bob|kim', catalog: 'system', schema: 'runtime', privileges: ['EXECUTE'] }],
    impersonation: [{ original_user: 'root', new_user: 'kim' }],
  }
  writeFileSync(rules, JSON.stringify(sections), { mode: 0o644 })
  cluster = await startStandbyCluster({
    QUIPU_AUTHENTICATION: 'password',
    QUIPU_PASSWORD_FILE: passwords,
    QUIPU_ACCESS_RULES_FILE: rules,
    QUIPU_RUNNING_QUERIES: '2',
    QUIPU_PAGE_STORE_QUERY_BYTES: '8MB',
  })
  ;({ writer, other } = await rolesOf(cluster))
}, 300_000)
afterAll(async () => {
  await cluster.stop()
  await folder.remove()
}, 240_000)

/** Open queries of a failed test would keep other queries waiting. */
const posted: string[] = []
afterEach(async () => {
  for (const id of posted.splice(0)) await put(id, as('root')).catch(() => {})
})

const as = (user: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString('base64')}`,
})

async function post(sql: string, user = 'alice'): Promise<StatementJson> {
  const answer = await raw(`${writer.url}/v1/statement`, { body: sql, headers: as(user) })
  expect(answer.status).toBe(200)
  posted.push(answer.json.id)
  return answer.json
}

type Info = Readonly<Record<string, unknown>> & {
  readonly state: string
  readonly failureInfo?: { readonly message: string }
  readonly errorCode?: unknown
  readonly endedBy?: unknown
}

async function infoOf(id: string, user = 'alice'): Promise<Info> {
  return JSON.parse((await raw(`${writer.url}/v1/query/${id}`, { headers: as(user) })).text) as Info
}

/** Posts a query of alice, and waits until it is in one of these states. */
async function queryIn(states: readonly string[], sql = ENDLESS): Promise<StatementJson> {
  const query = await post(sql)
  await raw(query.nextUri!, { headers: as('alice') })
  await waitUntil(`${query.id} is ${states}`, async () => states.includes((await infoOf(query.id)).state))
  return query
}

/** The states in which a query runs on its worker. */
const ONGOING = ['STARTING', 'RUNNING']

function put(id: string, headers: Record<string, string>, { body = '', how = 'killed', at = writer } = {}) {
  return raw(`${at.url}/v1/query/${id}/${how}`, { method: 'PUT', body, headers })
}

/** Follows a query to its end. @returns the last answer */
async function endOf({ nextUri }: StatementJson): Promise<StatementJson> {
  for (let next = nextUri; ;) {
    const answer: RawAnswer = await raw(next!, { headers: as('alice') })
    expect(answer.status).toBe(200)
    if (answer.json.nextUri === undefined) return answer.json
    next = answer.json.nextUri
  }
}

async function lastEvent(id: string, user: string, at = writer): Promise<Record<string, unknown>> {
  let last: { type: string; data: Record<string, unknown> } | undefined
  await waitUntil('the read models have the end', async () => {
    const { status, text } = await raw(`${at.url}/v1/query/${id}/events?limit=1000`, { headers: as(user) })
    const events = status === 200 ? (JSON.parse(text) as { type: string; data: Record<string, unknown> }[]) : []
    last = events.find(({ type }) => type.startsWith('quipu.query.failed'))
    return last !== undefined
  })
  return last!.data
}

describe('A running query', () => {
  it('is killed by a user with the right, through the follower; only users that may see all learn the killer', async () => {
    const query = await queryIn(ONGOING, COMPUTING)
    expect((await put(query.id, {}, { at: other })).status).toBe(401)
    for (const at of [writer, other]) {
      expect((await put(query.id, as('bob'), { at })).status).toBe(403)
      expect((await put('20260101_000000_00000_00000', as('kim'), { at })).status).toBe(410)
      expect((await put(query.id, as('kim'), { at, body: 'x'.repeat(16 * 1024 + 1) })).status).toBe(413)
      const foreign = { ...as('kim'), origin: 'http://evil.example' }
      expect((await put(query.id, foreign, { at })).status).toBe(403)
    }
    expect(ONGOING).toContain((await infoOf(query.id)).state)
    const killed = await put(query.id, as('kim'), { at: other, body: 'too large “for now”' })
    expect([killed.status, killed.text]).toEqual([202, ''])
    const { error } = await endOf(query)
    expect(error).toMatchObject({
      message: 'Query killed. Message: too large “for now”',
      errorName: 'ADMINISTRATIVELY_KILLED',
      errorType: 'USER_ERROR',
    })
    for (const at of [writer, other]) expect((await put(query.id, as('kim'), { at })).status).toBe(409)
    for (const at of [writer, other]) {
      expect((await lastEvent(query.id, 'alice', at))['endedBy']).toBeUndefined()
      expect((await lastEvent(query.id, 'root', at))['endedBy']).toMatchObject({ user: 'kim', how: 'killed' })
    }
  })

  it('is killed only once by concurrent requests, also if its owner sends one of them', async () => {
    const query = await queryIn(ONGOING)
    const both = await Promise.all([
      put(query.id, as('kim'), { body: 'by kim' }),
      put(query.id, as('alice'), { body: 'by alice' }),
      put(query.id, as('root'), { body: 'by root', how: 'preempted', at: other }),
    ])
    expect(both.map(({ status }) => status).toSorted()).toEqual([202, 409, 409])
    const first = both.findIndex(({ status }) => status === 202)
    const killer = ['kim', 'alice', 'root'][first]!
    expect((await endOf(query)).error!.message).toContain(`Message: by ${killer}`)
    expect((await lastEvent(query.id, 'root'))['endedBy']).toMatchObject({ user: killer })
  })

  it('records both users if the killer acts as another user', async () => {
    const query = await queryIn(ONGOING)
    const asKim = { ...as('root'), 'x-trino-user': 'kim' }
    expect((await put(query.id, asKim, { how: 'preempted' })).status).toBe(202)
    expect((await endOf(query)).error).toMatchObject({
      message: 'Query preempted. No message provided.',
      errorName: 'ADMINISTRATIVELY_PREEMPTED',
      errorType: 'INSUFFICIENT_RESOURCES',
    })
    const endedBy = { user: 'kim', originalUser: 'root', how: 'preempted', remoteAddress: '127.0.0.1' }
    expect((await infoOf(query.id, 'root')).endedBy).toEqual(endedBy)
    expect((await infoOf(query.id)).endedBy).toBeUndefined()
  })
})

describe('A query in another state', () => {
  it('can be killed while it waits in the queue', async () => {
    const running = [await queryIn(ONGOING), await queryIn(ONGOING)]
    const queued = await queryIn(['QUEUED'])
    expect((await put(queued.id, as('kim'), { body: 'no place' })).status).toBe(202)
    expect((await endOf(queued)).error!.message).toBe('Query killed. Message: no place')
    for (const { id } of running) expect((await put(id, as('kim'))).status).toBe(202)
  })

  it('can be killed with its whole result ready, but not after it has ended', async () => {
    const query = await queryIn(['FINISHING'], 'select * from tpch.tiny.orders')
    expect((await put(query.id, as('kim'))).status).toBe(202)
    expect((await endOf(query)).error!.errorName).toBe('ADMINISTRATIVELY_KILLED')
    const ended = await post('select 1')
    await endOf(ended)
    expect((await put(ended.id, as('kim'))).status).toBe(409)
    expect((await put(ended.id, as('bob'))).status).toBe(403)
  })

  it('ends either killed or finished if the kill comes at its end, and all answers agree', async () => {
    for (let time = 0; time < 5; time++) {
      const query = await post('select count(*) from tpch.tiny.region')
      const [killed, end] = await Promise.all([put(query.id, as('kim')), endOf(query)])
      const { state, errorCode } = await infoOf(query.id)
      expect([202, 409]).toContain(killed.status)
      expect(state).toBe(killed.status === 202 ? 'FAILED' : 'FINISHED')
      expect(end.error?.errorName).toBe(killed.status === 202 ? 'ADMINISTRATIVELY_KILLED' : undefined)
      expect((errorCode as { name: string } | undefined)?.name).toBe(end.error?.errorName)
    }
  })
})

it.runIf(browser)(
  'the web UI kills a query, and shows the killer only to users that may see it',
  { timeout: 240_000 },
  async () => {
    const query = await queryIn(ONGOING)
    const opened = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })
    try {
      const at = async (user: string): Promise<Page> => {
        const context = await opened.newContext({ extraHTTPHeaders: as(user) })
        context.setDefaultTimeout(120_000)
        const page = await context.newPage()
        await page.goto(`${writer.url}/ui/query/${query.id}`)
        return page
      }
      const [root, alice] = [await at('root'), await at('alice')]
      const kill = root.getByRole('button', { name: 'Kill' })
      await kill.click()
      await root.keyboard.press('Escape')
      await root.getByRole('dialog').waitFor({ state: 'hidden' })
      await kill.click()
      const dialog = root.getByRole('dialog', { name: `Kill query ${query.id}` })
      await dialog.getByLabel('Reason').fill('seen <b>here</b>')
      await dialog.getByRole('button', { name: 'Kill' }).click()
      const said = 'ADMINISTRATIVELY_KILLEDQuery killed. Message: seen <b>here</b>'
      for (const [page, reported] of [
        [root, `${said}by root from 127.0.0.1`],
        [alice, said],
      ] as const)
        expect(await page.getByRole('alert').textContent({ timeout: 60_000 })).toBe(reported)
      expect(await kill.count()).toBe(0)
    } finally {
      await opened.close()
    }
  },
)

describe('CALL system.runtime.kill_query', () => {
  /** Runs a statement to its end. @param more further headers */
  async function call(sql: string, user = 'kim', more: Record<string, string> = {}): Promise<StatementJson> {
    const headers = { ...as(user), ...more }
    let answer = (await raw(`${writer.url}/v1/statement`, { body: sql, headers })).json
    while (answer.nextUri !== undefined) answer = (await raw(answer.nextUri, { headers })).json
    return answer
  }

  it.each<[string, (id: string) => [sql: string, more?: Record<string, string>], string]>([
    [
      'positional',
      (id) => [`CALL system.runtime.kill_query('${id}', 'by position')`],
      'Query killed. Message: by position',
    ],
    [
      'named',
      (id) => [`CALL system.runtime.kill_query(message => 'by ' || 'name', query_id => '${id}')`],
      'Query killed. Message: by name',
    ],
    ['the id alone', (id) => [`CALL runtime.kill_query('${id}')`, { 'x-trino-catalog': 'system' }], NO_MESSAGE],
    [
      'parameters',
      (id) => [
        `EXECUTE k USING '${id}', 'no reason'`,
        {
          'x-trino-prepared-statement': `k=${encodeURIComponent('CALL system.runtime.kill_query(?, nullif(?, NULL))')}`,
        },
      ],
      'Query killed. Message: no reason',
    ],
  ])('kills a query: arguments %s', async (_arguments, statement, message) => {
    const query = await queryIn(ONGOING)
    const [sql, more] = statement(query.id)
    const called = await call(sql, 'kim', more)
    expect(called).toMatchObject({ updateType: 'CALL', stats: { state: 'FINISHED' } })
    expect(called.error).toBeUndefined()
    expect((await endOf(query)).error).toMatchObject({ message, errorName: 'ADMINISTRATIVELY_KILLED' })
    expect((await lastEvent(query.id, 'root'))['endedBy']).toEqual({
      user: 'kim',
      remoteAddress: '127.0.0.1',
      how: 'kill_query',
      statement: called.id,
    })
  })

  it("returns Trino's error if the kill is refused, and EXPLAIN kills nothing", async () => {
    const query = await queryIn(ONGOING)
    const kill = (id: string) => `CALL system.runtime.kill_query('${id}')`
    expect((await call(`EXPLAIN ${kill(query.id)}`)).error).toBeUndefined()
    const none = '20260101_000000_00000_00000'
    for (const [sql, user, errorName, message] of [
      [
        kill(query.id),
        'root',
        'PERMISSION_DENIED',
        'Access Denied: Cannot execute procedure system.runtime.kill_query',
      ],
      [kill(query.id), 'bob', 'PERMISSION_DENIED', 'Access Denied: Cannot kill query'],
      [kill(none), 'bob', 'NOT_FOUND', `Target query not found: ${none}`],
      [kill('other'), 'kim', 'NOT_FOUND', 'Target query not found: other'],
      [kill('O'), 'kim', 'INVALID_PROCEDURE_ARGUMENT', 'Invalid id O'],
      ['CALL system.runtime.kill_query(NULL)', 'kim', 'INVALID_PROCEDURE_ARGUMENT', 'query_id cannot be null'],
    ] as const)
      expect((await call(sql, user)).error).toMatchObject({ errorName, message })
    expect(ONGOING).toContain((await infoOf(query.id)).state)
    expect((await call(kill(query.id), 'alice')).error).toBeUndefined()
    const again = { errorName: 'NOT_SUPPORTED', message: `Target query is not running: ${query.id}` }
    expect((await call(kill(query.id), 'alice')).error).toMatchObject(again)
  })

  it('does nothing until the client follows the statement', async () => {
    const query = await queryIn(ONGOING)
    await post(`CALL system.runtime.kill_query('${query.id}')`, 'kim')
    expect(ONGOING).toContain((await infoOf(query.id)).state)
    expect((await put(query.id, as('kim'))).status).toBe(202)
  })
})

function quipu(args: readonly string[], user: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { PATH: process.env['PATH'], QUIPU_PASSWORD: PASSWORD, QUIPU_SERVER: other.url }
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...args, '--user', user], { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

it('quipu kill ends a query, and prints the reason if it did not', async () => {
  const { id, ...query } = await queryIn(ONGOING)
  const refused = await quipu(['kill', id], 'bob')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain(`user bob cannot kill query ${id} (403)`)
  const killed = await quipu(['kill', id, '--message', 'from the shell'], 'kim')
  expect(killed).toEqual({ code: 0, stdout: `Query ${id} was killed\n`, stderr: '' })
  expect((await endOf({ id, ...query })).error!.message).toBe('Query killed. Message: from the shell')
  const again = await quipu(['kill', id], 'kim')
  expect(again).toEqual({
    code: 1,
    stdout: '',
    stderr: `quipu: Query ${id} was not killed: The query has already ended (409)\n`,
  })
  expect((await quipu(['kill', 'nonsense'], 'kim')).code).toBe(64)
  expect((await quipu(['kill'], 'kim')).code).toBe(64)
})

it(
  'the killer of a query stays recorded after the coordinator that killed it is itself killed',
  { timeout: 240_000 },
  async () => {
    const query = await queryIn(ONGOING)
    expect((await put(query.id, as('kim'), { body: 'before the end' })).status).toBe(202)
    await writer.kill()
    await waitUntil('the other writes', () => writes(other), 120_000)
    const endedBy = { user: 'kim', how: 'killed', remoteAddress: '127.0.0.1' }
    expect((await lastEvent(query.id, 'root', other))['endedBy']).toEqual(endedBy)
    const { json } = await raw(query.nextUri!.replace(writer.url, other.url), { headers: as('alice') })
    expect(json.error!.message).toBe('Query killed. Message: before the end')
    expect((await put(query.id, as('kim'), { at: other })).status).toBe(409)
  },
)
