import type {
  ArithmeticBinaryExpression,
  ComparisonOperator,
  DereferenceExpression,
  Expression,
  SubqueryExpression,
} from './ast.ts'
import { callNameLength, isProcessingMode, parseFunctionCall, parseListagg } from './parse-calls.ts'
import { parseJsonArray, parseJsonExists, parseJsonObject, parseJsonQuery, parseJsonValue } from './parse-json.ts'
import {
  isInterval,
  isNumber,
  parseBinaryLiteral,
  parseInterval,
  parseNumber,
  parseParameter,
  parseTypedLiteral,
} from './parse-literals.ts'
import { parseIdentifier, parseString } from './parse-names.ts'
import {
  isLambda,
  parseCase,
  parseCast,
  parseCurrentTime,
  parseExtract,
  parseGrouping,
  parseLambda,
  parseNormalize,
  parseTrim,
  parseWordyCall,
} from './parse-special-forms.ts'
import { isOver, parseOver } from './parse-windows.ts'
import { Mismatch, type TokenCursor } from './token-cursor.ts'

export function parseExpression(cursor: TokenCursor): Expression {
  cursor.note('<expression>', true)
  const siblings = cursor.enter()
  const expression = parseBoolean(cursor)
  cursor.leave(siblings)
  return expression
}

/** Parses OR of ANDs, flattened: a chain of any length is one level. */
function parseBoolean(cursor: TokenCursor): Expression {
  const { start } = cursor
  let disjuncts: Expression[] | undefined
  for (;;) {
    const conjunctStart = cursor.start
    cursor.note('<expression>', true)
    let disjunct = cursor.is('NOT') ? parseNot(cursor) : parsePredicated(cursor)
    if (cursor.is('AND')) {
      const terms = [disjunct]
      while (cursor.accept('AND')) terms.push(parseTerm(cursor))
      disjunct = { kind: 'LogicalExpression', span: cursor.span(conjunctStart), operator: 'AND', terms }
    }
    if (cursor.is('OR')) (disjuncts ??= []).push(disjunct)
    else if (disjuncts === undefined) return disjunct
    else {
      disjuncts.push(disjunct)
      return { kind: 'LogicalExpression', span: cursor.span(start), operator: 'OR', terms: disjuncts }
    }
    cursor.advance()
  }
}

function parseTerm(cursor: TokenCursor): Expression {
  cursor.note('<expression>', true)
  return parseNot(cursor)
}

function parseNot(cursor: TokenCursor): Expression {
  if (!cursor.is('NOT')) return parsePredicated(cursor)
  const { start } = cursor
  cursor.advance()
  const value = cursor.nested(parseNot)
  return { kind: 'NotExpression', span: cursor.span(start), value }
}

const comparisons: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>='])

/** Parses a value and at most one predicate on it: `1 < 2 < 3` is an error in Trino. */
function parsePredicated(cursor: TokenCursor): Expression {
  const { start } = cursor
  const value = parseValue(cursor, 0)
  if (comparisons.has(cursor.type)) return parseComparison(cursor, value, start)
  switch (cursor.type) {
    case 'IS':
      return parseIs(cursor, value, start)
    case 'NOT': {
      const at = cursor.start
      cursor.advance()
      if (!cursor.isOneOf('BETWEEN', 'IN', 'LIKE')) cursor.fail()
      const predicate = parsePredicate(cursor, value, start, at)
      return { kind: 'NotExpression', span: cursor.span(start, at), value: predicate }
    }
    case 'BETWEEN':
    case 'LIKE':
      return parsePredicate(cursor, value, start, cursor.start)
    case 'IN': {
      const { index } = cursor
      if (cursor.isTarget()) {
        cursor.expected.clear()
        return value
      }
      try {
        return parsePredicate(cursor, value, start, cursor.start)
      } catch (error) {
        // Trino's parser reads the whole list before it chooses this alternative, so an error inside the list is
        // reported at IN.
        if (error instanceof Mismatch) cursor.fail(index)
        throw error
      }
    }
    default:
      cursor.note('<predicate>')
      return value
  }
}

function parseComparison(cursor: TokenCursor, value: Expression, start: number): Expression {
  const at = cursor.start
  const operator = cursor.type as ComparisonOperator
  cursor.advance()
  if (cursor.isOneOf('ALL', 'ANY', 'SOME')) {
    const quantifier = cursor.type as 'ALL' | 'ANY' | 'SOME'
    const { index, type } = cursor
    cursor.advance()
    if (cursor.holdsQuery(true)) {
      const subquery = parseSubquery(cursor)
      const span = cursor.span(start, at)
      return { kind: 'QuantifiedComparisonExpression', span, operator, quantifier, value, subquery }
    }
    cursor.index = index
    cursor.type = type
  }
  cursor.note('<expression>', true)
  const right = parseValue(cursor, 0)
  return { kind: 'ComparisonExpression', span: cursor.span(start, at), operator, left: value, right }
}

function parseIs(cursor: TokenCursor, value: Expression, start: number): Expression {
  const at = cursor.start
  cursor.advance()
  const negated = cursor.accept('NOT')
  if (cursor.accept('NULL')) {
    const span = cursor.span(start, at)
    return negated ? { kind: 'IsNotNullPredicate', span, value } : { kind: 'IsNullPredicate', span, value }
  }
  cursor.expect('DISTINCT', 'FROM')
  const right = parseValue(cursor, 0)
  const span = cursor.span(start, at)
  const distinct = { kind: 'ComparisonExpression', span, operator: 'IS DISTINCT FROM', left: value, right } as const
  return negated ? { kind: 'NotExpression', span, value: distinct } : distinct
}

/** Parses BETWEEN, IN or LIKE. @param at the start of the predicate, including its NOT */
function parsePredicate(cursor: TokenCursor, value: Expression, start: number, at: number): Expression {
  const type = cursor.type
  if (type === 'IN') return parseIn(cursor, value, start, at)
  cursor.advance()
  const first = parseValue(cursor, 0)
  if (type === 'BETWEEN') {
    cursor.expect('AND')
    const max = parseValue(cursor, 0)
    return { kind: 'BetweenPredicate', span: cursor.span(start, at), value, min: first, max }
  }
  const escape = cursor.accept('ESCAPE') ? parseValue(cursor, 0) : undefined
  return { kind: 'LikePredicate', span: cursor.span(start, at), value, pattern: first, escape }
}

function parseIn(cursor: TokenCursor, value: Expression, start: number, at: number): Expression {
  cursor.advance()
  const listStart = cursor.start
  if (cursor.holdsQuery(true)) {
    const valueList = parseSubquery(cursor)
    return { kind: 'InPredicate', span: cursor.span(start, at), value, valueList }
  }
  const values = cursor.parenthesized(() => cursor.list(parseExpression))
  const valueList = { kind: 'InListExpression', span: cursor.span(listStart), values } as const
  return { kind: 'InPredicate', span: cursor.span(start, at), value, valueList }
}

function parseSubquery(cursor: TokenCursor): SubqueryExpression {
  const { start } = cursor
  const query = cursor.parenthesized(cursor.rules.query)
  return { kind: 'SubqueryExpression', span: cursor.span(start), query }
}

export function parseValueExpression(cursor: TokenCursor): Expression {
  cursor.note('<expression>', true)
  return cursor.nested(parseWholeValue)
}

const parseWholeValue = (cursor: TokenCursor): Expression => parseValue(cursor, 0)

const CONCAT = 1
const ADDITIVE = 2
const MULTIPLICATIVE = 3
const UNARY = 4
const ZONE = 5

function precedence(type: string): number {
  switch (type) {
    case '||':
      return CONCAT
    case '+':
    case '-':
      return ADDITIVE
    case '*':
    case '/':
    case '%':
      return MULTIPLICATIVE
    case 'AT':
      return ZONE
    default:
      return 0
  }
}

/** Parses operators that bind tighter than `above`. The height stays exact, for chains of thousands of operators. */
function parseValue(cursor: TokenCursor, above: number): Expression {
  const { start } = cursor
  const siblings = cursor.height
  cursor.height = 0
  const { type } = cursor
  const signed = type === '+' || (type === '-' && !isNumber(cursor.peek(1)))
  let left = signed ? parseSigned(cursor, type) : parsePrimary(cursor)
  for (;;) {
    const operator = cursor.type
    const binds = precedence(operator)
    if (binds <= above) break
    const at = cursor.start
    if (binds === ZONE) {
      if (cursor.peek(1) !== 'TIME') break
      cursor.advance()
      cursor.expect('TIME', 'ZONE')
      const timeZone = cursor.is('INTERVAL') ? parseInterval(cursor) : parseString(cursor)
      left = { kind: 'AtTimeZone', span: cursor.span(start, at), value: left, timeZone }
    } else {
      cursor.advance()
      cursor.note('<expression>', true)
      const right = parseValue(cursor, binds)
      const span = cursor.span(start, at)
      left =
        binds === CONCAT
          ? { kind: 'ConcatExpression', span, left, right }
          : {
              kind: 'ArithmeticBinaryExpression',
              span,
              operator: operator as ArithmeticBinaryExpression['operator'],
              left,
              right,
            }
    }
    cursor.grow()
  }
  if (cursor.isTarget()) {
    for (const type of ['%', '*', '+', '-', '/', 'AT', '||']) if (precedence(type) > above) cursor.note(`'${type}'`)
  }
  if (siblings > cursor.height) cursor.height = siblings
  return left
}

function parseSigned(cursor: TokenCursor, sign: '+' | '-'): Expression {
  const { start } = cursor
  cursor.advance()
  const siblings = cursor.enter()
  const value = parseValue(cursor, UNARY)
  cursor.leave(siblings)
  return { kind: 'ArithmeticUnaryExpression', span: cursor.span(start), sign, value }
}

/** Parses a primary with its suffixes: `[…]`, `.name`. */
export function parsePrimary(cursor: TokenCursor): Expression {
  const { start } = cursor
  let primary = parseBase(cursor)
  for (;;) {
    if (cursor.accept('[')) {
      const index = parseValueExpression(cursor)
      cursor.expect(']')
      primary = { kind: 'SubscriptExpression', span: cursor.span(start), base: primary, index }
    } else if (cursor.is('.') && cursor.peek(1) !== '*') {
      cursor.advance()
      const field = parseIdentifier(cursor)
      const dereference: DereferenceExpression = {
        kind: 'DereferenceExpression',
        span: cursor.span(start),
        base: primary,
        field,
      }
      primary = dereference
    } else {
      cursor.lastPrimary = primary
      return primary
    }
    cursor.grow()
  }
}

function parseBase(cursor: TokenCursor): Expression {
  const { start } = cursor
  switch (cursor.type) {
    case 'IDENTIFIER':
    case 'QUOTED_IDENTIFIER':
      return parseNamed(cursor)
    case 'INTEGER_VALUE':
    case 'DECIMAL_VALUE':
    case 'DOUBLE_VALUE':
    case '-':
      return parseNumber(cursor)
    case 'STRING_LITERAL':
    case 'UNICODE_STRING':
      return parseString(cursor)
    case 'BINARY_LITERAL':
      return parseBinaryLiteral(cursor)
    case '?':
      return parseParameter(cursor)
    case '(':
      return parseParenthesized(cursor)
    case '[':
      return parseArray(cursor)
    case 'NULL':
      cursor.advance()
      return { kind: 'NullLiteral', span: cursor.span(start) }
    case 'TRUE':
    case 'FALSE': {
      const value = cursor.type === 'TRUE'
      cursor.advance()
      return { kind: 'BooleanLiteral', span: cursor.span(start), value }
    }
    case 'CASE':
      return parseCase(cursor)
    case 'CAST':
      return parseCast(cursor)
    case 'EXISTS': {
      cursor.advance()
      const subquery = parseSubquery(cursor)
      return { kind: 'ExistsPredicate', span: cursor.span(start), subquery }
    }
    default:
      return parseKeywordBase(cursor)
  }
}

function parseKeywordBase(cursor: TokenCursor): Expression {
  const { start } = cursor
  switch (cursor.type) {
    case 'TRIM':
      return parseTrim(cursor)
    case 'EXTRACT':
      return parseExtract(cursor)
    case 'NORMALIZE':
      return parseNormalize(cursor)
    case 'LISTAGG':
      return parseListagg(cursor)
    case 'GROUPING':
      return parseGrouping(cursor)
    case 'JSON_EXISTS':
      return parseJsonExists(cursor)
    case 'JSON_VALUE':
      return parseJsonValue(cursor)
    case 'JSON_QUERY':
      return parseJsonQuery(cursor)
    case 'JSON_OBJECT':
      return parseJsonObject(cursor)
    case 'JSON_ARRAY':
      return parseJsonArray(cursor)
    case 'CURRENT_TIME':
      return parseCurrentTime(cursor, 'CurrentTime')
    case 'CURRENT_TIMESTAMP':
      return parseCurrentTime(cursor, 'CurrentTimestamp')
    case 'LOCALTIME':
      return parseCurrentTime(cursor, 'LocalTime')
    case 'LOCALTIMESTAMP':
      return parseCurrentTime(cursor, 'LocalTimestamp')
    case 'CURRENT_DATE':
      cursor.advance()
      return { kind: 'CurrentDate', span: cursor.span(start) }
    case 'CURRENT_CATALOG':
      cursor.advance()
      return { kind: 'CurrentCatalog', span: cursor.span(start) }
    case 'CURRENT_SCHEMA':
      cursor.advance()
      return { kind: 'CurrentSchema', span: cursor.span(start) }
    case 'CURRENT_PATH':
      cursor.advance()
      return { kind: 'CurrentPath', span: cursor.span(start) }
    case 'CURRENT_USER':
      cursor.advance()
      return { kind: 'CurrentUser', span: cursor.span(start) }
    default:
      return parseNamed(cursor)
  }
}

/** Parses an expression that begins with a name, or with a keyword that may be a name. */
function parseNamed(cursor: TokenCursor): Expression {
  const { start, type } = cursor
  const next = cursor.peek(1)
  if (type !== 'IDENTIFIER') {
    if (isInterval(cursor)) return parseInterval(cursor)
    if (type === 'ARRAY' && next === '[') return parseArray(cursor)
    if (type === 'ROW' && next === '(' && cursor.peek(2) !== ')') {
      cursor.advance()
      const items = cursor.parenthesized(() => cursor.list(parseExpression))
      return { kind: 'Row', span: cursor.span(start), items }
    }
    if (type === 'TRY_CAST' && next === '(') return parseCast(cursor)
    if (type === 'POSITION' || type === 'SUBSTRING') {
      const call = parseWordyCall(cursor)
      if (call !== undefined) return call
    }
    if (type === 'DOUBLE' && next === 'PRECISION') {
      if (cursor.peek(2) === 'STRING_LITERAL' || cursor.peek(2) === 'UNICODE_STRING') {
        cursor.advance()
        cursor.advance()
        return parseTypedLiteral(cursor, 'DOUBLE', start)
      }
    }
    if (isProcessingMode(cursor)) return parseFunctionCall(cursor)
  }
  if (isLambda(cursor)) return parseLambda(cursor)
  if (callNameLength(cursor) > 0) return parseFunctionCall(cursor)
  const name = parseIdentifier(cursor)
  if (next === 'STRING_LITERAL' || next === 'UNICODE_STRING') return parseTypedLiteral(cursor, name.value, start)
  if (cursor.type === 'OVER' && isOver(cursor)) {
    const window = parseOver(cursor)
    return { kind: 'WindowOperation', span: cursor.span(start), name, window }
  }
  return name
}

/** Parses `ARRAY[…]` or `[…]`. */
function parseArray(cursor: TokenCursor): Expression {
  const { start } = cursor
  cursor.accept('ARRAY')
  cursor.expect('[')
  const values = cursor.is(']') ? [] : cursor.list(parseExpression)
  cursor.expect(']')
  return { kind: 'ArrayConstructor', span: cursor.span(start), values }
}

/** Parses a lambda, a subquery, a row, or an expression in parentheses, which leave no node. */
function parseParenthesized(cursor: TokenCursor): Expression {
  const { start } = cursor
  if (isLambda(cursor)) return parseLambda(cursor)
  if (cursor.holdsQuery()) return parseSubquery(cursor)
  cursor.advance()
  const first = parseExpression(cursor)
  if (cursor.accept(')')) return first
  if (!cursor.is(',')) cursor.fail()
  cursor.advance()
  const items = [first, ...cursor.list(parseExpression)]
  cursor.expect(')')
  return { kind: 'Row', span: cursor.span(start), items }
}
