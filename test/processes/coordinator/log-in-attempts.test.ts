import type { IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { createKnownNames, createLogInAttempts } from '../../../src/processes/access/log-in-attempts.ts'
import { createFailedLogIns } from '../../../src/security/authentication/failed-log-ins.ts'
import type { VerifiedPrincipal } from '../../../src/security/authentication/principal.ts'

it('a credential that was verified before is reported once for each network until 5 minutes have passed', () => {
  let now = 0
  const reported: string[] = []
  const attempts = createLogInAttempts({
    failures: createFailedLogIns(() => now, Buffer.alloc(32)),
    names: createKnownNames(() => false),
    refusals: {
      authenticationFailed: () => {},
      loggedIn: ({ principal, remoteAddress }) => reported.push(`${principal} ${remoteAddress}`),
    },
    elsewhere: undefined,
    meters: () => undefined,
    now: () => now,
  })
  const from = (remoteAddress: string) => ({ headers: {}, socket: { remoteAddress } }) as unknown as IncomingMessage
  const alice: VerifiedPrincipal = { name: 'alice', user: 'alice', groups: [], method: 'password' }
  attempts.loggedIn(alice, from('203.0.113.7'))
  for (const address of ['203.0.113.7', '198.51.100.1', '198.51.100.1', '2001:db8::1', '2001:db8::2'])
    attempts.cameAgain(alice, from(address))
  attempts.cameAgain({ ...alice, name: 'bob' }, from('203.0.113.7'))
  expect(reported).toEqual(['alice 203.0.113.7', 'alice 198.51.100.1', 'alice 2001:db8::1', 'bob 203.0.113.7'])
  now += 5 * 60_000
  attempts.cameAgain(alice, from('203.0.113.7'))
  expect(reported.at(-1)).toBe('alice 203.0.113.7')
  expect(reported).toHaveLength(5)
})

it('a recently verified user gets in from a blocked address, until wrong guesses block that user too', () => {
  let now = 0
  const failures = createFailedLogIns(() => now, Buffer.alloc(32))
  const attempts = createLogInAttempts({
    failures,
    names: createKnownNames(() => false),
    refusals: { authenticationFailed: () => {}, loggedIn: () => {} },
    elsewhere: undefined,
    meters: () => undefined,
    now: () => now,
  })
  const request = { headers: {}, socket: { remoteAddress: '203.0.113.7' } } as unknown as IncomingMessage
  const may = (user: string, remembered: boolean | undefined): boolean =>
    attempts.blockedSeconds({ user, secret: 'x' }, request, remembered) === undefined
  for (let number = 0; number < 51; number++) failures.failed(`guessed ${number}`, '203.0.113.7')
  expect([may('newcomer', false), may('token', undefined)]).toEqual([false, false])
  expect([may('alice', true), may('bob', true)]).toEqual([true, true])
  // A guess that was not verified counts for its user, and for no other user.
  for (let guess = 0; guess < 6; guess++) may('alice', false)
  expect([may('alice', true), may('bob', true)]).toEqual([false, true])
  now += 120_000
  expect([may('alice', true), may('newcomer', false)]).toEqual([true, true])
})
