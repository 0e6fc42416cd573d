import type { Identifier } from './ast-node.ts'
import type { DataType, DataTypeParameter, IntervalField, RowDataTypeField } from './ast-types.ts'
import { parseIdentifier } from './parse-names.ts'
import type { TokenCursor } from './token-cursor.ts'

const intervalFields = ['YEAR', 'MONTH', 'DAY', 'HOUR', 'MINUTE', 'SECOND'] as const

export function isIntervalField(type: string): boolean {
  return (intervalFields as readonly string[]).includes(type)
}

export function parseIntervalField(cursor: TokenCursor): IntervalField {
  return cursor.expectOneOf(...intervalFields)
}

export function parseType(cursor: TokenCursor): DataType {
  cursor.note('<type>', true)
  return cursor.nested(parseTypeWithSuffix)
}

function parseTypeWithSuffix(cursor: TokenCursor): DataType {
  const { start } = cursor
  let type = parseBaseType(cursor)
  while (cursor.is('ARRAY')) {
    const name = arrayName(cursor)
    if (cursor.accept('[')) cursor.expect('INTEGER_VALUE', ']')
    const element = { kind: 'TypeParameter', span: type.span, type } as const
    type = { kind: 'GenericDataType', span: cursor.span(start), name, arguments: [element] }
    cursor.grow()
  }
  return type
}

/** Parses the keyword as a type's name, as in `ARRAY<…>`. */
function arrayName(cursor: TokenCursor): Identifier {
  const { start } = cursor
  cursor.advance()
  return { kind: 'Identifier', span: cursor.span(start), value: 'ARRAY', quoted: false }
}

function parseBaseType(cursor: TokenCursor): DataType {
  const { start } = cursor
  const next = cursor.peek(1)
  switch (cursor.type) {
    case 'ROW':
      if (next !== '(') break
      cursor.advance()
      return {
        kind: 'RowDataType',
        fields: cursor.parenthesized(() => cursor.list(parseRowField)),
        span: cursor.span(start),
      }
    case 'INTERVAL': {
      if (!isIntervalField(next)) break
      cursor.advance()
      const from = parseIntervalField(cursor)
      const to = cursor.accept('TO') ? parseIntervalField(cursor) : from
      return { kind: 'IntervalDataType', span: cursor.span(start), from, to }
    }
    case 'TIME':
    case 'TIMESTAMP': {
      const type = cursor.type
      cursor.advance()
      const precision = cursor.is('(') ? cursor.parenthesized(parseTypeParameter) : undefined
      const withTimeZone = cursor.isPair('WITH', 'TIME')
      if (withTimeZone || cursor.isPair('WITHOUT', 'TIME')) {
        cursor.advance()
        cursor.expect('TIME', 'ZONE')
      }
      return { kind: 'DateTimeDataType', span: cursor.span(start), type, withTimeZone, precision }
    }
    case 'DOUBLE': {
      if (next !== 'PRECISION') break
      const name = parseIdentifier(cursor)
      cursor.advance()
      return { kind: 'GenericDataType', span: cursor.span(start), name, arguments: [] }
    }
    case 'ARRAY':
    case 'MAP': {
      if (next !== '<') break
      const name = parseIdentifier(cursor)
      cursor.advance()
      const parameters = [parseTypeArgument(cursor)]
      if (name.value.toUpperCase() === 'MAP') {
        cursor.expect(',')
        parameters.push(parseTypeArgument(cursor))
      }
      cursor.expect('>')
      return { kind: 'GenericDataType', span: cursor.span(start), name, arguments: parameters }
    }
  }
  const name = parseIdentifier(cursor)
  const parameters = cursor.is('(') ? cursor.parenthesized(() => cursor.list(parseTypeParameter)) : []
  return { kind: 'GenericDataType', span: cursor.span(start), name, arguments: parameters }
}

function parseTypeArgument(cursor: TokenCursor): DataTypeParameter {
  const type = parseType(cursor)
  return { kind: 'TypeParameter', span: type.span, type }
}

function parseTypeParameter(cursor: TokenCursor): DataTypeParameter {
  const { start } = cursor
  if (!cursor.is('INTEGER_VALUE')) return parseTypeArgument(cursor)
  const value = BigInt(cursor.textOf(cursor.index).replaceAll('_', '')).toString()
  cursor.advance()
  return { kind: 'NumericParameter', span: cursor.span(start), value }
}

/** Parses a field: a type, or a name and a type. A text that can be read as a type is a type. */
function parseRowField(cursor: TokenCursor): RowDataTypeField {
  const { start } = cursor
  const name = isNamedField(cursor) ? parseIdentifier(cursor) : undefined
  const type = parseType(cursor)
  return { kind: 'RowDataTypeField', span: cursor.span(start), name, type }
}

function isNamedField(cursor: TokenCursor): boolean {
  if (!cursor.isIdentifier() || !cursor.isIdentifierAt(1)) return false
  const next = cursor.peek(1)
  if (next === 'ARRAY') return cursor.peek(2) === '(' || cursor.peek(2) === '<'
  switch (cursor.type) {
    case 'DOUBLE':
      return next !== 'PRECISION' || cursor.isIdentifierAt(2)
    case 'INTERVAL':
      return !isIntervalField(next)
    case 'TIME':
    case 'TIMESTAMP':
      return !(next === 'WITHOUT' && cursor.peek(2) === 'TIME')
    default:
      return true
  }
}
