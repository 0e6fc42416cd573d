import { Signal } from '../../shared/quipu-error.ts'

/** A statement was refused: it does not have the form of rendered statements. */
export class RefusedStatement extends Signal {
  constructor(what: string, at: number) {
    super(`The statement was refused: ${what} at character ${at}`)
  }
}

export interface Token {
  readonly kind: 'word' | 'quoted' | 'string' | 'number' | 'operator' | 'end'
  /**
   * Lower case for words; the name without its quotes for quoted names; the one character of an operator; empty for
   * other kinds.
   */
  readonly text: string
  /** Offset in the text. */
  readonly at: number
}

const QUOTE = 0x27
const DOUBLE_QUOTE = 0x22
const DIGITS = /\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /[A-Za-z_][A-Za-z0-9_]*/y
const OPERATORS = new Set('+-*/%<>=!|^&~:,.()[]{}')

/**
 * Splits a statement into tokens as DuckDB reads them, for the part of its grammar that rendered statements use. Texts
 * that could be read in two ways are refused: comments, `;`, parameters, `$tag$` quotes, strings with a letter before
 * them (`E'…'`), adjacent strings (a line end between them joins them), NUL, and non-ASCII characters outside of
 * quotes.
 * @throws RefusedStatement
 */
export function tokensOf(sql: string): readonly Token[] {
  const nul = sql.indexOf('\0')
  if (nul >= 0) throw new RefusedStatement('NUL', nul)
  const tokens: Token[] = []
  let at = 0
  while (at < sql.length) {
    const code = sql.charCodeAt(at)
    if (code === 0x20 || code === 0x0a) at++
    else at = take(sql, at, code, tokens)
  }
  tokens.push({ kind: 'end', text: '', at })
  return tokens
}

function take(sql: string, at: number, code: number, tokens: Token[]): number {
  if (isWordStart(code)) {
    WORD.lastIndex = at
    WORD.test(sql)
    const end = WORD.lastIndex
    const next = sql.charCodeAt(end)
    if (next === QUOTE || next === DOUBLE_QUOTE) throw new RefusedStatement('a prefix of a string', at)
    tokens.push({ kind: 'word', text: sql.slice(at, end).toLowerCase(), at })
    return end
  }
  if (code === QUOTE || code === DOUBLE_QUOTE) return takeQuoted(sql, at, code, tokens)
  if (isDigit(code)) {
    DIGITS.lastIndex = at
    DIGITS.test(sql)
    const end = DIGITS.lastIndex
    const next = sql.charCodeAt(end)
    if (isWordStart(next) || next === 0x2e) throw new RefusedStatement('an unknown number', at)
    tokens.push({ kind: 'number', text: '', at })
    return end
  }
  const text = sql[at]!
  if (!OPERATORS.has(text)) throw new RefusedStatement('an unexpected character', at)
  const next = sql[at + 1]
  if ((text === '-' && next === '-') || (text === '/' && next === '*')) throw new RefusedStatement('a comment', at)
  if (text === '&' && (next === "'" || next === '"')) throw new RefusedStatement('a prefix of a string', at)
  tokens.push({ kind: 'operator', text, at })
  return at + 1
}

function takeQuoted(sql: string, at: number, code: number, tokens: Token[]): number {
  const quote = code === QUOTE ? "'" : '"'
  let end = at + 1
  for (;;) {
    end = sql.indexOf(quote, end)
    if (end < 0) throw new RefusedStatement('a quote that is not closed', at)
    if (sql.charCodeAt(end + 1) !== code) break
    end += 2
  }
  if (code === QUOTE) {
    if (tokens.at(-1)?.kind === 'string') throw new RefusedStatement('two strings side by side', at)
    tokens.push({ kind: 'string', text: '', at })
  } else tokens.push({ kind: 'quoted', text: sql.slice(at + 1, end).replaceAll('""', '"'), at })
  return end + 1
}

function isWordStart(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || code === 0x5f
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}
