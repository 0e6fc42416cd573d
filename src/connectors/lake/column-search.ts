/** Whether a manifest with this text may be wanted; called before the text is parsed. */
export type TextTest = (text: Buffer) => boolean

/** A search for more names than these is no faster than parsing the text. */
const MOST_SEARCHED = 16

const BACKSLASH = 0x5c
const COLON = 0x3a
const BLANKS: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d])
const KEY = Buffer.from('"name"')

/**
 * Makes a test of whether a manifest's text, any JSON, may have a column of one of these names. Without escapes such a
 * text has the name between quotes, after `"name":`.
 * @returns undefined when the search would not be faster than parsing
 */
export function namesOneOf(names: readonly string[]): TextTest | undefined {
  // Parsing turns invalid UTF-8 into U+FFFD.
  if (names.length > MOST_SEARCHED || names.some((name) => /[\ufffd\p{Cs}]/u.test(name))) return undefined
  const quoted = names.map((name) => Buffer.from(`"${name}"`))
  return (text) => text.includes(BACKSLASH) || quoted.some((name) => isNamed(text, name))
}

function isNamed(text: Buffer, quoted: Buffer): boolean {
  for (let at = text.indexOf(quoted); at >= 0; at = text.indexOf(quoted, at + 1)) {
    const colon = beforeBlanks(text, at)
    if (text[colon] !== COLON) continue
    const end = beforeBlanks(text, colon) + 1
    if (end >= KEY.length && text.compare(KEY, 0, KEY.length, end - KEY.length, end) === 0) return true
  }
  return false
}

/** The position of the last byte before `at` that is not a blank. */
function beforeBlanks(text: Buffer, at: number): number {
  let before = at - 1
  while (BLANKS.has(text[before])) before--
  return before
}
