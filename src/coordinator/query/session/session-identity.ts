import type { Identity } from '../../../security/authorization.ts'
import type { LimitedPerson } from '../../../shared/limit-owner.ts'
import type { QuerySession } from '../stream/events.ts'

/** The identity of a statement's user, from its first event, so that no new log-in is needed. */
export function identityOf({ user, principal, originalUser, groups, remoteUserAddress }: QuerySession): Identity {
  return {
    user,
    groups,
    ...(principal === undefined ? {} : { principal }),
    ...(originalUser === undefined ? {} : { originalUser }),
    ...(remoteUserAddress === '' ? {} : { remoteAddress: remoteUserAddress }),
  }
}

/** The person that posted a statement, as limits identify them. */
export function personOf({ session }: { readonly session: QuerySession }): LimitedPerson {
  return { user: session.user, remoteAddress: session.remoteUserAddress }
}
