import type { AnswerText } from './query-results.ts'
import type { ResultPageAddress } from './next-uri.ts'

/** Answers at settled tokens. A client that asks again gets the same bytes. */
export interface SettledAnswers {
  /**
   * Returns the answer at a token, made by `make` the first time.
   * @param next the token that follows, undefined at the end
   */
  of(page: ResultPageAddress, next: number | undefined, make: () => AnswerText): AnswerText
}

/** The most characters of all settled answers. Each contains the columns of its result, which may be very many. */
const MOST_CHARACTERS = 16 * 1024 * 1024
const MOST_ANSWERS = 2000

/** Keeps the newest settled answers; older ones are made again from the same events. */
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
