import type { GroupedStatement } from '../../dispatch/groups/group-selector.ts'
import type { PostedTexts } from '../secrets/posted-texts.ts'
import type { PostedStatement } from '../secrets/query-secrets.ts'
import type { QueryEventOf, QuerySession } from '../stream/events.ts'

export interface PrepareStatementDeps {
  readonly texts: Pick<PostedTexts, 'seal'>
  /** The resource group of a statement, by what is recorded of it. */
  readonly groupOf: (statement: GroupedStatement) => string
  /** Applies session property rules to a statement's session; undefined where there are none. */
  readonly propertyRules: (
    statement: GroupedStatement,
    resourceGroup: string,
  ) => ((sent: QuerySession) => QuerySession) | undefined
}

/**
 * Removes the secrets of a statement, finds its resource group, and applies the rules for session properties.
 * @param session as sent
 * @param rest the other data of QueryCreated
 */
export async function preparedStatement(
  { texts, groupOf, propertyRules }: PrepareStatementDeps,
  sql: string,
  session: QuerySession,
  rest: Omit<QueryEventOf<'QueryCreated'>['data'], 'sql' | 'redacted' | 'session' | 'resourceGroup'>,
): Promise<PostedStatement> {
  const sealed = await texts.seal(sql, session, { resourceGroup: '', ...rest })
  // The group is chosen by the recorded text: no secret gets into a group's name, and a successor chooses the same
  // group.
  const grouped = { session: sealed.created.session, queryType: () => sealed.type.get() }
  const created = { ...sealed.created, resourceGroup: groupOf(grouped) }
  const ruled = propertyRules(grouped, created.resourceGroup)
  if (!ruled) return { ...sealed, created }
  return { ...sealed, session: ruled(sealed.session), created: { ...created, session: ruled(created.session) } }
}
