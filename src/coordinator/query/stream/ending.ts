import { posterOf, type Authorize, type Identity, type QueryOwner } from '../../../security/authorization.ts'
import { failureOf, type Failure } from '../../../shared/engine-error.ts'
import type { QueryId } from '../../../shared/ids.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import { holdsSecret, withoutUserInfo } from '../../../sql/syntax/secret-names.ts'
import { REDACTED } from '../../../sql/syntax/secret-values.ts'
import type { EndedBy } from './events.ts'

/** The interface through which a query is ended. */
export type EndedHow = EndedBy['how']

/** How a query is ended from outside. */
export interface Ending {
  /** The error of the query. */
  readonly failure: Failure
  /** The user that ends it, where the request names the query's id. */
  readonly endedBy?: EndedBy
  /** Checked once the owner of the query is known. @default it was checked before */
  readonly mayEnd?: (owner: QueryOwner, queryId: QueryId) => boolean
}

/** The ending of a query that its own client cancels. */
export const canceledByClient: Ending = { failure: failureOf('USER_CANCELED', 'Query was canceled') }

/**
 * The ending that a user requests by the query's id.
 * @param message the reason, shown in the error of a query that is killed or preempted; empty: no reason is given
 */
export function endingBy(
  by: Identity,
  authorize: Authorize,
  ended: Pick<EndedBy, 'how' | 'statement'>,
  message = '',
): Ending {
  const { user, originalUser, remoteAddress } = by
  const endedBy: EndedBy = {
    user,
    ...(originalUser === undefined || originalUser === user ? {} : { originalUser }),
    ...(remoteAddress === undefined ? {} : { remoteAddress }),
    ...ended,
  }
  return {
    failure: failureBy(ended.how, withoutSecrets(message)),
    endedBy,
    mayEnd: (query, queryId) => authorize(by, { action: 'kill', query, queryId }),
  }
}

/** The ending by an act on many queries. Whether the user may end the query was checked when the act began. */
export function endingByAct({ actId, reason, by: user, originalUser, remoteAddress }: EndingAct): Ending {
  return {
    failure: failureBy('killed', reason),
    endedBy: {
      user,
      ...(originalUser === undefined ? {} : { originalUser }),
      ...(remoteAddress === undefined ? {} : { remoteAddress }),
      how: 'killed',
      act: actId,
    },
  }
}

/** An act on many queries, its user and the reason without secrets. */
interface EndingAct {
  readonly actId: string
  readonly reason: string
  readonly by: string
  readonly originalUser?: string | undefined
  readonly remoteAddress?: string | undefined
}

/** Removes secrets, since the message becomes part of the log. */
export function withoutSecrets(message: string): string {
  return holdsSecret(message) ? REDACTED : withoutUserInfo(message, [])
}

/** The failure in Trino's words, and with its codes. */
function failureBy(how: EndedHow, message: string): Failure {
  const why = message === '' ? 'No message provided.' : `Message: ${message}`
  switch (how) {
    case 'canceled':
      return canceledByClient.failure
    case 'killed':
    case 'kill_query':
      return failureOf('ADMINISTRATIVELY_KILLED', `Query killed. ${why}`)
    case 'preempted':
      return failureOf('ADMINISTRATIVELY_PREEMPTED', `Query preempted. ${why}`)
    default:
      return unreachable(how)
  }
}

/** Whether a reader may see which user ended a query. Other readers see only how and why. */
export type SeesEnder = (endedBy: Pick<EndedBy, 'user' | 'originalUser'>) => boolean

/**
 * Users that may view all queries see it, and so does the user that ended the query, whichever user they act as now.
 */
export function enderSeenBy(identity: Identity, authorize: Authorize): SeesEnder {
  const seesAll = authorize(identity, { action: 'viewAll' })
  return (endedBy) => seesAll || posterOf(identity) === (endedBy.originalUser ?? endedBy.user)
}
