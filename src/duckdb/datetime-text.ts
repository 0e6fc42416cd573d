import { trimmed } from './blanks.ts'
import { canonicalZone } from './time-zones.ts'

/** A local date and time, exact to picoseconds. */
export interface LocalTimestamp {
  /** Microseconds since 1970-01-01 00:00:00, local. */
  readonly micros: bigint
  /** Picoseconds within the microsecond. */
  readonly picos: number
  /** Digits of the fraction as written. */
  readonly precision: number
  /** Trino's zone id if the text names a zone. */
  readonly zone: string | undefined
}

export interface LocalTime {
  /** Picoseconds of the day. */
  readonly picos: bigint
  readonly precision: number
  /** Minutes east of Greenwich if the text has an offset. */
  readonly offset: number | undefined
}

const DATE = /^([+-]?)(\d{1,9})-(\d{1,2})-(\d{1,2})$/
const TIMESTAMP =
  /^([+-]?)(\d{4,9})-(\d{1,2})-(\d{1,2})(?: (\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?)?[\t-\r ]*(?:([+-]\d{1,2}(?::?\d{2})?)|(?<= )([A-Za-z][^\t-\r ]*))?$/
const TIME = /^(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?[\t-\r ]*([+-]\d{1,2}(?::?\d{2})?)?$/

/** Days since 1970-01-01 of a date's text; undefined for other texts. */
export function parseDate(text: string): number | undefined {
  const match = DATE.exec(trimmed(text))
  return match === null ? undefined : daysOf(match[1]!, match[2]!, match[3]!, match[4]!)
}

/** Parses a timestamp's text, with or without time of day and zone; undefined for other texts. */
export function parseTimestamp(text: string): LocalTimestamp | undefined {
  const match = TIMESTAMP.exec(trimmed(text))
  if (match === null) return undefined
  const [
    ,
    sign = '',
    year = '',
    month = '',
    day = '',
    hour = '0',
    minute = '0',
    second = '0',
    fraction = '',
    offset,
    name,
  ] = match
  const days = daysOf(sign, year, month, day)
  const seconds = secondsOf(hour, minute, second)
  if (days === undefined || seconds === undefined || fraction.length > 12) return undefined
  const picosOfSecond = BigInt(fraction.padEnd(12, '0'))
  const written = offset ?? name
  const zone = written === undefined ? undefined : canonicalZone(written)
  if (written !== undefined && zone === undefined) return undefined
  return {
    micros: (BigInt(days) * 86400n + BigInt(seconds)) * 1_000_000n + picosOfSecond / 1_000_000n,
    picos: Number(picosOfSecond % 1_000_000n),
    precision: fraction.length,
    zone,
  }
}

/** Parses a time's text, with or without offset; undefined for other texts. */
export function parseTime(text: string): LocalTime | undefined {
  const match = TIME.exec(trimmed(text))
  if (match === null) return undefined
  const [, hour = '', minute = '', second = '0', fraction = '', offset] = match
  const seconds = secondsOf(hour, minute, second)
  if (seconds === undefined || fraction.length > 12) return undefined
  const minutes = offset === undefined ? undefined : offsetMinutes(offset)
  if (offset !== undefined && minutes === undefined) return undefined
  return {
    picos: BigInt(seconds) * 1_000_000_000_000n + BigInt(fraction.padEnd(12, '0')),
    precision: fraction.length,
    offset: minutes,
  }
}

/** Minutes of `+05:30`, `-8`, `+0530`; undefined beyond ±14:00. */
export function offsetMinutes(text: string): number | undefined {
  const match = /^([+-])(\d{1,2})(?::?(\d{2}))?$/.exec(text)
  if (match === null) return undefined
  const minutes = Number(match[2]) * 60 + Number(match[3] ?? 0)
  if (minutes > 14 * 60 || Number(match[3] ?? 0) > 59) return undefined
  return match[1] === '-' ? -minutes : minutes
}

function secondsOf(hour: string, minute: string, second: string): number | undefined {
  const [h, m, s] = [Number(hour), Number(minute), Number(second)]
  return h > 23 || m > 59 || s > 59 ? undefined : h * 3600 + m * 60 + s
}

// A date in Trino is a number of days, a Java int.
const MAX_DAYS = 2147483647

function daysOf(sign: string, year: string, month: string, day: string): number | undefined {
  const [y, m, d] = [Number(year) * (sign === '-' ? -1 : 1), Number(month), Number(day)]
  if (m < 1 || m > 12 || d < 1 || d > daysInMonth(y, m)) return undefined
  const days = daysFromCivil(y, m, d)
  return Math.abs(days) > MAX_DAYS ? undefined : days
}

export function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant's days_from_civil). */
export function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146097 + dayOfEra - 719468
}
