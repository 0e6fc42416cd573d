const NANOS: Record<string, number> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9, d: 86_400e9 }
const BYTES: Record<string, number> = { B: 1, kB: 1024, MB: 1024 ** 2, GB: 1024 ** 3, TB: 1024 ** 4 }

function parsed(text: string, units: Record<string, number>): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([a-zA-Z]+)$/.exec(text) ?? []
  const factor = unit !== undefined && Object.hasOwn(units, unit) ? units[unit] : undefined
  return number === undefined || factor === undefined ? undefined : Number(number) * factor
}

/** Nanoseconds of a duration as the REST interface writes it, `1.50ms`; undefined for any other text. */
export function nanosOf(duration: string): number | undefined {
  return parsed(duration, NANOS)
}

/** Bytes of a size as the REST interface writes it, `22.50kB`; undefined for any other text. */
export function bytesOf(size: string): number | undefined {
  return parsed(size, BYTES)
}

/** A duration in the largest unit that leaves a number of at least 1: `1.5 ms`, `2 min 5 s`, `3 d 4 h`. */
export function shownDuration(nanos: number): string {
  if (nanos < 1) return '0 s'
  // A number that is rounded up to the next unit has that unit.
  if (nanos >= 59.95e9) return shownMinutes(nanos)
  const [unit, factor] = (Object.entries(NANOS) as [string, number][])
    .filter(([name]) => name !== 'm' && name !== 'h' && name !== 'd')
    .findLast(([, size]) => nanos >= 0.99995 * size) ?? ['ns', 1]
  return `${rounded(nanos / factor)} ${unit === 'us' ? 'µs' : unit}`
}

function shownMinutes(nanos: number): string {
  const seconds = Math.round(nanos / 1e9)
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor((seconds % 3600) / 60)
  if (hours >= 48) return `${Math.floor(hours / 24)} d ${hours % 24} h`
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${seconds % 60} s`
}

/** A size in units of 1,024: `21.8 MB`. */
export function shownSize(bytes: number): string {
  const [unit, factor] = Object.entries(BYTES).findLast(([, size]) => bytes >= size) ?? ['B', 1]
  return `${rounded(bytes / factor)} ${unit}`
}

function rounded(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: value < 10 ? 2 : 1 })
}

/** A cost of the REST interface. */
export interface Priced {
  readonly cost?: number | undefined
  readonly currency?: string | undefined
}

/** A cost with its currency: `0.00123 EUR`; empty without prices. */
export function shownCost({ cost, currency }: Priced): string {
  if (cost === undefined || currency === undefined) return ''
  return `${shownAmount(cost)} ${currency}`
}

/** An amount of money: with two digits after the point from 1 on, else with three significant digits. */
export function shownAmount(amount: number): string {
  const digits = amount >= 1 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumSignificantDigits: 3 }
  return amount.toLocaleString('en', digits)
}

/** A count with separators of thousands. */
export function shownCount(count: number): string {
  return count.toLocaleString('en')
}

/** A count, or `?` where it is unknown. */
export function shownOrUnknown(count: number | undefined): string {
  return count === undefined ? '?' : shownCount(count)
}

/**
 * A count with the word for what it counts: `1 row`, `1,200 rows`; `? rows` where it is unknown.
 * @param one the word in the singular
 */
export function countedAs(count: number | undefined, one: string): string {
  const many = one.endsWith('y') ? `${one.slice(0, -1)}ies` : `${one}s`
  return `${shownOrUnknown(count)} ${count === 1 ? one : many}`
}

/** A duration or a size of the REST interface in a unit that people read; any other text as it is. */
export function shownText(text: string): string {
  const nanos = nanosOf(text)
  if (nanos !== undefined) return shownDuration(nanos)
  const bytes = bytesOf(text)
  return bytes === undefined ? text : shownSize(bytes)
}
