import { describe, expect, it } from 'vitest'
import { MOST_CREDENTIAL_BYTES, relayHeaders } from '../../src/protocol/edge/relay-headers.ts'
import { isShort, type VerifiedPrincipal } from '../../src/security/authentication/principal.ts'
import { bodyDigest, createRelayVerifier, openRelayClock, sealRelay } from '../../src/security/relay-credential.ts'

const KEY = Buffer.alloc(32, 7)
const call = { method: 'POST', target: '/v1/statement?x=1', bodyDigest: 'digest' }
const START = 1_700_000_000_000

const sealed = (epoch: number, now: number, claims = { clientAddress: '10.0.0.1' }) =>
  sealRelay(KEY, call, claims, { epoch, now })

it('a relay credential fits into a request head, even for the longest principal', () => {
  const groups = ['"'.repeat(1_000)]
  const longest: VerifiedPrincipal = { name: 'a', user: 'b', groups, method: 'certificate' }
  while (isShort({ ...longest, groups: [...groups, '"'] })) groups.push('"')
  const client = { scheme: 'https', authority: `${'a'.repeat(253)}:65535`, confidential: false } as const
  const claims = { clientAddress: '0000:0000:0000:0000:0000:ffff:192.168.100.228', client, principal: longest }
  const at = { epoch: Number.MAX_SAFE_INTEGER, now: Date.now() }
  const { credential } = sealRelay(KEY, { ...call, bodyDigest: bodyDigest(Buffer.alloc(0)) }, claims, at)
  const bytes = credential.length + relayHeaders.credential.length
  expect(bytes).toBeLessThan(MOST_CREDENTIAL_BYTES)
  expect(bytes).toBeGreaterThan(MOST_CREDENTIAL_BYTES / 2)
})

describe('The verification of a relay credential', () => {
  it('accepts a credential once', () => {
    const verifier = createRelayVerifier(KEY, 4, () => START)
    const { credential } = sealed(4, START)
    expect(verifier.verify(credential, call)).toEqual({
      kind: 'accepted',
      bodyDigest: 'digest',
      claims: { clientAddress: '10.0.0.1' },
    })
    expect(verifier.verify(credential, call)).toEqual({ kind: 'replayed' })
  })

  it('returns how the client connected, and refuses a change of this without the key', () => {
    const client = { scheme: 'https', authority: 'shop.example:8443', confidential: true } as const
    const { credential } = sealRelay(KEY, call, { clientAddress: '10.0.0.1', client }, { epoch: 4, now: START })
    const [text, mac] = credential.split('.') as [string, string]
    const other = JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as Record<string, unknown>
    other['client'] = { ...client, authority: 'evil.example' }
    const forged = `${Buffer.from(JSON.stringify(other)).toString('base64url')}.${mac}`
    const verifier = createRelayVerifier(KEY, 4, () => START)
    expect(verifier.verify(forged, call)).toEqual({ kind: 'forged' })
    expect(verifier.verify(credential, call)).toMatchObject({ kind: 'accepted', claims: { client } })
  })

  it('refuses a credential of another epoch, so a restarted process needs no old nonces', () => {
    const { credential } = sealed(4, START)
    expect(createRelayVerifier(KEY, 4, () => START).verify(credential, call).kind).toBe('accepted')
    for (const after of [3, 5, 6]) {
      const verifier = createRelayVerifier(KEY, after, () => START)
      expect(verifier.verify(credential, call)).toEqual({ kind: 'epoch' })
    }
  })

  it('refuses a repeated credential in the same epoch at any later time', () => {
    let now = START
    const verifier = createRelayVerifier(KEY, 4, () => now)
    // The clock of the sender is ahead, so the credential is valid for the longest possible time.
    const { credential } = sealed(4, START + 29_000)
    expect(verifier.verify(credential, call).kind).toBe('accepted')
    for (; now <= START + 120_000; now += 500) {
      // Other credentials arrive meanwhile and displace the oldest nonces.
      expect(verifier.verify(sealed(4, now).credential, call).kind).toBe('accepted')
      expect(['replayed', 'clock']).toContain(verifier.verify(credential, call).kind)
    }
  })

  it.each([
    ['another method', { ...call, method: 'DELETE' }],
    ['another target', { ...call, target: '/v1/statement?x=2' }],
  ])('refuses a credential for %s', (_name, other) => {
    expect(createRelayVerifier(KEY, 4, () => START).verify(sealed(4, START).credential, other).kind).toBe('forged')
  })

  it.each(['', '.', 'a.b', 'a.b.c', '\u0000', `${'x'.repeat(100_000)}.y`])(
    'refuses the malformed credential %j',
    (credential) => {
      expect(createRelayVerifier(KEY, 4, () => START).verify(credential, call)).toEqual({ kind: 'forged' })
    },
  )

  it('refuses a credential of another key', () => {
    const { credential } = sealRelay(Buffer.alloc(32, 8), call, {}, { epoch: 4, now: START })
    expect(createRelayVerifier(KEY, 4, () => START).verify(credential, call).kind).toBe('forged')
  })
})

it('a relay verifier tells its time only to the sender of an authentic credential with a wrong clock', () => {
  const { credential, nonce } = sealed(4, START - 60_000)
  const verdict = createRelayVerifier(KEY, 4, () => START).verify(credential, call)
  expect(verdict.kind).toBe('clock')
  const { clock } = verdict as { clock: string }
  expect(openRelayClock(KEY, clock, nonce)).toBe(START)
  expect(openRelayClock(KEY, clock, 'another nonce')).toBeUndefined()
  expect(openRelayClock(Buffer.alloc(32), clock, nonce)).toBeUndefined()
})
