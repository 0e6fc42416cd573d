const UNITS: readonly (readonly [string, number])[] = [
  ['ns', 1],
  ['us', 1e3],
  ['ms', 1e6],
  ['s', 1e9],
  ['m', 60e9],
]

/**
 * A duration as the REST interface writes it: two decimals and the largest unit of ns, us, ms, s, m that keeps the
 * number at 1 or above (`1.50ms`, `42.00s`, `90.00m`); zero is `0.00ns`.
 * @param nanos nanoseconds, not negative
 */
export function formatDuration(nanos: number): string {
  let chosen = UNITS[0]!
  for (const unit of UNITS) if (nanos >= unit[1]) chosen = unit
  return `${(nanos / chosen[1]).toFixed(2)}${chosen[0]}`
}

/**
 * A size as the REST interface writes it: plain bytes below 1 kB (`512B`), else kilobytes with two decimals (`1.50kB`);
 * 1 kB is 1024 bytes, as in the Presto family.
 */
export function formatSize(bytes: number): string {
  return bytes < 1024 ? `${Math.round(bytes)}B` : `${(bytes / 1024).toFixed(2)}kB`
}
