import type { IncomingMessage } from 'node:http'
import { expect, it } from 'vitest'
import { createKnownNames, createLogInAttempts } from '../../../src/processes/coordinator/log-in-attempts.ts'
import { createFailedLogIns } from '../../../src/security/authentication/failed-log-ins.ts'
import type { VerifiedPrincipal } from '../../../src/security/authentication/principal.ts'

it('a credential that was verified before is told of from each network, by minutes', () => {
  let now = 0
  const told: string[] = []
  const attempts = createLogInAttempts({
    failures: createFailedLogIns(() => now, Buffer.alloc(32)),
    names: createKnownNames(() => false),
    refusals: {
      authenticationFailed: () => {},
      loggedIn: ({ principal, remoteAddress }) => told.push(`${principal} ${remoteAddress}`),
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
  expect(told).toEqual(['alice 203.0.113.7', 'alice 198.51.100.1', 'alice 2001:db8::1', 'bob 203.0.113.7'])
  now += 5 * 60_000
  attempts.cameAgain(alice, from('203.0.113.7'))
  expect(told.at(-1)).toBe('alice 203.0.113.7')
  expect(told).toHaveLength(5)
})
