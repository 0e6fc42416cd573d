import type { IncomingMessage } from 'node:http'
import type { Authorize, Identity } from '../../security/authorization.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { HttpProblem } from '../edge/problem.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { basicUser, claimedUsers } from '../statement/session-headers.ts'
import { callerOf } from './caller.ts'

export interface ActsAsDeps {
  readonly authorize: Authorize
  /** Groups of a user, by the groups file. */
  readonly groupsOf: (user: string) => readonly string[]
}

/**
 * As whom a request acts: as who logged in, or as the user that its headers name, if he may.
 * @throws HttpProblem 401 without somebody; 403 for another whom he may not be; 400 for headers that cannot be
 */
export type ActsAs = (request: IncomingMessage) => Identity

export function createActsAs({ authorize, groupsOf }: ActsAsDeps): ActsAs {
  /** Trino asks for each step: who logged in to the original user, and from him to the user. */
  function impersonate(from: Identity, user: string): Identity {
    if (!authorize(from, { action: 'setUser', user }))
      throw new HttpProblem(403, `Access Denied: Principal ${from.principal} cannot become user ${user}`)
    if (from.user === user) return from
    if (!authorize(from, { action: 'impersonate', user }))
      throw new HttpProblem(403, `Access Denied: User ${from.user} cannot impersonate user ${user}`)
    return { ...from, user, originalUser: from.originalUser ?? from.user, groups: groupsOf(user) }
  }

  return (request) => {
    const caller = callerOf(request)
    const remoteAddress = remoteAddressOf(request)
    const from = remoteAddress === undefined ? {} : { remoteAddress }
    const { user, originalUser } = claimedUsers(request)
    switch (caller.kind) {
      case 'anybody': {
        const principal = basicUser(request)
        const said = {
          ...(principal === undefined ? {} : { principal }),
          ...(originalUser === undefined ? {} : { originalUser }),
        }
        return { user: user ?? principal ?? 'anonymous', groups: [], ...said, ...from }
      }
      case 'principal': {
        const { principal } = caller
        const self: Identity = { user: principal.user, principal: principal.name, groups: principal.groups, ...from }
        const original = impersonate(self, originalUser ?? user ?? self.user)
        return impersonate(original, user ?? original.user)
      }
      case 'cluster':
        throw new HttpProblem(403, "The cluster's key is of its processes: they act as no user")
      case 'nobody':
        throw new HttpProblem(401, 'Authentication is required')
      default:
        return unreachable(caller)
    }
  }
}
