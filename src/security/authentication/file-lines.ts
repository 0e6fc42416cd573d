/**
 * The white space that editors leave around names. Nothing else is cut off: a directory or a provider may count it as
 * part of the name.
 */
const AROUND = /^[ \t\r]+|[ \t\r]+$/g

/** Returns a name, or a line, without spaces, tabs and line ends around it. */
export function withoutSpaceAround(text: string): string {
  return text.replaceAll(AROUND, '')
}

/**
 * The lines of a file of users that are not empty, with their numbers from 1. A byte order mark before the first line
 * is ignored.
 */
export function* linesOf(text: string): Generator<{ readonly number: number; readonly line: string }> {
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    const line = withoutSpaceAround(raw)
    if (line !== '') yield { number: index + 1, line }
  }
}
