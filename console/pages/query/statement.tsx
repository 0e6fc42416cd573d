import { Code } from '@mantine/core'

interface ErrorLocation {
  readonly lineNumber: number
  readonly columnNumber: number
}

/** The text of a statement, with the word marked where its error is. */
export function Statement({ sql, location }: { readonly sql: string; readonly location: ErrorLocation | undefined }) {
  const at = location && offsetOf(sql, location)
  if (at === undefined)
    return (
      <Code block className="sql" tabIndex={0} aria-label="Statement">
        {sql}
      </Code>
    )
  const word = /^(\w+|.)/su.exec(sql.slice(at))?.[0] ?? ' '
  return (
    <Code block className="sql" tabIndex={0} aria-label="Statement">
      {sql.slice(0, at)}
      <mark className="error-place">{word}</mark>
      {sql.slice(at + word.length)}
    </Code>
  )
}

/** The offset of a line and column, both from 1; undefined where the text has no such line. */
function offsetOf(sql: string, { lineNumber, columnNumber }: ErrorLocation): number | undefined {
  const lines = sql.split('\n')
  if (lineNumber < 1 || lineNumber > lines.length) return undefined
  const before = lines.slice(0, lineNumber - 1).reduce((sum, line) => sum + line.length + 1, 0)
  return Math.min(before + columnNumber - 1, sql.length)
}
