import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ActInfo, ActPreview } from '../../src/protocol/acts/act-schemas.ts'
import { writePasswordFile } from '../support/password-file.ts'
import { temporaryFolder, waitUntil } from '../support/quipu-process.ts'
import { rolesOf, startStandbyCluster, type ClusterNode, type StandbyCluster } from '../support/standby-cluster.ts'
import { raw, run, type RawAnswer, type StatementJson } from '../support/statement-client.ts'

/*
 * Acts of administrators with different rights, sent to a coordinator that follows, and by `quipu act`. root may see and
 * end all queries, `partly` those of team-…, and `watcher` may see those of team-… but not end them.
 */

const PROGRAM = new URL('../../dist/cli/quipu.js', import.meta.url).pathname
const PASSWORD = 'open sesame'
/** Stays open while nobody reads its rows, and gives more rows than a test reads. */
const ENDLESS = 'SELECT a.comment FROM tpch.tiny.lineitem a, tpch.tiny.lineitem b'
const MARK = 'mark-of-bob-5cf1'

const rules = {
  queries: [
    { user: 'root', allow: ['execute', 'view', 'kill'] },
    { user: 'partly', queryOwner: 'team-.*', allow: ['view', 'kill'] },
    { user: 'watcher', queryOwner: 'team-.*', allow: ['view'] },
    { allow: ['execute'] },
  ],
  system_information: [{ user: 'root|partly|watcher', allow: ['read', 'write'] }, { allow: ['read'] }],
}

const folder = temporaryFolder()
let cluster: StandbyCluster
let other: ClusterNode

beforeAll(async () => {
  const [passwords, rulesFile] = [join(folder.path, 'passwords'), join(folder.path, 'rules.json')]
  writePasswordFile(passwords, ['root', 'partly', 'watcher', 'team-ana', 'bob'], PASSWORD)
  writeFileSync(rulesFile, JSON.stringify(rules), { mode: 0o644 })
  cluster = await startStandbyCluster({
    QUIPU_AUTHENTICATION: 'password',
    QUIPU_PASSWORD_FILE: passwords,
    QUIPU_ACCESS_RULES_FILE: rulesFile,
    QUIPU_FIRST_FOLLOW_MS: '30m',
    QUIPU_CLIENT_ABSENT_MS: '30m',
    // The engine of a query whose rows nobody reads stops at 1 MB and waits.
    QUIPU_PAGE_STORE_QUERY_BYTES: '1MB',
  })
  ;({ other } = await rolesOf(cluster))
}, 300_000)
afterAll(async () => {
  await cluster.stop()
  await folder.remove()
}, 240_000)

const as = (user: string): Record<string, string> => ({
  authorization: `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString('base64')}`,
})

/** Sends a request to the coordinator that follows. */
function ask(user: string, path: string, { method, body }: { method?: string; body?: unknown } = {}) {
  const headers = { ...as(user), 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  return raw(`${other.url}${path}`, { ...(method !== undefined && { method }), ...sent, headers })
}

async function answered<T>(answer: Promise<RawAnswer>): Promise<T> {
  const { status, text } = await answer
  expect(status, text).toBe(200)
  return JSON.parse(text) as T
}

type Asked = Readonly<Pick<ActInfo, 'act'> & { filter: Readonly<Record<string, unknown>> }>

const preview = (user: string, asked: Asked) => answered<ActPreview>(ask(user, '/v1/act/preview', { body: asked }))

async function begin(user: string, asked: Asked): Promise<ActInfo> {
  const { token } = await preview(user, asked)
  return answered<ActInfo>(ask(user, '/v1/act', { body: { ...asked, reason: 'a test', token } }))
}

const actOf = (user: string, { actId }: ActInfo) => answered<ActInfo>(ask(user, `/v1/act/${actId}`))

async function ended(user: string, begun: ActInfo): Promise<ActInfo> {
  let info = begun
  await waitUntil(`act ${begun.actId} has ended`, async () => (info = await actOf(user, begun)).state === 'ENDED')
  return info
}

/** Posts a query that stays open until it is killed. */
async function openQuery(user: string, sql = ENDLESS): Promise<StatementJson> {
  const answer = await raw(`${other.url}/v1/statement`, { body: sql, headers: as(user) })
  expect(answer.status, answer.text).toBe(200)
  return answer.json
}

async function stateOf({ id }: StatementJson): Promise<string> {
  return (await answered<{ state: string }>(ask('root', `/v1/query/${id}`))).state
}

function running(user: string): Promise<readonly object[]> {
  return answered(ask('root', `/v1/query?user=${user}&state=RUNNING`))
}

/** Runs `quipu act` against the coordinator that follows. */
function quipuAct(user: string, ...args: readonly string[]) {
  const env = { PATH: process.env['PATH'], QUIPU_PASSWORD: PASSWORD, QUIPU_SERVER: other.url }
  return new Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>((resolve) => {
    execFile(process.execPath, [PROGRAM, 'act', ...args, '--login', user], { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

describe('An administrator with rights to the queries of some users', { timeout: 240_000 }, () => {
  it('previews, counts and kills only these queries, through a coordinator that follows', async () => {
    const team = [await openQuery('team-ana'), await openQuery('team-ana')]
    const foreign = await openQuery('bob', `${ENDLESS} WHERE '${MARK}' <> a.comment`)
    const ids = team.map(({ id }) => id)
    const seen = await preview('partly', { act: 'kill', filter: {} })
    expect(seen).toMatchObject({ matched: 2, denied: 0, users: [{ user: 'team-ana', queries: 2 }] })
    expect(seen.queries.map(({ queryId }) => queryId).toSorted()).toEqual(ids.toSorted())
    expect(JSON.stringify(seen)).not.toMatch(new RegExp(`${foreign.id}|bob|${MARK}`))
    for (const filter of [{ queries: [foreign.id] }, { user: 'bob' }, { q: MARK }, { source: '' }])
      for (const act of ['kill', 'hold', 'rerun', 'forget'] as const)
        expect(await preview('partly', { act, filter })).toMatchObject({
          matched: 0,
          denied: 0,
          users: [],
          queries: [],
        })
    expect(await preview('watcher', { act: 'kill', filter: {} })).toMatchObject({ matched: 0, denied: 2, queries: [] })
    expect((await ask('team-ana', '/v1/act/preview', { body: { act: 'kill', filter: {} } })).status).toBe(403)

    const filter = { queries: [foreign.id, ...ids] }
    const act = await ended('partly', await begin('partly', { act: 'kill', filter }))
    expect(act).toMatchObject({
      user: 'partly',
      matched: 2,
      done: 2,
      outcomes: { done: 2 },
      filter: { queries: '3 ids' },
    })
    // This coordinator reads the log a moment after the writer wrote it.
    for (const query of team) await waitUntil(`${query.id} has failed`, async () => (await stateOf(query)) === 'FAILED')
    expect(['PLANNING', 'STARTING', 'RUNNING']).toContain(await stateOf(foreign))
    let events = ''
    await waitUntil('the history has the event of the act', async () => {
      const { rows } = await run(other.url, eventsOf(act), as('root'))
      return (events = JSON.stringify(rows)).includes(ids[0]!)
    })
    expect(events).not.toContain(foreign.id)
    await ended('root', await begin('root', { act: 'kill', filter: { user: 'bob' } }))
  })

  it('reads no ids of other queries in the acts of other administrators, and may not stop these acts', async () => {
    const secret = await run(other.url, `SELECT 'x' AS password WHERE 'password=hunter2' = '${MARK}'`, as('bob'))
    const act = await ended('root', await begin('root', { act: 'rerun', filter: { queries: [secret.id] } }))
    expect(act.problems).toMatchObject([{ queryId: secret.id, outcome: 'refused' }])
    expect(await actOf('partly', act)).toEqual({ ...act, problems: [] })
    const listed = await answered<ActInfo[]>(ask('partly', '/v1/act'))
    expect(listed.map(({ actId }) => actId)).toContain(act.actId)
    expect(JSON.stringify(listed)).not.toContain(secret.id)
    for (const table of ['acts', 'events', 'queries']) {
      const { rows, error } = await run(other.url, `SELECT * FROM system.history.${table}`, as('partly'))
      expect(error).toBeUndefined()
      expect([table, JSON.stringify(rows).includes(secret.id)]).toEqual([table, false])
    }
    const refused = await ask('partly', `/v1/act/${act.actId}`, { method: 'DELETE' })
    expect([refused.status, refused.text]).toEqual([
      403,
      expect.stringContaining('Cannot stop the act of another user'),
    ])
    expect((await ask('root', `/v1/act/${act.actId}`, { method: 'DELETE' })).status).toBe(200)
    expect((await ask('root', `/v1/act/${'0'.repeat(32)}`, { method: 'DELETE' })).status).toBe(404)
  })
})

describe('quipu act', { timeout: 240_000 }, () => {
  it('shows a preview, does nothing without a confirmation, and prints the outcome', async () => {
    const query = await openQuery('bob')
    const kill = ['kill', '--user', 'bob', '--reason', 'The warehouse is full', '--query', query.id]
    const asked = await quipuAct('root', ...kill)
    expect(asked).toMatchObject({ code: 1, stderr: 'quipu: Nothing was done: without a terminal, give --yes\n' })
    expect(asked.stdout).toMatch(/^kill: one query: 1 \w+\nBy user: 1 bob\n\n/)
    expect(asked.stdout).toContain(query.id)
    const done = await quipuAct('root', ...kill, '--yes')
    expect(done).toMatchObject({ code: 0, stderr: '' })
    const [, actId] = /^Act ([0-9a-f]{32})$/m.exec(done.stdout)!
    expect(done.stdout).toMatch(/^kill: one query: 1 done\n$/m)
    expect(await quipuAct('root', 'show', actId!)).toEqual({ code: 0, stderr: '', stdout: 'kill: one query: 1 done\n' })
    expect((await quipuAct('root', 'list')).stdout).toMatch(
      new RegExp(`${actId!} .* root .* 1/1 .* The warehouse is full`),
    )
    const again = await quipuAct('root', ...kill, '--yes')
    expect(again).toEqual({ code: 1, stdout: 'kill: 0 queries\n', stderr: '' })
  })

  it('refuses wrong arguments with code 64, and prints why the server refuses an act', async () => {
    const wrong: readonly (readonly [args: readonly string[], message: string])[] = [
      [['kill', '--reason', 'r'], 'Give a filter, or --all for all queries'],
      [['kill', '--all'], 'Give a reason: --reason <text>'],
      [['kill', '--all', '--reason', '  '], 'Give a reason: --reason <text>'],
      [['end', '--all', '--reason', 'r'], "not 'end'"],
      [['kill', '--usr', 'bob', '--reason', 'r'], "Unknown option '--usr'"],
      [['stop'], 'Give the id of an act: quipu act stop <id>'],
    ]
    const results = await Promise.all(wrong.map(([args]) => quipuAct('root', ...args)))
    for (const [at, [, message]] of wrong.entries())
      expect(results[at]).toMatchObject({ code: 64, stdout: '', stderr: expect.stringContaining(message) as unknown })
    const [forbidden, unknown, bad] = await Promise.all([
      quipuAct('bob', 'kill', '--all', '--reason', 'r', '--yes'),
      quipuAct('root', 'show', '0'.repeat(32)),
      quipuAct('root', 'kill', '--state', 'DEAD', '--reason', 'r', '--yes'),
    ])
    const cannot = 'quipu: Access Denied: Cannot write system information (403)\n'
    expect(forbidden).toEqual({ code: 1, stdout: '', stderr: cannot })
    expect(unknown).toEqual({ code: 1, stdout: '', stderr: 'quipu: There is no such act (404)\n' })
    expect(bad).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/state.*\(400\)\n$/s) as unknown })
  })

  it('stops an act: its running reruns are canceled, and the other queries stay as they are', async () => {
    const posted = await Promise.all(Array.from({ length: 12 }, () => openQuery('team-ana')))
    const filter = { queries: posted.map(({ id }) => id) }
    await ended('root', await begin('root', { act: 'kill', filter }))
    const { actId } = await begin('root', { act: 'rerun', filter })
    await waitUntil('a statement runs again', async () => (await running('team-ana')).length > 0)
    const { code, stdout, stderr } = await quipuAct('root', 'stop', actId)
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(/^rerun: 12 queries: /)
    expect(stdout).toContain('unchanged: The act was stopped before this query')
    const act = await answered<ActInfo>(ask('root', `/v1/act/${actId}`))
    expect(act).toMatchObject({ state: 'ENDED', done: 12 })
    expect((act.outcomes.failed ?? 0) + (act.outcomes.unchanged ?? 0)).toBe(12)
    await waitUntil('no statement runs', async () => (await running('team-ana')).length === 0)
    const expected = JSON.stringify([['USER_CANCELED', act.outcomes.failed]])
    await waitUntil('the history has the end of each rerun', async () => {
      const { rows } = await run(other.url, RERUN_ERRORS, as('root'))
      return JSON.stringify(rows) === expected
    })
  })
})

const eventsOf = ({ actId }: ActInfo) =>
  `SELECT data FROM system.history.events WHERE stream = 'system' AND data LIKE '%${actId}%'`

const RERUN_ERRORS = `SELECT error_name, count(*) FROM system.history.queries WHERE rerun_of IS NOT NULL GROUP BY error_name`
