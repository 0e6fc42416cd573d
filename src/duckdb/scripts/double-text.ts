import type { ScalarFunction } from './scalar-function.ts'

/** Java's Double.toString. */
export function javaDouble(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity'
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0'
  const size = Math.abs(value)
  if (size >= 1e-3 && size < 1e7) return Number.isInteger(value) ? `${value}.0` : String(value)
  return shifted(value)
}

/** With an exponent. The smallest numbers have two digits, unless the second would be a zero. */
function shifted(value: number): string {
  const hasTwo = Math.abs(value) < 1e-320 && Number(value.toExponential(1)) === value
  const [mantissa = '', exponent = '0'] = (hasTwo ? value.toExponential(1) : value.toExponential()).split('e')
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${Number(exponent)}`
}

/** `1.5E0`: CAST(double AS varchar). */
export function sqlDouble(value: number): string {
  if (!Number.isFinite(value)) return javaDouble(value)
  if (value === 0) return Object.is(value, -0) ? '-0E0' : '0E0'
  const size = Math.abs(value)
  if (size < 2 ** 53 || size >= 2 ** 63) return hasDigitsOfItsOwn(size) ? decimalFormatText(value) : shifted(value)
  // All digits of a whole number, except one or two insignificant ones.
  const insignificant = size < 2 ** 58 ? 0n : size < 2 ** 61 ? 1n : 2n
  const digits = String((BigInt(size) + 10n ** insignificant / 2n) / 10n ** insignificant)
  return scientific(value, digits, digits.length - 1 + Number(insignificant))
}

/** `1.5E0` from the digits `1500` and the exponent of the first digit. */
function scientific(value: number, digits: string, exponent: number): string {
  const rest = digits.slice(1).replace(/0+$/, '')
  return `${value < 0 ? '-' : ''}${digits[0]}.${rest === '' ? '0' : rest}E${exponent}`
}

/**
 * The digits of a double that `java.text.DecimalFormat` writes, which Trino uses for casts of doubles to varchar. They
 * are those of Java before 19 (`jdk.internal.math.FloatingDecimal`, after Steele and White): not always the shortest
 * ones for powers of two, for the smallest numbers, and where the shortest lie exactly between two doubles.
 * @param value finite, not 0, and not from 2^53 to 2^63, where Java uses whole numbers
 * @returns `1.9999999999999998E23`
 */
function decimalFormatText(value: number): string {
  const { digits, exponent } = digitsOf(Math.abs(value))
  return scientific(value, digits, exponent)
}

/** Whether these digits may differ from the shortest ones. */
function hasDigitsOfItsOwn(size: number): boolean {
  return size < SMALLEST_NORMAL || (size >= 2 ** 63 && size < 1e41) || Number.isInteger(Math.log2(size))
}

const SMALLEST_NORMAL = 2 ** -1022
const view = new DataView(new ArrayBuffer(8))

/** `fraction` times two to the power of `exponent - 52`; the highest bit of `fraction` is the 53rd. */
function partsOf(size: number): { readonly fraction: bigint; readonly exponent: number; readonly significant: number } {
  view.setFloat64(0, size)
  const bits = view.getBigUint64(0)
  const [biased, low] = [Number(bits >> 52n), bits & ((1n << 52n) - 1n)]
  if (biased > 0) return { fraction: low | (1n << 52n), exponent: biased - 1023, significant: 53 }
  const significant = low.toString(2).length
  return { fraction: low << BigInt(53 - significant), exponent: significant - 53 - 1022, significant }
}

const power = (base: bigint, exponent: number): bigint => base ** BigInt(Math.max(0, exponent))
const bitsOfPowerOfFive = (n: number): number => (n === 0 ? 0 : n < 27 ? power(5n, n).toString(2).length : 3 * n)

function digitsOf(size: number): { readonly digits: string; readonly exponent: number } {
  const { fraction, exponent: binary, significant } = partsOf(size)
  const trailing = /0*$/.exec(fraction.toString(2))![0].length
  const fractionBits = 53 - trailing
  const tiny = Math.max(0, fractionBits - binary - 1)
  let exponent = estimate(fraction, binary)
  // value = b / s * 10^exponent, and m is half of the distance to the next double, on the scale of b.
  const fives = Math.max(0, -exponent)
  let b2 = fives + tiny + binary
  let s2 = Math.max(0, exponent) + tiny
  let m2 = b2 - significant
  b2 -= fractionBits - 1
  const common = Math.min(b2, s2)
  ;[b2, s2, m2] = [b2 - common, s2 - common, m2 - common - (fractionBits === 1 ? 1 : 0)]
  if (m2 < 0) [b2, s2, m2] = [b2 - m2, s2 - m2, 0]
  const bigs = [fractionBits + b2 + bitsOfPowerOfFive(fives), s2 + 1 + bitsOfPowerOfFive(Math.max(0, exponent) + 1)]
  // Java compares large numbers with another function, which includes the boundary.
  const counted = bigs.some((bits) => bits >= 64) ? 0n : 1n
  let b = (fraction >> BigInt(trailing)) * power(5n, fives) * power(2n, b2)
  const s = power(5n, exponent) * power(2n, s2)
  let m = power(5n, fives) * power(2n, m2)
  const tens = 10n * s
  let [digits, low, high] = ['', false, false]
  const step = (): bigint => {
    const digit = b / s
    b = 10n * (b % s)
    m *= 10n
    ;[low, high] = [b < m, b + m >= tens + counted]
    return digit
  }
  const first = step()
  if (first === 0n && !high) exponent--
  else digits = String(first)
  if (exponent < -3 || exponent >= 8) [low, high] = [false, false]
  while (!low && !high) digits += String(step())
  const isOdd = Number(digits.at(-1)) % 2 === 1
  const isUp = high && (!low || 2n * b > tens || (2n * b === tens && isOdd))
  if (!isUp) return { digits, exponent }
  const rounded = String(BigInt(digits) + 1n)
  return { digits: rounded, exponent: exponent + rounded.length - digits.length }
}

/** An estimate of the decimal exponent: right, or one too high. */
function estimate(fraction: bigint, binary: number): number {
  const mantissa = Number(fraction) / 2 ** 52
  return Math.floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + binary * 0.301029995663981)
}

export const doubleTextScripts: readonly ScalarFunction[] = [
  { name: 'u_double_text', parameters: ['DOUBLE'], returns: 'VARCHAR', call: sqlDouble },
  { name: 'u_java_double', parameters: ['DOUBLE'], returns: 'VARCHAR', call: javaDouble },
]
