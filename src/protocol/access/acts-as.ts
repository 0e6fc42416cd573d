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
  /** The groups of a user, by the groups file. */
  readonly groupsOf: (user: string) => readonly string[]
  /**
   * Whether a name in a header means the user who logged in, in another spelling. Clients send the name as it was
   * typed, and a directory accepts several spellings.
   * @default false for all names
   */
  readonly meansOneself?: (claimed: string, principal: VerifiedPrincipal) => boolean
}

/**
 * Returns the user that a request acts as: the user who logged in, or the one that its headers name, if that is
 * allowed.
 * @throws HttpProblem 401 without authentication; 403 for a user that they may not act as; 400 for invalid headers
 */
export type ActsAs = (request: IncomingMessage) => Identity

export function createActsAs({ authorize, groupsOf, meansOneself = () => false }: ActsAsDeps): ActsAs {
  /**
   * As Trino does, each step is checked: from the user who logged in to the original user, and from there to the user.
   */
  function impersonate(from: Identity, user: string): Identity {
    if (!authorize(from, { action: 'setUser', user }))
      throw new HttpProblem(403, `Access Denied: Principal ${from.principal} cannot become user ${user}`)
    if (from.user === user) return from
    if (!authorize(from, { action: 'impersonate', user }))
      throw new HttpProblem(403, `Access Denied: User ${from.user} cannot impersonate user ${user}`)
    return { ...from, user, originalUser: from.originalUser ?? from.user, groups: groupsOf(user) }
  }

  /**
   * Checks a name of a header.
   * @throws HttpProblem 400 for a text that is no user name: the rules for that user would not apply to it
   */
  function claimed(name: string | undefined, principal: VerifiedPrincipal): string | undefined {
    if (name === undefined || name === principal.user) return name
    if (meansOneself(name, principal)) return principal.user
    if (!isUserName(name)) throw new HttpProblem(400, `The user of a header ${NO_USER_NAME}`)
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
        throw new HttpProblem(403, 'The cluster secret is only for processes of the cluster: it cannot act as a user')
      case 'nobody':
        throw new HttpProblem(401, 'Authentication is required')
      default:
        return unreachable(caller)
    }
  }
}
