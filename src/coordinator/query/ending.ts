import { posterOf, type Authorize, type Identity, type QueryOwner } from '../../security/authorization.ts'
import { failureOf, type Failure } from '../../shared/engine-error.ts'
import type { QueryId } from '../../shared/ids.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { holdsSecret, withoutUserInfo } from '../../sql/syntax/secret-names.ts'
import { REDACTED } from '../../sql/syntax/secret-values.ts'
import type { EndedBy } from './events.ts'

/** By which door somebody ends a query. */
export type EndedHow = EndedBy['how']

/** How a query is ended from outside. */
export interface Ending {
  /** What becomes its error. */
  readonly failure: Failure
  /** Who wants it, where he asks by its id. */
  readonly endedBy?: EndedBy
  /** Asked once it is known whose the query is. @default it was asked before */
  readonly mayEnd?: (owner: QueryOwner, queryId: QueryId) => boolean
}

/** What the client of a query gives up. */
export const canceledByClient: Ending = { failure: failureOf('USER_CANCELED', 'Query was canceled') }

/**
 * What somebody asks for who has a query's id.
 * @param message why, told in the error of what is killed or preempted; empty: no reason is given
 */
export function endingBy(
  by: Identity,
  authorize: Authorize,
  way: Pick<EndedBy, 'how' | 'statement'>,
  message = '',
): Ending {
  const { user, originalUser, remoteAddress } = by
  const endedBy: EndedBy = {
    user,
    ...(originalUser === undefined || originalUser === user ? {} : { originalUser }),
    ...(remoteAddress === undefined ? {} : { remoteAddress }),
    ...way,
  }
  return {
    failure: failureBy(way.how, withoutSecrets(message)),
    endedBy,
    mayEnd: (query, queryId) => authorize(by, { action: 'kill', query, queryId }),
  }
}

/** It becomes part of the log. */
function withoutSecrets(message: string): string {
  return holdsSecret(message) ? REDACTED : withoutUserInfo(message, [])
}

/** In the words of Trino, and with its codes. */
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

/** Does somebody learn who ended a query? All others are told what and why alone. */
export type SeesEnder = (endedBy: Pick<EndedBy, 'user' | 'originalUser'>) => boolean

/** Whoever sees all, and he himself, whoever he is now. */
export function enderSeenBy(identity: Identity, authorize: Authorize): SeesEnder {
  const seesAll = authorize(identity, { action: 'viewAll' })
  return (endedBy) => seesAll || posterOf(identity) === (endedBy.originalUser ?? endedBy.user)
}
