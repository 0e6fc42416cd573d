import type { KeyObject } from 'node:crypto'
import { QuipuError } from '../../shared/quipu-error.ts'

/** A key that verifies tokens, and the algorithms that it may be used with. The token never decides them. */
export interface TokenKey {
  readonly key: KeyObject
  readonly algorithms: readonly string[]
}

/** The head of a token, not verified. */
export interface TokenHead {
  readonly alg?: string | undefined
  readonly kid?: string | undefined
}

export interface TokenKeys {
  /**
   * The keys that a token may be signed with, to be tried in order. The first ones are at hand, later ones may have to
   * be fetched.
   * @throws KeysUnavailable, KeyNotYetKnown, during iteration, where further keys that might have signed the token
   * cannot be known now
   */
  keysFor(head: TokenHead): Iterable<TokenKey> | AsyncIterable<TokenKey>
  /** Changes when keys may have been withdrawn: tokens that were verified before count no more. */
  readonly version: () => unknown
}

/** No known key has signed the token, and the keys were read too recently to be read again. */
export class KeyNotYetKnown extends QuipuError {
  readonly retry = 'later'

  /** Milliseconds until the keys may be read again. */
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    super('No known key has signed the token')
    this.retryAfterMs = retryAfterMs
  }
}

/** The key server does not answer. */
export class KeysUnavailable extends QuipuError {
  readonly retry = 'later'
}
