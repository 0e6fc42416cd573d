import { isStorableName } from '../../shared/stored-name.ts'
import type { StringLiteral } from './ast.ts'
import type { Identifier, QualifiedName } from './ast-node.ts'
import { syntaxLimits } from './limits.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parseIdentifier(cursor: TokenCursor): Identifier {
  if (!cursor.isIdentifier()) cursor.fail()
  const { type, start } = cursor
  const text = cursor.textOf(cursor.index)
  if (!isStorableName(text, syntaxLimits.nameBytes))
    throw cursor.error(`Identifier is longer than ${syntaxLimits.nameBytes} bytes`, start)
  cursor.advance()
  const span = cursor.span(start)
  if (type === 'QUOTED_IDENTIFIER') {
    if (text.length === 2) throw cursor.error('Zero-length delimited identifier not allowed', start)
    return { kind: 'Identifier', span, value: unquote(text, '"'), quoted: true }
  }
  if (type === 'BACKQUOTED_IDENTIFIER') {
    throw cursor.error('backquoted identifiers are not supported; use double quotes to quote identifiers', start)
  }
  if (type === 'DIGIT_IDENTIFIER') {
    throw cursor.error('identifiers must not start with a digit; surround the identifier with double quotes', start)
  }
  return { kind: 'Identifier', span, value: text, quoted: false }
}

export function parseQualifiedName(cursor: TokenCursor): QualifiedName {
  const { start } = cursor
  const parts = [parseIdentifier(cursor)]
  while (cursor.accept('.')) parts.push(parseIdentifier(cursor))
  return { kind: 'QualifiedName', span: cursor.span(start), parts }
}

/** Parses `(a, b)`. */
export function parseColumnAliases(cursor: TokenCursor): Identifier[] {
  return cursor.parenthesized(() => cursor.list(parseIdentifier))
}

/** Parses `… IN catalog` or `… FROM catalog`: returns the name if a keyword is present. */
export function parseOptionalCatalog(cursor: TokenCursor, ...keywords: readonly string[]): Identifier | undefined {
  for (const keyword of keywords) if (cursor.accept(keyword)) return parseIdentifier(cursor)
  return undefined
}

export function isString(cursor: TokenCursor): boolean {
  if (cursor.type === 'STRING_LITERAL' || cursor.type === 'UNICODE_STRING') return true
  cursor.note('<string>')
  return false
}

/** Parses `'…'` or `U&'…' UESCAPE '…'`. */
export function parseString(cursor: TokenCursor): StringLiteral {
  if (!isString(cursor)) cursor.fail()
  const { start, type } = cursor
  const text = cursor.textOf(cursor.index)
  cursor.advance()
  if (type === 'STRING_LITERAL') {
    return { kind: 'StringLiteral', span: cursor.span(start), value: unquote(text, "'") }
  }
  let escape = '\\'
  if (cursor.accept('UESCAPE')) {
    if (!cursor.is('STRING_LITERAL')) cursor.fail()
    escape = unquote(cursor.textOf(cursor.index), "'")
    cursor.advance()
  }
  const value = decodeUnicode(unquote(text.slice(2), "'"), escape, (message) => cursor.defer(message, start))
  return { kind: 'StringLiteral', span: cursor.span(start), value }
}

export function parseOptionalString(cursor: TokenCursor): StringLiteral | undefined {
  return isString(cursor) ? parseString(cursor) : undefined
}

function unquote(text: string, quote: string): string {
  const inner = text.slice(1, -1)
  return inner.includes(quote) ? inner.replaceAll(quote + quote, quote) : inner
}

const isHexDigit = (char: string): boolean => /^[0-9a-fA-F]$/.test(char)

/** Decodes Unicode strings like Trino, with its error messages. */
function decodeUnicode(raw: string, escape: string, wrong: (message: string) => void): string {
  if (escape.length === 0) {
    wrong('Empty Unicode escape character')
    return raw
  }
  if (escape.length !== 1 || escape <= ' ' || escape >= '\x7f' || isHexDigit(escape) || `"+'`.includes(escape)) {
    wrong(`Invalid Unicode escape character: ${escape}`)
    return raw
  }
  let decoded = ''
  let at = 0
  while (at < raw.length) {
    const next = raw.indexOf(escape, at)
    decoded += raw.slice(at, next === -1 ? raw.length : next)
    if (next === -1) break
    const first = raw.charAt(next + 1)
    if (first === escape) {
      decoded += escape
      at = next + 2
      continue
    }
    if (first !== '' && first !== '+' && !isHexDigit(first)) {
      wrong(`Invalid hexadecimal digit: ${first}`)
      return raw
    }
    const from = first === '+' ? next + 2 : next + 1
    const length = first === '+' ? 6 : 4
    let digits = ''
    while (digits.length < length && isHexDigit(raw.charAt(from + digits.length)))
      digits += raw.charAt(from + digits.length)
    if (digits.length < length) {
      wrong(`Incomplete escape sequence: ${digits}`)
      return raw
    }
    const codePoint = parseInt(digits, 16)
    if (codePoint > 0x10ffff) {
      wrong(`Invalid escaped character: ${digits}`)
      return raw
    }
    if (codePoint >= 0xd800 && codePoint <= 0xdfff) {
      wrong(`Invalid escaped character: ${digits}. Escaped character is a surrogate. Use '\\+123456' instead.`)
      return raw
    }
    decoded += String.fromCodePoint(codePoint)
    at = from + length
  }
  return decoded
}
