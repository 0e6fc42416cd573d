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

/** A key that is published, by what it can be told from others. */
export interface PublishedKey {
  readonly kid?: string
  /** SHA-256 of its SubjectPublicKeyInfo, hex. */
  readonly fingerprint: string
}

export interface JwksOptions {
  readonly fetchText: () => Promise<string>
  readonly now: () => number
  /** They are there, for the first time or again. */
  readonly onTaken: () => void
  /** What is published was changed: those that tokens are believed by from now on, in the order of the server. */
  readonly onKeys: (keys: readonly PublishedKey[]) => void
  /** The keys could not be had; those that are known stay. */
  readonly onTrouble: (error: Error) => void
}

/** A token that no known key has signed asks for the keys anew, but no sooner than this after the last time. */
const LEAST_BETWEEN_MS = 5_000
/** Where the answer is late. */
const LEAST_RETRY_MS = 1_000
/** Keys are asked for anew after so long, so that one that was withdrawn is not believed for ever. */
const REFRESH_MS = 5 * 60_000
const MOST_KEYS = 100
const MOST_BYTES = 1024 * 1024
const FETCH_MS = 5_000

/** Keys that a server publishes: new ones are found when the first token of theirs comes. */
export function createJwks({ fetchText, now, onTaken, onKeys, onTrouble }: JwksOptions): TokenKeys {
  let known: readonly NamedKey[] | undefined
  let version = {}
  let text = ''
  let askedAt = -Infinity
  /** How often they were asked for, and which of these has come to its end last. */
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
      // Whoever logs in does not wait for keys that are known.
      if (first.length > 0 && now() - askedAt > REFRESH_MS) void ask()
      yield* first
      // Their names, where they have any, need not change with them.
      if (!asking && now() - askedAt > LEAST_BETWEEN_MS) await ask()
      // One waits for who has the keys, and not all whom a stranger sends: they come again.
      else if (!known) await asking
      yield* fitting(kid).filter((key) => !first.includes(key))
      if (!known || failing) throw new KeysUnavailable('The keys of tokens cannot be had')
      // It may have been published since: whoever makes the keys be asked for all the time keeps no new one out.
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

/** @throws Error when it is none. Keys of other kinds, and those that sign nothing, are passed over */
function parseJwks(text: string): readonly NamedKey[] {
  const { keys } = jwksSchema.parse(JSON.parse(text))
  return keys.slice(0, MOST_KEYS).flatMap((jwk): NamedKey[] => {
    // A secret that is published is none.
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
 * What a server of keys says.
 * @param url as configured; user and password in it are sent by Basic authentication
 * @throws Error when it takes long, says much, or something else than 200
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
  if (status !== 200) throw new Error(`It answered ${status}`)
  return text
}
