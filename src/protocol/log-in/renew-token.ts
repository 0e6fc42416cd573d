import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import {
  LogInDenied,
  LogInInvalid,
  type IdentityProvider,
  type Renewal,
} from '../../security/authentication/identity-provider.ts'
import type { VerifiedName } from '../../security/authentication/authenticator.ts'
import type { OfferedRenewal } from '../../security/authentication/log-in-address.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import type { RenewalStore } from '../../security/authentication/renewal-store.ts'
import type { SessionHolder, SessionTokens } from '../../security/authentication/session-token.ts'
import type { EndedSessions } from '../../security/authentication/ended-sessions.ts'
import type { Clock } from '../../shared/clock.ts'
import { parseJson } from '../../shared/parse-json.ts'
import { HttpProblem } from '../edge/problem.ts'
import type { LogInAnswer } from './log-in-answer.ts'

export interface RenewDeps {
  readonly tokens: SessionTokens
  readonly renewals: () => RenewalStore
  readonly ended: () => EndedSessions
  readonly clock: Pick<Clock, 'now'>
  readonly provider: IdentityProvider
  /** @throws HttpProblem 403 for a name that the user mapping does not know */
  readonly admit: (verified: VerifiedName, request: IncomingMessage) => VerifiedPrincipal
  /** Marks an address as used, since each gives one token. @returns false when it was used before */
  readonly spend: (offered: OfferedRenewal) => Promise<boolean>
  readonly draining: () => boolean
}

/** Stored, encrypted, while a session can be renewed. */
const secretsSchema = z.object({
  renewal: z.object({ refreshToken: z.string(), subject: z.string() }),
  verified: z.object({ name: z.string(), groups: z.array(z.string()).readonly() }),
  /** The time when the provider was last asked, milliseconds since 1970. */
  at: z.number(),
})

/** A program has many requests under way when its token expires. The provider is asked only for the first of them. */
const FRESH_MS = 10_000
const WAIT_MS = 10_000
const LOOK_EVERY_MS = 500
const OVER = { error: 'This session has ended: log in again' }

/**
 * Issues the token of a session that can be renewed, and stores the data for its renewal.
 * @returns the token of the session; undefined when it would be too long
 */
export async function startRenewable(
  { tokens, renewals, clock }: Pick<RenewDeps, 'tokens' | 'renewals' | 'clock'>,
  holder: SessionHolder,
  verified: VerifiedName,
  renewal: Renewal,
): Promise<string | undefined> {
  const token = tokens.issue(holder, 'program', { renewable: true })
  const session = token === undefined ? undefined : tokens.peek(token)
  if (session) await renewals().keep(session.id, secretsOf(renewal, verified, clock), keptMs(tokens))
  return token
}

/** Twice the session's lifetime: a program that comes later must log in anew. */
function keptMs({ lifetimeMs }: SessionTokens): number {
  return 2 * lifetimeMs
}

function secretsOf(renewal: Renewal, { name, groups }: VerifiedName, clock: Pick<Clock, 'now'>): string {
  return JSON.stringify({ renewal, verified: { name, groups }, at: clock.now() } satisfies z.input<
    typeof secretsSchema
  >)
}

/**
 * The next token of a session whose token has expired, once the provider has confirmed its user.
 * @returns undefined: another request asks the provider, so the client tries again
 * @throws ProviderAway, errors of the database
 */
export async function renew(
  deps: RenewDeps,
  offered: OfferedRenewal,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<LogInAnswer | undefined> {
  const { session: id } = offered
  for (let waited = 0; ; waited += LOOK_EVERY_MS) {
    if (deps.ended().has(id) === true) return OVER
    const taken = await deps.renewals().take(id)
    switch (taken.kind) {
      case 'gone':
        return OVER
      case 'taken':
        return renewTaken(deps, offered, request, taken.secrets)
      case 'busy':
        if (waited >= WAIT_MS || deps.draining() || response.destroyed) return undefined
        await sleep(LOOK_EVERY_MS)
    }
  }
}

async function renewTaken(
  deps: RenewDeps,
  offered: OfferedRenewal,
  request: IncomingMessage,
  text: string,
): Promise<LogInAnswer> {
  const { session: id } = offered
  const { data: known } = secretsSchema.safeParse(parseJson(text))
  if (!known) return endSession(deps, id)
  try {
    const fresh = deps.clock.now() - known.at < Math.min(FRESH_MS, deps.tokens.lifetimeMs / 8)
    const { verified, renewal } = fresh ? known : await deps.provider.renew(known.renewal, known.verified)
    const { name, user } = deps.admit(verified, request)
    const holder: SessionHolder = { name, user, groups: verified.groups, method: 'oauth2' }
    const token = deps.tokens.issue(holder, 'program', { renewable: true, id })
    if (token === undefined) return await endSession(deps, id)
    const secrets = fresh ? text : secretsOf(renewal, verified, deps.clock)
    if (!(await deps.renewals().put(id, secrets, keptMs(deps.tokens)))) return OVER
    return (await deps.spend(offered)) ? { token } : { error: 'This token was already given' }
  } catch (error) {
    const refused = error instanceof LogInDenied || error instanceof LogInInvalid || error instanceof HttpProblem
    if (refused) return endSession(deps, id)
    await deps
      .renewals()
      .release(id)
      .catch(() => {})
    throw error
  }
}

/** Ends the session. A program with its token is sent to the log-in page. */
async function endSession(
  deps: Pick<RenewDeps, 'renewals' | 'ended' | 'clock' | 'tokens'>,
  id: string,
): Promise<typeof OVER> {
  await endRenewable(deps, id)
  return OVER
}

/**
 * Ends a session: no coordinator accepts its tokens any more, and it cannot be renewed.
 * @returns the data of its renewal, so that it can be revoked at the provider
 */
export async function endRenewable(
  { renewals, ended, clock, tokens }: Pick<RenewDeps, 'renewals' | 'ended' | 'clock' | 'tokens'>,
  id: string,
): Promise<Renewal | undefined> {
  // First, so that the session is over in this process whatever the database answers. The entry is kept for as long as
  // expired tokens of the session could be renewed.
  await ended().end({ id, expiresAt: clock.now() + keptMs(tokens) })
  const text = await renewals().drop(id)
  return text === undefined ? undefined : secretsSchema.safeParse(parseJson(text)).data?.renewal
}
