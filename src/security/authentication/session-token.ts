import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../../shared/clock.ts'
import { parseJson } from '../../shared/parse-json.ts'
import type { VerifiedPrincipal } from './principal.ts'

/** How the holder of the session logged in. */
export type SessionMethod = Extract<VerifiedPrincipal['method'], 'oauth2' | 'password'>
/**
 * How the session is carried: by a program as a bearer token, by a browser as a cookie. Neither is accepted as the
 * other.
 */
export type SessionCarrier = 'program' | 'page'

/** The part of a token that is readable before its signature is checked. */
export interface ShownSession {
  readonly id: string
  readonly method: SessionMethod
  readonly carrier: SessionCarrier
  /** Whether the program may get the next token without its user. */
  readonly renewable: boolean
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** The holder of a session. */
export interface SessionHolder extends Pick<VerifiedPrincipal, 'name' | 'user'> {
  readonly method: SessionMethod
  /** Groups that the credential named. The groups of the groups file are looked up for each request. */
  readonly groups: readonly string[]
  /** The mark of the password that the user logged in by: see `PasswordVerifier`. */
  readonly passwordMark?: string | undefined
}

export type Session = ShownSession & SessionHolder

/** Quipu's own tokens, for users who logged in at an identity provider or at the page. */
export interface SessionTokens {
  /** How long a token is valid, milliseconds. */
  readonly lifetimeMs: number
  /**
   * Issues a token.
   * @param kind for a program only; `id` of the session that is continued
   * @returns undefined when the token would be too long for a cookie, as for a user with hundreds of groups
   */
  issue(
    holder: SessionHolder,
    carrier: SessionCarrier,
    kind?: { readonly renewable: true; readonly id?: string },
  ): string | undefined
  /**
   * Reads a token without checking its signature. Undefined for any other text, and for an expired token. Costs very
   * little.
   */
  peek(text: string): ShownSession | undefined
  /** Verifies a token. Undefined for one that no coordinator of this cluster issued, or that has expired. */
  open(text: string): Session | undefined
  /** Verifies an expired token that can be renewed: it expired less than one lifetime ago. Undefined for any other. */
  openLapsed(text: string): Session | undefined
}

const METHODS: Readonly<Record<string, SessionMethod>> = { o: 'oauth2', p: 'password' }
const CARRIERS: Readonly<Record<string, SessionCarrier>> = { b: 'program', r: 'program', c: 'page' }
/** No JWT: the token has no dots. Its parts are method and carrier, end in seconds, id, holder, signature. */
const FORM = /^(quipu~([op])([bcr])~([0-9a-z]{1,9})~([\w-]{22})~([\w-]+))~([\w-]{43})$/
/** Browsers keep cookies of at most 4096 bytes, including name and attributes. */
const LONGEST = 3800

const bodySchema = z.object({
  name: z.string().min(1),
  user: z.string().min(1),
  groups: z.array(z.string()),
  passwordMark: z.string().optional(),
})

/** @param key of the purpose `session-token` */
export function createSessionTokens(key: Buffer, lifetimeMs: number, clock: Pick<Clock, 'now'>): SessionTokens {
  const macOf = (signed: string): Buffer => createHmac('sha256', key).update(signed).digest()

  function read(text: string): ShownSession | undefined {
    if (!text.startsWith('quipu~') || text.length > LONGEST) return undefined
    const [, , method, carrier, end, id] = FORM.exec(text) ?? []
    if (id === undefined) return undefined
    const expiresAt = Number.parseInt(end!, 36) * 1000
    return { id, method: METHODS[method!]!, carrier: CARRIERS[carrier!]!, renewable: carrier === 'r', expiresAt }
  }

  function peek(text: string): ShownSession | undefined {
    const shown = read(text)
    return shown && shown.expiresAt > clock.now() ? shown : undefined
  }

  function verified(text: string, shown: ShownSession | undefined): Session | undefined {
    const [, signed, , , , , body, mac] = shown ? FORM.exec(text)! : []
    if (!shown || !timingSafeEqual(Buffer.from(mac!, 'base64url'), macOf(signed!))) return undefined
    const { data } = bodySchema.safeParse(parseJson(Buffer.from(body!, 'base64url').toString('utf8')))
    return data && { ...shown, ...data }
  }

  return {
    lifetimeMs,
    issue({ name, user, groups, passwordMark, method }, carrier, kind) {
      const letter = method === 'password' ? 'p' : 'o'
      const end = Math.floor((clock.now() + lifetimeMs) / 1000).toString(36)
      const id = kind?.id ?? randomBytes(16).toString('base64url')
      const by = carrier === 'page' ? 'c' : kind ? 'r' : 'b'
      const body = Buffer.from(JSON.stringify({ name, user, groups, passwordMark })).toString('base64url')
      const signed = `quipu~${letter}${by}~${end}~${id}~${body}`
      const text = `${signed}~${macOf(signed).toString('base64url')}`
      return text.length > LONGEST ? undefined : text
    },
    peek,
    open: (text) => verified(text, peek(text)),
    openLapsed(text) {
      const shown = read(text)
      const ago = clock.now() - (shown?.expiresAt ?? 0)
      return shown?.renewable && ago >= 0 && ago < lifetimeMs ? verified(text, shown) : undefined
    },
  }
}
