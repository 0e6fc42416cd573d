import { EMPTY_FORMAT, mysqlFormat } from '../datetime-shapes.ts'
import { invalidArgument } from './scalar-function.ts'

export const monthNames = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
]
export const weekdayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

interface Fields {
  readonly year: number
  readonly month: number
  readonly day: number
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly millis: number
  readonly weekday: number
  readonly dayOfYear: number
  readonly week: number
  readonly weekYear: number
}

function fieldsOf(micros: bigint): Fields {
  const date = new Date(Number(micros / 1000n))
  const year = date.getUTCFullYear()
  const weekday = date.getUTCDay()
  const startOfYear = Date.UTC(2000, 0, 1)
  const first = new Date(startOfYear)
  first.setUTCFullYear(year)
  const dayOfYear = Math.floor((date.getTime() - first.getTime()) / 86_400_000) + 1
  // ISO: a week belongs to the year of its Thursday.
  const thursday = new Date(date.getTime() + (4 - (weekday === 0 ? 7 : weekday)) * 86_400_000)
  const weekYear = thursday.getUTCFullYear()
  const firstOfWeekYear = new Date(startOfYear)
  firstOfWeekYear.setUTCFullYear(weekYear)
  const week = Math.floor((thursday.getTime() - firstOfWeekYear.getTime()) / 604_800_000) + 1
  return {
    year,
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    hour: date.getUTCHours(),
    minute: date.getUTCMinutes(),
    second: date.getUTCSeconds(),
    millis: date.getUTCMilliseconds(),
    weekday,
    dayOfYear,
    week,
    weekYear,
  }
}

function pad(value: number, digits: number): string {
  return (value < 0 ? '-' : '') + String(Math.abs(value)).padStart(digits, '0')
}

const hour12 = (hour: number): number => ((hour + 11) % 12) + 1

/** date_format for formats that are known only at run time. */
export function formatMysql(micros: bigint, _zone: string, _offset: bigint, given: string): string {
  const format = mysqlFormat(given)
  if (format === '') throw invalidArgument(EMPTY_FORMAT.date_format)
  const f = fieldsOf(micros)
  return format.replaceAll(/%([^])/g, (_all, letter: string) => {
    switch (letter) {
      case 'a':
        return weekdayNames[f.weekday]!.slice(0, 3)
      case 'b':
        return monthNames[f.month - 1]!.slice(0, 3)
      case 'c':
        return String(f.month)
      case 'd':
        return pad(f.day, 2)
      case 'e':
        return String(f.day)
      case 'f':
        return `${pad(f.millis, 3)}000`
      case 'H':
        return pad(f.hour, 2)
      case 'h':
      case 'I':
        return pad(hour12(f.hour), 2)
      case 'i':
        return pad(f.minute, 2)
      case 'j':
        return pad(f.dayOfYear, 3)
      case 'k':
        return String(f.hour)
      case 'l':
        return String(hour12(f.hour))
      case 'M':
        return monthNames[f.month - 1]!
      case 'm':
        return pad(f.month, 2)
      case 'p':
        return f.hour < 12 ? 'AM' : 'PM'
      case 'r':
        return `${pad(hour12(f.hour), 2)}:${pad(f.minute, 2)}:${pad(f.second, 2)} ${f.hour < 12 ? 'AM' : 'PM'}`
      case 'S':
      case 's':
        return pad(f.second, 2)
      case 'T':
        return `${pad(f.hour, 2)}:${pad(f.minute, 2)}:${pad(f.second, 2)}`
      case 'v':
        return pad(f.week, 2)
      case 'W':
        return weekdayNames[f.weekday]!
      case 'x':
        return pad(f.weekYear, 4)
      case 'Y':
        return pad(f.year, 4)
      case 'y':
        return pad(Math.abs(f.year) % 100, 2)
      case 'D':
      case 'U':
      case 'u':
      case 'V':
      case 'w':
      case 'X':
        throw invalidArgument(`%${letter} not supported in date format string`)
      default:
        return letter
    }
  })
}

/** format_datetime for formats that are known only at run time, and for names of zones. */
export function formatDateTime(micros: bigint, zone: string, offset: bigint, format: string): string {
  if (format === '') throw invalidArgument(EMPTY_FORMAT.format_datetime)
  const local: LocalTime = {
    fields: fieldsOf(micros),
    zone,
    offsetMinutes: Number(offset),
    millis: Number(micros / 1000n),
  }
  return format.replaceAll(
    /''|'((?:[^']|'')*)'|([A-Za-z])\2*/g,
    (part, quoted: string | undefined, letter: string | undefined) => {
      if (part === "''") return "'"
      if (letter === undefined) return (quoted ?? '').replaceAll("''", "'")
      if (zone === '' && (letter === 'z' || letter === 'Z')) {
        throw invalidArgument(
          "format_datetime for TIMESTAMP type, cannot use 'Z' nor 'z' in format, as this type does not contain TZ information",
        )
      }
      return field(letter, part.length, local)
    },
  )
}

/** A moment as the local time of its zone. */
interface LocalTime {
  readonly fields: Fields
  readonly zone: string
  readonly offsetMinutes: number
  /** Local milliseconds, as if the local time were UTC. */
  readonly millis: number
}

function field(letter: string, count: number, { fields: f, zone, offsetMinutes, millis }: LocalTime): string {
  const era = f.year <= 0 ? 1 - f.year : f.year
  switch (letter) {
    case 'G':
      return f.year > 0 ? 'AD' : 'BC'
    case 'C':
      return pad(Math.trunc(era / 100), count)
    case 'Y':
      return count === 2 ? pad(era % 100, 2) : pad(era, count)
    case 'y':
      return count === 2 ? pad(Math.abs(f.year) % 100, 2) : pad(f.year, count)
    case 'x':
      return count === 2 ? pad(Math.abs(f.weekYear) % 100, 2) : pad(f.weekYear, count)
    case 'w':
      return pad(f.week, count)
    case 'e':
      return pad(f.weekday === 0 ? 7 : f.weekday, count)
    case 'E':
      return count >= 4 ? weekdayNames[f.weekday]! : weekdayNames[f.weekday]!.slice(0, 3)
    case 'D':
      return pad(f.dayOfYear, count)
    case 'M':
      return count >= 4
        ? monthNames[f.month - 1]!
        : count === 3
          ? monthNames[f.month - 1]!.slice(0, 3)
          : pad(f.month, count)
    case 'd':
      return pad(f.day, count)
    case 'a':
      return f.hour < 12 ? 'AM' : 'PM'
    case 'K':
      return pad(f.hour % 12, count)
    case 'h':
      return pad(hour12(f.hour), count)
    case 'H':
      return pad(f.hour, count)
    case 'k':
      return pad(((f.hour + 23) % 24) + 1, count)
    case 'm':
      return pad(f.minute, count)
    case 's':
      return pad(f.second, count)
    case 'S':
      return pad(f.millis, 3).padEnd(count, '0').slice(0, count)
    case 'z':
      return zoneName(zone, millis - offsetMinutes * 60_000, count >= 4)
    case 'Z':
      return count >= 3 ? zone || 'UTC' : offsetText(offsetMinutes, count === 2)
    default:
      throw invalidArgument(`Illegal pattern component: ${letter.repeat(count)}`)
  }
}

function offsetText(minutes: number, colon: boolean): string {
  const size = Math.abs(minutes)
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60), 2)}${colon ? ':' : ''}${pad(size % 60, 2)}`
}

/** The name of a zone at an instant: `CET`, `Central European Time`. */
export function zoneName(zone: string, millis: number, long: boolean): string {
  if (/^[+-]/.test(zone)) return zone
  const style = long ? 'long' : 'short'
  if (long) return namedIn('en-US', zone, millis, style)
  // Java knows the short names of all regions; in ICU each language knows only the short names of its own region.
  for (const language of SHORT_NAMES_IN) {
    const name = namedIn(language, zone, millis, style)
    if (/^[A-Z]{2,5}$/.test(name) && !name.startsWith('LH')) return name
  }
  const [, sign, hours, minutes = '00'] =
    /^GMT([+-])(\d+)(?::(\d\d))?/.exec(namedIn('en-US', zone, millis, style)) ?? []
  return hours === undefined ? zone : (COMMON_NAMES[zone] ?? `GMT${sign}${hours.padStart(2, '0')}:${minutes}`)
}

const SHORT_NAMES_IN = ['en-US', 'en-GB', 'en-AU', 'en-NZ', 'en-IN', 'en-ZA', 'ja-JP'] as const

/** Short names that no language in ICU has. */
const COMMON_NAMES: Readonly<Record<string, string>> = {
  'Asia/Shanghai': 'CST',
  'Asia/Hong_Kong': 'HKT',
  'Asia/Seoul': 'KST',
  'Asia/Manila': 'PST',
  'Asia/Karachi': 'PKT',
  'Asia/Jakarta': 'WIB',
  'Europe/Moscow': 'MSK',
}

/** At most one for each zone, language and style; making one takes a tenth of a millisecond. */
const formats = new Map<string, Intl.DateTimeFormat>()

function namedIn(language: string, zone: string, millis: number, timeZoneName: 'long' | 'short'): string {
  const key = `${language} ${timeZoneName} ${zone}`
  let format = formats.get(key)
  if (format === undefined) {
    format = new Intl.DateTimeFormat(language, { timeZone: zone || 'UTC', timeZoneName })
    formats.set(key, format)
  }
  const parts = format.formatToParts(millis)
  return parts.find((part) => part.type === 'timeZoneName')?.value ?? zone
}
