import type { BinaryLiteral, IntervalLiteral, Literal, LongLiteral, Parameter } from './ast.ts'
import { parseString } from './parse-names.ts'
import { isIntervalField, parseIntervalField } from './parse-types.ts'
import type { TokenCursor } from './token-cursor.ts'

const numbers: ReadonlySet<string> = new Set(['INTEGER_VALUE', 'DECIMAL_VALUE', 'DOUBLE_VALUE'])

export function isNumber(type: string): boolean {
  return numbers.has(type)
}

/** Parses a number, including a minus before it. */
export function parseNumber(cursor: TokenCursor): Literal {
  const { start } = cursor
  const minus = cursor.accept('-') ? '-' : ''
  const type = cursor.type
  const written = cursor.textOf(cursor.index)
  cursor.advance()
  const span = cursor.span(start)
  const digits = written.includes('_') ? written.replaceAll('_', '') : written
  if (type === 'DECIMAL_VALUE') return { kind: 'DecimalLiteral', span, value: minus + digits }
  if (type === 'DOUBLE_VALUE') return { kind: 'DoubleLiteral', span, value: minus + digits }
  return { kind: 'LongLiteral', span, value: toLong(cursor, minus, digits, written, start), text: minus + written }
}

const ZERO = 48
const MAX_LONG = 9223372036854775807n

function toLong(cursor: TokenCursor, minus: string, digits: string, written: string, start: number): string {
  if (digits.length <= 15 && (digits.length === 1 || digits.charCodeAt(0) !== ZERO)) return minus + digits
  // A number of a megabyte is refused without computing it.
  const significant = digits.replace(/^0+(?=\d)/, '')
  const value = significant.length > 70 ? undefined : BigInt(significant)
  if (value === undefined || value > MAX_LONG + (minus === '-' ? 1n : 0n)) {
    cursor.defer(`Invalid numeric literal: ${minus}${written}`, start)
    return '0'
  }
  return value === 0n ? `${minus}0` : minus + value.toString()
}

export function parseBinaryLiteral(cursor: TokenCursor): BinaryLiteral {
  const { start } = cursor
  const hex = cursor
    .textOf(cursor.index)
    .slice(2, -1)
    .replace(/[ \r\n\t]/g, '')
    .toUpperCase()
  cursor.advance()
  if (/[^0-9A-F]/.test(hex)) cursor.defer('Binary literal can only contain hexadecimal digits', start)
  if (hex.length % 2 !== 0) cursor.defer('Binary literal must contain an even number of digits', start)
  return { kind: 'BinaryLiteral', span: cursor.span(start), hex }
}

/** Whether an interval begins here: INTERVAL, a sign, a string, a field. INTERVAL may also be a name. */
export function isInterval(cursor: TokenCursor): boolean {
  if (!cursor.is('INTERVAL')) return false
  const signed = cursor.peek(1) === '-' || cursor.peek(1) === '+' ? 1 : 0
  const string = cursor.peek(1 + signed)
  if (string !== 'STRING_LITERAL' && string !== 'UNICODE_STRING') return false
  const escaped = cursor.peek(2 + signed) === 'UESCAPE' ? 2 : 0
  return isIntervalField(cursor.peek(2 + signed + escaped))
}

export function parseInterval(cursor: TokenCursor): IntervalLiteral {
  const { start } = cursor
  cursor.expect('INTERVAL')
  const sign = cursor.accept('-') ? 'NEGATIVE' : 'POSITIVE'
  if (sign === 'POSITIVE') cursor.accept('+')
  const { value } = parseString(cursor)
  const startField = parseIntervalField(cursor)
  const endField = cursor.accept('TO') ? parseIntervalField(cursor) : undefined
  return { kind: 'IntervalLiteral', span: cursor.span(start), value, sign, startField, endField }
}

/** Parses the row count of OFFSET and LIMIT; `+1` and `- 1` are not row counts. */
export function parseRowCount(cursor: TokenCursor): LongLiteral | Parameter {
  if (cursor.is('INTEGER_VALUE')) {
    const literal = parseNumber(cursor)
    if (literal.kind === 'LongLiteral') return literal
  }
  return parseParameter(cursor)
}

export function isRowCount(type: string): boolean {
  return type === 'INTEGER_VALUE' || type === '?'
}

export function parseParameter(cursor: TokenCursor): Parameter {
  const { start } = cursor
  cursor.expect('?')
  return { kind: 'Parameter', span: cursor.span(start), index: cursor.parameterCount++ }
}

/** Parses `DATE '…'`: any name before a string makes a literal of that type. */
export function parseTypedLiteral(cursor: TokenCursor, type: string, start: number): Literal {
  const { value } = parseString(cursor)
  return { kind: 'GenericLiteral', span: cursor.span(start), type, value }
}
