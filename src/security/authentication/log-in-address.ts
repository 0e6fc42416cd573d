import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { parseJson } from '../../shared/parse-json.ts'
import type { Clock } from '../../shared/clock.ts'
import { seal, unseal } from './sealed.ts'

/** How long a log-in may take, from the 401 to the token. */
export const LOG_IN_MS = 10 * 60_000

/** A program that was asked to log in, as its request showed it. */
export interface AskingProgram {
  readonly address: string
  /** The header User-Agent, unverified. */
  readonly program: string
}

/** A log-in that a program began, named by one of its two addresses. */
export interface OfferedLogIn {
  /** The same for both addresses. Neither address can be derived from it. */
  readonly id: Buffer
  readonly expiresAt: number
}

/**
 * The two addresses of a log-in: the user logs in at the first, the program fetches the token at the second. Knowing
 * the first does not reveal the second. The server stores nothing about them: the addresses hold all data, sealed, so
 * every coordinator understands them.
 */
export interface LogInAddresses {
  offer(asking: AskingProgram): { readonly initiate: string; readonly token: string }
  /** Opens an address. Undefined for one that no coordinator of the cluster offered, or that has expired. */
  ofInitiate(text: string): (OfferedLogIn & AskingProgram) | undefined
  ofToken(text: string): OfferedLogIn | undefined
  /** The address where the program of a session fetches its next token. @param session the session's id */
  offerRenewal(session: string): string
  ofRenewal(text: string): OfferedRenewal | undefined
}

export interface OfferedRenewal extends OfferedLogIn {
  readonly session: string
}

const tokenSchema = z.object({ seed: z.string(), expiresAt: z.number() })
const initiateSchema = z.object({ id: z.string(), expiresAt: z.number(), address: z.string(), program: z.string() })
const renewalSchema = z.object({ seed: z.string(), expiresAt: z.number(), session: z.string() })
const LONGEST_PROGRAM = 120
/** Every offered address is shorter. */
const LONGEST_TEXT = 2048

export function createLogInAddresses(key: Buffer, clock: Pick<Clock, 'now'>): LogInAddresses {
  function open<T extends { expiresAt: number }>(purpose: string, schema: z.ZodType<T>, text: string): T | undefined {
    if (text.length > LONGEST_TEXT) return undefined
    const plain = unseal(key, purpose, Buffer.from(text, 'base64url'))
    if (plain === undefined) return undefined
    const { data } = schema.safeParse(parseJson(plain))
    return data && data.expiresAt > clock.now() ? data : undefined
  }

  return {
    offer({ address, program }) {
      const seed = randomBytes(24).toString('base64url')
      const expiresAt = clock.now() + LOG_IN_MS
      const id = idOf(seed).toString('base64url')
      const shown = { address, program: program.slice(0, LONGEST_PROGRAM) }
      return {
        token: seal(key, 'token', JSON.stringify({ seed, expiresAt })).toString('base64url'),
        initiate: seal(key, 'initiate', JSON.stringify({ id, expiresAt, ...shown })).toString('base64url'),
      }
    },
    ofInitiate(text) {
      const found = open('initiate', initiateSchema, text)
      return found && { ...found, id: Buffer.from(found.id, 'base64url') }
    },
    ofToken(text) {
      const found = open('token', tokenSchema, text)
      return found && { id: idOf(found.seed), expiresAt: found.expiresAt }
    },
    offerRenewal(session) {
      const offered = { seed: randomBytes(24).toString('base64url'), expiresAt: clock.now() + LOG_IN_MS, session }
      return seal(key, 'token-renewal', JSON.stringify(offered)).toString('base64url')
    },
    ofRenewal(text) {
      const found = open('token-renewal', renewalSchema, text)
      return found && { id: idOf(found.seed), expiresAt: found.expiresAt, session: found.session }
    },
  }
}

function idOf(seed: string): Buffer {
  return createHash('sha256').update(seed).digest()
}
