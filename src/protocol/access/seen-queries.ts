import type { QueryRows } from '../../events/projection.ts'
import { readQueryUsers, type QueryFilter } from '../../readmodels/queries/queries.ts'
import { posterOf, type Authorize, type Identity, type QueryOwner } from '../../security/authorization.ts'

/** Selects the queries that a list shows to a caller. */
export interface SeenList {
  /** The filter for queries in the tables; empty where the caller may see all. */
  readonly filter: Pick<QueryFilter, 'seen'>
  /** Whether the list shows a query in memory. */
  has(owner: QueryOwner): boolean
}

/** Makes the selection. Rights are checked once for each user who has queries, not for each query. */
export async function seenBy(identity: Identity, authorize: Authorize, read: QueryRows): Promise<SeenList> {
  if (authorize(identity, { action: 'viewAll' })) return { filter: {}, has: () => true }
  const has = (query: QueryOwner): boolean => authorize(identity, { action: 'list', query })
  const others = authorize(identity, { action: 'viewOthers' }) ? await readQueryUsers(read) : []
  const users = [...new Set([identity.user, ...others.filter((user) => has({ user }))])]
  return { filter: { seen: { users, poster: posterOf(identity), self: identity.user } }, has }
}
