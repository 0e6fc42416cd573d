import { monthNames, weekdayNames, zoneName } from './datetime-print.ts'

/** A date, a time of day or both, like java.time's classes; missing parts are undefined. */
export interface JavaTime {
  readonly date: { readonly year: number; readonly month: number; readonly day: number } | undefined
  readonly time:
    | { readonly hour: number; readonly minute: number; readonly second: number; readonly nanos: number }
    | undefined
  readonly zone: { readonly id: string; readonly offsetSeconds: number } | undefined
  /** Milliseconds since 1970, if the value was given in this form. */
  readonly millis?: bigint
}

const TEXT =
  /^(?:(?<year>[+-]?\d+)-(?<month>\d\d)-(?<day>\d\d))? ?(?:(?<hour>\d\d):(?<minute>\d\d):(?<second>\d\d)(?:\.(?<fraction>\d+))?)?(?:\|(?<offset>-?\d+)\|(?<zone>.+))?$/

/** Reads `2020-01-31 10:00:00.123|20700|Asia/Kathmandu` (seconds ahead of UTC); date, time and zone may be missing. */
export function javaTimeOf(text: string): JavaTime {
  const found = TEXT.exec(text)?.groups
  if (found === undefined) throw new Error(`Not a date or time: ${text}`)
  const { year, month, day, hour, minute, second, fraction = '', offset, zone } = found
  return {
    date: year === undefined ? undefined : { year: Number(year), month: Number(month), day: Number(day) },
    time:
      hour === undefined
        ? undefined
        : { hour: Number(hour), minute: Number(minute), second: Number(second), nanos: nanosOf(fraction) },
    zone: zone === undefined ? undefined : { id: zone, offsetSeconds: Number(offset) },
  }
}

/** Rounds finer digits, but never up to the next second. */
function nanosOf(fraction: string): number {
  const nanos = Number(fraction.slice(0, 9).padEnd(9, '0')) + (Number(fraction[9] ?? 0) >= 5 ? 1 : 0)
  return Math.min(nanos, 999_999_999)
}

/** The result of `toString()` of LocalDate, LocalTime, LocalDateTime or ZonedDateTime. */
export function javaText({ date, time, zone }: JavaTime): string {
  const day = date && `${yearText(date.year)}-${two(date.month)}-${two(date.day)}`
  const clock = time && `${two(time.hour)}:${two(time.minute)}${secondsText(time.second, time.nanos)}`
  const local = [day, clock].filter((part) => part !== undefined).join('T')
  if (zone === undefined) return local
  const isOffset = /^[+-]/.test(zone.id)
  return `${local}${offsetText(zone.offsetSeconds)}${isOffset ? '' : `[${zone.id}]`}`
}

function secondsText(second: number, nanos: number): string {
  if (second === 0 && nanos === 0) return ''
  if (nanos === 0) return `:${two(second)}`
  // Thousandths, millionths or billionths of a second.
  return `:${two(second)}.${pad(nanos, 9).replace(/(?:000){1,2}$/, '')}`
}

function yearText(year: number): string {
  return `${year < 0 ? '-' : year > 9999 ? '+' : ''}${pad(Math.abs(year), 4)}`
}

function offsetText(seconds: number): string {
  if (seconds === 0) return 'Z'
  const size = Math.abs(seconds)
  const rest = size % 60
  const minutes = `${two(Math.trunc(size / 3600))}:${two(Math.trunc(size / 60) % 60)}`
  return `${seconds < 0 ? '-' : '+'}${minutes}${rest === 0 ? '' : `:${two(rest)}`}`
}

/** The conversions behind `%t`. */
export const TIME_CONVERSIONS = 'HIklMSLNpzZsQBbhAaCYyjmdeRTrDFc'

/** A field of `%t`; undefined when the value does not have it. */
export function timeField(value: JavaTime, conversion: string): string | undefined {
  const composite = composites[conversion]
  if (composite !== undefined) {
    const fields = composite.replaceAll(/%([a-zA-Z])/g, (_all, each: string) => timeField(value, each) ?? '\0')
    return fields.includes('\0') ? undefined : fields
  }
  return clockField(value, conversion) ?? dateField(value, conversion) ?? zoneField(value, conversion)
}

const composites: Readonly<Record<string, string>> = {
  R: '%H:%M',
  T: '%H:%M:%S',
  r: '%I:%M:%S %P',
  D: '%m/%d/%y',
  F: '%Y-%m-%d',
  c: '%a %b %d %T %Z %Y',
}

function clockField({ time }: JavaTime, conversion: string): string | undefined {
  if (time === undefined) return undefined
  const half = ((time.hour + 11) % 12) + 1
  switch (conversion) {
    case 'H':
      return two(time.hour)
    case 'I':
      return two(half)
    case 'k':
      return String(time.hour)
    case 'l':
      return String(half)
    case 'M':
      return two(time.minute)
    case 'S':
      return two(time.second)
    case 'L':
      return pad(Math.trunc(time.nanos / 1_000_000), 3)
    case 'N':
      return pad(time.nanos, 9)
    case 'p':
      return time.hour < 12 ? 'am' : 'pm'
    case 'P':
      return time.hour < 12 ? 'AM' : 'PM'
    default:
      return undefined
  }
}

function dateField({ date }: JavaTime, conversion: string): string | undefined {
  if (date === undefined) return undefined
  const { year, month, day } = date
  // Year of the era in Java: the year before 1 is also 1.
  const ofEra = year > 0 ? year : 1 - year
  switch (conversion) {
    case 'B':
      return monthNames[month - 1]
    case 'b':
    case 'h':
      return monthNames[month - 1]?.slice(0, 3)
    case 'A':
      return weekdayNames[weekday(date)]
    case 'a':
      return weekdayNames[weekday(date)]?.slice(0, 3)
    case 'C':
      return two(Math.trunc(ofEra / 100))
    case 'Y':
      return pad(ofEra, 4)
    case 'y':
      return two(ofEra % 100)
    case 'j':
      return pad((utcMillis(date) - utcMillis({ year, month: 1, day: 1 })) / 86_400_000 + 1, 3)
    case 'm':
      return two(month)
    case 'd':
      return two(day)
    case 'e':
      return String(day)
    default:
      return undefined
  }
}

function zoneField({ date, time, zone, millis }: JavaTime, conversion: string): string | undefined {
  if (date === undefined || time === undefined || zone === undefined) return undefined
  const seconds = utcMillis(date) / 1000 + time.hour * 3600 + time.minute * 60 + time.second - zone.offsetSeconds
  const minutes = Math.trunc(Math.abs(zone.offsetSeconds) / 60)
  switch (conversion) {
    case 'z':
      return `${zone.offsetSeconds < 0 ? '-' : '+'}${two(Math.trunc(minutes / 60))}${two(minutes % 60)}`
    case 'Z':
      return millis === undefined ? zoneName(zone.id, seconds * 1000, false) : zone.id
    case 's':
      return String(millis === undefined ? seconds : millis / 1000n)
    case 'Q':
      return String(millis ?? seconds * 1000 + Math.trunc(time.nanos / 1_000_000))
    default:
      return undefined
  }
}

/** Milliseconds of 400 years, after which the calendar repeats. */
const CYCLE = 12_622_780_800_000

function utcMillis({ year, month, day }: NonNullable<JavaTime['date']>): number {
  // Date ends with the year 275760; every 400 years have the same length.
  const cycles = Math.trunc(year / 400)
  return new Date(Date.UTC(2000, 0, 1)).setUTCFullYear(year - cycles * 400, month - 1, day) + cycles * CYCLE
}

/** 0 is Sunday; 400 years are whole weeks. */
function weekday({ year, month, day }: NonNullable<JavaTime['date']>): number {
  return new Date(utcMillis({ year: year % 400, month, day })).getUTCDay()
}

function two(value: number): string {
  return pad(value, 2)
}

function pad(value: number, digits: number): string {
  return String(value).padStart(digits, '0')
}
