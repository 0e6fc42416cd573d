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
import { deriveKey } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { createHttpClient } from '../../shared/http-client.ts'
import { createServerTrust } from '../../shared/server-trust.ts'
import { orEnd, type AccessSources } from '../access/access-sources.ts'
import type { KeysInForce } from '../access/keys-in-force.ts'
import { shownAddress } from '../shown-address.ts'

export interface WiredAuthenticators {
  readonly byMethod: Partial<Record<AuthenticationMethod, Authenticator>>
  readonly mapping: UserMapping
  readonly groupsOf: GroupsOf
  /** Whether the password file has this user. */
  readonly isKnown: (name: string) => boolean
  /** Present only with a password file: see `PasswordVerifier`. */
  readonly passwordMarkOf: PasswordVerifier['markOf']
}

/**
 * How many password hashes run at once. Each takes a whole core. Two leave room for other work, and a waiting client
 * waits only seconds.
 */
const HASHES_AT_ONCE = 2
const BINDS_AT_ONCE = 8
const MOST_WAITING = 32
const LDAP_WAIT_MS = 5_000

/**
 * Makes the authenticators that the configuration asks for. Reads their files now.
 * @param secret of the cluster
 * @throws ExitError 64 when a file cannot be read
 */
export function wireAuthenticators(
  config: Config,
  secret: string,
  sources: AccessSources,
  keys: Pick<KeysInForce, 'tokenKeys'>,
): WiredAuthenticators {
  const passwords = config.authentication.includes('password') ? passwordsOf(config, secret, sources) : undefined
  const tokens = config.authentication.includes('jwt') ? tokensOf(config, sources, keys) : undefined
  return {
    byMethod: {
      certificate: createCertificateAuthenticator(clock.monotonicMs),
      ...(passwords ? { password: passwords.authenticator } : {}),
      ...(tokens ? { jwt: tokens } : {}),
    },
    mapping: mappingOf(config, sources),
    groupsOf: groupsOf(config, sources),
    isKnown: passwords?.verifier.knows ?? (() => false),
    passwordMarkOf: passwords?.verifier.markOf,
  }
}

function passwordsOf(
  config: Config,
  secret: string,
  sources: AccessSources,
): { readonly authenticator: Authenticator; readonly verifier: PasswordVerifier } {
  const verifier =
    config.passwordFile === undefined
      ? directoryOf(config)
      : passwordFileOf(config.passwordFile, deriveKey(secret, 'password-file'), sources)
  const rememberMs = config.timeouts.verifiedPasswordMs
  return { verifier, authenticator: createPasswordAuthenticator({ verifier, rememberMs, now: clock.monotonicMs }) }
}

function passwordFileOf(path: string, key: Buffer, sources: AccessSources): PasswordVerifier {
  const file = sources.follow('passwords', path, (text) => parsePasswordFile(text, key))
  return createPasswordFileVerifier(() => file.value, createBoundedWork(HASHES_AT_ONCE, MOST_WAITING))
}

function directoryOf({ ldapUrl, ldapUserBindPattern, ldapCase, ldapCaFile }: Config): PasswordVerifier {
  const ca = ldapCaFile === undefined ? undefined : orEnd(ldapCaFile, () => readFileSync(ldapCaFile, 'utf8'))
  return createLdapVerifier({
    url: ldapUrl!,
    bindPattern: ldapUserBindPattern!,
    ca: () => ca,
    names: ldapCase,
    work: createBoundedWork(BINDS_AT_ONCE, MOST_WAITING),
    waitMs: LDAP_WAIT_MS,
  })
}

function tokensOf(config: Config, sources: AccessSources, keys: Pick<KeysInForce, 'tokenKeys'>): Authenticator {
  return createJwtAuthenticator({
    keys: tokenKeysOf(config, sources, keys),
    requiredIssuer: config.jwtRequiredIssuer,
    requiredAudiences: config.jwtRequiredAudience,
    principalField: config.jwtPrincipalField,
    groupsField: config.jwtGroupsField,
    clockSkewMs: config.timeouts.jwtClockSkewMs,
    now: clock.now,
  })
}

function tokenKeysOf(
  { jwksUrl, jwtKeyFile }: Config,
  sources: AccessSources,
  inForce: Pick<KeysInForce, 'tokenKeys'>,
): TokenKeys {
  if (jwksUrl !== undefined) {
    // Public authorities vouch for this server, or those that NODE_EXTRA_CA_CERTS names.
    const http = createHttpClient(createServerTrust({}), {})
    const shown = shownAddress(jwksUrl)
    return createJwks({
      fetchText: () => fetchKeys(http, jwksUrl),
      now: clock.monotonicMs,
      onTaken: () => sources.taken('token_keys', shown),
      onKeys: (keys) => inForce.tokenKeys(shown, keys),
      onTrouble: (error) => sources.broken('token_keys', shown, error),
    })
  }
  if (namesKeyId(jwtKeyFile!)) return keysOfFiles(jwtKeyFile!)
  return keyOfFile(sources.follow('token_key', jwtKeyFile!, parseTokenKey))
}

function mappingOf({ userMappingPattern, userMappingFile }: Config, sources: AccessSources): UserMapping {
  if (userMappingPattern !== undefined) return orEnd('userMappingPattern', () => userMappingBy(userMappingPattern))
  if (userMappingFile === undefined) return sameName
  const file = sources.follow('user_mapping', userMappingFile, parseUserMapping)
  return (name) => file.value(name)
}

function groupsOf({ groupsFile }: Config, sources: AccessSources): GroupsOf {
  if (groupsFile === undefined) return () => []
  const file = sources.follow('groups', groupsFile, parseGroupsFile, { recorded: true })
  return (user) => file.value(user)
}
