import { EMPTY_FORMAT, teradataAsJoda } from '../datetime-shapes.ts'
import { daysFromCivil, daysInMonth, parseDate, parseTime, parseTimestamp } from '../datetime-text.ts'
import { canonicalZone, zoneOfOffset } from '../time-zones.ts'
import { formatDateTime, formatMysql } from './datetime-print.ts'
import { type ParsedFields, parseJoda, parseMysql, parseTeradata, readOffset } from './datetime-parse.ts'
import { invalidArgument, invalidCast, SqlFailure, type ScalarFunction } from './scalar-function.ts'

const DAY = 86_400_000_000n

function rounded(micros: bigint, picos: number, precision: number): bigint {
  const unit = 10n ** BigInt(12 - precision)
  const all = micros * 1_000_000n + BigInt(picos)
  const floor = (value: bigint): bigint => (value >= 0n ? value / unit : -((-value + unit - 1n) / unit))
  return floor(all + unit / 2n) * unit
}

/** Local microseconds of a timestamp's text, rounded to the precision. */
function timestampMicros(text: string, precision: bigint): bigint {
  const parsed = parseTimestamp(text)
  if (parsed === undefined) throw invalidCast(`Value cannot be cast to timestamp: ${text}`)
  return within(rounded(parsed.micros, parsed.picos, Number(precision)) / 1_000_000n, text)
}

/** Checks that microseconds fit into 64 bits. */
function within(micros: bigint, text: string): bigint {
  if (BigInt.asIntN(64, micros) !== micros) throw invalidCast(`Value cannot be cast to timestamp: ${text}`)
  return micros
}

/** `micros picos`: local time finer than microseconds. */
function timestampFine(text: string, precision: bigint): string {
  const parsed = parseTimestamp(text)
  if (parsed === undefined) throw invalidCast(`Value cannot be cast to timestamp: ${text}`)
  const all = rounded(parsed.micros, parsed.picos, Number(precision))
  const micros = all >= 0n ? all / 1_000_000n : -((-all + 999_999n) / 1_000_000n)
  return `${within(micros, text)} ${all - micros * 1_000_000n}`
}

/** The zone in a timestamp's text; empty when there is none. */
const timestampZone = (text: string): string => parseTimestamp(text)?.zone ?? ''

function date(text: string): bigint {
  const days = parseDate(text)
  if (days === undefined) throw invalidCast(`Value cannot be cast to date: ${text}`)
  return BigInt(days)
}

function timePicos(text: string, precision: bigint): bigint {
  const parsed = parseTime(text)
  if (parsed === undefined || parsed.offset !== undefined) throw invalidCast(`Value cannot be cast to time: ${text}`)
  return (
    rounded(0n, 0, 12) +
    (rounded(parsed.picos / 1_000_000n, Number(parsed.picos % 1_000_000n), Number(precision)) % (DAY * 1_000_000n))
  )
}

function timeZonePicos(text: string, precision: bigint): bigint {
  const parsed = parseTime(text)
  if (parsed === undefined) throw invalidCast(`Value cannot be cast to time with time zone: ${text}`)
  return rounded(parsed.picos / 1_000_000n, Number(parsed.picos % 1_000_000n), Number(precision)) % (DAY * 1_000_000n)
}

/** Offset in minutes; the session's offset when the text has none. */
const timeOffset = (text: string, session: bigint): bigint => BigInt(parseTime(text)?.offset ?? session)

/** Results of `canonicalZone` by text; null for a text that is not a zone. */
const zonesOf = new Map<string, string | null>()
const MOST_ZONES = 10_000

function knownZone(text: string): string | null {
  let known = zonesOf.get(text)
  if (known === undefined) {
    if (zonesOf.size >= MOST_ZONES) zonesOf.clear()
    known = canonicalZone(text) ?? null
    zonesOf.set(text, known)
  }
  return known
}

function zone(text: string): string {
  const found = canonicalZone(text)
  if (found === undefined) throw invalidArgument(`'${text}' is not a valid time zone`)
  return found
}

/** The zone, for functions that report an unknown zone as NOT_SUPPORTED. */
function supportedZone(text: string): string {
  const found = canonicalZone(text)
  if (found === undefined) throw new SqlFailure('NOT_SUPPORTED', `Time zone not supported: ${text}`)
  return found
}

function isoDate(text: string): bigint {
  const failure = (): SqlFailure => invalidArgument(`Invalid format: "${text}"`)
  const calendar = /^([+-]?\d{1,9})(?:-(\d{1,2})(?:-(\d{1,2}))?)?$/.exec(text)
  const ordinal = /^(\d{4})-(\d{3})$/.exec(text)
  if (ordinal !== null) {
    const [year, day] = [Number(ordinal[1]), Number(ordinal[2])]
    if (day < 1 || day > 365 + (daysInMonth(year, 2) - 28)) throw failure()
    return BigInt(daysFromCivil(year, 1, 1) + day - 1)
  }
  const week = /^([+-]?\d{1,9})-W(\d{1,2})(?:-(\d))?$/.exec(text)
  if (week !== null) return BigInt(isoWeek(Number(week[1]), Number(week[2]), Number(week[3] ?? 1), failure))
  if (calendar === null) throw failure()
  const [year, month, day] = [Number(calendar[1]), Number(calendar[2] ?? 1), Number(calendar[3] ?? 1)]
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month)) throw failure()
  return BigInt(daysFromCivil(year, month, day))
}

function isoWeek(year: number, week: number, day: number, failure: () => SqlFailure): number {
  const first = mondayOfWeekOne(year)
  const weeks = (mondayOfWeekOne(year + 1) - first) / 7
  if (week < 1 || week > weeks || day < 1 || day > 7) throw failure()
  return first + (week - 1) * 7 + day - 1
}

function mondayOfWeekOne(year: number): number {
  const fourth = daysFromCivil(year, 1, 4)
  return fourth - ((((fourth + 3) % 7) + 7) % 7)
}

const STRICT =
  /^(?:\d{4}|[+-]\d{4,9})-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{0,9})?)?(?:Z|[+-]\d{2}:\d{2}(?::\d{2})?)?$/i

/** `micros picos zone`: the local time and its zone, which is empty when the text has none. */
function isoTimestamp(text: string, precision: bigint): string {
  // java.time, which reads nanoseconds, accepts fewer forms than Joda, which reads milliseconds.
  if (precision > 3n && !STRICT.test(text)) {
    throw invalidArgument(`Text '${text}' could not be parsed at index ${text.length}`)
  }
  const match = /^([^T]*)(?:T(\d{1,2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d+))?)?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?$/.exec(
    precision > 3n ? text.toUpperCase() : text,
  )
  const failure = (): SqlFailure => invalidArgument(`Invalid format: "${text}"`)
  // A time without date is a time on 1970-01-01.
  if (match === null || (match[1] === '' && match[2] === undefined)) throw failure()
  const [, day = '', hour = '0', minute = '0', second = '0', fraction = '', offset = ''] = match
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) throw failure()
  const seconds =
    (day === '' ? 0n : isoDate(day)) * 86400n + BigInt(Number(hour) * 3600 + Number(minute) * 60 + Number(second))
  const minutes = offset === '' ? undefined : readOffset(offset)
  if (Number.isNaN(minutes)) throw failure()
  const kept = fraction.slice(0, Number(precision)).padEnd(12, '0')
  const micros = packed(seconds * 1_000_000n + BigInt(kept.slice(0, 6)), minutes)
  return `${micros} ${Number(kept.slice(6))} ${minutes === undefined ? '' : zoneOfOffset(minutes)}`
}

/** Returns the local microseconds, if Trino can pack their milliseconds at that offset into 52 bits. */
function packed(local: bigint, offsetMinutes = 0): bigint {
  const millis = (local - BigInt(offsetMinutes) * 60_000_000n) / 1000n
  if (BigInt.asIntN(52, millis) !== millis) throw invalidArgument(`Millis overflow: ${millis}`)
  return local
}

function micros(fields: ParsedFields): bigint {
  return BigInt(fields.days) * DAY + BigInt(fields.millis) * 1000n
}

function parseDatetime(text: string, format: string): string {
  const fields = parseJoda(text, format)
  const itsZone = fields.offset === undefined ? (fields.zone ?? '') : zoneOfOffset(fields.offset)
  return `${packed(micros(fields), fields.offset)} 0 ${itsZone}`
}

export const datetimeScripts: readonly ScalarFunction[] = [
  { name: 'u_text_to_date', parameters: ['VARCHAR'], returns: 'BIGINT', call: date },
  { name: 'u_text_to_timestamp', parameters: ['VARCHAR', 'BIGINT'], returns: 'BIGINT', call: timestampMicros },
  { name: 'u_text_to_timestamp_fine', parameters: ['VARCHAR', 'BIGINT'], returns: 'VARCHAR', call: timestampFine },
  { name: 'u_text_zone', parameters: ['VARCHAR'], returns: 'VARCHAR', call: timestampZone },
  { name: 'u_text_to_time_picos', parameters: ['VARCHAR', 'BIGINT'], returns: 'BIGINT', call: timePicos },
  { name: 'u_text_to_time_zone_picos', parameters: ['VARCHAR', 'BIGINT'], returns: 'BIGINT', call: timeZonePicos },
  { name: 'u_text_time_offset', parameters: ['VARCHAR', 'BIGINT'], returns: 'BIGINT', call: timeOffset },
  { name: 'u_known_zone', parameters: ['VARCHAR'], returns: 'VARCHAR', call: knownZone },
  { name: 'u_zone', parameters: ['VARCHAR'], returns: 'VARCHAR', call: zone },
  { name: 'u_supported_zone', parameters: ['VARCHAR'], returns: 'VARCHAR', call: supportedZone },
  { name: 'u_iso_date', parameters: ['VARCHAR'], returns: 'BIGINT', call: isoDate },
  { name: 'u_iso_timestamp', parameters: ['VARCHAR', 'BIGINT'], returns: 'VARCHAR', call: isoTimestamp },
  {
    name: 'u_date_parse',
    parameters: ['VARCHAR', 'VARCHAR'],
    returns: 'BIGINT',
    call: (text: string, format: string) => micros(parseMysql(text, format)),
  },
  { name: 'u_parse_datetime', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: parseDatetime },
  {
    name: 'u_teradata_parse',
    parameters: ['VARCHAR', 'VARCHAR'],
    returns: 'BIGINT',
    call: (text: string, format: string) => micros(parseTeradata(text, format)),
  },
  {
    name: 'u_date_format',
    parameters: ['BIGINT', 'VARCHAR', 'BIGINT', 'VARCHAR'],
    returns: 'VARCHAR',
    call: formatMysql,
  },
  {
    name: 'u_format_datetime',
    parameters: ['BIGINT', 'VARCHAR', 'BIGINT', 'VARCHAR'],
    returns: 'VARCHAR',
    call: formatDateTime,
  },
  {
    name: 'u_teradata_format',
    parameters: ['BIGINT', 'VARCHAR'],
    returns: 'VARCHAR',
    call: (local: bigint, format: string) => {
      const joda = teradataToJoda(format)
      return formatDateTime(local, '', 0n, joda)
    },
  },
]

function teradataToJoda(format: string): string {
  if (format === '') throw invalidArgument(EMPTY_FORMAT.date_format)
  return teradataAsJoda(format, (letters) => {
    throw invalidArgument(`Failed to tokenize string [${letters}] at offset [${format.indexOf(letters)}]`)
  })
}
