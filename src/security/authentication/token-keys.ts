import type { KeyObject } from 'node:crypto'
import { QuipuError } from '../../shared/quipu-error.ts'

/** A key that vouches for tokens, and what it may sign: never what a token says. */
export interface TokenKey {
  readonly key: KeyObject
  readonly algorithms: readonly string[]
}

/** The head of a token, which nobody vouches for. */
export interface TokenHead {
  readonly alg?: string | undefined
  readonly kid?: string | undefined
}

export interface TokenKeys {
  /**
   * The keys that a token may be signed with, to be tried one after the other: those behind the first are had with more ado.
   * Throws on the way where others, which might have signed it, cannot be known now: KeysUnavailable, KeyNotYetKnown.
   */
  keysFor(head: TokenHead): Iterable<TokenKey> | AsyncIterable<TokenKey>
  /** Changes when keys may have gone: what was verified before counts no more. */
  readonly version: () => unknown
}

/** No key that is known is the token's. They were asked for so lately that they are not asked for again. */
export class KeyNotYetKnown extends QuipuError {
  readonly retry = 'later'

  /** Until they may be asked for again. */
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    super('No key that is known has signed the token')
    this.retryAfterMs = retryAfterMs
  }
}

/** Whoever has the keys does not answer. */
export class KeysUnavailable extends QuipuError {
  readonly retry = 'later'
}
