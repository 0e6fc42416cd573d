import {
  extractFields,
  type Cast,
  type Expression,
  type ExtractField,
  type GroupingOperation,
  type LambdaExpression,
  type Normalize,
  type Trim,
  type WhenClause,
} from './ast.ts'
import type { Identifier } from './ast-node.ts'
import { parseIdentifier, parseQualifiedName } from './parse-names.ts'
import { parseType } from './parse-types.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parseCase(cursor: TokenCursor): Expression {
  const { start } = cursor
  cursor.expect('CASE')
  const operand = cursor.is('WHEN') ? undefined : cursor.rules.expression(cursor)
  const whenClauses = [parseWhen(cursor)]
  while (cursor.is('WHEN')) whenClauses.push(parseWhen(cursor))
  const defaultValue = cursor.accept('ELSE') ? cursor.rules.expression(cursor) : undefined
  cursor.expect('END')
  const span = cursor.span(start)
  return operand === undefined
    ? { kind: 'SearchedCaseExpression', span, whenClauses, defaultValue }
    : { kind: 'SimpleCaseExpression', span, operand, whenClauses, defaultValue }
}

function parseWhen(cursor: TokenCursor): WhenClause {
  const { start } = cursor
  cursor.expect('WHEN')
  const operand = cursor.rules.expression(cursor)
  cursor.expect('THEN')
  const result = cursor.rules.expression(cursor)
  return { kind: 'WhenClause', span: cursor.span(start), operand, result }
}

/** Parses CAST and TRY_CAST. */
export function parseCast(cursor: TokenCursor): Cast {
  const { start } = cursor
  const safe = cursor.type === 'TRY_CAST'
  cursor.advance()
  cursor.expect('(')
  const expression = cursor.rules.expression(cursor)
  cursor.expect('AS')
  const type = parseType(cursor)
  cursor.expect(')')
  return { kind: 'Cast', span: cursor.span(start), expression, type, safe }
}

export function parseExtract(cursor: TokenCursor): Expression {
  const { start } = cursor
  cursor.expect('EXTRACT', '(')
  const { value } = parseIdentifier(cursor)
  cursor.expect('FROM')
  const expression = cursor.rules.valueExpression(cursor)
  cursor.expect(')')
  const field = value.toUpperCase() as ExtractField
  if (!extractFields.includes(field)) {
    cursor.defer(`Invalid EXTRACT field ${value}, valid fields are: ${extractFields.join(', ')}`, start)
  }
  return { kind: 'Extract', span: cursor.span(start), field, expression }
}

export function parseTrim(cursor: TokenCursor): Trim {
  const { start } = cursor
  cursor.expect('TRIM')
  const { valueExpression } = cursor.rules
  const hasFrom = cursor.is('(') && cursor.findInside(cursor.index, 'FROM', ',') !== -1
  cursor.expect('(')
  let specification: Trim['specification'] = 'BOTH'
  let character: Expression | undefined
  if (hasFrom) {
    if (cursor.isOneOf('LEADING', 'TRAILING', 'BOTH')) {
      specification = cursor.expectOneOf('LEADING', 'TRAILING', 'BOTH')
    }
    if (!cursor.is('FROM')) character = valueExpression(cursor)
    cursor.expect('FROM')
  }
  const source = valueExpression(cursor)
  if (!hasFrom && cursor.accept(',')) character = valueExpression(cursor)
  cursor.expect(')')
  return { kind: 'Trim', span: cursor.span(start), specification, source, character }
}

/**
 * Parses `POSITION(a IN b)` and `SUBSTRING(a FROM b FOR c)`; undefined if it is an ordinary call of a function with
 * that name.
 */
export function parseWordyCall(cursor: TokenCursor): Expression | undefined {
  if (cursor.peek(1) !== '(') return undefined
  const { start } = cursor
  const isPosition = cursor.type === 'POSITION'
  const separator = isPosition ? 'IN' : 'FROM'
  // The separator before any comma decides; `position(x IN (1, 2))` is a POSITION as well.
  const separatorAt = findSeparator(cursor, separator)
  if (separatorAt === -1) return undefined
  const { valueExpression } = cursor.rules
  cursor.advance()
  const nameSpan = cursor.span(start)
  cursor.expect('(')
  const first = valueExpression(cursor)
  cursor.expect(separator)
  const second = valueExpression(cursor)
  const third = !isPosition && cursor.accept('FOR') ? [valueExpression(cursor)] : []
  cursor.expect(')')
  const value = isPosition ? 'strpos' : 'substring'
  const name: Identifier = { kind: 'Identifier', span: nameSpan, value, quoted: false }
  return {
    kind: 'FunctionCall',
    span: cursor.span(start),
    name: { kind: 'QualifiedName', span: nameSpan, parts: [name] },
    arguments: isPosition ? [second, first] : [first, second, ...third],
    star: false,
    distinct: false,
    orderBy: undefined,
    filter: undefined,
    window: undefined,
    nullTreatment: undefined,
    processingMode: undefined,
  }
}

function findSeparator(cursor: TokenCursor, separator: string): number {
  return cursor.findInside(cursor.index + 1, separator, ',')
}

export function parseNormalize(cursor: TokenCursor): Normalize {
  const { start } = cursor
  cursor.expect('NORMALIZE', '(')
  const value = cursor.rules.valueExpression(cursor)
  const form = cursor.accept(',') ? cursor.expectOneOf('NFC', 'NFD', 'NFKC', 'NFKD') : 'NFC'
  cursor.expect(')')
  return { kind: 'Normalize', span: cursor.span(start), value, form }
}

export function parseGrouping(cursor: TokenCursor): GroupingOperation {
  const { start } = cursor
  cursor.expect('GROUPING', '(')
  const columns = cursor.is(')') ? [] : cursor.list(parseQualifiedName)
  cursor.expect(')')
  return { kind: 'GroupingOperation', span: cursor.span(start), columns }
}

/** Parses CURRENT_TIMESTAMP and the like. */
export function parseCurrentTime(
  cursor: TokenCursor,
  kind: 'CurrentTime' | 'CurrentTimestamp' | 'LocalTime' | 'LocalTimestamp',
): Expression {
  const { start } = cursor
  cursor.advance()
  let precision: number | undefined
  if (cursor.accept('(')) {
    if (!cursor.is('INTEGER_VALUE')) cursor.fail()
    precision = Number(cursor.textOf(cursor.index).replaceAll('_', ''))
    cursor.advance()
    cursor.expect(')')
  }
  return { kind, span: cursor.span(start), precision }
}

/** Whether `x -> …` or `(x, y) -> …` begins here. */
export function isLambda(cursor: TokenCursor): boolean {
  if (cursor.type !== '(') return cursor.peek(1) === '->' && cursor.isIdentifierAt(0)
  if (cursor.peek(1) === ')') return cursor.peek(2) === '->'
  for (let ahead = 1; cursor.isIdentifierAt(ahead); ahead += 2) {
    const next = cursor.peek(ahead + 1)
    if (next === ')') return cursor.peek(ahead + 2) === '->'
    if (next !== ',') return false
  }
  return false
}

export function parseLambda(cursor: TokenCursor): LambdaExpression {
  const { start } = cursor
  let parameters: Identifier[]
  if (cursor.accept('(')) {
    parameters = cursor.is(')') ? [] : cursor.list(parseIdentifier)
    cursor.expect(')')
  } else {
    parameters = [parseIdentifier(cursor)]
  }
  cursor.expect('->')
  const body = cursor.rules.expression(cursor)
  return { kind: 'LambdaExpression', span: cursor.span(start), parameters, body }
}
