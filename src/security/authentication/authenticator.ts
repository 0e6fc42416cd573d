import type { IncomingMessage } from 'node:http'
import type { AuthenticationMethod } from './principal.ts'

/** The name that a verified credential stands for, before the user mapping. */
export interface VerifiedName {
  readonly name: string
  /** Groups that the credential itself names. The groups of the groups file are added later. */
  readonly groups: readonly string[]
  /** A user that was already mapped when the credential was issued. It is not mapped again. */
  readonly user?: string
}

/**
 * The result of verifying a credential. The client never learns the reason of `refused`: neither text nor time of the
 * answer may show whether such a user exists.
 */
export type CredentialVerdict =
  | { readonly kind: 'verified'; readonly verified: VerifiedName; readonly fresh: boolean }
  /**
   * `user`: as in the request, '' where the request names no user. `reason` is for the log of this server only and
   * holds no secret.
   */
  | { readonly kind: 'refused'; readonly user: string; readonly reason: string }
  /** The server is verifying too many credentials already: 429. */
  | { readonly kind: 'busy'; readonly retryAfterSeconds: number }
  /**
   * No known key verifies the credential, but a key that is published soon may: 503. Counts as a failed log-in like a
   * refusal. `fresh`: the credential was looked at just now; a client that repeats it until the retry has made no
   * further guess.
   */
  | {
      readonly kind: 'unproven'
      readonly user: string
      readonly reason: string
      readonly retryAfterSeconds: number
      readonly fresh: boolean
    }
  /** The service that verifies the credential does not answer: 503. */
  | { readonly kind: 'unavailable'; readonly reason: string }

/** One method of authentication. It has no effects except those that verifying a credential needs. */
export interface Authenticator {
  readonly method: AuthenticationMethod
  /**
   * The value of WWW-Authenticate by which a 401 offers this method. Undefined where no header can offer it (a
   * certificate).
   * @param baseUri scheme, host and port as the client used them
   * @param request the request that gets the 401
   */
  challenge(baseUri: string, request: IncomingMessage): string | undefined
  /**
   * The credential of this kind that the request carries, with the name that it gives. Must be cheap: it is called for
   * every request. The caller passes the result to `verify` and to nothing else.
   */
  credentialOf(request: IncomingMessage): Credential | undefined
  /**
   * The verdict that is already known for a credential that nobody can guess. It is returned at once, so that holders
   * of such a credential are let in regardless of failed log-ins from their address. Authenticators of passwords do not
   * implement this: a client that guesses too often must not learn anything.
   */
  recall?(credential: Credential): CredentialVerdict | undefined
  /**
   * Whether this credential, which can be guessed, was verified lately. Its holder is not kept out because of failed
   * log-ins by others at the same address. A client that guesses too often for one user learns nothing from this.
   */
  remembers?(credential: Credential): boolean
  /**
   * Verifies a credential. Returns a promise only where the credential was not seen lately. `fresh`: the user logged in
   * just now.
   * @param network the network that the credential comes from, as `networkOf` returns it; networks take turns in
   * verification
   */
  verify(credential: Credential, network: string): CredentialVerdict | Promise<CredentialVerdict>
}

/** A credential as it came, not verified. */
export interface Credential {
  /** '' where the credential names no user before it is verified. */
  readonly user: string
  /** The secret part, which must not be shown or logged. */
  readonly secret: string
}
