import type { QueryId } from '../../../shared/ids.ts'
import type { Authorize, Identity } from '../../../security/authorization.ts'
import type { RightsOf } from '../../../sql/access-control.ts'
import type { SessionContext } from '../../../sql/session.ts'
import type { QueryEventOf, QuerySession } from '../stream/events.ts'
import type { FileDigests } from '../stream/planned-data.ts'
import { identityOf } from './session-identity.ts'

/** The access rules, as a statement asks them. */
export interface StatementRights {
  /** Decides by the current rules of this coordinator; a refusal is reported at the end of the query. */
  readonly authorize: Authorize
  /** The rights of a user to catalogs and tables; undefined where users are refused nothing. */
  readonly objectsOf: (asker: Pick<Identity, 'user' | 'groups'>) => RightsOf | undefined
  /** Digests of the files in force now that decide about rights. */
  readonly filesInForce: () => FileDigests
  /** Reports that an expression in the rules is wrong. */
  readonly onRuleFault: (queryId: QueryId, message: string) => void
}

/** The session of a statement as the client sent it, and the first event of its query. */
interface PostedSession {
  readonly session: QuerySession
  readonly created: QueryEventOf<'QueryCreated'>['data']
}

/** The front end's session, from what the client sent; `now()` is its time. */
export function sessionContext(
  queryId: QueryId,
  { session, created }: PostedSession,
  startTimeMillis: number,
  { authorize, objectsOf, onRuleFault }: Omit<StatementRights, 'filesInForce'>,
  bounds: NonNullable<SessionContext['bounds']> = {},
): SessionContext {
  const { originalUser } = session
  const rightsOf = objectsOf(identityOf(session))
  // The posting user may become any user that it could impersonate; the user that it acts as now adds no rights.
  const poster = { ...identityOf(session), user: originalUser ?? session.user, groups: [] }
  return {
    queryId,
    user: session.user,
    groups: session.groups,
    timeZone: session.timeZone,
    startTimeMillis,
    properties: session.properties,
    bounds,
    ...(session.propertyRules === undefined ? {} : { propertyRules: session.propertyRules }),
    preparedStatements: session.preparedStatements,
    roles: session.roles,
    clientCapabilities: session.capabilities,
    headerFamily: created.headerFamily,
    mayBecome: (user) =>
      authorize(poster, { action: 'setUser', user, queryId }) &&
      authorize(poster, { action: 'impersonate', user, queryId }),
    onRuleFault: (message) => onRuleFault(queryId, message),
    ...(rightsOf === undefined ? {} : { rightsOf }),
    ...(originalUser === undefined ? {} : { originalUser }),
    ...(session.source === undefined ? {} : { source: session.source }),
    ...(session.catalog === undefined ? {} : { catalog: session.catalog }),
    ...(session.schema === undefined ? {} : { schema: session.schema }),
    ...(session.path === undefined ? {} : { path: session.path }),
    ...(session.language === undefined ? {} : { language: session.language }),
    ...(session.transactionId === undefined ? {} : { transactionId: session.transactionId }),
  }
}
