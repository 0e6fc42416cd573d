import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { SystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import { createReplayRoutes } from '../../../src/protocol/replay/replay-routes.ts'
import type { ReplayBeginning } from '../../../src/protocol/replay/replay-report.ts'
import { limitOwners } from '../../../src/shared/limit-owner.ts'
import { serve, type HttpApp } from '../../support/http-app.ts'

let app: HttpApp
let nowMs = 0
let reported: { type: string; data: unknown }[] = []
let broken = false

const record: SystemJournal['record'] = async (type, data) => {
  if (broken) throw new Error('no log')
  reported.push({ type, data })
  return { partition: 0, offset: 0n, events: [] } as never
}

beforeAll(async () => {
  app = await serve(
    createReplayRoutes({
      journal: { record },
      key: randomBytes(32),
      clock: { monotonicMs: () => nowMs },
      ownerOf: limitOwners(false),
      identify: (request) => ({
        user: String(request.headers['x-user']),
        originalUser: 'root',
        groups: [],
        remoteAddress: '10.0.0.1',
      }),
      authorize: ({ user }) => user !== 'nobody',
    }),
  )
})
beforeEach(() => {
  reported = []
  broken = false
})
afterAll(() => app.close())

const beginning: ReplayBeginning = {
  mode: 'run',
  baseline: 'https://ann:secret@here.example:8443/x?token=secret',
  against: 'http://there.example',
  statements: 3,
  asRecorded: false,
  filter: { user: 'bob', sample: 0.5 },
}

async function ask(method: 'POST' | 'PUT', path: string, body: unknown, user = 'ann') {
  const response = await fetch(`${app.base}/v1/replay${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-user': user },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return { status: response.status, replayId: /"replayId":"(\w+)"/.exec(text)?.[1] ?? '', text }
}

it('the replay resource records beginning, progress and end of a replay, and only the origins of its addresses', async () => {
  const { status, replayId } = await ask('POST', '', beginning)
  expect(status).toBe(200)
  expect((await ask('PUT', `/${replayId}`, { verdicts: { SAME: 1 } })).status).toBe(204)
  nowMs += 500
  expect((await ask('PUT', `/${replayId}`, { verdicts: { SAME: 2 } })).status).toBe(204)
  const ended = await ask('PUT', `/${replayId}`, { verdicts: { SAME: 2, DIFFERENT: 1 }, outcome: 'completed' })
  expect(ended.status).toBe(204)
  expect(reported).toEqual([
    {
      type: 'ReplayStarted',
      data: {
        ...beginning,
        baseline: 'https://here.example:8443',
        replayId,
        by: 'ann',
        originalUser: 'root',
        remoteAddress: '10.0.0.1',
      },
    },
    { type: 'ReplayProgressed', data: { replayId, by: 'ann', verdicts: { SAME: 1 } } },
    {
      type: 'ReplayEnded',
      data: { replayId, by: 'ann', verdicts: { SAME: 2, DIFFERENT: 1 }, outcome: 'completed' },
    },
  ])
})

it('the replay resource answers 403 to users without rights, and 404 for the replay of another user', async () => {
  expect((await ask('POST', '', beginning, 'nobody')).status).toBe(403)
  const { replayId } = await ask('POST', '', beginning)
  for (const [path, user] of [
    [replayId, 'bob'],
    [`${replayId.slice(0, 31)}${replayId.endsWith('0') ? 1 : 0}`, 'ann'],
    [replayId.slice(1), 'ann'],
  ] as const)
    expect((await ask('PUT', `/${path}`, { verdicts: {} }, user)).status).toBe(404)
  expect(reported).toHaveLength(1)
})

it('a replay does not begin when its beginning cannot be recorded', async () => {
  broken = true
  expect(await ask('POST', '', beginning)).toMatchObject({ status: 500, replayId: '' })
})

it.each<[string, unknown]>([
  ['another address', { ...beginning, against: 'file:///etc/passwd' }],
  ['an unknown field', { ...beginning, extra: 1 }],
  ['half a character', { ...beginning, filter: { user: '\ud800' } }],
  ['U+0000', { ...beginning, filter: { where: 'a\0' } }],
  ['a long name', { ...beginning, filter: { source: 'x'.repeat(2000) } }],
])('POST /v1/replay answers 400 to %s', async (_, body) => {
  expect((await ask('POST', '', body)).status).toBe(400)
  expect(reported).toEqual([])
})

it('PUT /v1/replay/{id} answers 400 to malformed verdicts', async () => {
  const { replayId } = await ask('POST', '', beginning)
  for (const verdicts of [{ 'not a verdict': 1 }, { SAME: -1 }, { SAME: 0.5 }, 'SAME'])
    expect((await ask('PUT', `/${replayId}`, { verdicts })).status).toBe(400)
})

it('a replay ends once, and can be ended again only if the end could not be recorded', async () => {
  const { replayId } = await ask('POST', '', beginning)
  const end = () => ask('PUT', `/${replayId}`, { verdicts: {}, outcome: 'stopped' })
  broken = true
  expect((await end()).status).toBe(500)
  broken = false
  const answers = await Promise.all([end(), end(), end()])
  expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 409, 409])
  expect((await ask('PUT', `/${replayId}`, { verdicts: {} })).status).toBe(409)
  expect(reported.filter(({ type }) => type === 'ReplayEnded')).toHaveLength(1)
})

it('the record of a replay holds only the beginning of a long condition', async () => {
  nowMs += 60_000
  expect((await ask('POST', '', { ...beginning, filter: { where: 'x'.repeat(4000) } })).status).toBe(200)
  const [{ data }] = reported as unknown as [{ data: { filter: { where: string } } }]
  expect(data.filter.where).toBe(`${'x'.repeat(511)}…`)
})

it('the replay resource limits new replays and progress records for each minute, over all user names', async () => {
  nowMs += 60_000
  const begun = await Promise.all(Array.from({ length: 40 }, (_, i) => ask('POST', '', beginning, `user ${i % 3}`)))
  expect(begun.filter(({ status }) => status === 200)).toHaveLength(30)
  expect(begun.filter(({ status }) => status === 429)).toHaveLength(10)
  const first = begun.findIndex(({ status }) => status === 200)
  const report = (more: object) =>
    ask('PUT', `/${begun[first]!.replayId}`, { verdicts: {}, ...more }, `user ${first % 3}`)
  for (let i = 0; i < 20; i++) {
    nowMs += 2000
    expect((await report({})).status).toBe(204)
  }
  expect(reported).toHaveLength(50)
  nowMs += 60_000
  expect((await report({ outcome: 'completed' })).status).toBe(204)
  expect((await ask('POST', '', beginning)).status).toBe(200)
})
