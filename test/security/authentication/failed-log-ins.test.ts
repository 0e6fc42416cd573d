import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { createFailedLogIns, type FailedLogIns } from '../../../src/security/authentication/failed-log-ins.ts'
import { networkOf } from '../../../src/shared/network-of.ts'

let now: number
let failures: FailedLogIns
/** Seconds until the user may try again from this address, for any reason. */
function blockedFor(failures: FailedLogIns, user: string, address: string): number | undefined {
  const { user: ofUser = 0, network = 0 } = failures.blockedSeconds(user, address)
  return Math.max(ofUser, network) || undefined
}

beforeEach(() => {
  now = 1_000_000
  failures = createFailedLogIns(() => now, Buffer.alloc(32, 1))
})
const fail = (times: number, user: string, address: string): void => {
  for (let time = 0; time < times; time++) failures.failed(user, address)
}

describe('Failed log-ins', () => {
  it('block only this user at this address, for a limited time', () => {
    fail(4, 'alice', '203.0.113.7')
    expect(blockedFor(failures, 'alice', '203.0.113.7')).toBeUndefined()
    fail(1, 'alice', '203.0.113.7')
    expect(blockedFor(failures, 'alice', '203.0.113.7')).toBe(10)
    expect(blockedFor(failures, 'bob', '203.0.113.7')).toBeUndefined()
    expect(blockedFor(failures, 'alice', '203.0.113.8')).toBeUndefined()
    now += 10_000
    expect(blockedFor(failures, 'alice', '203.0.113.7')).toBeUndefined()
    fail(1, 'alice', '203.0.113.7')
    expect(blockedFor(failures, 'alice', '203.0.113.7')).toBe(10)
  })

  it('do not count for a user after their log-in from the same address, but still count for the address', () => {
    fail(5, 'alice', '203.0.113.7')
    failures.succeeded('alice', '203.0.113.7')
    expect(blockedFor(failures, 'alice', '203.0.113.7')).toBeUndefined()
    for (let other = 0; other < 45; other++) fail(1, `u${other}`, '203.0.113.7')
    failures.succeeded('alice', '203.0.113.7')
    expect(blockedFor(failures, 'alice', '203.0.113.7')).toBe(1)
    expect(blockedFor(failures, 'alice', '203.0.113.8')).toBeUndefined()
  })

  it('are limited for each address over all user names', () => {
    let guesses = 0
    for (; now < 1_000_000 + 60_000; now += 10)
      if (blockedFor(failures, `u${now}`, '203.0.113.7') === undefined) {
        fail(1, `u${now}`, '203.0.113.7')
        guesses++
      }
    expect(guesses).toBeLessThanOrEqual(50 + 60)
  })

  it('take bounded memory', () => {
    fail(60, 'alice', '203.0.113.7')
    for (let other = 0; other < 30_000; other++)
      fail(1, 'x', `2001:db8:${(other >> 8).toString(16)}:${(other & 255).toString(16)}::1`)
    expect(failures.size).toBeLessThanOrEqual(20_000)
  })

  it('are limited over all coordinators together, except for a few guesses before they merge', () => {
    const [writer, ...others] = Array.from({ length: 6 }, () => createFailedLogIns(() => now, Buffer.alloc(32, 1)))
    let guesses = 0
    for (const end = now + 600_000; now < end; now += 500)
      for (const one of others) {
        if (blockedFor(one, 'alice', '203.0.113.7') !== undefined) continue
        guesses++
        one.mergeFailures(
          writer!.merge(
            one.failed('alice', '203.0.113.7').map((key) => [key, 1]),
            [],
          ),
        )
      }
    // A single coordinator allows 5 and 60.
    expect(guesses).toBeLessThanOrEqual(5 + 60 + 4 * others.length)
    expect(blockedFor(writer!, 'alice', '203.0.113.7')).toBeGreaterThan(0)
    expect(blockedFor(writer!, 'alice', '203.0.113.8')).toBeUndefined()
    writer!.merge([], [others[0]!.succeeded('alice', '203.0.113.7')])
    expect(blockedFor(writer!, 'alice', '203.0.113.7')).toBeUndefined()
  })

  it('are counted for each IPv6 network, however its addresses are written', () => {
    expect(networkOf('2001:db8:0:1::7')).toBe(networkOf('2001:db8:0:1:ffff:ffff:ffff:ffff'))
    expect(networkOf('2001:db8:0:1::7')).not.toBe(networkOf('2001:db8:0:2::7'))
    expect(networkOf('::ffff:203.0.113.7')).toBe('203.0.113.7')
    expect(networkOf('fe80::1%eth0')).toBe(networkOf('fe80::2'))
    expect(networkOf('::1')).toBe('0:0:0:0::/64')
    fc.assert(
      fc.property(fc.ipV6(), fc.ipV6(), (one, other) => {
        const bits = (text: string): string => new URL(`http://[${text}]`).hostname
        if (bits(one) === bits(other)) expect(networkOf(one)).toBe(networkOf(other))
        expect(networkOf(one)).toMatch(/^([0-9a-f]{1,4}:){3}[0-9a-f]{1,4}::\/64$|^\d+\.\d+\.\d+\.\d+$/)
      }),
    )
  })
})
