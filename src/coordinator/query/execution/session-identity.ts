import type { Identity } from '../../../security/authorization.ts'
import type { QuerySession } from '../events.ts'

/** Who a statement is of, as its first event has it: nobody is asked to log in again. */
export function identityOf({ user, principal, originalUser, groups, remoteUserAddress }: QuerySession): Identity {
  return {
    user,
    groups,
    ...(principal === undefined ? {} : { principal }),
    ...(originalUser === undefined ? {} : { originalUser }),
    ...(remoteUserAddress === '' ? {} : { remoteAddress: remoteUserAddress }),
  }
}
