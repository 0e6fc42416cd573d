import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ActInfo, ActPreview } from '../../src/protocol/acts/act-schemas.ts'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { FULL_TESTS } from '../support/full-tests.ts'
import { endOf, patient, startKillableServer, type KillableServer } from '../support/killable-server.ts'
import { waitUntil } from '../support/quipu-process.ts'
import { post, raw, run, trinoHeaders, type RawAnswer, type StatementJson } from '../support/statement-client.ts'

/* A coordinator that runs one query at a time: acts on the queries that wait, and a kill of the coordinator in an act. */

const SECRET = 'a secret for the tests of acts'
const KEY = { authorization: `Bearer ${internalBearer(SECRET)}` }
const MANY = FULL_TESTS ? 2000 : 200

let server: KillableServer
beforeAll(async () => {
  server = await startKillableServer({
    QUIPU_SHARED_SECRET: SECRET,
    QUIPU_RUNNING_QUERIES: '1',
    QUIPU_WORKER_FAILED_MS: '10m',
    QUIPU_WORKER_WAIT_MS: '10m',
    QUIPU_FIRST_FOLLOW_MS: '20m',
    QUIPU_CLIENT_ABSENT_MS: '20m',
  })
}, 240_000)
afterAll(() => server.close())
// After a failure the worker may still be stopped, and the next test would wait for it.
afterEach(() => server.signalWorker('SIGCONT'))

type Kind = ActInfo['act']
type Filter = Readonly<Record<string, string | readonly string[]>>

function ask(path: string, body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<RawAnswer> {
  const sent = { ...trinoHeaders, 'x-trino-user': 'root', 'content-type': 'application/json', ...headers }
  return raw(`${server.url}${path}`, { method: 'POST', body: JSON.stringify(body), headers: sent })
}

async function preview(act: Kind, filter: Filter, headers = {}): Promise<ActPreview> {
  const { status, text } = await ask('/v1/act/preview', { act, filter }, headers)
  expect(status, text).toBe(200)
  return JSON.parse(text) as ActPreview
}

async function begin(act: Kind, filter: Filter, { token }: ActPreview, headers = {}): Promise<ActInfo> {
  const { status, text } = await ask('/v1/act', { act, filter, reason: `${act} them`, token }, headers)
  expect(status, text).toBe(200)
  return JSON.parse(text) as ActInfo
}

async function ended({ actId }: ActInfo): Promise<ActInfo> {
  let info: ActInfo | undefined
  await waitUntil(`act ${actId} has ended`, async () => {
    info = JSON.parse((await patient(`${server.url}/v1/act/${actId}`)).text) as ActInfo
    return info.state === 'ENDED'
  })
  return info!
}

async function carryOut(act: Kind, filter: Filter, headers = {}): Promise<ActInfo> {
  return ended(await begin(act, filter, await preview(act, filter, headers), headers))
}

function as(user: string): Record<string, string> {
  return { ...trinoHeaders, 'x-trino-user': user }
}

/** Starts a query that runs as long as the worker is stopped, and takes the only slot. */
async function takeSlot(): Promise<RawAnswer> {
  server.signalWorker('SIGSTOP')
  const taken = await post(server.url, 'SELECT count(*) FROM nation')
  await waitUntil('it has its slot', async () => (await countOf(taken.json, 'task.created')) === 1)
  return taken
}

async function freeSlot(taken: RawAnswer): Promise<void> {
  server.signalWorker('SIGCONT')
  await endOf(taken)
}

/** Posts statements of a user, which all wait. */
async function postWaiting(user: string, count: number, sql = 'SELECT 1 FROM nation'): Promise<readonly RawAnswer[]> {
  const posted: RawAnswer[] = []
  for (let at = 0; at < count; at += 20) {
    const some = Array.from({ length: Math.min(20, count - at) }, () => patientPost(sql, user))
    posted.push(...(await Promise.all(some)))
  }
  await waitUntil(`the queries of ${user} wait`, async () => {
    const { text } = await raw(`${server.url}/v1/query/totals?user=${user}&state=QUEUED`)
    return (JSON.parse(text) as { queries: number }).queries === count
  })
  return posted
}

function patientPost(sql: string, user: string): Promise<RawAnswer> {
  return patient(`${server.url}/v1/statement`, { method: 'POST', body: sql, headers: as(user) })
}

interface QueryEvent {
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

async function eventsOf({ id }: StatementJson): Promise<readonly QueryEvent[]> {
  const answer = await patient(`${server.url}/v1/query/${id}/events?limit=1000`)
  return answer.json as unknown as readonly QueryEvent[]
}

async function countOf(query: StatementJson, type: string): Promise<number> {
  return (await eventsOf(query)).filter((event) => event.type.startsWith(`quipu.${type}.`)).length
}

async function infoOf({ id }: StatementJson): Promise<Readonly<Record<string, unknown>>> {
  return JSON.parse((await patient(`${server.url}/v1/query/${id}`)).text) as Readonly<Record<string, unknown>>
}

describe('Acts on many queries', { timeout: 300_000 }, () => {
  it('kills the queries of a preview, with one event that names them all', async () => {
    const taken = await takeSlot()
    const victims = await postWaiting('victim', 5)
    const others = await postWaiting('other', 2)
    const filter = { user: 'victim' }
    const seen = await preview('kill', filter)
    expect(seen).toMatchObject({
      matched: 5,
      denied: 0,
      states: { QUEUED: 5 },
      users: [{ user: 'victim', queries: 5 }],
    })
    expect(seen.queries.map(({ queryId }) => queryId).toSorted()).toEqual(idsOf(victims).toSorted())
    const late = await patientPost('SELECT 2 FROM nation', 'victim')
    const act = await ended(await begin('kill', filter, seen))
    expect(act).toMatchObject({ act: 'kill', user: 'root', reason: 'kill them', matched: 5, done: 5, filter })
    expect(act.outcomes).toEqual({ done: 5 })
    for (const victim of victims) {
      const { error } = await endOf(victim)
      expect(error).toMatchObject({ errorName: 'ADMINISTRATIVELY_KILLED', message: 'Query killed. Message: kill them' })
      expect(await infoOf(victim.json)).toMatchObject({ endedBy: { user: 'root', how: 'killed', act: act.actId } })
    }
    await freeSlot(taken)
    for (const other of [...others, late]) expect((await endOf(other)).error).toBeUndefined()
    const [started] = await system('ActStarted', act.actId)
    expect(started).toMatchObject({ act: 'kill', by: 'root', reason: 'kill them', filter, matched: 5 })
    expect((started!['queries'] as string[]).toSorted()).toEqual(idsOf(victims).toSorted())
    const history = await run(
      server.url,
      `SELECT act, user, matched, done, outcomes FROM system.history.acts WHERE act_id = '${act.actId}'`,
    )
    expect(history.rows).toEqual([['kill', 'root', 5, 5, '{"done": 5}']])
  })

  it('holds waiting queries over a crash of the coordinator until they are released', async () => {
    const taken = await takeSlot()
    const held = await postWaiting('held', 3)
    const filter = { user: 'held' }
    const hold = await carryOut('hold', filter)
    expect(hold.outcomes).toEqual({ done: 3 })
    server.kill()
    await waitUntil('the running query is taken over', async () => (await countOf(taken.json, 'query.recovered')) === 1)
    await freeSlot(taken)
    // Queries that came later start before the held ones.
    expect((await endOf(await patientPost('SELECT count(*) FROM region', 'other'))).error).toBeUndefined()
    for (const { json } of held)
      expect(await infoOf(json)).toMatchObject({
        state: 'QUEUED',
        queuedReason: 'held by an administrator: hold them',
        held: { act: hold.actId, reason: 'hold them', by: { user: 'root' } },
      })
    // A second act does not hold these queries again.
    expect(await preview('hold', filter)).toMatchObject({ matched: 0 })
    expect((await carryOut('release', filter)).outcomes).toEqual({ done: 3 })
    for (const one of held) {
      expect(await endOf(one)).toMatchObject({ error: undefined, state: 'FINISHED' })
      expect([await countOf(one.json, 'query.held'), await countOf(one.json, 'query.released')]).toEqual([1, 1])
    }
  })

  it(`continues after a kill of the coordinator, and ends each of ${MANY} queries once`, async () => {
    const taken = await takeSlot()
    const victims = await postWaiting('many', MANY)
    const filter = { user: 'many', state: 'QUEUED' }
    const begun = await begin('kill', filter, await preview('kill', filter))
    await waitUntil('some are killed', async () => (await failedOf('many')) > 0)
    server.kill()
    const act = await ended(begun)
    expect(act).toMatchObject({ matched: MANY, done: MANY, outcomes: { done: MANY } })
    await freeSlot(taken)
    expect(await failedOf('many')).toBe(MANY)
    const failures = await Promise.all(victims.slice(0, 100).map(({ json }) => countOf(json, 'query.failed')))
    expect(new Set(failures)).toEqual(new Set([1]))
    expect(await system('ActStarted', act.actId)).toHaveLength(1)
    expect(await system('ActEnded', act.actId)).toHaveLength(1)
  })

  it('runs writes again once each, as their users, although the coordinator is killed meanwhile', async () => {
    await finished('CREATE TABLE memory.default.again (n bigint)', 'writer')
    const originals: string[] = []
    for (let n = 0; n < 6; n++) originals.push(await finished(`INSERT INTO memory.default.again VALUES ${n}`, 'writer'))
    const filter = { user: 'writer', queryType: 'INSERT' }
    const seen = await preview('rerun', filter)
    expect(seen.matched).toBe(6)
    await server.appends.block('WriteCommitted')
    const begun = await begin('rerun', filter, seen)
    await server.appends.reached()
    server.kill()
    await server.appends.letThrough()
    const act = await ended(begun)
    expect(act.outcomes, JSON.stringify(act.problems)).toEqual({ done: 6 })
    const { rows } = await run(server.url, 'SELECT n, count(*) FROM memory.default.again GROUP BY n ORDER BY n')
    expect(rows).toEqual([0, 1, 2, 3, 4, 5].map((n) => [n, 2]))
    const again = await run(
      server.url,
      `SELECT user, rerun_of FROM system.history.queries WHERE rerun_of IS NOT NULL ORDER BY rerun_of`,
    )
    expect(again.rows).toEqual(originals.toSorted().map((id) => ['writer', id]))
  })

  it('refuses to run again what had secrets or was part of a transaction', async () => {
    await endOf(await patientPost(`SELECT 'x' AS password WHERE 'password=hunter2' = 'y'`, 'careful'))
    const begun = await patient(`${server.url}/v1/statement`, {
      method: 'POST',
      body: 'SELECT 1',
      headers: { ...as('careful'), 'x-trino-transaction-id': '00000000-0000-0000-0000-000000000000' },
    })
    await endOf(begun)
    const act = await carryOut('rerun', { user: 'careful' })
    expect(act.problems.map(({ outcome }) => outcome)).toEqual(['refused', 'refused'])
  })

  it('records the name of the error of a statement that fails again, without its values', async () => {
    const first = await patientPost(`SELECT CAST('mozart' || 'word' AS INTEGER)`, 'again')
    expect((await endOf(first)).error).toBeDefined()
    const act = await carryOut('rerun', { user: 'again' }, KEY)
    expect(act.outcomes).toEqual({ failed: 1 })
    expect(act.problems).toMatchObject([
      { why: expect.stringMatching(/^Query \S+ failed: INVALID_CAST_ARGUMENT$/) as unknown },
    ])
    expect(JSON.stringify(act)).not.toContain('mozartword')
    const { text } = await raw(`${server.url}/metrics`)
    expect(text).toMatch(/^quipu_acts_total\{act="rerun"\} [1-9]/m)
    expect(text).toMatch(/^quipu_act_queries_total\{act="rerun",outcome="failed"\} [1-9]/m)
  })

  it('forgets ended queries, and without authentication only for a caller with the key', async () => {
    const forgotten = await finished(`SELECT 'to be forgotten'`, 'gone')
    const filter = { user: 'gone' }
    expect((await ask('/v1/act/preview', { act: 'forget', filter })).status).toBe(401)
    const act = await carryOut('forget', filter, KEY)
    expect(act.outcomes).toEqual({ done: 1 })
    expect((await raw(`${server.url}/v1/query/${forgotten}`)).status).toBe(410)
    expect(await system('DataForgotten', act.actId)).toMatchObject([{ stream: forgotten, by: 'root' }])
  })

  it('refuses filters, reasons and tokens that are not valid', async () => {
    const wrong: readonly unknown[] = [
      { usr: 'ana' },
      { user: 'a\0b' },
      { state: 'DEAD' },
      { table: 'no name' },
      { since: 'yesterday' },
      { user: ['ana'] },
      { queries: [] },
      { queries: ["' OR 1=1"] },
      null,
      'user=ana',
    ]
    for (const filter of wrong) {
      const { status, text } = await ask('/v1/act/preview', { act: 'kill', filter })
      expect([filter, status, text]).toEqual([filter, 400, expect.stringContaining('Error 400')])
    }
    const noMatch = { user: `x' OR '1'='1`, q: `%' OR true --` }
    const seen = await preview('kill', noMatch)
    expect(seen.matched).toBe(0)
    const act = { act: 'kill', filter: noMatch, reason: 'why', token: seen.token }
    for (const other of [
      { ...act, reason: '  ' },
      { ...act, reason: 'x'.repeat(1001) },
      { ...act, act: 'forget' as const },
      { ...act, filter: {} },
      { ...act, token: `${seen.token}x` },
      { ...act, token: 'e30.e30' },
      { ...act, more: 1 },
    ]) {
      const { status } = await ask('/v1/act', other, KEY)
      expect([other, status]).toEqual([other, 400])
    }
    const { status } = await ask('/v1/act', act, { 'x-trino-user': 'somebody-else' })
    expect(status).toBe(400)
    expect((await raw(`${server.url}/v1/act/0123`)).status).toBe(404)
  })
})

function idsOf(queries: readonly RawAnswer[]): string[] {
  return queries.map(({ json }) => json.id)
}

/** Runs a statement to its end. @returns its id */
async function finished(sql: string, user: string): Promise<string> {
  const first = await patientPost(sql, user)
  const { error } = await endOf(first)
  expect(error).toBeUndefined()
  return first.json.id
}

async function failedOf(user: string): Promise<number> {
  const { text } = await patient(`${server.url}/v1/query/totals?user=${user}&state=FAILED`)
  return (JSON.parse(text) as { queries: number }).queries
}

/** The data of the events of the system about an act. */
async function system(type: string, act: string): Promise<readonly Record<string, unknown>[]> {
  const { rows, error } = await run(
    server.url,
    `SELECT data FROM system.history.events WHERE stream = 'system' AND type LIKE '%${type}%' AND data LIKE '%${act}%'`,
  )
  expect(error).toBeUndefined()
  return rows.map(([data]) => JSON.parse(String(data)) as Record<string, unknown>)
}
