import { expect, it } from 'vitest'
import { systemEventSchemas, type SystemEventType } from '../../../src/coordinator/system/events.ts'
import { createKeysInForce } from '../../../src/processes/access/keys-in-force.ts'
import { shownAddress } from '../../../src/processes/shown-address.ts'

function bed() {
  const reported: { readonly type: SystemEventType; readonly data: unknown }[] = []
  const journal = {
    async record(type: SystemEventType, data: unknown) {
      reported.push({ type, data: systemEventSchemas[type].parse(data) })
      return {} as never
    },
  }
  return { reported, journal, keys: createKeysInForce() }
}

const serves = (fingerprint: string, clientAuthorities?: string) => ({
  kind: 'serves' as const,
  names: 'DNS:quipu',
  validUntil: new Date('2027-01-01T00:00:00Z'),
  fingerprint,
  ...(clientAuthorities === undefined ? {} : { clientAuthorities }),
})

it('certificates are recorded when the log can be written, at a renewal, and when client authorities change', () => {
  const { reported, journal, keys } = bed()
  keys.certificate('/cert', serves('a', 'x'))
  keys.recordIn(journal)
  keys.certificate('/cert', serves('a', 'x'))
  keys.certificate('/cert', serves('b', 'x'))
  keys.certificate('/cert', serves('b', 'y'))
  keys.certificate('/cert', { kind: 'refused', error: new Error('nonsense') })
  keys.recordIn(undefined)
  keys.recordIn(journal)
  keys.recordIn(undefined)
  keys.certificate('/cert', serves('c', 'y'))
  keys.recordIn(journal)
  expect(reported.map(({ data }) => data)).toMatchObject([
    { fingerprint: 'a', clientAuthorities: 'x', occasion: 'start' },
    { fingerprint: 'b', before: 'a', occasion: 'reload' },
    { fingerprint: 'b', before: 'b', clientAuthorities: 'y', clientAuthoritiesBefore: 'x' },
    { file: 'certificate', path: '/cert', reason: 'nonsense', inForce: 'b' },
    // This process begins another epoch.
    { fingerprint: 'b', occasion: 'start' },
    { file: 'certificate', reason: 'nonsense' },
    { fingerprint: 'c', occasion: 'start' },
  ])
  expect(reported[0]!.data).not.toHaveProperty('before')
})

it('token keys are recorded when they change, with the previous keys', () => {
  const { reported, journal, keys } = bed()
  keys.recordIn(journal)
  const [one, other] = [{ kid: 'k'.repeat(1_000), fingerprint: 'one' }, { fingerprint: 'other' }]
  keys.tokenKeys('https://keys.example/', [one])
  keys.tokenKeys('https://keys.example/', [{ ...one }])
  keys.tokenKeys('https://keys.example/', [other, one])
  expect(reported.map(({ type, data }) => [type, data])).toEqual([
    [
      'TokenKeysTaken',
      { address: 'https://keys.example/', keys: [{ ...one, kid: 'k'.repeat(200) }], occasion: 'start' },
    ],
    [
      'TokenKeysTaken',
      {
        address: 'https://keys.example/',
        keys: [other, { ...one, kid: 'k'.repeat(200) }],
        before: ['one'],
        occasion: 'reload',
      },
    ],
  ])
})

it('`shownAddress` removes user and password from an address, and keeps all other text', () => {
  expect(shownAddress('https://ana:s3cret@keys.example/jwks?a=b')).toBe('https://keys.example/jwks?a=b')
  expect(shownAddress('ldaps://ana@directory:636')).toBe('ldaps://directory:636')
  for (const same of ['https://keys.example', '/etc/a:b@c', 'http://[::1', 'http://${HOST}:1/'])
    expect(shownAddress(same)).toBe(same)
})
