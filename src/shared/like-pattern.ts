/** A pattern of SQL's LIKE: `%` any characters, `_` one, both as they are behind the escape. */
export interface LikePattern {
  readonly pattern: string
  readonly escape?: string | undefined
}

/** A character that must be there, one that may be any, or any number of them. */
type Part = { readonly character: string } | 'one' | 'any'

/** The text that alone fulfils the pattern; undefined where others do too, and for a pattern that is none. */
export function onlyMatch(like: LikePattern): string | undefined {
  const parts = partsOf(like)
  if (!parts || parts.some((part) => typeof part === 'string')) return undefined
  return parts.map((part) => (part as { readonly character: string }).character).join('')
}

/**
 * A test whether texts may fulfil the pattern. All do where the pattern is none: who asks the engine is told what is wrong.
 * It takes time for the text times the pattern at most.
 */
export function likeTest(like: LikePattern): (text: string) => boolean {
  const parts = partsOf(like)
  return parts ? (text) => matches(parts, [...text]) : () => true
}

/** Whether it is a pattern at all: one character escapes, and escapes what may be escaped. */
export function isLikePattern(like: LikePattern): boolean {
  return partsOf(like) !== undefined
}

function partsOf({ pattern, escape }: LikePattern): readonly Part[] | undefined {
  if (escape !== undefined && [...escape].length !== 1) return undefined
  const parts: Part[] = []
  const characters = [...pattern]
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i]!
    if (character === escape) {
      const next = characters[++i]
      if (next !== '%' && next !== '_' && next !== escape) return undefined
      parts.push({ character: next })
    } else if (character === '_') parts.push('one')
    else if (character !== '%') parts.push({ character })
    else if (parts.at(-1) !== 'any') parts.push('any')
  }
  return parts
}

/** Only the last `%` is ever tried again: what an earlier one took can stay as it is. */
function matches(parts: readonly Part[], text: readonly string[]): boolean {
  let at = 0
  let part = 0
  let again: { part: number; at: number } | undefined
  while (at < text.length) {
    const here = parts[part]
    if (here === 'any') again = { part: part++, at }
    else if (here === 'one' || (here !== undefined && here.character === text[at])) {
      part++
      at++
    } else if (again) {
      part = again.part + 1
      at = ++again.at
    } else return false
  }
  while (parts[part] === 'any') part++
  return part === parts.length
}
