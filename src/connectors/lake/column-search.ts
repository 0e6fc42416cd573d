/** May a manifest with this text be wanted? Asked before it is parsed. */
export type TextTest = (text: Buffer) => boolean

/** More names than these are searched for no faster than the text is parsed. */
const MOST_SEARCHED = 16

const BACKSLASH = 0x5c
const COLON = 0x3a
const BLANKS: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d])
const KEY = Buffer.from('"name"')

/**
 * Whether a manifest's text, any JSON, may have a column of one of these names: without escapes it would be there as it is,
 * between quotes, after `"name":`.
 * @returns undefined where parsing it is as good
 */
export function namesOneOf(names: readonly string[]): TextTest | undefined {
  // What is no UTF-8 is read as U+FFFD.
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

/** Where the last byte before `at` is that is no blank. */
function beforeBlanks(text: Buffer, at: number): number {
  let before = at - 1
  while (BLANKS.has(text[before])) before--
  return before
}
