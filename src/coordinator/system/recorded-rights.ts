import type { Authorize, Permission } from '../../security/authorization.ts'
import type { QueryAggregate } from '../query/stream/query-aggregate.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { RefusalLog } from './refusal-log.ts'
import type { SystemJournal } from './system-journal.ts'

/**
 * Records refused requests. A list that leaves out rows is not recorded, because the user did not ask for these rows.
 */
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

/**
 * Records each query that a user ends by its id, through any interface, once the query's end, which names that user in
 * the same append, is valid. The user's message stays in the query's own stream, and is forgotten with it.
 * @returns a function to call with each query of this process
 */
export function recordKills(journal: Pick<SystemJournal, 'record'>): (query: Ending) => void {
  return (query) =>
    query.onValid((events) => {
      for (const event of events) {
        if (event.type !== 'QueryFailed' || !event.data.endedBy) continue
        const { user: by, act, ...rest } = event.data.endedBy
        // ActStarted names the queries of an act.
        if (act !== undefined) continue
        journal.record('QueryKilled', { queryId: query.queryId, by, ...rest }).catch(() => {})
      }
    })
}

type Ending = Pick<QueryAggregate, 'queryId' | 'onValid'>

type OfLists = Extract<Permission, { action: 'list' | 'viewAll' | 'viewOthers' | 'listSystem' }>

function isOfLists(permission: Permission): permission is OfLists {
  const { action } = permission
  return action === 'list' || action === 'viewAll' || action === 'viewOthers' || action === 'listSystem'
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
    case 'setUser':
      return `user ${permission.user}`
    case 'readSystem':
    case 'readFigures':
    case 'writeSystem':
      return 'system information'
    default:
      return unreachable(permission)
  }
}
