import type { AnswerText } from './query-results.ts'
import type { ResultPageAddress } from './next-uri.ts'

/** What was answered at a settled token: asked again, it is the same to the byte. */
export interface SettledAnswers {
  /** @param next the token that follows, undefined at the end */
  of(page: ResultPageAddress, next: number | undefined, make: () => AnswerText): AnswerText
}

/** Settled answers take so many characters together: each has the columns of its result, which may be very many. */
const MOST_CHARACTERS = 16 * 1024 * 1024
const MOST_ANSWERS = 2000

/** The newest settled answers; older ones are made again from the same events. */
export function createSettledAnswers(most = { answers: MOST_ANSWERS, characters: MOST_CHARACTERS }): SettledAnswers {
  const kept = new Map<string, AnswerText>()
  let characters = 0
  return {
    of({ queryId, token }, next, make) {
      const key = `${queryId}/${token}/${next ?? 'end'}`
      const known = kept.get(key)
      if (known) return known
      const made = make()
      kept.set(key, made)
      characters += made.head.length + made.tail.length
      for (const [oldest, { head, tail }] of kept) {
        if (kept.size <= most.answers && characters <= most.characters) break
        kept.delete(oldest)
        characters -= head.length + tail.length
      }
      return made
    },
  }
}
