import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { Authenticator, Credential, CredentialVerdict } from './authenticator.ts'
import { isUserName, NO_USER_NAME } from './user-name.ts'
import { createVerifiedCache } from './verified-cache.ts'

/** Verifies passwords. */
export interface PasswordVerifier {
  /**
   * Verifies a password. It must take as long, and do the same, for users who do not exist.
   * @param network the network that the password comes from; networks take turns in slow verifications
   */
  check(user: string, password: string, network: string): Promise<PasswordVerdict> | PasswordVerdict
  /** Whether the user exists, as far as the verifier knows without the password. */
  knows(user: string): boolean
  /**
   * A mark that changes with the user's password. Sessions of the page are valid only while it is the same. It reveals
   * nothing about the password.
   * @returns undefined when there is no such user. The method is absent where the verifier cannot know it without the
   * password
   */
  markOf?(user: string): string | undefined
  /** Changes whenever passwords may have changed: passwords that were verified before must be verified again. */
  readonly version: () => unknown
}

export type PasswordVerdict =
  /** `name`: the one name of the user, where several spellings are accepted. Absent: the name as it was given. */
  | { readonly kind: 'right'; readonly name?: string }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'unavailable'; readonly reason: string }

export interface PasswordAuthenticatorOptions {
  readonly verifier: PasswordVerifier
  /** How long a verified password is not verified again, milliseconds. */
  readonly rememberMs: number
  readonly now: () => number
}

const MOST_REMEMBERED = 1_000
/** Longer users and passwords are refused without verifying them. */
const MOST_BYTES = 1_024

/** Verifies Basic authentication. */
export function createPasswordAuthenticator(options: PasswordAuthenticatorOptions): Authenticator {
  const { verifier, rememberMs, now } = options
  const remembered = createVerifiedCache<string>(MOST_REMEMBERED, now)
  let version = verifier.version()

  async function late(
    { user, secret }: Credential,
    checking: ReturnType<PasswordVerifier['check']>,
  ): Promise<CredentialVerdict> {
    const before = version
    const verdict = await checking
    switch (verdict.kind) {
      case 'right':
        // A verdict about passwords that are no longer in force is not remembered.
        if (verifier.version() === before) remembered.set([user, secret], verdict.name ?? user, rememberMs)
        return { kind: 'verified', verified: { name: verdict.name ?? user, groups: [] }, fresh: true }
      case 'wrong':
        return { kind: 'refused', user, reason: 'the user is unknown, or the password is wrong' }
      case 'busy':
        return { kind: 'busy', retryAfterSeconds: 1 }
      case 'unavailable':
        return { kind: 'unavailable', reason: verdict.reason }
    }
  }

  return {
    method: 'password',
    challenge: () => 'Basic realm="Quipu", charset="UTF-8"',
    credentialOf,
    remembers: ({ user, secret }) => verifier.version() === version && remembered.get([user, secret]) !== undefined,
    verify(credential, network) {
      const { user, secret } = credential
      if (
        user === '' ||
        secret === '' ||
        Buffer.byteLength(user) > MOST_BYTES ||
        Buffer.byteLength(secret) > MOST_BYTES
      )
        return { kind: 'refused', user, reason: 'the user or the password is missing' }
      if (!isUserName(user)) return { kind: 'refused', user, reason: `the given name ${NO_USER_NAME}` }
      if (verifier.version() !== version) {
        version = verifier.version()
        remembered.clear()
      }
      const name = remembered.get([user, secret])
      if (name !== undefined) return { kind: 'verified', verified: { name, groups: [] }, fresh: false }
      return late(credential, verifier.check(user, secret, network))
    },
  }
}

function credentialOf({ headers }: IncomingMessage): Credential | undefined {
  const match = /^Basic +([A-Za-z0-9+/=_-]*) *$/i.exec(headers.authorization ?? '')
  if (!match) return undefined
  const bytes = Buffer.from(match[1]!, 'base64')
  // UTF-8 as the challenge asks for, or Latin-1, which some clients send all the same.
  const text = bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1')
  const at = text.indexOf(':')
  return at < 0 ? { user: text, secret: '' } : { user: text.slice(0, at), secret: text.slice(at + 1) }
}
