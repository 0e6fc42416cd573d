import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { askServer, type HttpClient } from '../../shared/http-client.ts'
import { tokenPublicKey } from './jwt-key-file.ts'
import { KeyNotYetKnown, KeysUnavailable, type TokenKey, type TokenKeys } from './token-keys.ts'

const jwksSchema = z.object({
  keys: z.array(
    z.looseObject({
      kty: z.string(),
      kid: z.string().optional(),
      use: z.string().optional(),
      alg: z.string().optional(),
    }),
  ),
})

interface NamedKey extends TokenKey {
  readonly kid: string | undefined
}

/** A published key, with what distinguishes it from others. */
export interface PublishedKey {
  readonly kid?: string
  /** SHA-256 of its SubjectPublicKeyInfo, hex. */
  readonly fingerprint: string
}

export interface JwksOptions {
  readonly fetchText: () => Promise<string>
  readonly now: () => number
  /** Called when the keys were read for the first time, or again after a failure. */
  readonly onTaken: () => void
  /**
   * Called when the published keys changed. `keys`: the keys that verify tokens from now on, in the order of the
   * server.
   */
  readonly onKeys: (keys: readonly PublishedKey[]) => void
  /** Called when the keys could not be read. The known keys stay. */
  readonly onTrouble: (error: Error) => void
}

/**
 * A token that no known key has signed makes Quipu read the keys again, but no sooner than this after the last time.
 */
const LEAST_BETWEEN_MS = 5_000
/** The least time to retry when the answer is late. */
const LEAST_RETRY_MS = 1_000
/** The keys are read again after this time, so that a withdrawn key is not accepted for ever. */
const REFRESH_MS = 5 * 60_000
const MOST_KEYS = 100
const MOST_BYTES = 1024 * 1024
const FETCH_MS = 5_000

/** Keys that a server publishes. A new key is found when the first token that it signed arrives. */
export function createJwks({ fetchText, now, onTaken, onKeys, onTrouble }: JwksOptions): TokenKeys {
  let known: readonly NamedKey[] | undefined
  let version = {}
  let text = ''
  let askedAt = -Infinity
  /** The number of reads that were started, and the number of the last read that ended. */
  let asks = 0
  let answered = 0
  let failing = true
  let asking: Promise<void> | undefined

  function ask(): Promise<void> {
    if (asking) return asking
    askedAt = now()
    asks++
    return (asking = fetchText()
      .then((answer) => {
        if (answer !== text) {
          known = parseJwks(answer)
          text = answer
          version = {}
          onKeys(known.map(publishedKey))
        }
        if (failing) onTaken()
        failing = false
      })
      .catch((error: unknown) => {
        failing = true
        onTrouble(error as Error)
      })
      .finally(() => {
        asking = undefined
        answered = asks
      }))
  }

  function fitting(kid: string | undefined): readonly NamedKey[] {
    return (known ?? []).filter((key) => kid === undefined || key.kid === kid)
  }

  return {
    version: () => version,
    async *keysFor({ kid }) {
      const before = asks
      const first = fitting(kid)
      // A user who logs in does not wait for keys that are known.
      if (first.length > 0 && now() - askedAt > REFRESH_MS) void ask()
      yield* first
      // A server may change its keys without changing their ids, so the keys are read again.
      if (!asking && now() - askedAt > LEAST_BETWEEN_MS) await ask()
      // While no keys are known, a token waits for the read under way. Otherwise it does not wait, since anybody can
      // send unknown tokens: the client tries again.
      else if (!known) await asking
      yield* fitting(kid).filter((key) => !first.includes(key))
      if (!known || failing) throw new KeysUnavailable('The keys of tokens cannot be fetched')
      // The key may have been published since. A client that sends unknown tokens all the time must not keep a new key
      // out.
      if (answered <= before) throw new KeyNotYetKnown(Math.max(LEAST_RETRY_MS, askedAt + LEAST_BETWEEN_MS - now()))
    },
  }
}

function publishedKey({ kid, key }: NamedKey): PublishedKey {
  const fingerprint = createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
  return kid === undefined ? { fingerprint } : { kid, fingerprint }
}

/**
 * Parses a JWKS document. Skips keys of other kinds and keys that do not sign.
 * @throws Error when the text is no JWKS document
 */
function parseJwks(text: string): readonly NamedKey[] {
  const { keys } = jwksSchema.parse(JSON.parse(text))
  return keys.slice(0, MOST_KEYS).flatMap((jwk): NamedKey[] => {
    // A symmetric key that is published is not secret.
    if (jwk.kty === 'oct' || (jwk.use !== undefined && jwk.use !== 'sig')) return []
    try {
      const found = tokenPublicKey(publicKeyOf(jwk))
      const algorithms = found.algorithms.filter((one) => jwk.alg === undefined || jwk.alg === one)
      return algorithms.length === 0 ? [] : [{ ...found, algorithms, kid: jwk.kid }]
    } catch {
      return []
    }
  })
}

function publicKeyOf(jwk: Readonly<Record<string, unknown>>): KeyObject {
  const { d: _d, ...open } = jwk
  return createPublicKey({ key: open as JsonWebKey, format: 'jwk' })
}

/**
 * Reads the document of a key server.
 * @param url as configured; user and password in it are sent by Basic authentication
 * @throws Error when the server takes too long, sends too much, or answers with another status than 200
 */
export async function fetchKeys(http: HttpClient, url: string): Promise<string> {
  const { origin, pathname, search, username, password } = new URL(url)
  const credential = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  const { status, text } = await askServer(http, origin, `${pathname}${search}`, {
    headers: {
      accept: 'application/json',
      ...(credential === ':' ? {} : { authorization: `Basic ${Buffer.from(credential).toString('base64')}` }),
    },
    signal: AbortSignal.timeout(FETCH_MS),
    mostBytes: MOST_BYTES,
  })
  if (status !== 200) throw new Error(`The server of the keys answered ${status}`)
  return text
}
