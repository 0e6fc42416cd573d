import type { BoundedWork } from './bounded-work.ts'
import type { PasswordVerdict, PasswordVerifier } from './password-authenticator.ts'

export interface LdapOptions {
  readonly url: string
  /** `${USER}` is the name; several by colons, one of which must let him in. */
  readonly bindPattern: string
  /** Certificates (PEM) that vouch for the server, in place of the machine's. */
  readonly ca: () => string | undefined
  readonly work: BoundedWork
  readonly waitMs: number
}

/** Loaded where there is a directory. */
async function ldap() {
  const library = await import('ldapts')
  return {
    Client: library.Client,
    /** The directory has answered: not with this password. */
    saysNo: [
      library.InvalidCredentialsError,
      library.NoSuchObjectError,
      library.InvalidDNSyntaxError,
      library.InappropriateAuthError,
      library.InsufficientAccessError,
      library.ConstraintViolationError,
      library.UnwillingToPerformError,
    ],
  }
}

const USER = '${USER}'

/** Passwords that a directory vouches for, by a simple bind. */
export function createLdapVerifier({ url, bindPattern, ca, work, waitMs }: LdapOptions): PasswordVerifier {
  const patterns = bindPattern.split(':')
  const version = {}

  async function bind(name: string, password: string): Promise<PasswordVerdict> {
    const secure = url.startsWith('ldaps:')
    const trusted = ca()
    const { Client, saysNo } = await ldap()
    const client = new Client({
      url,
      timeout: waitMs,
      connectTimeout: waitMs,
      ...(secure ? { tlsOptions: trusted === undefined ? {} : { ca: trusted } } : {}),
    })
    try {
      await client.bind(name, password)
      return { kind: 'right' }
    } catch (error) {
      if (saysNo.some((kind) => error instanceof kind)) return { kind: 'wrong' }
      return { kind: 'unavailable', reason: `LDAP: ${(error as Error).name}` }
    } finally {
      await client.unbind().catch(() => {})
    }
  }

  async function check(names: readonly string[], password: string): Promise<PasswordVerdict> {
    let verdict: PasswordVerdict = { kind: 'wrong' }
    for (const name of names) {
      const said = await bind(name, password)
      if (said.kind === 'right') return said
      if (said.kind === 'unavailable') verdict = said
    }
    return verdict
  }

  return {
    version: () => version,
    knows: () => false,
    check(user, password, network) {
      // A bind without a password is anonymous, and always lets in.
      if (password === '' || !isName(user)) return { kind: 'wrong' }
      const names = patterns.flatMap((pattern) => boundName(pattern, user) ?? [])
      return work.run(network, () => check(names, password)) ?? { kind: 'busy' }
    },
  }
}

/** Directories take spaces that differ for the same name: each user has one name here. Control characters are in none. */
function isName(user: string): boolean {
  return user === user.trim() && !/\s\s|\p{Cc}/u.test(user)
}

/** @returns undefined where the pattern is no distinguished name, and the user would be something else than a name in it */
function boundName(pattern: string, user: string): string | undefined {
  if (pattern.includes('=')) return pattern.split(USER).join(escapeDn(user))
  return /[\\,=+<>#;"/@]/.test(user) ? undefined : pattern.split(USER).join(user)
}

/** RFC 4514, 2.4. */
export function escapeDn(value: string): string {
  return Array.from(value, (char, index) => {
    const first = index === 0 && (char === '#' || char === ' ')
    const last = index === value.length - 1 && char === ' '
    return first || last || '\\,=+<>;"'.includes(char) ? `\\${char}` : char
  }).join('')
}
