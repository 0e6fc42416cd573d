import type { Authorize, Identity, Permission } from '../../security/authorization.ts'
import type { QueryId } from '../../shared/ids.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { RefusalLog } from './refusal-log.ts'
import type { SystemJournal } from './system-journal.ts'

/** Tells of what is refused. What lists ask, to leave out the rest, is no attempt of anybody. */
export function recordDenials(authorize: Authorize, refusals: Pick<RefusalLog, 'accessDenied'>): Authorize {
  return (identity, permission) => {
    const allowed = authorize(identity, permission)
    if (allowed || isOfLists(permission)) return allowed
    const { user, originalUser, remoteAddress } = identity
    refusals.accessDenied({
      user,
      ...(originalUser === undefined || originalUser === user ? {} : { originalUser }),
      action: permission.action,
      object: objectOf(permission),
      ...('queryId' in permission ? { queryId: permission.queryId } : {}),
      remoteAddress,
    })
    return allowed
  }
}

export type Cancel = (queryId: QueryId, by: Identity, message?: string) => Promise<'done' | 'unknown' | 'waiting'>

/** Tells who ended a query by its id, rather than by the address that its own client was given. */
export function recordKills(cancel: Cancel, isOpen: (queryId: QueryId) => boolean, journal: SystemJournal): Cancel {
  return async (queryId, by, message) => {
    const open = isOpen(queryId)
    const outcome = await cancel(queryId, by, message)
    if (open && outcome === 'done') {
      const { user, remoteAddress } = by
      // The query has ended, whatever becomes of this. What was said to it is told by its own end, and forgotten with it.
      journal
        .record('QueryKilled', { queryId, by: user, ...(remoteAddress === undefined ? {} : { remoteAddress }) })
        .catch(() => {})
    }
    return outcome
  }
}

type OfLists = Extract<Permission, { action: 'list' | 'viewAll' | 'viewOthers' }>

function isOfLists(permission: Permission): permission is OfLists {
  const { action } = permission
  return action === 'list' || action === 'viewAll' || action === 'viewOthers'
}

function objectOf(permission: Exclude<Permission, OfLists>): string {
  switch (permission.action) {
    case 'execute':
      return 'statement'
    case 'view':
    case 'kill':
    case 'results':
    case 'cancel':
      return `query of ${permission.query.user}`
    case 'impersonate':
      return `user ${permission.user}`
    case 'viewNodes':
      return 'nodes'
    default:
      return unreachable(permission)
  }
}
