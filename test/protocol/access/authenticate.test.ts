import type { IncomingMessage } from 'node:http'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { createActsAs } from '../../../src/protocol/access/acts-as.ts'
import { callerAt, createAuthenticate } from '../../../src/protocol/access/authenticate.ts'
import { ANYBODY, NOBODY, setCaller } from '../../../src/protocol/access/caller.ts'
import { HttpProblem } from '../../../src/protocol/edge/problem.ts'
import type { Authenticator, CredentialVerdict } from '../../../src/security/authentication/authenticator.ts'
import { createSessionAuthenticator } from '../../../src/security/authentication/session-authenticator.ts'
import { createSessionTokens } from '../../../src/security/authentication/session-token.ts'
import type { AuthenticationMethod, VerifiedPrincipal } from '../../../src/security/authentication/principal.ts'
import { allowAll, authorizeBy, type Identity } from '../../../src/security/authorization.ts'
import { queryRulesOf } from '../../../src/security/rules/query-rules.ts'
import { readRules } from '../../../src/security/rules/read-rules.ts'

const noRules = queryRulesOf(readRules('{"queries": []}'))

function request(headers: Readonly<Record<string, string>>): IncomingMessage {
  return { headers, socket: { remoteAddress: '203.0.113.7' } } as unknown as IncomingMessage
}

let reported: string[][]
let confidential: boolean
let blocked: number | undefined
beforeEach(() => {
  reported = []
  confidential = true
  blocked = undefined
})

/** An authenticator for the header `x-<method>`, whose value selects the verdict. */
function takes(method: AuthenticationMethod, late = false): Authenticator {
  return {
    method,
    challenge: () => (method === 'certificate' ? undefined : `${method} realm="Quipu"`),
    credentialOf({ headers }) {
      const secret = headers[`x-${method}`]
      return secret === undefined ? undefined : { user: 'claimed', secret: String(secret) }
    },
    verify({ secret }) {
      const verdicts: Record<string, CredentialVerdict> = {
        good: { kind: 'verified', fresh: true, verified: { name: `${method} name`, groups: ['staff'] } },
        again: { kind: 'verified', fresh: false, verified: { name: `${method} name`, groups: [] } },
        unmapped: { kind: 'verified', fresh: true, verified: { name: 'stranger', groups: [] } },
        bad: { kind: 'refused', user: '', reason: 'no such password' },
        busy: { kind: 'busy', retryAfterSeconds: 3 },
        away: { kind: 'unavailable', reason: 'no answer' },
        unproven: { kind: 'unproven', fresh: true, user: '', retryAfterSeconds: 4, reason: 'no key' },
        stillUnproven: { kind: 'unproven', fresh: false, user: '', retryAfterSeconds: 4, reason: 'no key' },
      }
      const verdict = verdicts[secret]!
      return late ? Promise.resolve(verdict) : verdict
    },
  }
}

function authenticate(authenticators: readonly Authenticator[]) {
  return createAuthenticate({
    authenticators,
    attempts: {
      blockedSeconds: () => blocked,
      refused: ({ method, user, reason }) => reported.push(['refused', method, user, reason]),
      loggedIn: ({ name }) => reported.push(['logged in', name]),
      cameAgain: ({ name }) => reported.push(['came again', name]),
    },
    principalOf: ({ name, groups }, method) =>
      name === 'stranger' ? undefined : { name, user: name.toUpperCase(), groups, method },
    bearer: 'the key',
    confidential: () => confidential,
    baseUri: () => 'https://here',
  }).request
}

const both = [takes('password'), takes('jwt', true), takes('certificate')]

async function problemOf(headers: Record<string, string>): Promise<HttpProblem> {
  try {
    await authenticate(both)(request(headers))
  } catch (error) {
    if (error instanceof HttpProblem) return error
    throw error
  }
  throw new Error('nobody was refused')
}

describe('The authentication of a request', () => {
  it('uses the first credential in the request, and is synchronous if the authenticator is', async () => {
    const principal = (method: string) => ({ kind: 'principal', principal: { name: `${method} name`, method } })
    expect(authenticate(both)(request({ 'x-password': 'good', 'x-jwt': 'bad' }))).toMatchObject(principal('password'))
    expect(await authenticate(both)(request({ 'x-jwt': 'again' }))).toMatchObject(principal('jwt'))
    expect(reported).toEqual([
      ['logged in', 'password name'],
      ['came again', 'jwt name'],
    ])
    expect((await problemOf({ 'x-password': 'bad', 'x-jwt': 'good' })).status).toBe(401)
  })

  it('identifies the cluster by its key', () => {
    expect(authenticate(both)(request({ authorization: 'Bearer the key', 'x-password': 'bad' }))).toEqual({
      kind: 'cluster',
    })
  })

  it('answers 401 with all challenges, and with the same text for every reason of a refusal', async () => {
    const none = await problemOf({})
    expect(none).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': both.slice(0, 2).map((one) => one.challenge('', request({}))) },
    })
    const refusals = await Promise.all(
      [{ 'x-password': 'bad' }, { 'x-jwt': 'bad' }, { 'x-certificate': 'bad' }, { 'x-password': 'unmapped' }].map(
        problemOf,
      ),
    )
    expect(
      new Set(refusals.map(({ status, message, headers }) => JSON.stringify([status, message, headers]))).size,
    ).toBe(1)
    expect(reported.toSorted()).toEqual([
      ['refused', 'certificate', 'claimed', 'no such password'],
      ['refused', 'jwt', 'claimed', 'no such password'],
      ['refused', 'password', 'claimed', 'no such password'],
      ['refused', 'password', 'stranger', 'the user mapping has no user for this name'],
    ])
  })

  it('answers 403 over plain HTTP, 429 to a blocked client, and 429 or 503 when the client can retry', async () => {
    expect(await problemOf({ 'x-password': 'busy' })).toMatchObject({ status: 429, headers: { 'retry-after': '3' } })
    expect(await problemOf({ 'x-jwt': 'away' })).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    blocked = 17
    expect(await problemOf({ 'x-password': 'good' })).toMatchObject({ status: 429, headers: { 'retry-after': '17' } })
    confidential = false
    expect((await problemOf({ 'x-password': 'good' })).status).toBe(403)
    expect(reported).toEqual([])
  })

  it('answers 503 to a token that no known key signed, and reports it once', async () => {
    for (const secret of ['unproven', 'stillUnproven'])
      expect(await problemOf({ 'x-jwt': secret })).toMatchObject({ status: 503, headers: { 'retry-after': '4' } })
    expect(reported).toEqual([['refused', 'jwt', 'claimed', 'no key']])
  })

  it('accepts a valid session although the address of the client is blocked', async () => {
    const alice = { name: 'alice', user: 'alice', groups: [], method: 'oauth2' } as const
    const sessions = createSessionTokens(Buffer.alloc(32, 1), 60_000, { now: () => 0 })
    const others = createSessionTokens(Buffer.alloc(32, 2), 60_000, { now: () => 0 })
    const by = createSessionAuthenticator('oauth2', {
      tokens: sessions,
      ended: () => ({ has: (id) => id === sessions.peek(ended)!.id }),
      holds: () => true,
      pageToken: () => undefined,
      challenge: () => undefined,
    })
    const ended = sessions.issue(alice, 'program')!
    const ask = async (token: string) => authenticate([by])(request({ authorization: `Bearer ${token}` }))
    blocked = 17
    expect(await ask(sessions.issue(alice, 'program')!)).toMatchObject({
      kind: 'principal',
      principal: { name: 'alice' },
    })
    await expect(ask(others.issue(alice, 'program')!)).rejects.toMatchObject({ status: 429 })
    await expect(ask(ended)).rejects.toMatchObject({ status: 401 })
    expect(reported).toEqual([])
  })

  it('asks for no credentials on the open paths, and asks for them on every other path', () => {
    const at = callerAt(
      () => {
        throw new Error('asked')
      },
      () => false,
    )
    for (const path of ['/v1/info', '/v1/info/', '/v1/status', '/oauth2/callback', '/ui/log-in'])
      expect(at(request({}), path)).toBe(NOBODY)
    for (const path of [
      '/v1/infos',
      '/v1/info/x',
      '/v1/query',
      '/v1/statement',
      '/',
      '/ui',
      '/oauth2',
      '/x/v1/info',
      '/v1//info',
    ])
      expect(() => at(request({}), path)).toThrow('asked')
  })
})

describe('The user that a request acts as', () => {
  const alice: VerifiedPrincipal = { name: 'alice@example.com', user: 'alice', groups: ['staff'], method: 'jwt' }
  const may = new Set<string>()
  const actsAs = createActsAs({
    authorize: authorizeBy(() => ({
      ...noRules,
      impersonation: ({ user }, other) => may.has(`${user} ${other}`),
    })),
    groupsOf: (user) => [`group of ${user}`],
  })
  function as(headers: Record<string, string>): Identity {
    const sent = request(headers)
    setCaller(sent, { kind: 'principal', principal: alice })
    return actsAs(sent)
  }

  it('is the authenticated user by default', () => {
    const self = { user: 'alice', principal: 'alice@example.com', groups: ['staff'], remoteAddress: '203.0.113.7' }
    expect(as({})).toEqual(self)
    expect(as({ 'x-trino-user': 'alice', 'x-trino-original-user': 'alice' })).toEqual(self)
  })

  it('is another user only with the right of impersonation at each step, and has the groups of that user', () => {
    may.clear()
    expect(() => as({ 'x-trino-user': 'bob' })).toThrow('Access Denied: User alice cannot impersonate user bob')
    may.add('alice bob')
    expect(as({ 'x-presto-user': 'bob' })).toMatchObject({
      user: 'bob',
      originalUser: 'alice',
      principal: 'alice@example.com',
      groups: ['group of bob'],
    })
    const chain = { 'x-trino-original-user': 'bob', 'x-trino-user': 'carol' }
    expect(() => as(chain)).toThrow('User bob cannot impersonate user carol')
    may.add('bob carol')
    expect(as(chain)).toMatchObject({ user: 'carol', originalUser: 'alice', groups: ['group of carol'] })
    may.delete('alice bob')
    expect(() => as(chain)).toThrow('User alice cannot impersonate user bob')
  })

  it('does not exist without authentication or for a process of the cluster: the request is refused', () => {
    expect(() => actsAs(request({ 'x-trino-user': 'alice' }))).toThrow('Authentication is required')
    const internal = request({ 'x-trino-user': 'alice' })
    setCaller(internal, { kind: 'cluster' })
    expect(() => actsAs(internal)).toThrow('The cluster secret')
  })

  it('is the user that the headers name when authentication is off', () => {
    const open = createActsAs({ authorize: allowAll, groupsOf: () => ['never'] })
    const anybody = (headers: Record<string, string>) => {
      const sent = request(headers)
      setCaller(sent, ANYBODY)
      return open(sent)
    }
    expect(anybody({})).toMatchObject({ user: 'anonymous', groups: [] })
    expect(anybody({ authorization: `Basic ${btoa('ana:')}`, 'x-trino-original-user': 'bob' })).toMatchObject({
      user: 'ana',
      principal: 'ana',
      originalUser: 'bob',
    })
  })
})

describe('Rights over queries', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const identity = fc.record({ user: name, originalUser: fc.option(name, { nil: undefined }), groups: fc.constant([]) })
  const owner = fc.record({ user: name, originalUser: fc.option(name, { nil: undefined }) })

  it('belong to the user of the query and the user that posted it, and to no other user, if there are no rules', () => {
    const authorize = authorizeBy(() => undefined)
    fc.assert(
      fc.property(
        identity,
        owner,
        fc.constantFrom('view', 'kill', 'results', 'cancel', 'list'),
        (caller, query, action) => {
          const self = caller.originalUser ?? caller.user
          const isOwn = caller.user === query.user || (query.originalUser !== undefined && query.originalUser === self)
          expect(authorize(caller as Identity, { action: action as 'view', query })).toBe(isOwn)
        },
      ),
    )
  })
})
