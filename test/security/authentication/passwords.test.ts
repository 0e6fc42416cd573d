import { pbkdf2Sync, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { hashSync } from '@node-rs/bcrypt'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Credential } from '../../../src/security/authentication/authenticator.ts'
import { createBoundedWork } from '../../../src/security/authentication/bounded-work.ts'
import { createPasswordAuthenticator } from '../../../src/security/authentication/password-authenticator.ts'
import { createPasswordFileVerifier } from '../../../src/security/authentication/password-file-verifier.ts'
import { parsePasswordFile, type PasswordBook } from '../../../src/security/authentication/password-file.ts'
import { matches, parsePasswordHash, type PasswordHash } from '../../../src/security/authentication/password-hash.ts'

const key = randomBytes(32)
const salt = randomBytes(16)
const pbkdf2 = (password: string, algorithm: string, iterations = 1000): string =>
  `${iterations}:${salt.toString('hex')}:${pbkdf2Sync(password, salt, iterations, 32, algorithm).toString('hex')}`
const bcrypt = (password: string, version: '2a' | '2b' | '2y' = '2y', cost = 8): string =>
  hashSync(password, { cost, version })

describe('A password hash', () => {
  it.each([
    ...(['2a', '2b', '2y'] as const).map((version) => [version, bcrypt('geheim', version)]),
    ['PBKDF2 with SHA-1', pbkdf2('geheim', 'sha1')],
    ['PBKDF2 with SHA-256', pbkdf2('geheim', 'sha256')],
  ])('matches its password only, for the kind %s', async (_, text) => {
    expect(await matches('geheim', parsePasswordHash(text!))).toBe(true)
    expect(await matches('geheimer', parsePasswordHash(text!))).toBe(false)
  })

  it('does not match a password above 72 bytes if its hash is of bcrypt', async () => {
    const hash = parsePasswordHash(bcrypt('x'.repeat(72)))
    expect(await matches('x'.repeat(72), hash)).toBe(true)
    expect(await matches('x'.repeat(73), hash)).toBe(false)
  })

  it.each([
    bcrypt('x', '2y', 7),
    bcrypt('x').replace('$08$', '$31$'),
    pbkdf2('x', 'sha256', 999),
    'plain',
    '$2x$10$abcdefghijklmnopqrstuuCpuTTnCeMuA65KPC8WEnjCQ6RQWrxAK',
    '$2y$10$short',
    '1000:00:00',
    '1000::abcd',
    // This hash needs two minutes of a core for each guess.
    `10000000:00:${'00'.repeat(512)}`,
  ])('is invalid: %s', (text) => {
    expect(() => parsePasswordHash(text)).toThrow()
  })
})

describe('A password file', () => {
  it('is refused with the number of the wrong line, and without its text', () => {
    const hash = bcrypt('x')
    for (const [text, line] of [
      [`a:${hash}\nb`, 2],
      [`a:${hash}\n\na:${hash}`, 3],
      [`:${hash}`, 1],
      ['a:geheim', 1],
    ] as const) {
      expect(() => parsePasswordFile(text, key)).toThrow(`Line ${line}:`)
      expect(() => parsePasswordFile(text, key)).not.toThrow('geheim')
    }
  })

  it('may have Windows line ends and empty lines', () => {
    expect([...parsePasswordFile(`a:${bcrypt('x')}\r\n\r\n b:${bcrypt('x')}`, key).users.keys()]).toEqual(['a', 'b'])
  })
})

describe('The password authenticator', () => {
  let book: PasswordBook
  let now: number
  let compared: PasswordHash[]
  beforeEach(() => {
    now = 0
    compared = []
    book = parsePasswordFile(`alice:${bcrypt('geheim')}\nbob:${bcrypt('secret', '2b', 9)}`, key)
  })

  function authenticator(work = createBoundedWork(2, 32), compare = matches) {
    const verifier = createPasswordFileVerifier(
      () => book,
      work,
      (password, hash) => {
        compared.push(hash)
        return compare(password, hash)
      },
    )
    const made = createPasswordAuthenticator({ verifier, rememberMs: 1000, now: () => now })
    return {
      ...made,
      verify: (credential: Credential, network = '203.0.113.7') => made.verify(credential, network),
    }
  }
  const as = (user: string, secret: string) => ({ user, secret })

  it('remembers a verified password for a time, until the password file changes', async () => {
    const { verify } = authenticator()
    const fresh = async (): Promise<unknown> => ((await verify(as('alice', 'geheim'))) as { fresh?: boolean }).fresh
    expect([await fresh(), await fresh()]).toEqual([true, false])
    // The verdict is synchronous, because each statement needs it.
    expect(verify(as('alice', 'geheim'))).toMatchObject({ kind: 'verified', verified: { name: 'alice' } })
    now = 1001
    expect([await fresh(), await fresh()]).toEqual([true, false])
    book = parsePasswordFile(`alice:${bcrypt('anders')}`, key)
    expect(await verify(as('alice', 'geheim'))).toMatchObject({ kind: 'refused' })
    expect(await verify(as('alice', 'anders'))).toMatchObject({ kind: 'verified', fresh: true })
  })

  it('does not remember a password that was verified while the file changed', async () => {
    let go = (): void => {}
    const waits = new Promise<void>((resolve) => (go = resolve))
    const { verify } = authenticator(undefined, async () => {
      await waits
      return true
    })
    const first = verify(as('alice', 'geheim'))
    book = parsePasswordFile(`bob:${bcrypt('x')}`, key)
    go()
    await first
    expect(await verify(as('alice', 'geheim'))).toMatchObject({ kind: 'refused' })
  })

  it('compares one hash for unknown users as for wrong passwords', async () => {
    const { verify } = authenticator()
    for (const [user, secret] of [
      ['alice', 'wrong'],
      ['mallory', 'geheim'],
      ['constructor', 'geheim'],
    ] as const) {
      compared = []
      expect(await verify(as(user, secret))).toEqual({
        kind: 'refused',
        user,
        reason: 'the user is unknown, or the password is wrong',
      })
      expect(compared.length).toBe(1)
    }
    // An unknown user is compared with a hash of the file, always with the same hash.
    const drawn = async (user: string) => {
      compared = []
      await verify(as(user, 'x'))
      return compared[0]
    }
    const strangers = await Promise.all(Array.from({ length: 12 }, async (_, index) => book.hashOf(`s${index}`).hash))
    expect(new Set(strangers)).toEqual(new Set(book.users.values()))
    expect(await drawn('s1')).toBe(strangers[1])
    book = parsePasswordFile('', key)
    compared = []
    await verify(as('alice', 'x'))
    expect(compared.length).toBe(1)
  })

  it('refuses an unknown user although the compared hash matches', async () => {
    const { verify } = authenticator(undefined, async () => true)
    expect(await verify(as('mallory', 'geheim'))).toMatchObject({ kind: 'refused' })
  })

  it('verifies two passwords at once, and answers "busy" when too many wait', async () => {
    const waiting: ((same: boolean) => void)[] = []
    const { verify } = authenticator(createBoundedWork(2, 3), () => new Promise((resolve) => waiting.push(resolve)))
    const five = Array.from({ length: 5 }, (_, index) => verify(as('alice', `${index}`)))
    expect(await verify(as('alice', '6'))).toEqual({ kind: 'busy', retryAfterSeconds: 1 })
    for (let done = 0; done < 5; done++) {
      await expect.poll(() => waiting.length).toBe(Math.min(done + 2, 5))
      waiting[done]!(false)
    }
    expect((await Promise.all(five)).map(({ kind }) => kind)).toEqual(Array(5).fill('refused'))
  })

  it.each([
    ['Basic YWxpY2U6Z2U6aGVpbQ==', { user: 'alice', secret: 'ge:heim' }],
    ['basic  YWxpY2U6', { user: 'alice', secret: '' }],
    ['Basic YWxpY2U=', { user: 'alice', secret: '' }],
    // The same credential in UTF-8 and in ISO 8859-1.
    ['Basic asO8cmdlbjpzY2jDtm4=', { user: 'jürgen', secret: 'schön' }],
    ['Basic avxyZ2VuOnNjaPZu', { user: 'jürgen', secret: 'schön' }],
    ['Basic', undefined],
    ['Bearer YWxpY2U6eA==', undefined],
    ['Basic ä', undefined],
    [undefined, undefined],
  ])('reads the credential of %s', (authorization, credential) => {
    const request = { headers: { authorization } } as unknown as IncomingMessage
    expect(authenticator().credentialOf(request)).toEqual(credential)
  })

  it('refuses empty names and passwords, and those above a kilobyte', async () => {
    const { verify } = authenticator(undefined, async () => true)
    for (const [user, secret] of [
      ['', 'x'],
      ['alice', ''],
      ['alice', 'ä'.repeat(513)],
      ['a'.repeat(1025), 'x'],
    ] as const)
      expect(await verify(as(user, secret))).toMatchObject({ kind: 'refused' })
    expect(compared).toEqual([])
  })
})
