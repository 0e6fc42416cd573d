import { queryTypeOf } from '../../../sql/statements/query-type.ts'
import type { GroupedStatement } from '../../dispatch/groups/group-selector.ts'
import type { QueryEventOf, QuerySession } from '../stream/events.ts'

interface Known {
  readonly sql: string
  readonly type: string | undefined
}

/**
 * The type of each session's statement: texts may be long, and all rules and selectors ask for it. The key is the
 * object of prepared statements, which stays the same when rules change the session.
 */
const known = new WeakMap<QuerySession['preparedStatements'], Known>()

/**
 * A statement as selectors of resource groups see it. It is the recorded statement, so they see the same after a
 * restart.
 */
export function groupedStatement({
  sql,
  session,
}: Pick<QueryEventOf<'QueryCreated'>['data'], 'sql' | 'session'>): GroupedStatement {
  return { session, queryType: () => typeOnce(sql, session) }
}

/** Remembers the type of a statement that another thread determined, so that this thread need not parse it. */
export function rememberQueryType(
  { sql, session: { preparedStatements } }: Pick<QueryEventOf<'QueryCreated'>['data'], 'sql' | 'session'>,
  type: string | undefined,
): void {
  known.set(preparedStatements, { sql, type })
}

function typeOnce(sql: string, { preparedStatements }: Pick<QuerySession, 'preparedStatements'>): string | undefined {
  const before = known.get(preparedStatements)
  if (before?.sql === sql) return before.type
  const type = queryTypeOf(sql, { preparedStatements })
  known.set(preparedStatements, { sql, type })
  return type
}
