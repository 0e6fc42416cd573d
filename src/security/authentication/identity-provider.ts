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
  /** The claim that names the user. */
  readonly principalField: string
  readonly groupsField: string | undefined
}

/** The values that an answer of the provider is checked against. */
export interface LogInChecks {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  readonly redirectUri: string
}

/** The provider cannot be reached or gives no usable answer: nobody can log in now. */
export class ProviderAway extends QuipuError {
  readonly retry = 'later'
}

/** The provider or its user refused the log-in. `code` is OAuth's error code, `description` is the provider's text. */
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

/**
 * The answer verifies nobody: it is forged, belongs to another log-in or provider, or lacks the claims that are
 * configured.
 */
export class LogInInvalid extends QuipuError {
  readonly retry = 'never'
}

/** The data by which the provider confirms a user again later, without the user. */
export interface Renewal {
  readonly refreshToken: string
  /** The claim `sub` of the user. */
  readonly subject: string
}

export interface KnownByProvider {
  readonly verified: VerifiedName
  /** Undefined where the provider gave no refresh token. */
  readonly renewal: Renewal | undefined
}

/** OpenID Connect's code flow with PKCE, state and nonce, at one provider. */
export interface IdentityProvider {
  /**
   * Starts a log-in.
   * @param renewable whether it is for a session that is renewed without its user; only where `offline_access` is
   * configured
   * @returns the address that the browser goes to, and the values for `finish`
   * @throws ProviderAway
   */
  begin(redirectUri: string, renewable: boolean): Promise<{ readonly url: URL; readonly checks: LogInChecks }>
  /**
   * Ends a log-in.
   * @param parameters the query with which the browser came back
   * @throws ProviderAway, LogInDenied, LogInInvalid
   */
  finish(parameters: URLSearchParams, checks: LogInChecks): Promise<KnownByProvider>
  /**
   * Asks the provider to confirm a user again.
   * @param known what the provider said last: claims that it leaves out now have not changed
   * @throws ProviderAway, LogInInvalid: the provider does not know the user any more, or says that it is another user
   */
  renew(renewal: Renewal, known: VerifiedName): Promise<{ readonly verified: VerifiedName; readonly renewal: Renewal }>
  /** Revokes the refresh token at the provider. Rejects when the provider cannot be reached or refuses. */
  revoke(renewal: Renewal): Promise<void>
}

const ANSWER_SECONDS = 10
/** How long a provider that did not answer is not asked again, milliseconds. */
const REST_MS = 1000

export function createIdentityProvider(settings: IdentityProviderSettings): IdentityProvider {
  let connected: Promise<Known> | undefined

  /** Connects at the first log-in: the server starts without the provider. */
  function connect(): Promise<Known> {
    if (connected) return connected
    const asked = discover(settings)
    connected = asked
    asked.catch(() => {
      const timer = setTimeout(() => void (connected = connected === asked ? undefined : connected), REST_MS)
      timer.unref()
    })
    return asked
  }

  /** Returns the claims of the ID token. Claims that it lacks are read from the provider's UserInfo endpoint. */
  async function withMore(
    { client, provider }: Known,
    accessToken: string,
    subject: string,
    claims: Claims,
  ): Promise<Claims> {
    const missing = claims[settings.principalField] === undefined || lacksGroups(claims, settings.groupsField)
    if (!missing || provider.serverMetadata().userinfo_endpoint === undefined) return claims
    return { ...(await client.fetchUserInfo(provider, accessToken, subject)), ...claims }
  }

  return {
    async begin(redirectUri, renewable) {
      const { client, provider } = await connect()
      const checks: LogInChecks = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
        redirectUri,
      }
      const url = client.buildAuthorizationUrl(provider, {
        redirect_uri: redirectUri,
        ...scopesOf(settings.scopes, renewable),
        code_challenge: await client.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
        state: checks.state,
        nonce: checks.nonce,
      })
      return { url, checks }
    },

    async finish(parameters, { state, nonce, verifier, redirectUri }) {
      const known = await connect()
      const { client, provider } = known
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
        const subject = String(claims['sub'])
        const { refresh_token: refreshToken } = tokens
        return {
          verified: nameIn(await withMore(known, tokens.access_token, subject, claims), settings),
          renewal: refreshToken === undefined ? undefined : { refreshToken, subject },
        }
      } catch (error) {
        throw distinguished(client, error)
      }
    },

    async renew({ refreshToken, subject }, before) {
      const known = await connect()
      const { client, provider } = known
      try {
        const tokens = await client.refreshTokenGrant(provider, refreshToken)
        const claims: Claims = tokens.claims() ?? {}
        if (claims['sub'] !== undefined && claims['sub'] !== subject)
          throw new LogInInvalid('The identity provider names another user than before')
        const said = await withMore(known, tokens.access_token, subject, claims)
        const verified = nameIn(
          {
            [settings.principalField]: before.name,
            ...(settings.groupsField === undefined ? {} : { [settings.groupsField]: before.groups }),
            ...said,
          },
          settings,
        )
        if (verified.name !== before.name)
          throw new LogInInvalid('The identity provider names another user than before')
        return { verified, renewal: { refreshToken: tokens.refresh_token ?? refreshToken, subject } }
      } catch (error) {
        throw distinguished(client, error)
      }
    },

    async revoke({ refreshToken }) {
      const { client, provider } = await connect()
      if (provider.serverMetadata().revocation_endpoint === undefined) return
      await client.tokenRevocation(provider, refreshToken, { token_type_hint: 'refresh_token' })
    },
  }
}

type Claims = Readonly<Record<string, unknown>>

interface Known {
  readonly client: typeof openid
  readonly provider: openid.Configuration
}

async function discover({ issuer, clientId, clientSecret }: IdentityProviderSettings): Promise<Known> {
  // The library is loaded at the first log-in.
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
        // The configuration allows an address without TLS only on this machine.
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

function distinguished(client: typeof openid, error: unknown): unknown {
  if (error instanceof QuipuError) return error
  if (error instanceof client.AuthorizationResponseError) return new LogInDenied(error.error, error.error_description)
  if (error instanceof client.ResponseBodyError)
    return new LogInInvalid(`The identity provider did not accept the code: ${error.error}`, { cause: error })
  if (error instanceof client.ClientError && !hasCode(error, 'OAUTH_TIMEOUT'))
    return new LogInInvalid('The answer of the identity provider is invalid', { cause: error })
  return new ProviderAway('The identity provider does not answer', { cause: error })
}

const OFFLINE = 'offline_access'

/** OpenID Connect Core, 11: a client that asks for offline access must ask the user for consent. */
function scopesOf(scopes: readonly string[], renewable: boolean): { readonly scope: string; readonly prompt?: string } {
  if (!scopes.includes(OFFLINE)) return { scope: scopes.join(' ') }
  return renewable
    ? { scope: scopes.join(' '), prompt: 'consent' }
    : { scope: scopes.filter((scope) => scope !== OFFLINE).join(' ') }
}

function lacksGroups(claims: Claims, field: string | undefined): boolean {
  return field !== undefined && claims[field] === undefined
}

function nameIn(claims: Claims, { principalField, groupsField }: IdentityProviderSettings): VerifiedName {
  const name = claims[principalField]
  if (typeof name !== 'string' || name === '')
    throw new LogInInvalid(`The identity provider gave no ${principalField} for the user`)
  return { name, groups: groupsField === undefined ? [] : groupsIn(claims[groupsField]) }
}

/** The texts of a claim that is a list of texts, or one text. */
function groupsIn(value: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  return all.filter((one) => typeof one === 'string' && one !== '') as string[]
}
