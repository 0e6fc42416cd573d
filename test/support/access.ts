import type { IncomingMessage } from 'node:http'
import { createActsAs } from '../../src/protocol/access/acts-as.ts'
import { ANYBODY, setCaller } from '../../src/protocol/access/caller.ts'
import { allowAll, authorizeBy, type Authorize } from '../../src/security/authorization.ts'

const actsAs = createActsAs({ authorize: allowAll, groupsOf: () => [] })

/** The access of a server without authentication. */
export const openAccess = {
  actsAs: (request: IncomingMessage) => {
    setCaller(request, ANYBODY)
    return actsAs(request)
  },
  guard: () => {},
  checkResults: () => {},
}

/** Users have rights to their own queries. Administrators have all rights. */
export function administratorsToo(names: ReadonlySet<string>): Authorize {
  const owners = authorizeBy(() => undefined)
  return (identity, permission) => names.has(identity.user) || owners(identity, permission)
}
