import type { Authorize, Identity } from '../../security/authorization.ts'
import type { QueryId } from '../../shared/ids.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { RefusalLog } from './refusal-log.ts'
import type { SystemJournal } from './system-journal.ts'

/** Tells of what is refused. `viewAll` is no attempt of anybody: lists ask what to leave out. */
export function recordDenials(authorize: Authorize, refusals: Pick<RefusalLog, 'accessDenied'>): Authorize {
  return (identity, permission) => {
    const allowed = authorize(identity, permission)
    if (allowed || permission.action === 'viewAll') return allowed
    const { user, remoteAddress } = identity
    refusals.accessDenied({ user, remoteAddress, action: permission.action, object: objectOf(permission) })
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

function objectOf(permission: Exclude<Parameters<Authorize>[1], { action: 'viewAll' }>): string {
  switch (permission.action) {
    case 'view':
    case 'kill':
    case 'results':
      return `query of ${permission.query.user}`
    case 'impersonate':
      return `user ${permission.user}`
    case 'viewNodes':
      return 'nodes'
    default:
      return unreachable(permission)
  }
}
