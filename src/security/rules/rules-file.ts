import type { QueryRules } from '../authorization.ts'
import { queryRulesOf } from './query-rules.ts'
import { readRules } from './read-rules.ts'
import { sectionsWithoutEffect } from './rules-schema.ts'

/**
 * The rules that the text of a file has.
 * @param onWithoutEffect told of sections that decide nothing
 * @throws Error with the line, when the text is wrong
 */
export function parseRulesFile(text: string, onWithoutEffect: (sections: readonly string[]) => void): QueryRules {
  const read = readRules(text)
  const idle = sectionsWithoutEffect(read)
  if (idle.length > 0) onWithoutEffect(idle)
  return queryRulesOf(read)
}
