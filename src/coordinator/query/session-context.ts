import type { QueryId } from '../../shared/ids.ts'
import type { Authorize } from '../../security/authorization.ts'
import type { SessionContext } from '../../sql/session.ts'
import { identityOf } from './execution/session-identity.ts'
import type { Submission } from './query-handle.ts'

/** The front end's session, from what the client sent; `now()` is its time. */
export function sessionContext(
  queryId: QueryId,
  { session, created }: Pick<Submission, 'session' | 'created'>,
  startTimeMillis: number,
  authorize: Authorize,
): SessionContext {
  const { originalUser } = session
  // Who posted it may become whom he could act as; as whom he acts now gives him no more.
  const poster = { ...identityOf(session), user: originalUser ?? session.user, groups: [] }
  return {
    queryId,
    user: session.user,
    timeZone: session.timeZone,
    startTimeMillis,
    properties: session.properties,
    preparedStatements: session.preparedStatements,
    roles: session.roles,
    clientCapabilities: session.capabilities,
    headerFamily: created.headerFamily,
    mayBecome: (user) => authorize(poster, { action: 'impersonate', user, queryId }),
    ...(originalUser === undefined ? {} : { originalUser }),
    ...(session.source === undefined ? {} : { source: session.source }),
    ...(session.catalog === undefined ? {} : { catalog: session.catalog }),
    ...(session.schema === undefined ? {} : { schema: session.schema }),
    ...(session.path === undefined ? {} : { path: session.path }),
    ...(session.language === undefined ? {} : { language: session.language }),
    ...(session.transactionId === undefined ? {} : { transactionId: session.transactionId }),
  }
}
