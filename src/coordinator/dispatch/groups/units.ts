const QUANTITY = /^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*$/

const MILLIS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  ms: 1,
  s: 1e3,
  m: 60e3,
  h: 3600e3,
  d: 24 * 3600e3,
}

const BYTES: Readonly<Record<string, number>> = {
  B: 1,
  kB: 2 ** 10,
  MB: 2 ** 20,
  GB: 2 ** 30,
  TB: 2 ** 40,
  PB: 2 ** 50,
  EB: 2 ** 60,
}

/** Milliseconds of a duration as Trino writes it (`1.5h`, `30s`); undefined for what is none. */
export function durationMillis(text: string): number | undefined {
  return quantity(text, MILLIS)
}

/** Bytes of a size as Trino writes it (`10GB`, `1.5kB`; 1 kB is 1024 bytes); undefined for what is none. */
export function sizeBytes(text: string): number | undefined {
  return quantity(text, BYTES)
}

function quantity(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, number, unit] = QUANTITY.exec(text) ?? []
  if (unit === undefined || !Object.hasOwn(units, unit)) return undefined
  const value = Number(number) * units[unit]!
  return Number.isFinite(value) ? value : undefined
}
