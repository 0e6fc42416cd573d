import type { JavaTime } from './format-times.ts'

/** `hashCode()` of a Java String. */
export function hashOfText(text: string): number {
  let value = 0
  for (let i = 0; i < text.length; i++) value = (Math.imul(31, value) + text.charCodeAt(i)) | 0
  return value
}

/** `hashCode()` of a Java Long. */
export function hashOfWhole(value: bigint): number {
  const bits = BigInt.asUintN(64, value)
  return Number(BigInt.asIntN(32, bits ^ (bits >> 32n)))
}

export function hashOfDouble(value: number): number {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  return hashOfWhole(view.getBigInt64(0))
}

export function hashOfFloat(value: number): number {
  const view = new DataView(new ArrayBuffer(4))
  view.setFloat32(0, value)
  return view.getInt32(0)
}

/** `hashCode()` of a BigDecimal, from its digits in words of 32 bits, and its scale. */
export function hashOfDecimal(text: string): number {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d*)\.?(\d*)$/.exec(text) ?? []
  const digits = BigInt(whole + fraction)
  let value = 0
  const words = (digits.toString(16).length + 7) >> 3
  for (let at = words - 1; at >= 0; at--)
    value = (Math.imul(31, value) + Number((digits >> BigInt(32 * at)) & 0xffffffffn)) | 0
  return (Math.imul(31, sign === '-' ? -value : value) + fraction.length) | 0
}

/** `hashCode()` of a LocalDate, a LocalTime, both, or a ZonedDateTime. */
export function hashOfTime({ date, time, zone }: JavaTime): number {
  const day = date === undefined ? 0 : (date.year & 0xfffff800) ^ ((date.year << 11) + (date.month << 6) + date.day)
  const clock = time === undefined ? 0 : hashOfWhole(nanosOfDay(time))
  const local = day ^ clock
  if (zone === undefined) return local
  const zoneHash = /^[+-]/.test(zone.id) ? zone.offsetSeconds : hashOfText(zone.id)
  return local ^ zone.offsetSeconds ^ ((zoneHash << 3) | (zoneHash >>> 29))
}

function nanosOfDay({ hour, minute, second, nanos }: NonNullable<JavaTime['time']>): bigint {
  return BigInt((hour * 60 + minute) * 60 + second) * 1_000_000_000n + BigInt(nanos)
}
