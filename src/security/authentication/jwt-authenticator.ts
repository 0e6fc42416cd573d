import type { IncomingMessage } from 'node:http'
import type { JWTPayload } from 'jose'
import type { Authenticator, Credential, CredentialVerdict, VerifiedName } from './authenticator.ts'
import { createBoundedWork } from './bounded-work.ts'
import { KeyNotYetKnown, KeysUnavailable, type TokenHead, type TokenKeys } from './token-keys.ts'
import { createVerifiedCache } from './verified-cache.ts'

export interface JwtOptions {
  readonly keys: TokenKeys
  readonly requiredIssuer?: string | undefined
  /** A token must have one of these audiences. Empty: any audience is accepted. */
  readonly requiredAudiences: readonly string[]
  /** The claim that names the principal; for a nested claim the path, with dots. */
  readonly principalField: string
  readonly groupsField?: string | undefined
  readonly clockSkewMs: number
  /** Wall clock, milliseconds since 1970. */
  readonly now: () => number
}

const MOST_REMEMBERED = 10_000
/** A verified token is remembered for at most this time, since keys may be withdrawn. */
const LONGEST_REMEMBERED_MS = 5 * 60_000
const MOST_TOKEN_CHARS = 16_384
const AT_ONCE = 4
const MOST_WAITING = 256

/** Verifies signed tokens that another service issued. */
export function createJwtAuthenticator(options: JwtOptions): Authenticator {
  const { keys, now } = options
  const remembered = createVerifiedCache<VerifiedName>(MOST_REMEMBERED, now)
  /** Tokens that no known key has signed. The value is the time when the keys may be read again, by the wall clock. */
  const unproven = createVerifiedCache<number>(MOST_REMEMBERED, now)
  const work = createBoundedWork(AT_ONCE, MOST_WAITING)
  let version = keys.version()

  function recall({ secret }: Credential): CredentialVerdict | undefined {
    if (keys.version() !== version) {
      version = keys.version()
      remembered.clear()
      unproven.clear()
    }
    const verified = remembered.get([secret])
    return verified && { kind: 'verified', verified, fresh: false }
  }

  function known(credential: Credential): CredentialVerdict | undefined {
    const verdict = recall(credential)
    if (verdict) return verdict
    const until = unproven.get([credential.secret])
    return until === undefined ? undefined : unprovenFor(until - now(), false)
  }

  async function look(token: string): Promise<CredentialVerdict> {
    const before = version
    const { errors } = await jose()
    try {
      const payload = await payloadOf(token, options)
      const name = claimOf(payload, options.principalField)
      if (typeof name !== 'string' || name === '') return refused(`the token has no name in ${options.principalField}`)
      const verified = { name, groups: groupsOf(payload, options.groupsField) }
      const lasts = payload.exp! * 1000 + options.clockSkewMs - now()
      if (keys.version() === before) remembered.set([token], verified, Math.min(lasts, LONGEST_REMEMBERED_MS))
      return { kind: 'verified', verified, fresh: true }
    } catch (error) {
      if (error instanceof KeyNotYetKnown) {
        const fresh = unproven.get([token]) === undefined
        unproven.set([token], now() + error.retryAfterMs, error.retryAfterMs)
        return unprovenFor(error.retryAfterMs, fresh)
      }
      if (error instanceof KeysUnavailable) return { kind: 'unavailable', reason: error.message }
      // The error codes of jose name claims and kinds, never values.
      return refused(error instanceof errors.JOSEError ? error.code : 'the key of the token is unknown')
    }
  }

  return {
    method: 'jwt',
    challenge: () => 'Bearer realm="Quipu"',
    credentialOf,
    recall,
    verify(credential, network) {
      const verdict = known(credential)
      if (verdict) return verdict
      if (credential.secret.length > MOST_TOKEN_CHARS) return refused('the token is too long')
      // Another request may have sent the same token while this one waited.
      const looking = work.run(network, async () => known(credential) ?? look(credential.secret))
      return looking ?? { kind: 'busy', retryAfterSeconds: 1 }
    },
  }
}

/** Loads the library where tokens are used. */
function jose() {
  return import('jose')
}

function refused(reason: string): CredentialVerdict {
  return { kind: 'refused', user: '', reason }
}

function unprovenFor(ms: number, fresh: boolean): CredentialVerdict {
  const reason = 'no known key has signed the token'
  return { kind: 'unproven', user: '', reason, retryAfterSeconds: Math.ceil(ms / 1000), fresh }
}

/** The JWT in the header. Other bearer tokens are for other authenticators. */
function credentialOf({ headers }: IncomingMessage): Credential | undefined {
  const token = /^Bearer +([\w-]+\.[\w-]*\.[\w-]*) *$/i.exec(headers.authorization ?? '')?.[1]
  return token === undefined ? undefined : { user: '', secret: token }
}

/**
 * The payload of a verified token.
 * @throws JOSEError when no key verifies it, now and for this server; KeysUnavailable
 */
async function payloadOf(token: string, options: JwtOptions): Promise<JWTPayload> {
  const { decodeProtectedHeader, errors, jwtVerify } = await jose()
  const head: TokenHead = decodeProtectedHeader(token)
  let last: unknown = new errors.JWKSNoMatchingKey()
  for await (const { key, algorithms } of options.keys.keysFor(head)) {
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [...algorithms],
        clockTolerance: options.clockSkewMs / 1000,
        currentDate: new Date(options.now()),
        requiredClaims: ['exp'],
        ...(options.requiredIssuer === undefined ? {} : { issuer: options.requiredIssuer }),
        ...(options.requiredAudiences.length === 0 ? {} : { audience: [...options.requiredAudiences] }),
      })
      return payload
    } catch (error) {
      last = error
      // Another key may have signed the token. Wrong claims are wrong with every key.
      const mayBeOthers =
        error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JOSEAlgNotAllowed
      if (!mayBeOthers) break
    }
  }
  throw last
}

/** A claim by its name, which may have dots (`https://example.com/user`), or by a path of names. */
function claimOf(payload: JWTPayload, path: string): unknown {
  if (Object.hasOwn(payload, path)) return payload[path]
  return path
    .split('.')
    .reduce<unknown>(
      (within, name) =>
        typeof within === 'object' && within !== null && Object.hasOwn(within, name)
          ? (within as Readonly<Record<string, unknown>>)[name]
          : undefined,
      payload,
    )
}

const MOST_GROUPS = 1_000

function groupsOf(payload: JWTPayload, field: string | undefined): readonly string[] {
  if (field === undefined) return []
  const claim = claimOf(payload, field)
  const all = Array.isArray(claim) ? claim : [claim]
  return all.filter((one): one is string => typeof one === 'string' && one !== '').slice(0, MOST_GROUPS)
}
