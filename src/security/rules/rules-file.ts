import type { ObjectRights } from '../../shared/object-rights.ts'
import type { Identity, QueryRules } from '../authorization.ts'
import { objectRulesOf } from './object-rules.ts'
import { queryRulesOf } from './query-rules.ts'
import { readRules } from './read-rules.ts'
import { sectionsWithoutEffect } from './rules-schema.ts'

/** What a rules file says of queries, and of catalogs and all that is in them. */
export interface AccessRules {
  readonly queries: QueryRules
  readonly objects: (identity: Pick<Identity, 'user' | 'groups'>) => ObjectRights
}

/**
 * The rules that the text of a file has.
 * @param onWithoutEffect told of sections that decide nothing
 * @throws Error with the line, when the text is wrong
 */
export function parseRulesFile(text: string, onWithoutEffect: (sections: readonly string[]) => void): AccessRules {
  const read = readRules(text)
  const idle = sectionsWithoutEffect(read)
  if (idle.length > 0) onWithoutEffect(idle)
  return { queries: queryRulesOf(read), objects: objectRulesOf(read) }
}
