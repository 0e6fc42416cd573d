import {
  createHmac,
  generateKeyPairSync,
  randomBytes,
  createSecretKey,
  type KeyObject,
  type KeyPairKeyObjectResult,
} from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SignJWT, type JWTPayload } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Credential, CredentialVerdict } from '../../../src/security/authentication/authenticator.ts'
import { createJwks, type PublishedKey } from '../../../src/security/authentication/jwks.ts'
import { createJwtAuthenticator, type JwtOptions } from '../../../src/security/authentication/jwt-authenticator.ts'
import { keyOfFile, keysOfFiles, parseTokenKey } from '../../../src/security/authentication/jwt-key-file.ts'
import type { TokenKeys } from '../../../src/security/authentication/token-keys.ts'
import { waitUntil } from '../../support/quipu-process.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const otherRsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' })
const ed = generateKeyPairSync('ed25519')
const secret = randomBytes(64)
const pem = ({ publicKey }: KeyPairKeyObjectResult): string =>
  publicKey.export({ type: 'spki', format: 'pem' }).toString()

let now: number
beforeEach(() => {
  now = Date.now()
})

const fileOf = (text: string): TokenKeys => keyOfFile({ value: parseTokenKey(text), stop: () => {} })

function authenticator(keys: TokenKeys, more: Partial<JwtOptions> = {}) {
  const made = createJwtAuthenticator({
    keys,
    requiredAudiences: [],
    principalField: 'sub',
    clockSkewMs: 30_000,
    now: () => now,
    ...more,
  })
  return {
    ...made,
    verify: (credential: Credential, network = '203.0.113.7') => made.verify(credential, network),
  }
}

function sign(
  alg: string,
  key: KeyObject | Uint8Array,
  claims: JWTPayload = { sub: 'alice' },
  { kid, exp = 3600 }: { readonly kid?: string; readonly exp?: number | null } = {},
): Promise<string> {
  const signer = new SignJWT(claims).setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) })
  return (exp === null ? signer : signer.setExpirationTime(Math.floor(now / 1000) + exp)).sign(key)
}

async function verdictOf(keys: TokenKeys, token: string, more: Partial<JwtOptions> = {}): Promise<CredentialVerdict> {
  return authenticator(keys, more).verify({ user: '', secret: token })
}
const kindOf = async (...args: Parameters<typeof verdictOf>): Promise<string> => (await verdictOf(...args)).kind

/** A token with any head, claims and signature. */
function forged(head: object, claims: object, signature: (input: string) => string): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${part(head)}.${part(claims)}`
  return `${input}.${signature(input)}`
}
const claims = () => ({ sub: 'alice', exp: Math.floor(now / 1000) + 3600 })

describe('A token', () => {
  it.each([
    ['RS256', rsa],
    ['PS512', rsa],
    ['ES256', p256],
    ['ES384', p384],
    ['EdDSA', ed],
  ] as const)('signed with %s is verified by its public key', async (alg, pair) => {
    expect(await verdictOf(fileOf(pem(pair)), await sign(alg, pair.privateKey))).toEqual({
      kind: 'verified',
      fresh: true,
      verified: { name: 'alice', groups: [] },
    })
  })

  it('signed with a secret is verified by the secret', async () => {
    const keys = fileOf(`${secret.toString('base64').replaceAll(/.{40}/g, '$&\n')}\n`)
    for (const alg of ['HS256', 'HS384', 'HS512']) expect(await kindOf(keys, await sign(alg, secret))).toBe('verified')
    expect(await kindOf(keys, await sign('HS256', randomBytes(64)))).toBe('refused')
  })

  it('cannot choose the algorithm or the key: the configured key decides', async () => {
    const text = pem(rsa)
    const keys = fileOf(text)
    const der = rsa.publicKey.export({ type: 'spki', format: 'der' })
    const hmac =
      (key: Buffer | string, hash = 'sha256') =>
      (input: string) =>
        createHmac(hash, key).update(input).digest('base64url')
    const attacks = [
      ...['none', 'None', 'NONE', 'nOnE', ''].map((alg) => forged({ alg }, claims(), () => '')),
      ...[text, text.trim(), der].map((key) => forged({ alg: 'HS256', typ: 'JWT' }, claims(), hmac(key))),
      forged({ alg: 'HS512' }, claims(), hmac(text, 'sha512')),
      forged({}, claims(), hmac(text)),
      await sign('ES256', p256.privateKey),
      await sign('EdDSA', ed.privateKey),
      await sign('RS256', otherRsa.privateKey),
      // The token carries its key in its head.
      await new SignJWT({ sub: 'alice' })
        .setProtectedHeader({ alg: 'RS256', jwk: otherRsa.publicKey.export({ format: 'jwk' }) })
        .setExpirationTime('1h')
        .sign(otherRsa.privateKey),
      await new SignJWT({ sub: 'alice' })
        .setProtectedHeader({ alg: 'RS256', crit: ['exp'], exp: 1 } as never)
        .setExpirationTime('1h')
        .sign(rsa.privateKey, { crit: { exp: false } }),
    ]
    for (const token of attacks) expect(await kindOf(keys, token), token).toBe('refused')
    for (const [pair, alg, other] of [
      [p256, 'ES384', p384],
      [ed, 'ES256', p256],
    ] as const)
      expect(await kindOf(fileOf(pem(pair)), await sign(alg, other.privateKey))).toBe('refused')
  })

  it('needs an expiry, and is valid only between nbf and exp with the clock skew', async () => {
    const keys = fileOf(pem(p256))
    const by = async (more: JWTPayload, exp: number | null, skew = 30_000) =>
      kindOf(keys, await sign('ES256', p256.privateKey, { sub: 'alice', ...more }, { exp }), { clockSkewMs: skew })
    const seconds = Math.floor(now / 1000)
    expect(await by({}, null)).toBe('refused')
    expect([await by({}, -20), await by({}, -40), await by({}, -20, 0)]).toEqual(['verified', 'refused', 'refused'])
    expect([await by({ nbf: seconds + 20 }, 60), await by({ nbf: seconds + 60 }, 90)]).toEqual(['verified', 'refused'])
    expect(
      await kindOf(
        keys,
        forged({ alg: 'ES256' }, { sub: 'alice', exp: '9999999999' }, () => 'AAAA'),
      ),
    ).toBe('refused')
  })

  it('needs the required issuer and audience, and a name in the principal field', async () => {
    const keys = fileOf(pem(p256))
    const by = async (more: JWTPayload, options: Partial<JwtOptions>) =>
      verdictOf(keys, await sign('ES256', p256.privateKey, more), options)
    const of = async (...args: Parameters<typeof by>) => (await by(...args)).kind
    const required = { requiredIssuer: 'https://i', requiredAudiences: ['q', 'r'] }
    expect(await of({ sub: 'a', iss: 'https://i', aud: ['x', 'r'] }, required)).toBe('verified')
    expect(await of({ sub: 'a', iss: 'https://i', aud: 'x' }, required)).toBe('refused')
    expect(await of({ sub: 'a', iss: 'https://i' }, required)).toBe('refused')
    expect(await of({ sub: 'a', iss: 'https://i/', aud: 'q' }, required)).toBe('refused')
    for (const sub of [undefined, '', 7 as never, ['a'] as never, { a: 1 } as never])
      expect(await of(sub === undefined ? {} : { sub }, {})).toBe('refused')
    const nested = { principalField: 'person.name', groupsField: 'https://x.example/groups' }
    expect(await by({ person: { name: 'n' }, 'https://x.example/groups': ['g', 7, '', 'h'] }, nested)).toMatchObject({
      verified: { name: 'n', groups: ['g', 'h'] },
    })
    expect(await of({ person: 'constructor' }, { principalField: 'person.constructor.name' })).toBe('refused')
    expect(await of({}, { principalField: 'constructor.name' })).toBe('refused')
  })

  it('is verified once and remembered until it expires or the keys change', async () => {
    let looked = 0
    let version = {}
    const file = fileOf(pem(p256))
    const keys: TokenKeys = {
      version: () => version,
      keysFor: (head) => {
        looked++
        return file.keysFor(head)
      },
    }
    const { verify, recall } = authenticator(keys)
    const token = { user: '', secret: await sign('ES256', p256.privateKey, { sub: 'alice' }, { exp: 60 }) }
    expect(recall!(token)).toBeUndefined()
    await verify(token)
    expect(verify(token)).toMatchObject({ kind: 'verified', fresh: false })
    expect(recall!({ ...token, secret: `${token.secret}x` })).toBeUndefined()
    expect(looked).toBe(1)
    version = {}
    expect(recall!(token)).toBeUndefined()
    await verify(token)
    expect(looked).toBe(2)
    now += 91_000
    expect(await verify(token)).toMatchObject({ kind: 'refused' })
  })

  it('is left to other authenticators if it has another form', () => {
    const { credentialOf } = authenticator(fileOf(pem(p256)))
    const of = (authorization: string) => credentialOf({ headers: { authorization } } as IncomingMessage)?.secret
    expect(['Bearer a.b.c', 'bearer  a.b.c ', 'Bearer abc', 'Basic a.b.c', 'Bearer a.b.c.d.e'].map(of)).toEqual([
      'a.b.c',
      'a.b.c',
      undefined,
      undefined,
      undefined,
    ])
  })

  it('is refused if it is malformed', async () => {
    const keys = fileOf(pem(p256))
    for (const token of ['..', 'a..', 'bnVsbA..', `${'a'.repeat(20_000)}.b.c`, 'W10.W10.', '\u0000.\u0000.'])
      expect(await kindOf(keys, token)).toBe('refused')
  })
})

describe('A key file', () => {
  it.each([
    ['a private key', rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()],
    ['a short RSA key', pem(generateKeyPairSync('rsa', { modulusLength: 1024 }))],
    ['a key on an unsupported curve', pem(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }))],
    ['a key of an unsupported algorithm', pem(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }))],
    ['a key that cannot sign', pem(generateKeyPairSync('x25519'))],
    ['a short secret', randomBytes(31).toString('base64')],
    ['text', 'not a key, nor Base64!'],
    ['nothing', ''],
  ])('is refused with this content: %s', (_, text) => {
    expect(() => parseTokenKey(text)).toThrow()
  })

  describe('A key file that is named after the key id', () => {
    const folder = mkdtempSync(join(tmpdir(), 'quipu-keys-'))
    afterEach(() => rmSync(folder, { recursive: true, force: true }))

    it('verifies only tokens with that id, and cannot be outside its folder', async () => {
      writeFileSync(join(folder, 'one.pem'), pem(p256))
      writeFileSync(join(folder, 'default-key.pem'), pem(p384))
      writeFileSync(join(folder, '___two.pem'), pem(ed))
      const keys = keysOfFiles(join(folder, '${KID}.pem'))
      const by = async (alg: string, { privateKey }: KeyPairKeyObjectResult, kid?: string) =>
        kindOf(keys, await sign(alg, privateKey, undefined, kid === undefined ? {} : { kid }))
      expect(await by('ES256', p256, 'one')).toBe('verified')
      expect(await by('ES384', p384)).toBe('verified')
      expect(await by('ES256', p256, 'none')).toBe('refused')
      expect(await by('EdDSA', ed, '../two')).toBe('verified')
      expect(await by('ES256', p256, `../${folder.split('/').at(-1)}/one`)).toBe('refused')
    })
  })
})

describe('Published keys', () => {
  let published: object[] | Error
  let asked: number
  let troubles: number
  let clock: number
  beforeEach(() => {
    published = []
    reported = []
    asked = 0
    troubles = 0
    clock = 1_000_000
  })
  const jwk = ({ publicKey }: KeyPairKeyObjectResult, more: object): object => ({
    ...publicKey.export({ format: 'jwk' }),
    ...more,
  })
  let reported: readonly PublishedKey[][] = []
  const jwks = () =>
    createJwks({
      fetchText: async () => {
        asked++
        if (published instanceof Error) throw published
        return JSON.stringify({ keys: published })
      },
      now: () => clock,
      onTaken: () => {},
      onKeys: (keys) => (reported = [...reported, [...keys]]),
      onTrouble: () => troubles++,
    })

  it('are fetched for the first token with their id, and stay valid while the address does not answer', async () => {
    published = [jwk(p256, { kid: 'a' })]
    const keys = jwks()
    const { verify } = authenticator(keys)
    const of = async (pair: KeyPairKeyObjectResult, kid: string, sub = 'alice') =>
      (await verify({ user: '', secret: await sign('ES256', pair.privateKey, { sub }, { kid }) })).kind
    expect(await of(p256, 'a')).toBe('verified')
    const next = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    clock += 6_000
    published = [jwk(p256, { kid: 'a' }), jwk(next, { kid: 'b' })]
    expect(await of(next, 'b')).toBe('verified')
    expect(asked).toBe(2)
    // The reports have the fingerprints of all known public keys.
    expect(reported.map((keys) => keys.map(({ kid }) => kid))).toEqual([['a'], ['a', 'b']])
    expect(reported[1]![0]!.fingerprint).toBe(reported[0]![0]!.fingerprint)
    expect(new Set(reported[1]!.map(({ fingerprint }) => fingerprint)).size).toBe(2)
    published = new Error('away')
    clock += 60_000
    expect([await of(next, 'b', 'x'), await of(p256, 'a', 'y')]).toEqual(['verified', 'verified'])
    expect(await of(p384 as never, 'c').catch(() => 'refused')).toBe('refused')
    // Unknown ids do not make the address be asked often.
    for (let index = 0; index < 50; index++) expect(await of(next, `unknown-${index}`)).toBe('unavailable')
    expect(asked).toBeLessThanOrEqual(4)
    const third = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    published = [jwk(p256, { kid: 'a' }), jwk(third, { kid: 'd' })]
    clock += 6_000
    // A client triggers a fetch right before a key is published. Tokens of the new key wait and are not refused.
    expect(await of(next, 'nowhere')).toBe('refused')
    const fourth = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    published = [jwk(fourth, { kid: 'e' })]
    expect(await of(fourth, 'e')).toBe('unproven')
    clock += 6_000
    expect(await of(fourth, 'e')).toBe('verified')
    expect(troubles).toBeGreaterThan(0)
  })

  it('verify no more tokens once they are withdrawn, and tokens that they verified are refused', async () => {
    published = [jwk(p256, { kid: 'a' })]
    const keys = jwks()
    const { verify } = authenticator(keys)
    const token = { user: '', secret: await sign('ES256', p256.privateKey, { sub: 'alice' }, { kid: 'a' }) }
    expect((await verify(token)).kind).toBe('verified')
    published = []
    clock += 6_000
    const other = { user: '', secret: await sign('ES256', p256.privateKey, { sub: 'alice' }, { kid: 'other' }) }
    expect((await verify(other)).kind).toBe('refused')
    // The key might have been published again since.
    expect((await verify(token)).kind).toBe('unproven')
    clock += 6_000
    now += 6_000
    expect((await verify(token)).kind).toBe('refused')
  })

  it('report a token that they do not verify once as unproven, until the keys are fetched again', async () => {
    published = [jwk(p256, { kid: 'a' })]
    const keys = jwks()
    let looked = 0
    const { verify } = authenticator({
      version: keys.version,
      keysFor: (head) => {
        looked++
        return keys.keysFor(head)
      },
    })
    const of = async (pair: KeyPairKeyObjectResult) => ({
      user: '',
      secret: await sign('ES256', pair.privateKey, undefined, { kid: 'a' }),
    })
    expect((await verify(await of(p256))).kind).toBe('verified')
    const next = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const token = await of(next)
    clock += 1_500
    looked = 0
    // When a token is sent many times at once, only the first requests verify it.
    const many = await Promise.all(Array.from({ length: 20 }, () => verify(token)))
    expect(new Set(many.map(({ kind }) => kind))).toEqual(new Set(['unproven']))
    expect(looked).toBe(4)
    const known = { kind: 'unproven', user: '', retryAfterSeconds: 4 }
    expect(verify(token)).toMatchObject({ ...known, fresh: false })
    expect(await verify(await of(next))).toMatchObject({ ...known, fresh: true })
    published = [jwk(next, { kid: 'a' })]
    clock += 4_000
    now += 4_000
    expect((await verify(token)).kind).toBe('verified')
    expect(asked).toBe(2)
  })

  it('are fetched once for all waiting requests, which get "unavailable" if the fetch fails', async () => {
    published = new Error('away')
    const { verify } = authenticator(jwks())
    const many = await Promise.all(
      Array.from({ length: 20 }, async (_, index) =>
        verify({ user: '', secret: await sign('ES256', p256.privateKey, { sub: `u${index}` }, { kid: 'a' }) }),
      ),
    )
    expect(new Set(many.map(({ kind }) => kind))).toEqual(new Set(['unavailable']))
    expect(asked).toBe(1)
  })

  it('verify only with their declared algorithm and use, and never as a shared secret', async () => {
    const oct = createSecretKey(secret).export({ format: 'jwk' })
    published = [
      { ...oct, kid: 'secret' },
      jwk(rsa, { kid: 'ps', alg: 'PS256' }),
      jwk(p256, { kid: 'enc', use: 'enc' }),
      { kty: 'new', kid: 'new' },
      { ...rsa.privateKey.export({ format: 'jwk' }), kid: 'leaked' },
    ]
    const by = async (alg: string, key: KeyObject | Uint8Array, kid: string) =>
      kindOf(jwks(), await sign(alg, key, undefined, { kid }))
    expect(await by('HS256', secret, 'secret')).toBe('refused')
    expect(await by('PS256', rsa.privateKey, 'ps')).toBe('verified')
    expect(await by('RS256', rsa.privateKey, 'ps')).toBe('refused')
    expect(await by('ES256', p256.privateKey, 'enc')).toBe('refused')
    expect(await by('RS256', rsa.privateKey, 'leaked')).toBe('verified')
  })

  it('do not delay tokens with a known key if they arrive slowly, whatever unknown tokens arrive', async () => {
    const first = JSON.stringify({ keys: [jwk(p256, {})] })
    let answer = (_text: string): void => {}
    const keys = createJwks({
      fetchText: () => (asked++ === 0 ? Promise.resolve(first) : new Promise((resolve) => (answer = resolve))),
      now: () => clock,
      onTaken: () => {},
      onKeys: () => {},
      onTrouble: () => {},
    })
    const { verify } = authenticator(keys)
    const of = async (pair: KeyPairKeyObjectResult, sub: string) =>
      (await verify({ user: '', secret: await sign('ES256', pair.privateKey, { sub }) })).kind
    expect(await of(p256, 'alice')).toBe('verified')
    clock += 6_000
    const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const asker = of(stranger, 'u')
    await waitUntil('one asks', () => asked === 2)
    clock += 60_000
    const strangers = Array.from({ length: 20 }, (_, index) => of(stranger, `u${index}`))
    expect(new Set(await Promise.all(strangers))).toEqual(new Set(['unproven']))
    expect(await of(p256, 'bob')).toBe('verified')
    answer(first)
    expect(await asker).toBe('refused')
    expect(asked).toBe(2)
  })

  it('are fetched again after a change, and not more often, if they have no ids or a constant id', async () => {
    const next = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    for (const kid of [undefined, 'always the same']) {
      const named = kid === undefined ? {} : { kid }
      published = [jwk(p256, named)]
      asked = 0
      const { verify } = authenticator(jwks())
      const of = async (pair: KeyPairKeyObjectResult, alg = 'ES256', sub = 'alice') =>
        (await verify({ user: '', secret: await sign(alg, pair.privateKey, { sub }, named) })).kind
      expect(await of(p256)).toBe('verified')
      published = [jwk(next, named)]
      // The keys have just been fetched, so the client is asked to retry.
      expect([await of(next), asked]).toEqual(['unproven', 1])
      clock += 6_000
      expect([await of(next), asked]).toEqual(['verified', 2])
      clock += 6_000
      // Tokens that the withdrawn key verified are no longer valid.
      expect([await of(p256), asked]).toEqual(['refused', 3])
      for (let index = 0; index < 50; index++) expect(await of(p256, 'ES256', `u${index}`)).toBe('unproven')
      expect(asked).toBe(3)
      clock += 6_000
      // A key of another kind.
      published = [jwk(rsa, named)]
      expect([await of(rsa, 'RS256'), asked]).toEqual(['verified', 4])
      clock += 6_000
      published = new Error('away')
      expect([await of(rsa, 'RS256', 'somebody else'), await of(next)]).toEqual(['verified', 'unavailable'])
    }
  })

  it('are all tried if they have no ids and fit the algorithm', async () => {
    published = [jwk(otherRsa, {}), jwk(p256, {}), jwk(rsa, {})]
    expect(await kindOf(jwks(), await sign('RS256', rsa.privateKey))).toBe('verified')
    expect(await kindOf(jwks(), await sign('ES384', p384.privateKey))).toBe('refused')
  })
})
