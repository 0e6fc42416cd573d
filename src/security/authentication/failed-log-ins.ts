import { createHmac } from 'node:crypto'
import { networkOf } from '../../shared/network-of.ts'

/**
 * The key by which failures are counted: a user and an address together, or an address. It is a digest, because a name
 * may be a mistyped password.
 */
export type FailureKey = string

/** For each key, a number: how often something failed, or how many milliseconds of failures are remembered. */
export type FailureCounts = readonly (readonly [key: FailureKey, count: number])[]

/** Seconds to wait, by reason. */
export interface Blocked {
  readonly user: number | undefined
  readonly network: number | undefined
}

/**
 * Counts failed log-ins by user and address together, and by address. Never by user alone, so that nobody can lock out
 * another user.
 */
export interface FailedLogIns {
  /** @returns seconds until this user may try again from there, and until any user may; undefined: now */
  blockedSeconds(user: string, address: string | undefined): Blocked
  /** Counts a failed log-in. @returns the keys that it is counted by */
  failed(user: string, address: string | undefined): readonly FailureKey[]
  /**
   * Counts a guess that was not verified because the network failed too often. It counts for the user alone.
   * @returns the keys that it is counted by
   */
  guessed(user: string, address: string | undefined): readonly FailureKey[]
  /** Clears the count of a user who logged in, so that they may mistype again. @returns the key that was cleared */
  succeeded(user: string, address: string | undefined): FailureKey
  /** Counts failures that happened at another coordinator. @returns what is remembered of these keys now */
  merge(failures: FailureCounts, forgiven: readonly FailureKey[]): FailureCounts
  /** Raises the counts of these keys to at least what another coordinator remembers. */
  mergeFailures(remembered: FailureCounts): void
  /** The number of keys for which failures are remembered. */
  readonly size: number
}

/** A bucket of failures: `burst` may come at once, then one each `everyMs`. */
interface Rate {
  readonly burst: number
  readonly everyMs: number
}

const OF_USER: Rate = { burst: 5, everyMs: 10_000 }
/** Many people may come from one address. */
const OF_ADDRESS: Rate = { burst: 50, everyMs: 1_000 }
/**
 * The most buckets that are kept. The oldest are dropped first, so a client that fills them makes this lose only
 * buckets that are nearly empty.
 */
const MOST = 20_000
/** The most time of failures that is taken over from another coordinator. */
const LONGEST_MS = 60 * 60_000

/**
 * Creates the counters.
 * @param digestKey the same for all coordinators of a cluster, which exchange their counts
 * @param comparedAs maps a name to the form that is counted: the same for all spellings that the verifier takes for one
 * name
 */
export function createFailedLogIns(
  now: () => number,
  digestKey: Buffer,
  comparedAs: (user: string) => string = (user) => user,
): FailedLogIns {
  /** The time when each bucket is empty again, milliseconds. The bucket that was filled last comes last. */
  const emptyAt = new Map<FailureKey, number>()

  const keyOf = (kind: 'user' | 'address', parts: readonly string[]): FailureKey =>
    `${kind}-${createHmac('sha256', digestKey).update(JSON.stringify(parts)).digest('base64url')}`
  const pairOf = (user: string, network: string): FailureKey =>
    keyOf('user', [network, comparedAs(user.slice(0, 1000)).slice(0, 200)])
  const ofNetwork = (network: string): FailureKey => keyOf('address', [network])

  function blockedMs(key: FailureKey): number {
    const { burst, everyMs } = rateOf(key)
    return (emptyAt.get(key) ?? 0) - now() - (burst - 1) * everyMs
  }

  function set(key: FailureKey, at: number): void {
    emptyAt.delete(key)
    emptyAt.set(key, at)
    for (const [old, until] of emptyAt) {
      if (until > now() && emptyAt.size <= MOST) break
      emptyAt.delete(old)
    }
  }

  function pour(key: FailureKey, times: number): void {
    set(key, Math.max(emptyAt.get(key) ?? 0, now()) + times * rateOf(key).everyMs)
  }

  return {
    get size() {
      return emptyAt.size
    },
    blockedSeconds(user, address) {
      const network = networkOf(address)
      const seconds = (ms: number): number | undefined => (ms > 0 ? Math.ceil(ms / 1000) : undefined)
      return {
        user: user === '' ? undefined : seconds(blockedMs(pairOf(user, network))),
        network: seconds(blockedMs(ofNetwork(network))),
      }
    },
    failed(user, address) {
      const network = networkOf(address)
      const keys = [...(user === '' ? [] : [pairOf(user, network)]), ofNetwork(network)]
      for (const key of keys) pour(key, 1)
      return keys
    },
    guessed(user, address) {
      if (user === '') return []
      const network = networkOf(address)
      const pair = pairOf(user, network)
      pour(pair, 1)
      // Guesses at many names must not make the network's own bucket the oldest, which would be dropped.
      const until = emptyAt.get(ofNetwork(network))
      if (until !== undefined) set(ofNetwork(network), until)
      return [pair]
    },
    succeeded(user, address) {
      const pair = pairOf(user, networkOf(address))
      emptyAt.delete(pair)
      return pair
    },
    merge(failures, forgiven) {
      for (const pair of forgiven) emptyAt.delete(pair)
      for (const [key, times] of failures) pour(key, times)
      return failures.map(([key]) => [key, Math.max(0, (emptyAt.get(key) ?? 0) - now())])
    },
    mergeFailures(remembered) {
      for (const [key, ms] of remembered) {
        const at = now() + Math.min(ms, LONGEST_MS)
        if (at > (emptyAt.get(key) ?? 0)) set(key, at)
      }
    },
  }
}

function rateOf(key: FailureKey): Rate {
  return key.startsWith('user-') ? OF_USER : OF_ADDRESS
}
