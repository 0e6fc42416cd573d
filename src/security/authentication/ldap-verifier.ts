import type { BoundedWork } from './bounded-work.ts'
import type { Client as LdapClient } from 'ldapts'
import type { PasswordVerdict, PasswordVerifier } from './password-authenticator.ts'
import { comparedName, isUserName, lowerName } from './user-name.ts'

export interface LdapOptions {
  readonly url: string
  /** `${USER}` stands for the name. Several patterns are separated by colons; one of them must let the user in. */
  readonly bindPattern: string
  /** Certificates (PEM) that are trusted for the server, instead of those of the machine. */
  readonly ca: () => string | undefined
  /** The name of a user after log-in: the typed name in lower case, or the name as the directory writes it. */
  readonly names: LdapNames
  readonly work: BoundedWork
  readonly waitMs: number
}

export type LdapNames = 'lower' | 'directory'

/** Loads the library where a directory is configured. */
async function ldap() {
  const library = await import('ldapts')
  return {
    Client: library.Client,
    /** Errors by which the directory says that this name and password do not match. */
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

/** RFC 4532: asks the directory for the identity that a connection is bound as. */
const WHO_AM_I = '1.3.6.1.4.1.4203.1.11.3'

/**
 * Verifies passwords by a simple bind at a directory. Each account of the directory is one user, however the name is
 * spelled.
 */
export function createLdapVerifier(options: LdapOptions): PasswordVerifier {
  const { url, bindPattern, ca, names, work, waitMs } = options
  const patterns = bindPattern.split(':')
  const version = {}

  async function bind(pattern: string, user: string, password: string): Promise<PasswordVerdict> {
    const bound = boundName(pattern, user)
    if (bound === undefined) return { kind: 'wrong' }
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
      await client.bind(bound, password)
    } catch (error) {
      await client.unbind().catch(() => {})
      if (saysNo.some((kind) => error instanceof kind)) return { kind: 'wrong' }
      return { kind: 'unavailable', reason: `LDAP: ${(error as Error).name}` }
    }
    try {
      return names === 'lower' ? { kind: 'right', name: user } : await named(client, pattern, user)
    } catch (error) {
      return { kind: 'unavailable', reason: `LDAP, name of a user: ${(error as Error).name}` }
    } finally {
      await client.unbind().catch(() => {})
    }
  }

  async function check(user: string, password: string): Promise<PasswordVerdict> {
    let verdict: PasswordVerdict = { kind: 'wrong' }
    for (const pattern of patterns) {
      const said = await bind(pattern, user, password)
      if (said.kind === 'right') return said
      if (said.kind === 'unavailable') verdict = said
    }
    return verdict
  }

  return {
    version: () => version,
    knows: () => false,
    check(given, password, network) {
      // The name that is bound is the name that the user gets. A directory that compares case lets in only one of the
      // spellings.
      const user = names === 'lower' ? lowerName(given) : given
      // A bind without a password is anonymous and always succeeds.
      if (password === '' || user === undefined || !isUserName(user)) return { kind: 'wrong' }
      return work.run(network, () => check(user, password)) ?? { kind: 'busy' }
    },
  }
}

/**
 * The name of a bound user as the directory writes it. The answer to "who am I" may repeat the typed name, so the entry
 * is read.
 */
async function named(client: LdapClient, pattern: string, typed: string): Promise<PasswordVerdict> {
  const { value: said = '' } = await client.exop(WHO_AM_I)
  const name = said.startsWith('dn:') ? await entryName(client, said.slice(3), pattern, typed) : accountName(said)
  if (name !== undefined && isUserName(name)) return { kind: 'right', name }
  return { kind: 'unavailable', reason: 'LDAP: the directory does not say how it writes the name of the accepted user' }
}

/**
 * The user's name in their directory entry: of the values of the attribute that the pattern uses, the one that fits.
 */
async function entryName(client: LdapClient, dn: string, pattern: string, typed: string): Promise<string | undefined> {
  const attribute = new RegExp(String.raw`([\w.-]+) *= *\$\{USER\} *(?:[,+]|$)`).exec(pattern)?.[1]
  if (attribute === undefined || dn === '') return undefined
  const { searchEntries } = await client.search(dn, { scope: 'base', attributes: [attribute] })
  const [entry] = searchEntries
  const values = Object.entries(entry ?? {}).find(([name]) => name.toLowerCase() === attribute.toLowerCase())?.[1]
  const texts = [values].flat().filter((value) => typeof value === 'string')
  return texts.length === 1 ? texts[0] : texts.find((value) => comparedName(value) === comparedName(typed))
}

/** The name in `u:DOMAIN\\name` or `u:name@realm`, which is how Active Directory answers. */
function accountName(said: string): string | undefined {
  return /^u:(?:[^\\]*\\)?([^@]+)/.exec(said)?.[1]
}

/**
 * The name to bind with.
 * @returns undefined where the pattern is no distinguished name, and the user's text would be more than a name in it
 */
function boundName(pattern: string, user: string): string | undefined {
  if (pattern.includes('=')) return pattern.split(USER).join(escapeDn(user))
  return /[\\,=+<>#;"/@]/.test(user) ? undefined : pattern.split(USER).join(user)
}

/** Escapes a value for a distinguished name. RFC 4514, 2.4. */
export function escapeDn(value: string): string {
  return Array.from(value, (char, index) => {
    const first = index === 0 && (char === '#' || char === ' ')
    const last = index === value.length - 1 && char === ' '
    return first || last || '\\,=+<>;"'.includes(char) ? `\\${char}` : char
  }).join('')
}
