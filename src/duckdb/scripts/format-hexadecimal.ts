import { floating, type NumberStyle } from './format-numbers.ts'

const FRACTION_BITS = 52
const FRACTION = (1n << 52n) - 1n
const MIN_EXPONENT = -1022
const BIAS = 1023
/** The number of hexadecimal digits of a double's fraction. */
const DIGITS = 13

/** `%a` of java.util.Formatter: the digits and the power of two of a double, rounded half to even. */
export function hexadecimal(value: number, style: NumberStyle): string {
  if (!Number.isFinite(value)) return floating(String(value), style)
  const { flags, width = 0, precision } = style
  const negative = value < 0 || Object.is(value, -0)
  const sign = negative ? '-' : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  const digits = magnitude(Math.abs(value), precision === undefined ? undefined : Math.max(1, precision))
  const zeros = flags.includes('0') ? Math.max(0, width - digits.length - 2 - sign.length) : 0
  return `${sign}0x${'0'.repeat(zeros)}${digits}`
}

function magnitude(value: number, digits: number | undefined): string {
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  const bits = view.getBigUint64(0)
  let exponent = Number(bits >> BigInt(FRACTION_BITS)) - BIAS
  let significand = bits & FRACTION
  if (value === 0) exponent = 0
  else if (exponent >= MIN_EXPONENT) significand |= FRACTION + 1n
  else exponent = MIN_EXPONENT
  if (digits !== undefined && digits < DIGITS && value !== 0) {
    // Rounded numbers begin with 1, even subnormal ones.
    for (; significand <= FRACTION; exponent--) significand <<= 1n
    significand = rounded(significand, BigInt(4 * (DIGITS - digits)))
    if (significand > 2n * FRACTION + 1n) [significand, exponent] = [significand >> 1n, exponent + 1]
  }
  const all = (significand & FRACTION).toString(16).padStart(DIGITS, '0')
  const shown = all.replace(/0+$/, '').padEnd(digits ?? 1, '0')
  return `${significand >> BigInt(FRACTION_BITS)}.${shown}p${exponent}`
}

function rounded(significand: bigint, bits: bigint): bigint {
  const [unit, kept] = [1n << bits, significand >> bits]
  const rest = significand - kept * unit
  const up = 2n * rest > unit || (2n * rest === unit && (kept & 1n) === 1n)
  return (up ? kept + 1n : kept) * unit
}
