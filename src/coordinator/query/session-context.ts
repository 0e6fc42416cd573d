import type { QueryId } from '../../shared/ids.ts'
import type { Authorize, Identity } from '../../security/authorization.ts'
import type { RightsOf } from '../../sql/access-control.ts'
import type { SessionContext } from '../../sql/session.ts'
import type { FileDigests } from './planned-data.ts'
import { identityOf } from './execution/session-identity.ts'
import type { Submission } from './query-handle.ts'

/** What is asked of the rules for a statement. */
export interface StatementRights {
  /** By the rules of this coordinator, as they are when it is asked; a refusal is told by the end of the query. */
  readonly authorize: Authorize
  /** What anybody may do with catalogs and tables; undefined where nobody is refused anything. */
  readonly objectsOf: (asker: Pick<Identity, 'user' | 'groups'>) => RightsOf | undefined
  /** What the rules, and whatever else says what he may, were read from, as it is now. */
  readonly filesInForce: () => FileDigests
  /** An expression of the rules is wrong: whoever keeps them is told. */
  readonly onRuleFault: (queryId: QueryId, message: string) => void
}

/** The front end's session, from what the client sent; `now()` is its time. */
export function sessionContext(
  queryId: QueryId,
  { session, created }: Pick<Submission, 'session' | 'created'>,
  startTimeMillis: number,
  { authorize, objectsOf, onRuleFault }: Omit<StatementRights, 'filesInForce'>,
  bounds: NonNullable<SessionContext['bounds']> = {},
): SessionContext {
  const { originalUser } = session
  const rightsOf = objectsOf(identityOf(session))
  // Who posted it may become whom he could act as; as whom he acts now gives him no more.
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
