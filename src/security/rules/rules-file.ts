import type { ObjectRights } from '../../shared/object-rights.ts'
import type { Identity, QueryRules } from '../authorization.ts'
import { objectRulesOf } from './object-rules.ts'
import { queryRulesOf } from './query-rules.ts'
import { readRules } from './read-rules.ts'
import type { RulesFile } from './rules-schema.ts'

/** The rules of a file, for queries and for catalogs and their contents. */
export interface AccessRules {
  /** How many rules there are. */
  readonly count: number
  readonly queries: QueryRules
  readonly objects: (identity: Pick<Identity, 'user' | 'groups'>) => ObjectRights
}

/**
 * Parses the text of a rules file.
 * @throws Error with the line, when the text is wrong
 */
export function parseRulesFile(text: string): AccessRules {
  return accessRulesOf(readRules(text))
}

/** Makes the checks of parsed rules. */
export function accessRulesOf(read: RulesFile): AccessRules {
  const count = Object.values(read).reduce((sum, rules) => sum + (rules?.length ?? 0), 0)
  return { count, queries: queryRulesOf(read), objects: objectRulesOf(read) }
}
