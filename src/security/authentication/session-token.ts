import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../../shared/clock.ts'
import { parseJson } from '../../shared/parse-json.ts'
import type { VerifiedPrincipal } from './principal.ts'

/** How whoever has the session logged in. */
export type SessionMethod = Extract<VerifiedPrincipal['method'], 'oauth2' | 'password'>
/** Who carries it: a program as a bearer token, a browser as a cookie. Neither is taken for the other. */
export type SessionCarrier = 'program' | 'page'

/** What a token shows to whoever has it, before anybody looks at its signature. */
export interface ShownSession {
  readonly id: string
  readonly method: SessionMethod
  readonly carrier: SessionCarrier
  /** Its program may be given the next one without its user. */
  readonly renewable: boolean
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Whom a session is given to. */
export interface SessionHolder extends Pick<VerifiedPrincipal, 'name' | 'user'> {
  readonly method: SessionMethod
  /** Those that his credential named; those of the groups file are asked for each time. */
  readonly groups: readonly string[]
  /** Of the password that he logged in by: see `PasswordVerifier`. */
  readonly passwordMark?: string | undefined
}

export type Session = ShownSession & SessionHolder

/** Tokens of Quipu's own, for those who logged in at an identity provider or at the page. */
export interface SessionTokens {
  /** How long one holds, milliseconds. */
  readonly lifetimeMs: number
  /**
   * @param kind of a program alone; `id` of the session that goes on
   * @returns undefined when it would be too long for a cookie: of somebody with hundreds of groups
   */
  issue(
    holder: SessionHolder,
    carrier: SessionCarrier,
    kind?: { readonly renewable: true; readonly id?: string },
  ): string | undefined
  /** Undefined for any other text, and for one whose time is over. Costs next to nothing. */
  peek(text: string): ShownSession | undefined
  /** Undefined for what no coordinator of this cluster issued. */
  open(text: string): Session | undefined
  /** One that could be renewed: it ended no longer ago than it held. Undefined for any other. */
  openLapsed(text: string): Session | undefined
}

const METHODS: Readonly<Record<string, SessionMethod>> = { o: 'oauth2', p: 'password' }
const CARRIERS: Readonly<Record<string, SessionCarrier>> = { b: 'program', r: 'program', c: 'page' }
/** No JWT: it has no dots. Method, carrier, end in seconds, id, who it is, signature. */
const FORM = /^(quipu~([op])([bcr])~([0-9a-z]{1,9})~([\w-]{22})~([\w-]+))~([\w-]{43})$/
/** Browsers keep cookies of 4096 bytes, name and attributes with them. */
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
