import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { principalSchema, type VerifiedPrincipal } from './authentication/principal.ts'

interface RelayedClient {
  readonly scheme: 'http' | 'https'
  /** Host and port as the client used them. */
  readonly authority: string
  readonly confidential: boolean
}

/** The facts that one coordinator asserts when it passes a client's request on to another. */
export interface RelayClaims {
  /** The address of the client; absent when its connection was closed already. */
  readonly clientAddress?: string | undefined
  /** How the client reached that coordinator; absent where a coordinator of an earlier version does not say it. */
  readonly client?: RelayedClient | undefined
  /** The client's principal, once it was verified. */
  readonly principal?: VerifiedPrincipal | undefined
  /** The request is that coordinator's own, not a client's. */
  readonly own?: true | undefined
}

/** The request that a credential is for. */
export interface RelayedCall {
  readonly method: string
  /** Path and query. */
  readonly target: string
}

/** The result of verifying a credential. `clock` and `epoch` are no attack: the sender tries again. */
type RelayVerdict =
  | { readonly kind: 'accepted'; readonly claims: RelayClaims; readonly bodyDigest: string }
  | { readonly kind: 'forged' | 'replayed' | 'epoch' }
  /** The credential's time is too far from this process's time, which `clock` contains. */
  | { readonly kind: 'clock'; readonly clock: string }

export interface RelayVerifier {
  /** Verifies a credential. Each credential is accepted once. */
  verify(credential: string, call: RelayedCall): RelayVerdict
}

/** The most difference between a credential's time and the verifier's, in milliseconds, either way. */
const RELAY_SKEW_MS = 30_000

const payloadSchema = z.object({
  time: z.number().int(),
  nonce: z.string().min(16).max(64),
  epoch: z.number().int(),
  body: z.string(),
  address: z.string().optional(),
  principal: principalSchema.optional(),
  own: z.literal(true).optional(),
  client: z.object({ scheme: z.enum(['http', 'https']), authority: z.string(), confidential: z.boolean() }).optional(),
})
type Payload = z.output<typeof payloadSchema>

/** SHA-256 of a body, in the form that credentials contain. */
export function bodyDigest(body: Buffer): string {
  return createHash('sha256').update(body).digest('base64url')
}

/**
 * Makes a credential for one request to the coordinator that writes in `epoch`: `payload.mac`, with an HMAC-SHA256 over
 * method, target, body digest, time, a nonce, epoch and claims. Anybody who sees it learns no key, and cannot use it
 * for another request.
 * @param now milliseconds since 1970 by the verifier's clock
 */
export function sealRelay(
  key: Buffer,
  call: RelayedCall & { readonly bodyDigest: string },
  claims: RelayClaims,
  { epoch, now }: { readonly epoch: number; readonly now: number },
): { readonly credential: string; readonly nonce: string } {
  const nonce = randomBytes(16).toString('base64url')
  const payload: Payload = {
    time: Math.round(now),
    nonce,
    epoch,
    body: call.bodyDigest,
    ...(claims.clientAddress === undefined ? {} : { address: claims.clientAddress }),
    ...(claims.client === undefined ? {} : { client: claims.client }),
    ...(claims.principal === undefined ? {} : { principal: claims.principal }),
    ...(claims.own === undefined ? {} : { own: claims.own }),
  }
  const text = Buffer.from(JSON.stringify(payload)).toString('base64url')
  return { credential: `${text}.${macOf(key, ['request', call.method, call.target, text])}`, nonce }
}

/**
 * Reads the time in a verifier's answer to a credential.
 * @returns milliseconds since 1970; undefined when the answer to a credential with this nonce does not prove it
 */
export function openRelayClock(key: Buffer, clock: string, nonce: string): number | undefined {
  const [time = '', mac = ''] = clock.split('.')
  return /^\d{1,15}$/.test(time) && isEqual(mac, macOf(key, ['clock', nonce, time])) ? Number(time) : undefined
}

/**
 * Verifies credentials for the epoch in which this process writes. Credentials for an earlier process, whose nonces are
 * not remembered, are for another epoch and are refused.
 * @param now milliseconds since 1970; must not run backwards
 */
export function createRelayVerifier(key: Buffer, epoch: number, now: () => number): RelayVerifier {
  /** Nonces in the order of arrival, with the time until which their credentials could be sent again. */
  const seen = new Map<string, number>()

  function isNew(nonce: string, time: number): boolean {
    for (const [old, until] of seen) {
      if (until >= time) break
      seen.delete(old)
    }
    if (seen.has(nonce)) return false
    seen.set(nonce, time + 2 * RELAY_SKEW_MS)
    return true
  }

  return {
    verify(credential, { method, target }) {
      const [text = '', mac = '', ...rest] = credential.split('.')
      if (rest.length > 0 || !isEqual(mac, macOf(key, ['request', method, target, text]))) return { kind: 'forged' }
      const payload = payloadSchema.safeParse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')))
      if (!payload.success) return { kind: 'forged' }
      const { time, nonce, body, address, principal, client, own } = payload.data
      if (payload.data.epoch !== epoch) return { kind: 'epoch' }
      const at = Math.round(now())
      if (Math.abs(at - time) > RELAY_SKEW_MS)
        return { kind: 'clock', clock: `${at}.${macOf(key, ['clock', nonce, String(at)])}` }
      if (!isNew(nonce, at)) return { kind: 'replayed' }
      return {
        kind: 'accepted',
        bodyDigest: body,
        claims: {
          clientAddress: address,
          ...(client === undefined ? {} : { client }),
          ...(principal === undefined ? {} : { principal }),
          ...(own === undefined ? {} : { own }),
        },
      }
    },
  }
}

/** An HMAC over a list of texts. JSON keeps the texts apart. */
function macOf(key: Buffer, parts: readonly string[]): string {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url')
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}
