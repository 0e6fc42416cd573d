import { queryTypeOf } from '../../sql/statements/query-type.ts'
import type { GroupedStatement } from '../dispatch/groups/group-selector.ts'
import type { QueryEventOf } from './events.ts'

/** A statement as selectors of resource groups see it: as it is recorded, so that they see the same after a restart. */
export function groupedStatement({
  sql,
  session,
}: Pick<QueryEventOf<'QueryCreated'>['data'], 'sql' | 'session'>): GroupedStatement {
  return { session, queryType: () => queryTypeOf(sql, session) }
}
