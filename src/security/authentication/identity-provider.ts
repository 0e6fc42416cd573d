import type * as openid from 'openid-client'
import { QuipuError } from '../../shared/quipu-error.ts'
import { hasCode } from '../../shared/node-error.ts'
import type { VerifiedName } from './authenticator.ts'

export interface IdentityProviderSettings {
  readonly issuer: string
  readonly clientId: string
  /** Undefined: a public client, which PKCE protects. */
  readonly clientSecret: string | undefined
  readonly scopes: readonly string[]
  /** Claim that names who it is. */
  readonly principalField: string
  readonly groupsField: string | undefined
}

/** What an answer of the provider is checked by. */
export interface LogInChecks {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectUri: string
}

/** It cannot be reached, or says nothing that could be used: nobody can log in now. */
export class ProviderAway extends QuipuError {
  readonly retry = 'later'
}

/** It, or its user, did not want; `code` is OAuth's word for why, `description` whatever the provider writes. */
export class LogInDenied extends QuipuError {
  readonly retry = 'never'
  readonly code: string
  readonly description: string | undefined

  constructor(code: string, description: string | undefined) {
    super(`The identity provider refused the log-in: ${code}`)
    this.code = code
    this.description = description
  }
}

/** What came back vouches for nobody: forged, of another log-in or provider, or without the claims that are configured. */
export class LogInInvalid extends QuipuError {
  readonly retry = 'never'
}

/** OpenID Connect's code flow with PKCE, state and nonce, at one provider. */
export interface IdentityProvider {
  /** Where a browser goes to log in. @throws ProviderAway */
  begin(redirectUri: string): Promise<{ readonly url: URL; readonly checks: LogInChecks }>
  /**
   * @param parameters the query with which a browser came back
   * @throws ProviderAway, LogInDenied, LogInInvalid
   */
  finish(parameters: URLSearchParams, checks: LogInChecks): Promise<VerifiedName>
}

const ANSWER_SECONDS = 10
/** One that did not answer is not asked again at once, whoever wants to log in. */
const REST_MS = 1000

export function createIdentityProvider(settings: IdentityProviderSettings): IdentityProvider {
  let known: Promise<Known> | undefined

  /** Asked when somebody logs in: a server starts without it. */
  function connect(): Promise<Known> {
    if (known) return known
    const asked = discover(settings)
    known = asked
    asked.catch(() => {
      const timer = setTimeout(() => void (known = known === asked ? undefined : known), REST_MS)
      timer.unref()
    })
    return asked
  }

  return {
    async begin(redirectUri) {
      const { client, provider } = await connect()
      const checks: LogInChecks = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
        redirectUri,
      }
      const url = client.buildAuthorizationUrl(provider, {
        redirect_uri: redirectUri,
        scope: settings.scopes.join(' '),
        code_challenge: await client.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
        state: checks.state,
        nonce: checks.nonce,
      })
      return { url, checks }
    },

    async finish(parameters, { state, nonce, verifier, redirectUri }) {
      const { client, provider } = await connect()
      const cameBack = new URL(redirectUri)
      cameBack.search = parameters.toString()
      try {
        const tokens = await client.authorizationCodeGrant(provider, cameBack, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        })
        const claims: Claims = tokens.claims()!
        const missing = claims[settings.principalField] === undefined || lacksGroups(claims, settings.groupsField)
        const canAsk = missing && provider.serverMetadata().userinfo_endpoint !== undefined
        const more: Claims = canAsk
          ? await client.fetchUserInfo(provider, tokens.access_token, String(claims['sub']))
          : {}
        return nameIn({ ...more, ...claims }, settings)
      } catch (error) {
        throw toldApart(client, error)
      }
    },
  }
}

type Claims = Readonly<Record<string, unknown>>

interface Known {
  readonly client: typeof openid
  readonly provider: openid.Configuration
}

async function discover({ issuer, clientId, clientSecret }: IdentityProviderSettings): Promise<Known> {
  // Its libraries are loaded when somebody logs in.
  const client = await import('openid-client')
  const address = new URL(issuer)
  try {
    const provider = await client.discovery(
      address,
      clientId,
      undefined,
      clientSecret === undefined ? client.None() : client.ClientSecretBasic(clientSecret),
      {
        timeout: ANSWER_SECONDS,
        // The configuration lets no other than one on this machine be reached without TLS.
        execute: [
          client.enableNonRepudiationChecks,
          ...(address.protocol === 'http:' ? [client.allowInsecureRequests] : []),
        ],
      },
    )
    return { client, provider }
  } catch (cause) {
    throw new ProviderAway(`The identity provider ${issuer} does not answer`, { cause })
  }
}

function toldApart(client: typeof openid, error: unknown): unknown {
  if (error instanceof QuipuError) return error
  if (error instanceof client.AuthorizationResponseError) return new LogInDenied(error.error, error.error_description)
  if (error instanceof client.ResponseBodyError)
    return new LogInInvalid(`The identity provider did not take the code: ${error.error}`, { cause: error })
  if (error instanceof client.ClientError && !hasCode(error, 'OAUTH_TIMEOUT'))
    return new LogInInvalid('What came back from the identity provider does not fit', { cause: error })
  return new ProviderAway('The identity provider does not answer', { cause: error })
}

function lacksGroups(claims: Claims, field: string | undefined): boolean {
  return field !== undefined && claims[field] === undefined
}

function nameIn(claims: Claims, { principalField, groupsField }: IdentityProviderSettings): VerifiedName {
  const name = claims[principalField]
  if (typeof name !== 'string' || name === '')
    throw new LogInInvalid(`The identity provider says no ${principalField} of who logged in`)
  return { name, groups: groupsField === undefined ? [] : groupsIn(claims[groupsField]) }
}

/** A list of texts, or one text. */
function groupsIn(value: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  return all.filter((one) => typeof one === 'string' && one !== '') as string[]
}
