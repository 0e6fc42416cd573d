/** A duration or a size of data as Trino's properties and files have it, and as its messages show it. */
export interface Quantity {
  /** Nanoseconds or bytes, without an upper limit. */
  readonly amount: number
  readonly shown: string
}

/**
 * Reads and shows a duration as airlift's `Duration` does: `5m` is shown as `5.00m`. Undefined if the text is no
 * duration.
 */
export function durationOf(text: string): Quantity | undefined {
  const parts = partsOf(text)
  const nanos = parts && NANOS.get(parts.unit)
  if (!parts || nanos === undefined) return undefined
  return { amount: parts.value * nanos, shown: `${parts.value.toFixed(2)}${parts.unit}` }
}

/**
 * Reads and shows a size as airlift's `DataSize` does: whole numbers have no fraction. Undefined if the text is no
 * size.
 */
export function dataSizeOf(text: string): Quantity | undefined {
  const parts = partsOf(text)
  const exponent = parts ? SIZES.indexOf(parts.unit) : -1
  if (!parts || exponent < 0) return undefined
  const { value, unit } = parts
  return {
    amount: Math.round(value * 1024 ** exponent),
    shown: Number.isInteger(value) ? `${value}${unit}` : `${value.toFixed(2)}${unit}`,
  }
}

/** A duration in milliseconds; undefined if the text is no duration. */
export function durationMillis(text: string): number | undefined {
  const duration = durationOf(text)
  return duration && duration.amount / 1e6
}

/** A size in bytes; undefined if the text is no size. */
export function sizeBytes(text: string): number | undefined {
  return dataSizeOf(text)?.amount
}

/** A size in the largest unit that divides it evenly. */
export function sizeOfBytes(bytes: number): Quantity {
  const exponent = SIZES.findLastIndex((_, index) => bytes > 0 && bytes % 1024 ** index === 0)
  const unit = Math.max(0, exponent)
  return { amount: bytes, shown: `${bytes / 1024 ** unit}${SIZES[unit]}` }
}

/** A size for readers, in the largest unit of which it has at least one, rounded: `1.52MB`. */
export function roundSize(bytes: number): string {
  const unit = SIZES.findLastIndex((_, index) => bytes >= 1024 ** index)
  return unit <= 0 ? `${bytes}B` : `${(bytes / 1024 ** unit).toFixed(2)}${SIZES[unit]}`
}

/** A duration in the largest unit of which it has at least one. */
export function durationOfMillis(millis: number): Quantity {
  const amount = millis * 1e6
  const [unit, nanos] = [...NANOS].findLast(([, each]) => amount >= each) ?? ['ms', 1e6]
  return { amount, shown: `${(amount / nanos).toFixed(2)}${unit}` }
}

const NANOS: ReadonlyMap<string, number> = new Map([
  ['ns', 1],
  ['us', 1e3],
  ['ms', 1e6],
  ['s', 1e9],
  ['m', 60e9],
  ['h', 3600e9],
  ['d', 86_400e9],
])

const SIZES: readonly string[] = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB']

function partsOf(text: string): { readonly value: number; readonly unit: string } | undefined {
  const [, digits, unit] = /^[\t-\r ]*(\d+(?:\.\d+)?)[\t-\r ]*([A-Za-z]+)[\t-\r ]*$/.exec(text) ?? []
  const value = Number(digits)
  return digits === undefined || unit === undefined || !Number.isFinite(value) ? undefined : { value, unit }
}
