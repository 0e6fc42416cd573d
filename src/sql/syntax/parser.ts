import type { ErrorLocation } from '../../shared/engine-error.ts'
import type { DataType, Expression } from './ast.ts'
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

export interface ParsedStatement {
  readonly statement: Statement
  /** `?` in the whole text. */
  readonly parameterCount: number
}

/**
 * One statement of Trino's grammar, without a semicolon. Places in errors count from `origin`, for text that stands
 * inside another one. Throws SYNTAX_ERROR, in Trino's words and at Trino's place.
 */
export function parseStatement(sql: string, origin?: ErrorLocation): Statement {
  return parseText(sql, parseAnyStatement, origin).node
}

/** A statement and how many parameters it has. */
export function parseWithParameters(sql: string, origin?: ErrorLocation): ParsedStatement {
  const { node, parameterCount } = parseText(sql, parseAnyStatement, origin)
  return { statement: node, parameterCount }
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
    return { node, parameterCount: cursor.parameterCount }
  } catch (error) {
    throw error instanceof Mismatch ? explain(cursor, production, error.tokenIndex) : asUserError(cursor, error)
  }
}

/** Reads the text again up to the wrong token, to say what would have fitted there. */
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

/** The depth is counted, so running out of stack is the last resort: where the caller left little of it. */
function asUserError(cursor: TokenCursor, error: unknown): unknown {
  return error instanceof RangeError ? cursor.error('statement is too large (nested too deep)', cursor.start) : error
}
