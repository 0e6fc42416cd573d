/** A position in a statement; line and column begin at 1. The server counts columns in code points. */
export interface ErrorLocation {
  readonly lineNumber: number
  readonly columnNumber: number
}

/** Where the word at a column of a line begins and ends. At the end of the line it is the last character. */
export function errorRange(line: string, columnNumber: number): readonly [from: number, to: number] {
  const characters = [...line]
  const from = characters.slice(0, Math.max(Math.min(columnNumber, characters.length) - 1, 0)).join('').length
  const word = /^(\w+|.)/su.exec(line.slice(from))?.[0] ?? ''
  return [from, from + word.length]
}
