import { createHmac } from 'node:crypto'
import { networkOf } from '../../shared/network-of.ts'

/** What failures are counted by: a user and an address together, or an address. A digest: a name may be a mistyped password. */
export type FailureKey = string

/** How often something failed; how many milliseconds of failures are remembered of it. */
export type FailureCounts = readonly (readonly [key: FailureKey, count: number])[]

/** Seconds of waiting, by why. */
export interface Blocked {
  readonly user: number | undefined
  readonly network: number | undefined
}

/** Failed log-ins, by user and address together, and by address: never by user alone, so that nobody locks another out. */
export interface FailedLogIns {
  /** @returns seconds until this user may try again from there, and until anybody may; undefined: now */
  blockedSeconds(user: string, address: string | undefined): Blocked
  /** @returns what it is counted by now */
  failed(user: string, address: string | undefined): readonly FailureKey[]
  /** A guess that nobody looked at, for the network had failed too often: it counts for the user alone. @returns what it is counted by */
  guessed(user: string, address: string | undefined): readonly FailureKey[]
  /** Whoever got in may mistype again. @returns what is not counted any more */
  succeeded(user: string, address: string | undefined): FailureKey
  /** Counts what happened at another coordinator. @returns what is remembered of these by now */
  merge(failures: FailureCounts, forgiven: readonly FailureKey[]): FailureCounts
  /** Remembers of these no less than another coordinator does. */
  mergeFailures(remembered: FailureCounts): void
  /** Of how many something is remembered. */
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
/** Buckets that are kept. The oldest go first, so who fills them loses only what is nearly empty again. */
const MOST = 20_000
/** Of more nobody is told by another coordinator. */
const LONGEST_MS = 60 * 60_000

/**
 * @param digestKey the same for all coordinators of a cluster, which tell each other what they count
 * @param comparedAs what a name is counted as: the same for all spellings that whoever verifies it takes for one
 */
export function createFailedLogIns(
  now: () => number,
  digestKey: Buffer,
  comparedAs: (user: string) => string = (user) => user,
): FailedLogIns {
  /** When a bucket is empty again, milliseconds; the one that was poured into last is the last. */
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
      // Many names do not make its own failures the oldest, which are forgotten.
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
