import type { ErrorLocation } from '../../shared/engine-error.ts'
import type { Expression } from './ast.ts'
import type { DataType } from './ast-types.ts'
import type { Statement } from './ast-statements.ts'
import { parseExpression as expression, parsePrimary, parseValueExpression } from './parse-expressions.ts'
import { parseQuery } from './parse-query.ts'
import { parseAnyStatement } from './parse-statements.ts'
import { parseType as type } from './parse-types.ts'
import { textOrigin } from './span.ts'
import { Mismatch, TokenCursor, type Productions } from './token-cursor.ts'

const rules: Productions = {
  expression,
  valueExpression: parseValueExpression,
  primaryExpression: parsePrimary,
  query: parseQuery,
  statement: parseAnyStatement,
}

/**
 * Parses one statement of Trino's grammar, without a semicolon. Positions in errors count from `origin`, for a text
 * inside another text.
 * @throws EngineError SYNTAX_ERROR, with Trino's message and position
 */
export function parseStatement(sql: string, origin?: ErrorLocation): Statement {
  return parseText(sql, parseAnyStatement, origin).node
}

/** Parses a statement like `parseStatement`; also counts the `?` and the tokens of the whole text. */
export function parseWithParameters(
  sql: string,
  origin?: ErrorLocation,
): { readonly statement: Statement; readonly parameterCount: number; readonly tokenCount: number } {
  const { node, parameterCount, tokenCount } = parseText(sql, parseAnyStatement, origin)
  return { statement: node, parameterCount, tokenCount }
}

export function parseExpressionText(sql: string, origin?: ErrorLocation): Expression {
  return parseText(sql, expression, origin).node
}

export function parseTypeSyntax(sql: string, origin?: ErrorLocation): DataType {
  return parseText(sql, type, origin).node
}

function parseText<T>(sql: string, production: (cursor: TokenCursor) => T, origin: ErrorLocation = textOrigin) {
  const cursor = new TokenCursor(sql, rules, origin)
  try {
    const node = production(cursor)
    if (!cursor.is('EOF')) cursor.fail()
    if (cursor.deferred !== undefined) throw cursor.deferred
    return { node, parameterCount: cursor.parameterCount, tokenCount: cursor.index }
  } catch (error) {
    throw error instanceof Mismatch ? explain(cursor, production, error.tokenIndex) : asUserError(cursor, error)
  }
}

/** Parses the text again up to the failed token, to report the tokens that would have been accepted there. */
function explain<T>(first: TokenCursor, production: (cursor: TokenCursor) => T, index: number): unknown {
  const cursor = first.noting(index)
  try {
    production(cursor)
    cursor.is('EOF')
  } catch (error) {
    if (!(error instanceof Mismatch)) return asUserError(cursor, error)
  }
  const expecting = [...cursor.expected].sort().join(', ')
  return cursor.error(`mismatched input '${cursor.textOf(index)}'. Expecting: ${expecting}`, cursor.startOf(index))
}

/** The depth is limited, so the stack overflows only if the caller left little of it. */
function asUserError(cursor: TokenCursor, error: unknown): unknown {
  return error instanceof RangeError ? cursor.error('statement is too large (nested too deep)', cursor.start) : error
}
