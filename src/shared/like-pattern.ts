/** A pattern of SQL's LIKE: `%` any characters, `_` one character. Behind the escape, both stand for themselves. */
export interface LikePattern {
  readonly pattern: string
  readonly escape?: string | undefined
}

/** A given character, any one character, or any number of characters. */
type Part = { readonly character: string } | 'one' | 'any'

/** The only text that matches the pattern; undefined if other texts match too, or if the pattern is not valid. */
export function onlyMatch(like: LikePattern): string | undefined {
  const parts = partsOf(like)
  if (!parts || parts.some((part) => typeof part === 'string')) return undefined
  return parts.map((part) => (part as { readonly character: string }).character).join('')
}

/**
 * Makes a test whether a text may match the pattern. If the pattern is not valid, all texts pass: the engine then
 * reports the error. The test takes at most time proportional to the text's length times the pattern's.
 */
export function likeTest(like: LikePattern): (text: string) => boolean {
  const parts = partsOf(like)
  return parts ? (text) => matches(parts, [...text]) : () => true
}

/** Whether the pattern is valid: the escape is one character, and escapes only a character that may be escaped. */
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

/** Whether a text matches. Only the last `%` is ever tried again: the match of an earlier `%` can stay. */
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
