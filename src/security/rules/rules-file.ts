import type { ObjectRights } from '../../shared/object-rights.ts'
import type { Identity, QueryRules } from '../authorization.ts'
import { objectRulesOf } from './object-rules.ts'
import { queryRulesOf } from './query-rules.ts'
import { readRules } from './read-rules.ts'
import type { RulesFile } from './rules-schema.ts'

/** What a rules file says of queries, and of catalogs and all that is in them. */
export interface AccessRules {
  /** How many rules there are. */
  readonly count: number
  readonly queries: QueryRules
  readonly objects: (identity: Pick<Identity, 'user' | 'groups'>) => ObjectRights
}

/**
 * The rules that the text of a file has.
 * @throws Error with the line, when the text is wrong
 */
export function parseRulesFile(text: string): AccessRules {
  return accessRulesOf(readRules(text))
}

/** What rules say. */
export function accessRulesOf(read: RulesFile): AccessRules {
  const count = Object.values(read).reduce((sum, rules) => sum + (rules?.length ?? 0), 0)
  return { count, queries: queryRulesOf(read), objects: objectRulesOf(read) }
}
