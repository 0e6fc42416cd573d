import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { STRANGER, type RefusalLog } from '../../coordinator/system/refusal-log.ts'
import type { Attempts } from '../../protocol/access/authenticate.ts'
import { remoteAddressOf } from '../../protocol/edge/client-connection.ts'
import { createVerifiedCache } from '../../security/authentication/verified-cache.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { networkOf } from '../../shared/network-of.ts'
import type { FailedLogIns } from '../../security/authentication/failed-log-ins.ts'
import { isTellable } from '../../security/authentication/principal.ts'
import type { Meters } from '../../telemetry/meters.ts'
import type { FailuresElsewhere } from './follower-sightings.ts'

/** The names that this process has heard of and may tell. */
export interface KnownNames {
  has(name: string): boolean
  add(name: string): void
  /** As it is told: whatever is no known name may be a password that was typed in its place. */
  shown(name: string): string
}

const MOST_NAMES = 10_000

/** @param isKnown names of a password file */
export function createKnownNames(isKnown: (name: string) => boolean): KnownNames {
  const key = randomBytes(32)
  const seen = new Set<string>()
  const has = (name: string): boolean => isKnown(name) || seen.has(name)
  return {
    has,
    add(name) {
      seen.delete(name)
      if (seen.size >= MOST_NAMES) seen.delete(seen.values().next().value!)
      seen.add(name)
    },
    shown(name) {
      if (name === '' || has(name)) return name
      return `${STRANGER}${createHmac('sha256', key).update(name).digest('hex').slice(0, 12)}`
    },
  }
}

export interface AttemptsDeps {
  /** Of this process, whatever its role. */
  readonly failures: FailedLogIns
  readonly names: KnownNames
  /** Of this role. */
  readonly refusals: Pick<RefusalLog, 'authenticationFailed' | 'loggedIn'>
  /** Undefined: what fails is counted here alone. */
  readonly elsewhere: FailuresElsewhere | undefined
  readonly meters: () => Meters | undefined
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** From each network he is told of as logged in so often. */
const TOLD_MS = 5 * 60_000
const MOST_LOGGED = 10_000

export function createLogInAttempts(deps: AttemptsDeps): Attempts {
  const { failures, names, refusals, elsewhere, meters } = deps
  const logged = createVerifiedCache<true>(MOST_LOGGED, deps.now)
  const placeOf = ({ method, name }: VerifiedPrincipal, request: IncomingMessage): readonly string[] => [
    method,
    name,
    networkOf(remoteAddressOf(request)),
  ]

  function loggedIn(principal: VerifiedPrincipal, request: IncomingMessage): void {
    const { name, user, groups, method } = principal
    const remoteAddress = remoteAddressOf(request)
    logged.set(placeOf(principal, request), true, TOLD_MS)
    const pair = failures.succeeded(name, remoteAddress)
    elsewhere?.forgiven(pair)
    names.add(name)
    meters()?.count('logIns', { method })
    refusals.loggedIn({
      user,
      principal: name,
      method,
      groups,
      ...(remoteAddress === undefined ? {} : { remoteAddress }),
    })
  }

  return {
    blockedSeconds({ user }, request, remembered) {
      const remoteAddress = remoteAddressOf(request)
      const blocked = failures.blockedSeconds(user, remoteAddress)
      if (blocked.user !== undefined || blocked.network === undefined)
        return blocked.user === undefined ? undefined : Math.max(blocked.user, blocked.network ?? 0)
      if (remembered === true) return undefined
      // Else one could ask for ever which password is remembered.
      if (remembered === false) {
        const keys = failures.guessed(user, remoteAddress)
        elsewhere?.failed(keys)
      }
      return blocked.network
    },
    refused({ method, user, verified }, request) {
      const remoteAddress = remoteAddressOf(request)
      // Who was verified has guessed nothing.
      if (!verified) {
        const keys = failures.failed(user, remoteAddress)
        elsewhere?.failed(keys)
      }
      refusals.authenticationFailed({
        user: verified && isTellable(user) ? user : names.shown(user),
        method,
        remoteAddress,
      })
    },
    loggedIn,
    cameAgain(principal, request) {
      if (!logged.get(placeOf(principal, request))) loggedIn(principal, request)
    },
  }
}
