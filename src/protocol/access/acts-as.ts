import type { IncomingMessage } from 'node:http'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { VerifiedPrincipal } from '../../security/authentication/principal.ts'
import { isUserName, NO_USER_NAME } from '../../security/authentication/user-name.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { HttpProblem } from '../edge/problem.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import { basicUser, claimedUsers } from '../statement/session-headers.ts'
import { callerOf } from './caller.ts'

export interface ActsAsDeps {
  readonly authorize: Authorize
  /** Groups of a user, by the groups file. */
  readonly groupsOf: (user: string) => readonly string[]
  /**
   * Does a name in a header mean whoever logged in, in another spelling? Clients send the name as it was typed, and a directory
   * takes more than one spelling of it.
   * @default none does
   */
  readonly meansOneself?: (claimed: string, principal: VerifiedPrincipal) => boolean
}

/**
 * As whom a request acts: as who logged in, or as the user that its headers name, if he may.
 * @throws HttpProblem 401 without somebody; 403 for another whom he may not be; 400 for headers that cannot be
 */
export type ActsAs = (request: IncomingMessage) => Identity

export function createActsAs({ authorize, groupsOf, meansOneself = () => false }: ActsAsDeps): ActsAs {
  /** Trino asks for each step: who logged in to the original user, and from him to the user. */
  function impersonate(from: Identity, user: string): Identity {
    if (!authorize(from, { action: 'setUser', user }))
      throw new HttpProblem(403, `Access Denied: Principal ${from.principal} cannot become user ${user}`)
    if (from.user === user) return from
    if (!authorize(from, { action: 'impersonate', user }))
      throw new HttpProblem(403, `Access Denied: User ${from.user} cannot impersonate user ${user}`)
    return { ...from, user, originalUser: from.originalUser ?? from.user, groups: groupsOf(user) }
  }

  /** @throws HttpProblem 400 for what is no user's name: rules for that user would not hold for it */
  function claimed(name: string | undefined, principal: VerifiedPrincipal): string | undefined {
    if (name === undefined || name === principal.user) return name
    if (meansOneself(name, principal)) return principal.user
    if (!isUserName(name)) throw new HttpProblem(400, `What a header says ${NO_USER_NAME}`)
    return name
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
        const actsAs = claimed(user, principal)
        const original = impersonate(self, claimed(originalUser, principal) ?? actsAs ?? self.user)
        return impersonate(original, actsAs ?? original.user)
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
