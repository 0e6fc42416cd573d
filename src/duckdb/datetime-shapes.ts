/** The languages of formats by which texts are read. */
export type ParseStyle = 'mysql' | 'joda' | 'teradata'

/** Trino's message for an empty format, by the function's name. */
export const EMPTY_FORMAT = {
  date_format: 'Both printing and parsing not supported',
  format_datetime: 'Invalid pattern specification: Pattern is null or empty',
} as const

/** A format of date_format without a `%` at its end: Trino ignores it. */
export function mysqlFormat(format: string): string {
  return /^(?:[^%]|%[^])*%$/.test(format) ? format.slice(0, -1) : format
}

/** Texts that DuckDB's strptime reads like Trino, by their shapes for GLOB. */
export interface FixedFormat {
  readonly shapes: readonly string[]
  readonly strptime: string
}

interface Field {
  readonly name: 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'fraction'
  readonly shape: string
  readonly strptime: string
}

const YEAR: Field = { name: 'year', shape: '[1-9][0-9][0-9][0-9]', strptime: '%Y' }
const MONTH: Field = { name: 'month', shape: '[01][0-9]', strptime: '%m' }
const DAY: Field = { name: 'day', shape: '[0-3][0-9]', strptime: '%d' }
const HOUR: Field = { name: 'hour', shape: '[0-2][0-9]', strptime: '%H' }
const MINUTE: Field = { name: 'minute', shape: '[0-5][0-9]', strptime: '%M' }
const SECOND: Field = { name: 'second', shape: '[0-5][0-9]', strptime: '%S' }
/** Three digits or six. */
const FRACTION: Field = { name: 'fraction', shape: '[0-9][0-9][0-9]', strptime: '%f' }

const mysql: Readonly<Record<string, readonly (Field | string)[]>> = {
  Y: [YEAR],
  m: [MONTH],
  d: [DAY],
  H: [HOUR],
  i: [MINUTE],
  s: [SECOND],
  S: [SECOND],
  T: [HOUR, ':', MINUTE, ':', SECOND],
  f: [FRACTION],
}

const joda: Readonly<Record<string, Field>> = {
  yyyy: YEAR,
  YYYY: YEAR,
  MM: MONTH,
  dd: DAY,
  HH: HOUR,
  mm: MINUTE,
  ss: SECOND,
  SSS: FRACTION,
  SSSSSS: FRACTION,
}

const teradata: Readonly<Record<string, Field>> = {
  yyyy: YEAR,
  mm: MONTH,
  dd: DAY,
  hh24: HOUR,
  mi: MINUTE,
  ss: SECOND,
}

/** Characters that mean themselves in a shape and in a format of strptime. */
const PLAIN = /^[ ,./:;_TZ-]*$/

/**
 * The shapes and strptime format of a format. Undefined if strptime or a shape cannot express it: dates without year,
 * names, numbers of variable width.
 */
export function fixedFormat(style: ParseStyle, format: string): FixedFormat | undefined {
  const parts = readers[style](format)
  if (parts === undefined) return undefined
  const names = parts.flatMap((part) => (typeof part === 'string' ? [] : [part.name]))
  const whole = (['year', 'month', 'day'] as const).every((name) => names.includes(name))
  if (!whole || new Set(names).size < names.length) return undefined
  const shape = (ofFraction: number): string =>
    parts
      .map((part) => (typeof part === 'string' ? part : part === FRACTION ? '[0-9]'.repeat(ofFraction) : part.shape))
      .join('')
  return {
    shapes: names.includes('fraction') ? [shape(3), shape(6)] : [shape(0)],
    strptime: parts.map((part) => (typeof part === 'string' ? part : part.strptime)).join(''),
  }
}

function mysqlParts(format: string): readonly (Field | string)[] | undefined {
  const parts: (Field | string)[] = []
  for (const [part, letter] of format.matchAll(/%([^])|[^%]+|%$/g)) {
    const known = letter === undefined ? (PLAIN.test(part) ? [part] : undefined) : mysql[letter]
    if (known === undefined) return undefined
    parts.push(...known)
  }
  return parts
}

function jodaParts(format: string): readonly (Field | string)[] | undefined {
  const parts: (Field | string)[] = []
  for (const [part, quoted, letter] of format.matchAll(/'([^']+)'|([A-Za-z])\2*|[^A-Za-z']+|'/g)) {
    const plain = quoted ?? part
    const known = letter === undefined ? (PLAIN.test(plain) ? plain : undefined) : joda[part]
    if (known === undefined) return undefined
    parts.push(known)
  }
  return parts
}

function teradataParts(format: string): readonly (Field | string)[] | undefined {
  const parts: (Field | string)[] = []
  for (const [part] of format.matchAll(/hh24|yyyy|yy|mm|dd|hh|mi|ss|[a-z]+|[^a-z]+/gi)) {
    // Letters that are not a word of Teradata are refused.
    const known = /[a-z]/i.test(part) ? teradata[part.toLowerCase()] : PLAIN.test(part) ? part : undefined
    if (known === undefined) return undefined
    parts.push(known)
  }
  return parts
}

const TERADATA_AS_JODA: Readonly<Record<string, string>> = {
  yyyy: 'yyyy',
  yy: 'yy',
  mm: 'MM',
  dd: 'dd',
  hh24: 'HH',
  hh: 'hh',
  mi: 'mm',
  ss: 'ss',
}

/**
 * A format of Teradata in Joda's language; `unknown` is called with letters that are not a word of Teradata, to throw.
 */
export function teradataAsJoda(format: string, unknown: (letters: string) => string): string {
  return format.replaceAll(
    /hh24|yyyy|yy|mm|dd|hh|mi|ss|[a-z]+/gi,
    (word) => TERADATA_AS_JODA[word.toLowerCase()] ?? unknown(word),
  )
}

/** The same for a format with only Teradata's words and plain punctuation; undefined for any other format. */
export function plainTeradataAsJoda(format: string): string | undefined {
  const isPlain = /^(?:hh24|yyyy|yy|mm|dd|hh|mi|ss|[ ,./:;_-])+$/i.test(format)
  return isPlain ? teradataAsJoda(format, (letters) => letters) : undefined
}

const readers: Readonly<Record<ParseStyle, (format: string) => readonly (Field | string)[] | undefined>> = {
  mysql: mysqlParts,
  joda: jodaParts,
  teradata: teradataParts,
}
