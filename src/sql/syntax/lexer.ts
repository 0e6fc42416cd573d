import { tick } from '../../shared/cpu-budget.ts'
import { keywords, longestKeyword } from './keywords.ts'

/**
 * The tokens of a text, as parallel arrays. A type is a keyword in upper case, a symbol as written, or one of
 * IDENTIFIER, QUOTED_IDENTIFIER, BACKQUOTED_IDENTIFIER, DIGIT_IDENTIFIER, STRING_LITERAL, UNICODE_STRING,
 * BINARY_LITERAL, INTEGER_VALUE, DECIMAL_VALUE, DOUBLE_VALUE, UNRECOGNIZED, EOF.
 * `<>` and `!=` are both `<>`. Offsets are UTF-16 code units, ends exclusive. The last token is EOF.
 */
export interface Tokens {
  readonly types: readonly string[]
  readonly startOffsets: readonly number[]
  readonly endOffsets: readonly number[]
  /** The position where the text nests too deeply; the lexer stopped there. */
  readonly tooDeepAt?: number
}

/** The maximum depth of a tree, and of nesting in its text. */
export const MAX_DEPTH = 1000

const TAB = 9
const LINE_FEED = 10
const RETURN = 13
const SPACE = 32
const DOUBLE_QUOTE = 34
const AMPERSAND = 38
const QUOTE = 39
const ASTERISK = 42
const MINUS = 45
const DOT = 46
const SLASH = 47
const ZERO = 48
const EQUALS = 61
const GREATER = 62
const UNDERSCORE = 95
const BACKQUOTE = 96

const isDigit = (unit: number): boolean => unit >= 48 && unit <= 57
const isLetter = (unit: number): boolean => (unit | 32) >= 97 && (unit | 32) <= 122
const isWord = (unit: number): boolean => isLetter(unit) || isDigit(unit) || unit === UNDERSCORE
const isHex = (unit: number): boolean => isDigit(unit) || ((unit | 32) >= 97 && (unit | 32) <= 102)
const isOctal = (unit: number): boolean => unit >= 48 && unit <= 55
const isBinary = (unit: number): boolean => unit === 48 || unit === 49

/** One-character symbols, by code; undefined for symbols that need the next character, and for other characters. */
const single: readonly (string | undefined)[] = Array.from({ length: 128 }, (_, code) =>
  '().,[]:;?+*%=^$'.includes(String.fromCharCode(code)) ? String.fromCharCode(code) : undefined,
)

/** The end of a run `D ('_'? D)*` that starts at `from`; `from` itself if there is none. */
function digitsEnd(text: string, from: number, accepts: (unit: number) => boolean): number {
  let end = from
  if (!accepts(text.charCodeAt(end))) return from
  for (;;) {
    end++
    const unit = text.charCodeAt(end)
    if (accepts(unit)) continue
    if (unit === UNDERSCORE && accepts(text.charCodeAt(end + 1))) continue
    return end
  }
}

/** The end of `'…'` (with doubled quotes inside) that begins at `open`; -1 if it is not closed. */
function quotedEnd(text: string, open: number, quote: string): number {
  const code = quote.charCodeAt(0)
  for (let at = text.indexOf(quote, open + 1); at !== -1; at = text.indexOf(quote, at + 2)) {
    if (text.charCodeAt(at + 1) !== code) return at + 1
  }
  return -1
}

function exponentEnd(text: string, from: number): number {
  if ((text.charCodeAt(from) | 32) !== 101) return -1
  const sign = text.charCodeAt(from + 1)
  let end = sign === 43 || sign === MINUS ? from + 2 : from + 1
  if (!isDigit(text.charCodeAt(end))) return -1
  while (isDigit(text.charCodeAt(end))) end++
  return end
}

/** The state of a scan; one object serves all tokens of a text. */
export interface Scan {
  /** The end of the last token. */
  end: number
  /**
   * Whether no bracketed comment is closed from here on. This is searched only once; otherwise a text of unclosed
   * comments would take forever.
   */
  commentsEnd: boolean
}

export function startScan(): Scan {
  return { end: 0, commentsEnd: false }
}

/** The end of whitespace and comments that begin at `from`; an unclosed bracketed comment does not count. */
export function skipBlank(text: string, from: number, scan: Scan): number {
  let at = from
  for (;;) {
    const unit = text.charCodeAt(at)
    if (unit === SPACE || unit === LINE_FEED || unit === RETURN || unit === TAB) {
      at++
    } else if (unit === MINUS && text.charCodeAt(at + 1) === MINUS) {
      at += 2
      for (let c = text.charCodeAt(at); at < text.length && c !== LINE_FEED && c !== RETURN; c = text.charCodeAt(at))
        at++
    } else if (unit === SLASH && text.charCodeAt(at + 1) === ASTERISK) {
      const close = scan.commentsEnd ? -1 : text.indexOf('*/', at + 2)
      if (close === -1) {
        scan.commentsEnd = true
        return at
      }
      at = close + 2
    } else {
      return at
    }
  }
}

/** Scans the token that begins at `at`. Returns its type; its end goes to `scan`, which avoids an object per token. */
export function scanToken(text: string, at: number, scan: Scan): string {
  const unit = text.charCodeAt(at)
  const next = text.charCodeAt(at + 1)
  if (isLetter(unit) || unit === UNDERSCORE) return scanWord(text, at, next, scan)
  if (isDigit(unit) || (unit === DOT && isDigit(next))) return scanNumber(text, at, scan)
  if (unit === QUOTE || unit === DOUBLE_QUOTE || unit === BACKQUOTE) {
    const end = quotedEnd(text, at, text.charAt(at))
    if (end === -1) return unrecognized(text, at, scan)
    scan.end = end
    return unit === QUOTE ? 'STRING_LITERAL' : unit === DOUBLE_QUOTE ? 'QUOTED_IDENTIFIER' : 'BACKQUOTED_IDENTIFIER'
  }
  const pair = symbolPair(unit, next)
  if (pair !== undefined) {
    scan.end = at + 2
    return pair
  }
  const symbol = single[unit] ?? lone[unit]
  if (symbol === undefined) return unrecognized(text, at, scan)
  scan.end = at + 1
  return symbol
}

const lone: Readonly<Record<number, string>> = {
  [MINUS]: '-',
  [SLASH]: '/',
  60: '<',
  [GREATER]: '>',
  123: '{',
  124: '|',
  125: '}',
}

function symbolPair(unit: number, next: number): string | undefined {
  switch (unit) {
    case 60:
      return next === GREATER ? '<>' : next === EQUALS ? '<=' : undefined
    case 33:
      return next === EQUALS ? '<>' : undefined
    case GREATER:
      return next === EQUALS ? '>=' : undefined
    case EQUALS:
      return next === GREATER ? '=>' : undefined
    case MINUS:
      return next === GREATER ? '->' : next === 125 ? '-}' : undefined
    case 124:
      return next === 124 ? '||' : undefined
    case 123:
      return next === MINUS ? '{-' : undefined
    default:
      return undefined
  }
}

/** A hash of length, first and last letter of a word: most names differ from all keywords in it and need no lookup. */
function shapeOf(length: number, first: number, last: number): number {
  return (length << 10) | ((first & 31) << 5) | (last & 31)
}

const mayBeKeyword = new Uint8Array((longestKeyword + 1) << 10)
for (const word of keywords.keys()) {
  mayBeKeyword[shapeOf(word.length, word.charCodeAt(0), word.charCodeAt(word.length - 1))] = 1
}

function scanWord(text: string, at: number, next: number, scan: Scan): string {
  const letter = text.charCodeAt(at) | 32
  if (letter === 120 && next === QUOTE) {
    const close = text.indexOf("'", at + 2)
    if (close !== -1) {
      scan.end = close + 1
      return 'BINARY_LITERAL'
    }
  } else if (letter === 117 && next === AMPERSAND && text.charCodeAt(at + 2) === QUOTE) {
    const end = quotedEnd(text, at + 2, "'")
    if (end !== -1) {
      scan.end = end
      return 'UNICODE_STRING'
    }
  }
  let end = at + 1
  while (isWord(text.charCodeAt(end))) end++
  scan.end = end
  const length = end - at
  if (length > longestKeyword || !mayBeKeyword[shapeOf(length, letter, text.charCodeAt(end - 1))]) return 'IDENTIFIER'
  return keywords.get(text.slice(at, end).toUpperCase()) ?? 'IDENTIFIER'
}

/** The longest match of a number or an identifier that wrongly starts with a digit; a number wins a tie. */
function scanNumber(text: string, at: number, scan: Scan): string {
  let type = 'INTEGER_VALUE'
  let end = digitsEnd(text, at, isDigit)
  if (text.charCodeAt(at) === ZERO) {
    const base = text.charCodeAt(at + 1) | 32
    const accepts = base === 120 ? isHex : base === 111 ? isOctal : base === 98 ? isBinary : undefined
    if (accepts !== undefined) {
      const digits = text.charCodeAt(at + 2) === UNDERSCORE ? at + 3 : at + 2
      const stop = digitsEnd(text, digits, accepts)
      if (stop > digits) end = stop
    }
  }
  if (text.charCodeAt(end) === DOT && digitsEnd(text, at, isDigit) === end) {
    const fraction = digitsEnd(text, end + 1, isDigit)
    type = 'DECIMAL_VALUE'
    end = fraction
  }
  let plain = at
  while (isDigit(text.charCodeAt(plain))) plain++
  if (text.charCodeAt(plain) === DOT) {
    plain++
    while (isDigit(text.charCodeAt(plain))) plain++
  }
  const exponent = exponentEnd(text, plain)
  if (exponent > end) {
    type = 'DOUBLE_VALUE'
    end = exponent
  }
  if (isDigit(text.charCodeAt(at))) {
    let word = at
    while (isWord(text.charCodeAt(word))) word++
    if (word > end) {
      type = 'DIGIT_IDENTIFIER'
      end = word
    }
  }
  scan.end = end
  return type
}

function unrecognized(text: string, at: number, scan: Scan): string {
  scan.end = at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)
  return 'UNRECOGNIZED'
}

/**
 * Splits a text into tokens in linear time. It stops after the first unrecognized token: no statement continues past
 * it, and a text of unclosed quotes would otherwise be searched again from each of them. It also stops if too many
 * parentheses are open, since a megabyte of those takes long to parse.
 */
export function tokenize(text: string): Tokens {
  const types: string[] = []
  const startOffsets: number[] = []
  const endOffsets: number[] = []
  const scan = startScan()
  let open = 0
  let at = skipBlank(text, 0, scan)
  while (at < text.length) {
    tick()
    const type = scanToken(text, at, scan)
    types.push(type)
    startOffsets.push(at)
    endOffsets.push(scan.end)
    if (type === '(' || type === '[') open++
    else if (type === ')' || type === ']') open = Math.max(0, open - 1)
    if (type === 'UNRECOGNIZED') break
    if (open > MAX_DEPTH) return { types, startOffsets, endOffsets, tooDeepAt: at }
    at = skipBlank(text, scan.end, scan)
  }
  types.push('EOF')
  startOffsets.push(text.length)
  endOffsets.push(text.length)
  return { types, startOffsets, endOffsets }
}
