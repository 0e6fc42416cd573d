import { EngineError } from '../../shared/engine-error.ts'
import { trimmed } from '../../duckdb/blanks.ts'

// Exact dates and times of literals: days and picoseconds as integers.

export const PICOS_PER_MILLI = 1_000_000_000n
const PICOS_PER_SECOND = 1_000_000_000_000n
export const PICOS_PER_DAY = 86_400n * PICOS_PER_SECOND

/** Years beyond this have no days that fit Trino's DATE, a signed number of 32 bits. */
const MAX_YEAR = 5_881_580

/** Days since 1970-01-01 of a day in the proleptic Gregorian calendar; undefined if there is no such day. */
function epochDay(year: number, month: number, day: number): bigint | undefined {
  if (Math.abs(year) > MAX_YEAR) return undefined
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return BigInt(era) * 146097n + BigInt(dayOfEra) - 719468n
}

function daysIn(year: number, month: number): number {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  return [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]!
}

const DATE = /^([+-]?\d+)-(\d{1,2})-(\d{1,2})$/

/** Parses a date in Trino's formats; undefined if the text is not a date. */
export function parseDateLiteral(text: string): bigint | undefined {
  const match = DATE.exec(trimmed(text))
  return match === null ? undefined : epochDay(Number(match[1]), Number(match[2]), Number(match[3]))
}

export interface ParsedTime {
  readonly picos: bigint
  /** The number of fractional digits as written. */
  readonly precision: number
}

function timeOf(hour: string, minute: string, second = '0', fraction = ''): ParsedTime | undefined {
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  const seconds = BigInt(hour) * 3600n + BigInt(minute) * 60n + BigInt(second)
  return {
    picos: seconds * PICOS_PER_SECOND + BigInt(fraction.padEnd(12, '0').slice(0, 12)),
    precision: fraction.length,
  }
}

const TIME = /^(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,12}))?)?[\t-\r ]*([+-]\d\d:\d\d)?$/

/** Parses `hh:mm[:ss[.fraction]]`, optionally with an offset, which is returned in minutes. */
export function parseTimeLiteral(text: string): (ParsedTime & { readonly offset: number | undefined }) | undefined {
  const match = TIME.exec(text)
  if (match === null) return undefined
  const [, hour = '', minute = '', second, fraction, zone] = match
  const time = timeOf(hour, minute, second, fraction)
  const offset = zone === undefined ? undefined : offsetMinutes(zone)
  return time && { ...time, offset }
}

const TIMESTAMP =
  /^([+-]?\d{4,})-(\d{1,2})-(\d{1,2})(?: (?:(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d+))?)?)?[\t-\r ]*(.*))?$/

export interface ParsedTimestamp {
  /** Local picoseconds since 1970-01-01 00:00. */
  readonly picos: bigint
  readonly precision: number
  /** The canonical zone id. */
  readonly zone: string | undefined
}

/** Parses a date with an optional time and zone. @throws EngineError for an invalid zone */
export function parseTimestampLiteral(text: string): ParsedTimestamp | undefined {
  const match = TIMESTAMP.exec(trimmed(text))
  if (match === null) return undefined
  const [, year, month, day, hour, minute, second, fraction, zone = ''] = match
  const date = epochDay(Number(year), Number(month), Number(day))
  const time = timeOf(hour ?? '0', minute ?? '0', second, fraction)
  if (date === undefined || time === undefined) return undefined
  return {
    picos: date * PICOS_PER_DAY + time.picos,
    precision: time.precision,
    zone: zone === '' ? undefined : requireZone(zone),
  }
}

const OFFSET = /^(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d\d))?$/
const MAX_OFFSET_MINUTES = 14 * 60

/**
 * The canonical id of a zone as in Trino: `Z` and `GMT` are UTC, `+2` is `+02:00`. @throws EngineError for an invalid
 * zone
 */
export function requireZone(zone: string): string {
  const match = OFFSET.exec(zone)
  if (match !== null) {
    const [, sign, hours = '', minutes = '00'] = match
    if (Number(hours) * 60 + Number(minutes) > MAX_OFFSET_MINUTES || Number(minutes) > 59) throw unsupportedZone(zone)
    const id = `${sign}${hours.padStart(2, '0')}:${minutes}`
    return /^[+-]00:00$/.test(id) ? 'UTC' : id
  }
  if (/^(Z|UTC|GMT|UT|Etc\/UTC|Etc\/GMT|Zulu|Universal|Greenwich|UCT|GMT0)$/.test(zone)) return 'UTC'
  if (!isKnownZone(zone)) throw unsupportedZone(zone)
  return zone
}

function unsupportedZone(zone: string): EngineError {
  return new EngineError('INVALID_FUNCTION_ARGUMENT', `Time zone not supported: ${zone}`)
}

const known = new Map<string, boolean>()

/** Whether the zone is a name in the zone data; case matters. */
function isKnownZone(zone: string): boolean {
  let answer = known.get(zone)
  if (answer === undefined) {
    answer = /^[A-Z][A-Za-z0-9_+-]*(\/[A-Z][A-Za-z0-9_+-]*)+$|^[A-Z][A-Za-z0-9-]+$/.test(zone) && isIntlZone(zone)
    known.set(zone, answer)
  }
  return answer
}

function isIntlZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}

function offsetMinutes(zone: string): number | undefined {
  const match = /^([+-])(\d\d):(\d\d)$/.exec(zone)
  if (match === null) return undefined
  const minutes = Number(match[2]) * 60 + Number(match[3])
  return match[1] === '-' ? -minutes : minutes
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** The seconds by which a zone is ahead of UTC at an instant. */
export function zoneOffsetSeconds(zone: string, epochMillis: number): number {
  if (zone === 'UTC') return 0
  const fixed = offsetMinutes(zone)
  if (fixed !== undefined) return fixed * 60
  let format = formats.get(zone)
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' })
    formats.set(zone, format)
  }
  const name = format.formatToParts(epochMillis).find((part) => part.type === 'timeZoneName')?.value ?? 'GMT'
  const match = /^GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(name)
  if (match === null) return 0
  const seconds = Number(match[2]) * 3600 + Number(match[3]) * 60 + Number(match[4] ?? 0)
  return match[1] === '-' ? -seconds : seconds
}

/** The picoseconds of an instant in milliseconds, such as the start of a statement. */
export function picosOfMillis(millis: number): bigint {
  return BigInt(Math.trunc(millis)) * PICOS_PER_MILLI
}

/** The local time of an instant; both in picoseconds. */
export function localOf(instant: bigint, zone: string): bigint {
  return instant + BigInt(zoneOffsetSeconds(zone, Number(instant / PICOS_PER_MILLI))) * PICOS_PER_SECOND
}

/** As `instantOf`; a local time in a gap counts on from before the gap, as in Java. */
export function instantFrom(localPicos: bigint, zone: string): bigint {
  const instant = instantOf(localPicos, zone)
  if (instant !== undefined) return instant
  const before = zoneOffsetSeconds(zone, Number(localPicos / PICOS_PER_MILLI) - 86_400_000)
  return localPicos - BigInt(before) * PICOS_PER_SECOND
}

/** Rounds picoseconds half up to a number of fractional digits of a second. */
export function roundPicos(picos: bigint, precision: number): bigint {
  const unit = 10n ** BigInt(12 - precision)
  return floorDiv(picos + unit / 2n, unit) * unit
}

export function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient
}

/** The instant of a local time (both in picoseconds): the earlier one if the clock went back; undefined in a gap. */
export function instantOf(localPicos: bigint, zone: string): bigint | undefined {
  const localMillis = Number(localPicos / PICOS_PER_MILLI)
  const candidates = [-86_400_000, 0, 86_400_000].map((shift) => zoneOffsetSeconds(zone, localMillis + shift))
  const instants = [...new Set(candidates)]
    .filter((offset) => zoneOffsetSeconds(zone, localMillis - offset * 1000) === offset)
    .map((offset) => localPicos - BigInt(offset) * PICOS_PER_SECOND)
    .sort((a, b) => (a < b ? -1 : 1))
  return instants[0]
}
