/** What editors leave around names. Nothing else is cut off: to a directory or a provider it may belong to the name. */
const AROUND = /^[ \t\r]+|[ \t\r]+$/g

/** A name, or a line, without spaces, tabs and ends of lines around it. */
export function withoutSpaceAround(text: string): string {
  return text.replaceAll(AROUND, '')
}

/** The lines of a file of users that say something, by their numbers from 1; a mark of UTF-8 before the first belongs to none. */
export function* linesOf(text: string): Generator<{ readonly number: number; readonly line: string }> {
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    const line = withoutSpaceAround(raw)
    if (line !== '') yield { number: index + 1, line }
  }
}
