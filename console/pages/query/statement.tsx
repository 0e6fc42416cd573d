import { Code } from '@mantine/core'
import { errorRange, type ErrorLocation } from '../../parts/error-range.ts'

/** The text of a statement, with the word marked where its error is. */
export function Statement({ sql, location }: { readonly sql: string; readonly location: ErrorLocation | undefined }) {
  const range = location && rangeIn(sql, location)
  return (
    <Code block className="sql" tabIndex={0} aria-label="Statement">
      {range ? (
        <>
          {sql.slice(0, range.from)}
          <mark className="error-place">{sql.slice(range.from, range.to)}</mark>
          {sql.slice(range.to)}
        </>
      ) : (
        sql
      )}
    </Code>
  )
}

/** Where the word of a location is; undefined where the text has no such line. */
function rangeIn(sql: string, { lineNumber, columnNumber }: ErrorLocation) {
  const lines = sql.split('\n')
  const line = lines[lineNumber - 1]
  if (line === undefined) return undefined
  const before = lines.slice(0, lineNumber - 1).reduce((sum, one) => sum + one.length + 1, 0)
  const [from, to] = errorRange(line, columnNumber)
  return { from: before + from, to: before + to }
}
