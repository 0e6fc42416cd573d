import type { SessionContext } from '../../sql/session.ts'
import type { QueryEventOf } from './events.ts'

/** The front end's session, from what QueryCreated carries; `now()` is its time. */
export function sessionContext(
  queryId: string,
  created: QueryEventOf<'QueryCreated'>['data'],
  startTimeMillis: number,
): SessionContext {
  const { session } = created
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
    ...(session.source === undefined ? {} : { source: session.source }),
    ...(session.catalog === undefined ? {} : { catalog: session.catalog }),
    ...(session.schema === undefined ? {} : { schema: session.schema }),
    ...(session.path === undefined ? {} : { path: session.path }),
    ...(session.language === undefined ? {} : { language: session.language }),
    ...(session.transactionId === undefined ? {} : { transactionId: session.transactionId }),
  }
}
