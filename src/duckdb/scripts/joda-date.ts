import { daysFromCivil, daysInMonth } from '../datetime-text.ts'

/** Fields of a date from a text, each in its own range. */
export interface DateFields {
  readonly year?: number | undefined
  readonly weekYear?: number | undefined
  readonly month?: number | undefined
  readonly week?: number | undefined
  readonly dayOfYear?: number | undefined
  readonly day?: number | undefined
  readonly weekday?: number | undefined
}

interface Setter {
  /** The day with that value of the field; undefined when there is none. */
  readonly set: (days: number, value: number) => number | undefined
  /** The first day with the same value of the field and of all larger fields. */
  readonly floor: (days: number) => number
}

const DAY = 86_400_000

function civil(days: number): { readonly year: number; readonly month: number; readonly day: number } {
  const date = new Date(days * DAY)
  return { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() }
}

/** Monday is 1. */
const weekdayOf = (days: number): number => ((((days + 3) % 7) + 7) % 7) + 1
const monday = (days: number): number => days - weekdayOf(days) + 1
const firstOfWeekYear = (year: number): number => monday(daysFromCivil(year, 1, 4))
const weekYearOf = (days: number): number => civil(monday(days) + 3).year
const weekOf = (days: number): number => (monday(days) - firstOfWeekYear(weekYearOf(days))) / 7 + 1
const within = (value: number, most: number): boolean => value >= 1 && value <= most
const same = (days: number): number => days

function on(year: number, month: number, day: number): number {
  return daysFromCivil(year, month, Math.min(day, daysInMonth(year, month)))
}

/**
 * In the order in which Joda sets them: fields with a longer range first; of fields with the same range, the longer
 * field first.
 */
const setters: readonly (readonly [keyof DateFields, Setter])[] = [
  [
    'year',
    {
      set: (days, year) => on(year, civil(days).month, civil(days).day),
      floor: (days) => daysFromCivil(civil(days).year, 1, 1),
    },
  ],
  [
    'weekYear',
    {
      set: (days, year) => firstOfWeekYear(year) + (weekOf(days) - 1) * 7 + weekdayOf(days) - 1,
      floor: (days) => firstOfWeekYear(weekYearOf(days)),
    },
  ],
  [
    'month',
    {
      set: (days, month) => (within(month, 12) ? on(civil(days).year, month, civil(days).day) : undefined),
      floor: (days) => days - civil(days).day + 1,
    },
  ],
  [
    'week',
    {
      set(days, week) {
        const year = weekYearOf(days)
        const weeks = (firstOfWeekYear(year + 1) - firstOfWeekYear(year)) / 7
        return within(week, weeks) ? days + (week - weekOf(days)) * 7 : undefined
      },
      floor: monday,
    },
  ],
  [
    'dayOfYear',
    {
      set(days, day) {
        const first = daysFromCivil(civil(days).year, 1, 1)
        return within(day, daysFromCivil(civil(days).year + 1, 1, 1) - first) ? first + day - 1 : undefined
      },
      floor: same,
    },
  ],
  [
    'day',
    {
      set(days, day) {
        const { year, month } = civil(days)
        return within(day, daysInMonth(year, month)) ? daysFromCivil(year, month, day) : undefined
      },
      floor: same,
    },
  ],
  ['weekday', { set: (days, day) => (within(day, 7) ? monday(days) + day - 1 : undefined), floor: same }],
]

/**
 * Days since 1970 by Joda's method. From 1970-01-01 on each field is set, and smaller fields are reset. Then each field
 * is set again, and fields smaller than the last one are reset. Without a year, fields are those of 2000. Undefined if
 * a field is out of its range.
 */
export function dateOf(fields: DateFields): number | undefined {
  const isDate = setters.some(([name]) => fields[name] !== undefined)
  const yearless = isDate && fields.year === undefined && fields.weekYear === undefined
  const known: DateFields = yearless ? { ...fields, year: 2000 } : fields
  const given = setters.filter(([name]) => known[name] !== undefined)
  let days: number | undefined = 0
  for (const [name, { set, floor }] of given) {
    days = set(days, known[name]!)
    if (days === undefined) return undefined
    days = floor(days)
  }
  for (const [at, [name, { set, floor }]] of given.entries()) {
    days = set(days, known[name]!)
    if (days === undefined) return undefined
    if (at === given.length - 1) days = floor(days)
  }
  return days
}
