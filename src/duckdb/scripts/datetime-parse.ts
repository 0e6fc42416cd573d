import { EMPTY_FORMAT, mysqlFormat } from '../datetime-shapes.ts'
import { daysFromCivil, daysInMonth, offsetMinutes, parseDate } from '../datetime-text.ts'
import { canonicalZone } from '../time-zones.ts'
import { dateOf, type DateFields } from './joda-date.ts'
import { invalidArgument, SqlFailure } from './scalar-function.ts'

/** A local date and time read from text. */
export interface ParsedFields {
  readonly days: number
  readonly millis: number
  /** Minutes east of Greenwich. */
  readonly offset: number | undefined
  readonly zone: string | undefined
}

type Key =
  | 'year'
  | 'weekYear'
  | 'month'
  | 'day'
  | 'dayOfYear'
  | 'week'
  | 'weekday'
  | 'hour'
  | 'hour12'
  | 'half'
  | 'minute'
  | 'second'
  | 'millis'
  | 'offset'
  | 'zone'
  | 'skip'

interface Item {
  readonly source: string
  /** The source to use when digits follow. */
  readonly tight?: string
  readonly key: Key
  read(text: string): number | string
}

interface Compiled {
  readonly expression: RegExp
  readonly items: readonly Item[]
}

const monthNames = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
]
const dayNames = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']

const named = (names: readonly string[]): string => names.flatMap((name) => [name, name.slice(0, 3)]).join('|')
const indexOf = (names: readonly string[], text: string): number =>
  names.findIndex((name) => name.startsWith(text.slice(0, 3).toLowerCase())) + 1

const number = (key: Key, source: string): Item => ({ key, source, read: Number })
const month: Item = { key: 'month', source: named(monthNames), read: (text) => indexOf(monthNames, text) }
const weekdayName: Item = { key: 'weekday', source: named(dayNames), read: (text) => indexOf(dayNames, text) }
const half: Item = { key: 'half', source: 'am|pm', read: (text) => (text.toLowerCase() === 'pm' ? 12 : 0) }
const fraction = (most: number): Item => ({
  key: 'millis',
  source: `\\d{1,${most}}`,
  read: (text) => Number(text.padEnd(3, '0').slice(0, 3)),
})
const clock = (key: Key, hour: (read: number) => number): Item => ({
  key,
  source: '\\d{1,2}',
  read: (text) => hour(Number(text)),
})
const twoDigitYear: Item = {
  key: 'year',
  source: '\\d{2}',
  read: (text) => Number(text) + (Number(text) < 70 ? 2000 : 1900),
}

const cache = new Map<string, Compiled>()

function compiled(language: string, format: string, compile: () => readonly (string | Item)[]): Compiled {
  const key = `${language} ${format}`
  const known = cache.get(key)
  if (known !== undefined) return known
  const parts = compile()
  // A number takes only its usual width when digits follow.
  const source = parts
    .map((part, i) => {
      if (typeof part === 'string') return part.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
      const next = parts[i + 1]
      const tight = next !== undefined && typeof next !== 'string' && next.source.startsWith('\\d')
      const usual = part.tight ?? part.source.replace('[+-]?\\d{1,9}', '\\d{4}').replace('\\d{1,2}', '\\d{2}')
      return `(${tight ? usual : part.source})`
    })
    .join('')
  const result = { expression: expressionOf(source), items: parts.filter((part) => typeof part !== 'string') }
  if (cache.size > 200) cache.clear()
  cache.set(key, result)
  return result
}

function expressionOf(source: string): RegExp {
  const expression = new RegExp(`^${source}$`, 'i')
  try {
    // V8 compiles a pattern at its first use, and refuses one that is too large only then.
    expression.exec('')
  } catch {
    throw invalidArgument('The format is too long')
  }
  return expression
}

function read(text: string, { expression, items }: Compiled, failure: SqlFailure): ParsedFields {
  const match = expression.exec(text)
  if (match === null) throw failure
  const fields: Partial<Record<Key, number | string>> = {}
  items.forEach((item, i) => {
    fields[item.key] = item.read(match[i + 1]!)
  })
  if (Object.values(fields).some(Number.isNaN)) throw failure
  const get = (key: Key, otherwise: number): number => (fields[key] as number | undefined) ?? otherwise
  const days = daysOf(fields as DateFields, failure)
  const hour = fields.hour12 === undefined ? get('hour', 0) : (get('hour12', 12) % 12) + get('half', 0)
  const [minute, second] = [get('minute', 0), get('second', 0)]
  if (hour > 23 || minute > 59 || second > 59) throw failure
  if (fields.hour12 !== undefined && (get('hour12', 12) < 1 || get('hour12', 12) > 12)) throw failure
  return {
    days,
    millis: ((hour * 60 + minute) * 60 + second) * 1000 + get('millis', 0),
    offset: fields.offset as number | undefined,
    zone: fields.zone as string | undefined,
  }
}

function daysOf(fields: DateFields, failure: SqlFailure): number {
  const { year, month = 1, day = 1, weekYear, week, dayOfYear, weekday } = fields
  if (year === undefined || [weekYear, week, dayOfYear, weekday].some((each) => each !== undefined)) {
    const days = dateOf(fields)
    if (days === undefined || Number.isNaN(days)) throw failure
    return days
  }
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) throw failure
  return daysFromCivil(year, month, day)
}

const mysqlItems: Readonly<Record<string, readonly (string | Item)[]>> = {
  a: [weekdayName],
  b: [month],
  c: [number('month', '\\d{1,2}')],
  d: [number('day', '\\d{1,2}')],
  e: [number('day', '\\d{1,2}')],
  f: [fraction(9)],
  H: [number('hour', '\\d{1,2}')],
  h: [number('hour12', '\\d{1,2}')],
  I: [number('hour12', '\\d{1,2}')],
  i: [number('minute', '\\d{1,2}')],
  j: [number('dayOfYear', '\\d{1,3}')],
  k: [number('hour', '\\d{1,2}')],
  l: [number('hour12', '\\d{1,2}')],
  M: [month],
  m: [number('month', '\\d{1,2}')],
  p: [half],
  r: [number('hour12', '\\d{1,2}'), ':', number('minute', '\\d{1,2}'), ':', number('second', '\\d{1,2}'), ' ', half],
  S: [number('second', '\\d{1,2}')],
  s: [number('second', '\\d{1,2}')],
  T: [number('hour', '\\d{1,2}'), ':', number('minute', '\\d{1,2}'), ':', number('second', '\\d{1,2}')],
  v: [number('week', '\\d{1,2}')],
  W: [weekdayName],
  x: [number('weekYear', '[+-]?\\d{1,4}')],
  Y: [number('year', '[+-]?\\d{1,4}')],
  y: [twoDigitYear],
  '%': ['%'],
}

/** date_parse: missing fields have the values of 1970-01-01 00:00:00. */
export function parseMysql(text: string, given: string): ParsedFields {
  const format = mysqlFormat(given)
  if (format === '') throw invalidArgument(EMPTY_FORMAT.date_format)
  // Trino reads this format like a cast of a text to date: years may have more digits.
  if (format === '%Y-%m-%d') {
    const days = text.trim() === text ? parseDate(text) : undefined
    if (days === undefined) throw malformed(text)
    return { days, millis: 0, offset: undefined, zone: undefined }
  }
  const pattern = compiled('mysql', format, () =>
    [...format.matchAll(/%([^])|[^%]+|%$/g)].flatMap(([part, letter]) => {
      if (letter === undefined) return [part]
      if ('DUuVwX'.includes(letter)) throw invalidArgument(`%${letter} not supported in date format string`)
      return mysqlItems[letter] ?? [letter]
    }),
  )
  return read(text, pattern, malformed(text))
}

/** Minutes of `Z` or `+05:30`; NaN for invalid hours or minutes. Trino's zones end at 14 hours. */
export function readOffset(text: string): number {
  if (text.toUpperCase() === 'Z') return 0
  const minutes = offsetMinutes(text)
  if (minutes !== undefined) return minutes
  const [, hours = '99', rest = '00'] = /^[+-](\d{2}):?(\d{2})?$/.exec(text) ?? []
  if (Number(hours) > 23 || Number(rest) > 59) return Number.NaN
  throw new SqlFailure('NOT_SUPPORTED', `Time zone not supported: ${text[0]}${hours}:${rest}`)
}

function malformed(text: string): SqlFailure {
  return invalidArgument(`Invalid format: "${text}"`)
}

const offset: Item = {
  key: 'offset',
  source: '[+-]\\d{2}:?\\d{2}|Z',
  read: readOffset,
}
const zone: Item = {
  key: 'zone',
  source: '[A-Za-z][\\w/+-]*|[+-]\\d{2}:\\d{2}',
  read: (text) => canonicalZone(text) ?? '',
}

/**
 * A year of two digits in Joda: from 80 years before to 19 years after the present year; other numbers of digits as
 * written.
 */
function nearbyYear(key: Key): Item {
  const near = (digits: number): number => {
    const first = new Date().getUTCFullYear() - 80
    return first + ((digits - (first % 100) + 100) % 100)
  }
  const read = (text: string): number => (/^\d{2}$/.test(text) ? near(Number(text)) : Number(text))
  return { key, source: '[+-]?\\d{1,9}', tight: '\\d{2}', read }
}

function jodaItem(letter: string, count: number): Item | undefined {
  switch (letter) {
    case 'y':
    case 'Y':
      return count === 2 ? nearbyYear('year') : number('year', '[+-]?\\d{1,9}')
    case 'x':
      return count === 2 ? nearbyYear('weekYear') : number('weekYear', '[+-]?\\d{1,9}')
    case 'w':
      return number('week', '\\d{1,2}')
    case 'e':
      return number('weekday', '\\d')
    case 'E':
      return weekdayName
    case 'M':
      return count >= 3 ? month : number('month', '\\d{1,2}')
    case 'd':
      return number('day', '\\d{1,2}')
    case 'D':
      return number('dayOfYear', '\\d{1,3}')
    case 'H':
      return number('hour', '\\d{1,2}')
    case 'k':
      return clock('hour', (hour) => (hour === 0 ? Number.NaN : hour % 24))
    case 'h':
      return number('hour12', '\\d{1,2}')
    case 'K':
      return clock('hour12', (hour) => (hour > 11 ? Number.NaN : hour === 0 ? 12 : hour))
    case 'a':
      return half
    case 'm':
      return number('minute', '\\d{1,2}')
    case 's':
      return number('second', '\\d{1,2}')
    case 'S':
      return fraction(9)
    case 'Z':
      return count >= 3 ? zone : offset
    case 'z':
      return zone
    default:
      return undefined
  }
}

/** parse_datetime: Joda's patterns. */
export function parseJoda(text: string, format: string): ParsedFields {
  if (format === '') throw invalidArgument(EMPTY_FORMAT.format_datetime)
  const pattern = compiled('joda', format, () =>
    [...format.matchAll(/''|'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+/g)].map(([part, quoted, letter]) => {
      if (part === "''") return "'"
      if (quoted !== undefined) return quoted.replaceAll("''", "'")
      if (letter === undefined) return part
      const item = jodaItem(letter, part.length)
      if (item === undefined) throw invalidArgument(`Illegal pattern component: ${part}`)
      return item
    }),
  )
  return read(text, pattern, invalidArgument(`Invalid format: "${text}"`))
}

const teradataItems: Readonly<Record<string, Item>> = {
  yyyy: number('year', '\\d{4}'),
  yy: { key: 'year', source: '\\d{2}', read: (text) => Number(text) + 2000 },
  mm: number('month', '\\d{1,2}'),
  dd: number('day', '\\d{1,2}'),
  hh24: number('hour', '\\d{1,2}'),
  hh: number('hour12', '\\d{1,2}'),
  mi: number('minute', '\\d{1,2}'),
  ss: number('second', '\\d{1,2}'),
}

/** to_date and to_timestamp: Teradata's formats. */
export function parseTeradata(text: string, format: string): ParsedFields {
  if (format === '') throw invalidArgument(EMPTY_FORMAT.date_format)
  const pattern = compiled('teradata', format, () =>
    [...format.matchAll(/hh24|yyyy|yy|mm|dd|hh|mi|ss|[a-z]+|[^a-z]+/gi)].map(([part]) => {
      const item = teradataItems[part.toLowerCase()]
      if (item === undefined && /[a-z]/i.test(part)) {
        throw invalidArgument(`Failed to tokenize string [${part}] at offset [${format.indexOf(part)}]`)
      }
      return item ?? part
    }),
  )
  return read(text, pattern, malformed(text))
}
