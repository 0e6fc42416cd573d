import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { recordDenials } from '../../../src/coordinator/system/recorded-rights.ts'
import {
  createRefusalLog,
  type SightingJournal,
  type WrittenRefusals,
} from '../../../src/coordinator/system/refusal-log.ts'
import { authorizeBy, type Identity } from '../../../src/security/authorization.ts'
import type { QueryId } from '../../../src/shared/ids.ts'

const reported: { type: string; data: Record<string, unknown> }[] = []
const journal: SightingJournal = {
  async record(type, data) {
    reported.push({ type, data })
    return { events: [] } as never
  },
  async settled() {},
}
const MINUTE = '2026-03-02T10:00:00.000Z'
const clock = { now: () => Date.parse(MINUTE), monotonicMs: () => 0 }
const queryId = (number: number): QueryId => `20260302_100000_${String(number).padStart(5, '0')}_00001` as QueryId

let refusals: WrittenRefusals
beforeEach(() => {
  vi.useFakeTimers()
  reported.length = 0
  refusals = createRefusalLog(journal, clock)
})
afterEach(async () => {
  await refusals.stop()
  vi.useRealTimers()
})

it('the refusal log records its counts before the minute ends if a caller asks', async () => {
  const logIn = { user: 'eva', principal: 'eva', method: 'password' as const, groups: [] }
  for (let times = 0; times < 3; times++) refusals.loggedIn(logIn)
  await refusals.flushed()
  expect(reported.map(({ data }) => data['count'])).toEqual([1, 2])
})

describe('The log of denied access', () => {
  const ada: Identity = { user: 'etl', originalUser: 'ada', groups: [], remoteAddress: '10.0.0.1' }
  const once = { count: 1, minute: MINUTE }

  it('records both user names, the query and the remote address', () => {
    const authorize = recordDenials(
      authorizeBy(() => undefined),
      refusals,
    )
    const query = { user: 'bob' }
    expect(authorize(ada, { action: 'view', query, queryId: queryId(1) })).toBe(false)
    expect(authorize(ada, { action: 'impersonate', user: 'root' })).toBe(false)
    const { originalUser: _none, ...self } = ada
    expect(authorize(self, { action: 'kill', query, queryId: queryId(1) })).toBe(false)
    const both = { user: 'etl', originalUser: 'ada', remoteAddress: '10.0.0.1', ...once }
    expect(reported.map(({ data }) => JSON.parse(JSON.stringify(data)) as unknown)).toEqual([
      { ...both, action: 'view', object: 'query of bob', queryId: queryId(1) },
      { ...both, action: 'impersonate', object: 'user root' },
      {
        user: 'etl',
        action: 'kill',
        object: 'query of bob',
        queryId: queryId(1),
        remoteAddress: '10.0.0.1',
        ...once,
      },
    ])
  })

  it('records neither the filtering of lists nor allowed actions', () => {
    const authorize = recordDenials(
      authorizeBy(() => undefined),
      refusals,
    )
    const query = { user: 'bob' }
    authorize(ada, { action: 'list', query })
    authorize(ada, { action: 'viewAll' })
    authorize(ada, { action: 'viewOthers' })
    authorize(ada, { action: 'view', query: { user: 'etl' } })
    authorize(ada, { action: 'execute' })
    expect(reported).toEqual([])
  })

  it('merges many refusals of one user into few events, and still records those of another user', async () => {
    for (let number = 0; number < 500; number++)
      refusals.accessDenied({
        user: `as${number}`,
        originalUser: 'mallory',
        action: 'view',
        object: 'query of bob',
        queryId: queryId(number),
      })
    refusals.accessDenied({ user: 'carol', action: 'execute', object: 'statement' })
    await refusals.stop()
    const users = reported.map(({ data }) => data['user'])
    expect(users).toContain('carol')
    expect(reported.length).toBeLessThan(50)
    expect(reported.reduce((sum, { data }) => sum + Number(data['count']), 0)).toBe(501)
  })
})

it('the refusal log records a failed log-in of a known user name after 150 unknown names', () => {
  const failed = (user: string): void => refusals.authenticationFailed({ user, method: 'password' })
  for (let number = 0; number < 150; number++) failed(`unknown-${number}`)
  failed('root')
  expect(reported.map(({ data }) => data['user'])).toEqual(['unknown-0', 'root'])
})

it('the refusal log records the first unknown user name at once, and the others of a minute in one event', async () => {
  const failed = (user: string): void =>
    refusals.authenticationFailed({ user, method: 'password', remoteAddress: '10.0.0.1' })
  for (let number = 0; number < 150; number++) for (let again = 0; again < 2; again++) failed(`unknown-${number}`)
  refusals.sighted({ type: 'AuthenticationFailed', data: { user: 'unknown-others', method: 'password' } }, 7)
  expect(reported).toHaveLength(1)
  await refusals.stop()
  expect(reported.map(({ data }) => [data['user'], data['count'], data['examples']])).toEqual([
    ['unknown-0', 1, undefined],
    ['unknown-0', 1, undefined],
    ['unknown-others', 305, Array.from({ length: 10 }, (_, index) => `unknown-${index + 1}`)],
  ])
})

it('the refusal log records few foreign browser origins per minute by name, and the others together', async () => {
  for (let number = 0; number < 200; number++)
    refusals.accessDenied({
      user: 'anonymous',
      action: 'call from a browser',
      object: `origin http://${number}.example`,
    })
  await refusals.stop()
  expect(reported).toHaveLength(5)
  expect(reported.reduce((sum, { data }) => sum + Number(data['count']), 0)).toBe(200)
})
