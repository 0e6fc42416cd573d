import type { IncomingMessage } from 'node:http'
import type { AuthenticationMethod } from './principal.ts'

/** Who a credential is of, by the word of whoever vouches for it: before the user mapping. */
export interface VerifiedName {
  readonly name: string
  /** Groups that the credential itself names; those of the groups file come on top. */
  readonly groups: readonly string[]
  /** A user that was mapped when the credential was given: it is not mapped again. */
  readonly user?: string
}

/**
 * What became of a credential. `refused` says nothing of why to whoever asks: text and time must not tell whether there is
 * such a user.
 */
export type CredentialVerdict =
  | { readonly kind: 'verified'; readonly verified: VerifiedName; readonly fresh: boolean }
  /** `user`: as the request said, '' where it names none. `reason` is for the log of this server alone, and holds no secret. */
  | { readonly kind: 'refused'; readonly user: string; readonly reason: string }
  /** Too many are looked at already: 429. */
  | { readonly kind: 'busy'; readonly retryAfterSeconds: number }
  /**
   * Nobody who is known vouches for it, others may soon: 503, and a refusal as any other. `fresh`: it was looked at just now;
   * who sends the same again until then has guessed no more.
   */
  | {
      readonly kind: 'unproven'
      readonly user: string
      readonly reason: string
      readonly retryAfterSeconds: number
      readonly fresh: boolean
    }
  /** Whoever vouches does not answer: 503. */
  | { readonly kind: 'unavailable'; readonly reason: string }

/** One way of being known. Has no effects but those that looking at a credential needs. */
export interface Authenticator {
  readonly method: AuthenticationMethod
  /**
   * The value of WWW-Authenticate by which a 401 offers this way; undefined where no header can (a certificate).
   * @param baseUri scheme, host and port as the client used them
   * @param request what is answered so
   */
  challenge(baseUri: string, request: IncomingMessage): string | undefined
  /**
   * Does the request carry a credential of this kind, and the name that it gives? Must cost nothing: it is asked of every
   * request. What it returns goes to `verify` and nowhere else.
   */
  credentialOf(request: IncomingMessage): Credential | undefined
  /**
   * What is known of a credential that nobody can guess, at once. Who holds one is let in whatever others at his address
   * do; of passwords nothing may be said to who guesses too often, so they have none of this.
   */
  recall?(credential: Credential): CredentialVerdict | undefined
  /**
   * Was this credential, which somebody may guess, verified lately? Who has it is not kept out for what others at the same
   * address get wrong; whoever asks too often for one user learns nothing by it.
   */
  remembers?(credential: Credential): boolean
  /**
   * A promise only where the credential was not seen lately. `fresh`: somebody logged in just now.
   * @param network where it comes from, as `networkOf` has it: looking at credentials goes in turns by it
   */
  verify(credential: Credential, network: string): CredentialVerdict | Promise<CredentialVerdict>
}

/** A credential as it came, nobody vouches for it. */
export interface Credential {
  /** '' where it names nobody before it is verified. */
  readonly user: string
  /** What is to be kept to itself. */
  readonly secret: string
}
