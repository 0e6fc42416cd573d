import { readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import type { Config } from '../../config/load-config.ts'
import type { QueryRows } from '../../events/projection.ts'
import { remoteAddressOf } from '../../protocol/edge/client-connection.ts'
import { HttpProblem } from '../../protocol/edge/problem.ts'
import { pageTokenOf } from '../../protocol/log-in/browser.ts'
import type { LogInDeps } from '../../protocol/log-in/log-in-routes.ts'
import { createTokenWaits } from '../../protocol/log-in/token-waits.ts'
import type { Authenticator } from '../../security/authentication/authenticator.ts'
import { followEndedSessions, type EndedSessions } from '../../security/authentication/ended-sessions.ts'
import { createIdentityProvider, type IdentityProvider } from '../../security/authentication/identity-provider.ts'
import { createLogInAddresses } from '../../security/authentication/log-in-address.ts'
import { createLogInStore, type LogInStore } from '../../security/authentication/log-in-store.ts'
import { createRenewalStore, type RenewalStore } from '../../security/authentication/renewal-store.ts'
import { bearerIn, createSessionAuthenticator } from '../../security/authentication/session-authenticator.ts'
import { createSessionTokens, type Session } from '../../security/authentication/session-token.ts'
import { deriveKey } from '../../security/cluster-secret.ts'
import { systemClock as clock } from '../../shared/clock.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { nodeCode } from '../../shared/node-error.ts'

/** Log-in pages of one process. Log-ins in progress are stored in the database, for all coordinators. */
export interface WiredLogIns {
  /** Authenticators of users who logged in before, by their session tokens. */
  readonly sessions: readonly Authenticator[]
  readonly deps: Omit<LogInDeps, 'entry' | 'onError'>
  /** Gives the database, which is there or will be. */
  open(ask: QueryRows): void
  /** Answers waiting programs that they must come again, to the next coordinator. */
  drain(): void
  stop(): Promise<void>
}

/**
 * @param secret of the cluster
 * @param holds whether the holder of a session would get it now
 */
export function wireLogIns(config: Config, secret: string, holds: (session: Session) => boolean): WiredLogIns {
  const key = deriveKey(secret, 'log-ins')
  const methods = {
    password: config.authentication.includes('password'),
    provider: config.authentication.includes('oauth2'),
  }
  const addresses = createLogInAddresses(key, clock)
  const tokens = createSessionTokens(deriveKey(secret, 'session-token'), config.timeouts.sessionMs, clock)
  let opened: { readonly store: LogInStore; readonly ended: EndedSessions; readonly renewals: RenewalStore } | undefined
  const there = (): NonNullable<typeof opened> => {
    if (!opened) throw new HttpProblem(503, 'The coordinator is starting', { 'retry-after': '1' })
    return opened
  }
  const waits = createTokenWaits(() => there().store)

  /** The address of a renewal: a program whose session can continue needs no browser. */
  function renewalOf({ headers }: IncomingMessage): string | undefined {
    const lapsed = tokens.openLapsed(bearerIn(headers) ?? '')
    const goesOn = lapsed?.method === 'oauth2' && opened?.ended.has(lapsed.id) === false
    return goesOn ? addresses.offerRenewal(lapsed.id) : undefined
  }

  function challenge(baseUri: string, request: IncomingMessage): string {
    const renewal = renewalOf(request)
    if (renewal !== undefined) return `Bearer x_token_server="${baseUri}/oauth2/token/${renewal}"`
    const { initiate, token } = addresses.offer({
      address: remoteAddressOf(request) ?? 'unknown',
      program: request.headers['user-agent'] ?? '',
    })
    const at = `${baseUri}/oauth2/token`
    return `Bearer x_redirect_server="${at}/initiate/${initiate}", x_token_server="${at}/${token}"`
  }

  const shared = { tokens, ended: () => opened?.ended, pageToken: pageTokenOf, holds }
  return {
    sessions: [
      ...(methods.provider ? [createSessionAuthenticator('oauth2', { ...shared, challenge })] : []),
      ...(methods.password ? [createSessionAuthenticator('password', { ...shared, challenge: () => undefined })] : []),
    ],
    deps: {
      methods,
      addresses,
      tokens,
      store: () => there().store,
      ended: () => there().ended,
      renewals: () => there().renewals,
      provider: methods.provider ? providerOf(config) : undefined,
      waits,
      clock,
    },
    open(ask) {
      const store = createLogInStore(ask, key)
      opened = { store, ended: followEndedSessions(store, clock.now), renewals: createRenewalStore(ask, key) }
    },
    drain: waits.stop,
    async stop() {
      waits.stop()
      await opened?.ended.stop()
    },
  }
}

function providerOf(config: Config): IdentityProvider {
  return createIdentityProvider({
    issuer: config.oauth2Issuer!,
    clientId: config.oauth2ClientId!,
    clientSecret: clientSecretOf(config),
    scopes: config.oauth2Scopes,
    principalField: config.oauth2PrincipalField,
    groupsField: config.oauth2GroupsField,
  })
}

function clientSecretOf({ oauth2ClientSecret, oauth2ClientSecretFile: path }: Config): string | undefined {
  if (path === undefined) return oauth2ClientSecret
  try {
    // Editors end files with a line break.
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    throw new ExitError(
      exitCodes.configuration,
      `QUIPU_OAUTH2_CLIENT_SECRET_FILE: cannot read ${path}: ${nodeCode(error)}`,
    )
  }
}
