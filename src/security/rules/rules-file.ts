import type { QueryRules } from '../authorization.ts'
import { watchFile, type FileNews } from '../watched-file.ts'
import { queryRulesOf } from './query-rules.ts'
import { readRules } from './read-rules.ts'
import { sectionsWithoutEffect } from './rules-schema.ts'

export interface RulesInForce {
  readonly rules: QueryRules
  stop(): void
}

/**
 * The rules of a file, as it was last when it was right.
 * @param onWithoutEffect told of sections that decide nothing, each time that they are read
 * @throws Error with the line, when the file is wrong at the start; what cannot be read
 */
export function followRules(
  path: string,
  news: FileNews,
  onWithoutEffect: (sections: readonly string[]) => void,
): RulesInForce {
  const file = watchFile(
    path,
    (text) => {
      const read = readRules(text)
      const idle = sectionsWithoutEffect(read)
      if (idle.length > 0) onWithoutEffect(idle)
      return queryRulesOf(read)
    },
    news,
  )
  return {
    get rules() {
      return file.value
    },
    stop: () => file.stop(),
  }
}
