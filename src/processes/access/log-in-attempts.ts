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
import type { FailuresElsewhere } from '../health/follower-sightings.ts'

/** The names that this process knows and may report. */
export interface KnownNames {
  has(name: string): boolean
  add(name: string): void
  /** The name as it is reported: an unknown name may be a password that was typed in the wrong field. */
  shown(name: string): string
}

const MOST_NAMES = 10_000

/** @param isKnown whether a password file has the name */
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
  /** The failures that this process knows, in whatever role. */
  readonly failures: FailedLogIns
  readonly names: KnownNames
  /** The reports of this role. */
  readonly refusals: Pick<RefusalLog, 'authenticationFailed' | 'loggedIn'>
  /** Undefined: failures are counted only here. */
  readonly elsewhere: FailuresElsewhere | undefined
  readonly meters: () => Meters | undefined
  /** Milliseconds, monotonic. */
  readonly now: () => number
}

/** Log-ins of one user from one network are reported at most once in this time. */
const TOLD_MS = 5 * 60_000
const MOST_LOGGED = 10_000

export function createLogInAttempts(deps: AttemptsDeps): Attempts {
  const { failures, names, refusals, elsewhere, meters } = deps
  const logged = createVerifiedCache<true>(MOST_LOGGED, deps.now)
  const keyOf = ({ method, name }: VerifiedPrincipal, request: IncomingMessage): readonly string[] => [
    method,
    name,
    networkOf(remoteAddressOf(request)),
  ]

  function loggedIn(principal: VerifiedPrincipal, request: IncomingMessage): void {
    const { name, user, groups, method } = principal
    const remoteAddress = remoteAddressOf(request)
    logged.set(keyOf(principal, request), true, TOLD_MS)
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
      // Otherwise a client could test without limit which password is remembered.
      if (remembered === false) {
        const keys = failures.guessed(user, remoteAddress)
        elsewhere?.failed(keys)
      }
      return blocked.network
    },
    refused({ method, user, verified }, request) {
      const remoteAddress = remoteAddressOf(request)
      // A verified user has guessed nothing.
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
      if (!logged.get(keyOf(principal, request))) loggedIn(principal, request)
    },
  }
}
