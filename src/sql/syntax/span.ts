import type { ErrorLocation } from '../../shared/engine-error.ts'

/**
 * The position of a node in the statement's text: offsets in UTF-16 code units, `end` exclusive. `at` is the position
 * that Trino reports in errors about the node: the operator of a comparison or of arithmetic, the first keyword of a
 * predicate (`NOT`, `IN`, `IS` …), the set operator; `start` for all other nodes.
 */
export interface Span {
  readonly start: number
  readonly end: number
  readonly at: number
}

/**
 * The position at which a text begins inside another text; `{lineNumber: 1, columnNumber: 1}` for a text of its own.
 */
export const textOrigin: ErrorLocation = { lineNumber: 1, columnNumber: 1 }

/**
 * A text with the position at which it begins inside the client's text (EXECUTE IMMEDIATE). Spans are offsets in it.
 */
export interface SourceText {
  readonly sql: string
  readonly origin: ErrorLocation
}

/**
 * The line and column (1-based, columns in code points, lines end at `
 * `) of an offset in `sql`.
 */
export function locate(sql: string, offset: number, origin: ErrorLocation = textOrigin): ErrorLocation {
  let line = 0
  let lineStart = 0
  for (let next = sql.indexOf('\n'); next !== -1 && next < offset; next = sql.indexOf('\n', next + 1)) {
    line++
    lineStart = next + 1
  }
  let column = 0
  for (let index = lineStart; index < offset; index++) {
    const unit = sql.charCodeAt(index)
    const isPair = unit >= 0xd800 && unit <= 0xdbff && (sql.charCodeAt(index + 1) & 0xfc00) === 0xdc00
    if (isPair && index + 1 < offset) index++
    column++
  }
  return {
    lineNumber: origin.lineNumber + line,
    columnNumber: (line === 0 ? origin.columnNumber : 1) + column,
  }
}
