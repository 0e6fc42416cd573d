import type { QueryRows } from '../../events/projection.ts'
import { readQueryUsers, type QueryFilter } from '../../readmodels/queries/queries.ts'
import { posterOf, type Authorize, type Identity, type QueryOwner } from '../../security/authorization.ts'

/** Which queries a list shows to who asks for it. */
export interface SeenList {
  /** Of those in the tables; nothing, where he sees all. */
  readonly filter: Pick<QueryFilter, 'seen'>
  /** Of those in memory. */
  has(owner: QueryOwner): boolean
}

/** The rights are asked for each user of whom there are queries, and not for each query. */
export async function seenBy(identity: Identity, authorize: Authorize, read: QueryRows): Promise<SeenList> {
  if (authorize(identity, { action: 'viewAll' })) return { filter: {}, has: () => true }
  const has = (query: QueryOwner): boolean => authorize(identity, { action: 'list', query })
  const others = authorize(identity, { action: 'viewOthers' }) ? await readQueryUsers(read) : []
  const users = [...new Set([identity.user, ...others.filter((user) => has({ user }))])]
  return { filter: { seen: { users, poster: posterOf(identity), self: identity.user } }, has }
}
