import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Config } from '../../config/load-config.ts'
import { createCertificateAuthenticator } from '../../protocol/access/certificate-authenticator.ts'
import type { AuthenticationMethod } from '../../security/authentication/principal.ts'
import type { Authenticator } from '../../security/authentication/authenticator.ts'
import { createBoundedWork } from '../../security/authentication/bounded-work.ts'
import { parseGroupsFile, type GroupsOf } from '../../security/authentication/groups-file.ts'
import { createJwks, fetchKeys } from '../../security/authentication/jwks.ts'
import { createJwtAuthenticator } from '../../security/authentication/jwt-authenticator.ts'
import { keyOfFile, keysOfFiles, namesKeyId, parseTokenKey } from '../../security/authentication/jwt-key-file.ts'
import { createLdapVerifier } from '../../security/authentication/ldap-verifier.ts'
import {
  createPasswordAuthenticator,
  type PasswordVerifier,
} from '../../security/authentication/password-authenticator.ts'
import { createPasswordFileVerifier } from '../../security/authentication/password-file-verifier.ts'
import { parsePasswordFile } from '../../security/authentication/password-file.ts'
import type { TokenKeys } from '../../security/authentication/token-keys.ts'
import {
  parseUserMapping,
  sameName,
  userMappingBy,
  type UserMapping,
} from '../../security/authentication/user-mapping.ts'
import { watchFile, type WatchedFile } from '../../security/watched-file.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'

/** What is told of a file, or of a server of keys. */
export type FileName = 'rules' | 'passwords' | 'groups' | 'user_mapping' | 'token_key' | 'token_keys'
export interface SourceNews {
  taken(name: FileName, path: string): void
  broken(name: FileName, path: string, error: Error): void
}

export interface WiredAuthenticators {
  readonly byMethod: Partial<Record<AuthenticationMethod, Authenticator>>
  readonly mapping: UserMapping
  readonly groupsOf: GroupsOf
  /** Is it a user of the password file? */
  readonly isKnown: (name: string) => boolean
}

/** Hashes take what a core has: two leave it work, and more than so many seconds nobody waits. */
const HASHES_AT_ONCE = 2
const BINDS_AT_ONCE = 8
const MOST_WAITING = 32
const LDAP_WAIT_MS = 5_000

/**
 * What the configuration says of who may come in. Files are read now.
 * @throws ExitError 64 when one of them cannot be
 */
export function wireAuthenticators(config: Config, news: SourceNews): WiredAuthenticators {
  const passwords = config.authentication.includes('password') ? passwordsOf(config, news) : undefined
  const tokens = config.authentication.includes('jwt') ? tokensOf(config, news) : undefined
  return {
    byMethod: {
      certificate: createCertificateAuthenticator(clock.monotonicMs),
      ...(passwords ? { password: passwords.authenticator } : {}),
      ...(tokens ? { jwt: tokens } : {}),
    },
    mapping: mappingOf(config, news),
    groupsOf: groupsOf(config, news),
    isKnown: passwords?.verifier.knows ?? (() => false),
  }
}

function passwordsOf(
  config: Config,
  news: SourceNews,
): { readonly authenticator: Authenticator; readonly verifier: PasswordVerifier } {
  const verifier = config.passwordFile === undefined ? directoryOf(config) : passwordFileOf(config.passwordFile, news)
  const rememberMs = config.timeouts.verifiedPasswordMs
  return { verifier, authenticator: createPasswordAuthenticator({ verifier, rememberMs, now: clock.monotonicMs }) }
}

function passwordFileOf(path: string, news: SourceNews): PasswordVerifier {
  const key = randomBytes(32)
  const file = watched('passwords', path, (text) => parsePasswordFile(text, key), news)
  return createPasswordFileVerifier(() => file.value, createBoundedWork(HASHES_AT_ONCE, MOST_WAITING))
}

function directoryOf({ ldapUrl, ldapUserBindPattern, ldapCaFile }: Config): PasswordVerifier {
  const ca = ldapCaFile === undefined ? undefined : orEnd(ldapCaFile, () => readFileSync(ldapCaFile, 'utf8'))
  return createLdapVerifier({
    url: ldapUrl!,
    bindPattern: ldapUserBindPattern!,
    ca: () => ca,
    work: createBoundedWork(BINDS_AT_ONCE, MOST_WAITING),
    waitMs: LDAP_WAIT_MS,
  })
}

function tokensOf(config: Config, news: SourceNews): Authenticator {
  return createJwtAuthenticator({
    keys: tokenKeysOf(config, news),
    requiredIssuer: config.jwtRequiredIssuer,
    requiredAudiences: config.jwtRequiredAudience,
    principalField: config.jwtPrincipalField,
    groupsField: config.jwtGroupsField,
    clockSkewMs: config.timeouts.jwtClockSkewMs,
    now: clock.now,
  })
}

function tokenKeysOf({ jwksUrl, jwtKeyFile }: Config, news: SourceNews): TokenKeys {
  if (jwksUrl !== undefined)
    return createJwks({
      fetchText: () => fetchKeys(jwksUrl),
      now: clock.monotonicMs,
      onTaken: () => news.taken('token_keys', jwksUrl),
      onTrouble: (error) => news.broken('token_keys', jwksUrl, error),
    })
  if (namesKeyId(jwtKeyFile!)) return keysOfFiles(jwtKeyFile!)
  return keyOfFile(watched('token_key', jwtKeyFile!, parseTokenKey, news))
}

function mappingOf({ userMappingPattern, userMappingFile }: Config, news: SourceNews): UserMapping {
  if (userMappingPattern !== undefined) return orEnd('userMappingPattern', () => userMappingBy(userMappingPattern))
  if (userMappingFile === undefined) return sameName
  const file = watched('user_mapping', userMappingFile, parseUserMapping, news)
  return (name) => file.value(name)
}

function groupsOf({ groupsFile }: Config, news: SourceNews): GroupsOf {
  if (groupsFile === undefined) return () => []
  const file = watched('groups', groupsFile, parseGroupsFile, news)
  return (user) => file.value(user)
}

function watched<T>(name: FileName, path: string, read: (text: string) => T, news: SourceNews): WatchedFile<T> {
  return orEnd(path, () =>
    watchFile(path, read, {
      onReloaded: () => news.taken(name, path),
      onBroken: (_path, error) => news.broken(name, path, error),
    }),
  )
}

/** There is nothing before it that could stay in force. */
function orEnd<T>(path: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new ExitError(exitCodes.configuration, `${path}: ${(error as Error).message}`)
  }
}
