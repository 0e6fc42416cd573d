import { javaDouble } from './double-text.ts'
import { isJsonNumber, isArray, type JsonValue } from './json-value.ts'

/**
 * Trino's text of a value. `sorted`: members by UTF-16 unit, the canonical form of type json. `quote`: writes strings.
 */
export function writeJson(value: JsonValue, sorted: boolean, quote: (text: string) => string = quoteJson): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return quote(value)
  if (isArray(value)) return `[${value.map((item) => writeJson(item, sorted, quote)).join(',')}]`
  if (isJsonNumber(value)) return canonicalNumber(value.number)
  const members = [...value.members]
  if (sorted) members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${members.map(([name, member]) => `${quote(name)}:${writeJson(member, sorted, quote)}`).join(',')}}`
}

/**
 * Texts that Java's Double.toString would write: with at most fifteen digits they are the shortest text of their value.
 */
export const JAVA_FRACTION = /^-?(?:[1-9]\d{0,6}\.(?:0|\d{0,7}[1-9])|0\.(?!000)\d{0,14}[1-9])$/

/** Integers as written, others as Java's Double.toString. */
export function canonicalNumber(text: string): string {
  if (JAVA_FRACTION.test(text)) return text
  if (isWholeNumber(text)) return text === '-0' ? '0' : text
  const value = Number(text)
  return Number.isFinite(value) ? javaDouble(value) : `"${javaDouble(value)}"`
}

/** Whether the number is written without fraction and exponent. */
export function isWholeNumber(text: string): boolean {
  return /^-?\d+$/.test(text)
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

export function quoteJson(text: string): string {
  return `"${text.replaceAll(/["\\\u0000-\u001f\ud800-\udfff]/g, escaped)}"`
}

/**
 * Like `quoteJson`, but characters beyond 16 bits stay; half of such a character becomes a question mark, as in Java's
 * encoders.
 */
export function quoteJsonPlain(text: string): string {
  return wholeCharacters(`"${text.replaceAll(/["\\\u0000-\u001f]/g, escaped)}"`)
}

export function wholeCharacters(text: string): string {
  return text.replaceAll(/[\ud800-\udfff]/gu, '?')
}

function escaped(char: string): string {
  return shortEscapes[char] ?? `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}
