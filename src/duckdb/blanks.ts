/**
 * The characters that Trino treats as blanks around values. JavaScript's `trim()` and `\s` include more: U+FEFF, and
 * non-breaking blanks.
 */

/** Java's Character.isWhitespace, as in TRIM: around dates and times. */
const AROUND = /[\t-\r\x1c-\x20\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]/

export function trimmed(text: string): string {
  return within(text, (character) => AROUND.test(character))
}

/** Trims like Java's String.trim: for numbers. */
export function trimmedNumber(text: string): string {
  return within(text, (character) => character <= ' ')
}

function within(text: string, isBlank: (character: string) => boolean): string {
  let [from, to] = [0, text.length]
  while (from < to && isBlank(text[from]!)) from++
  while (to > from && isBlank(text[to - 1]!)) to--
  return text.slice(from, to)
}
