/** The format of a number, from a specifier of java.util.Formatter. */
export interface NumberStyle {
  readonly flags: string
  readonly width: number | undefined
  /** Digits behind the point, or all digits for `g`; undefined: six. */
  readonly precision: number | undefined
  /** `f`, `e` or `g` */
  readonly conversion: string
}

/** Formats a decimal from its SQL text: zero has an exponent from the scale, like a BigDecimal. */
export function decimalNumber(text: string, style: NumberStyle): string {
  const scale = text.split('.')[1]?.length ?? 0
  if (scale === 0 || style.conversion === 'f' || parts(text).digits !== 0n) return floating(text, style)
  const { flags, precision = 6, conversion } = style
  const digits = conversion === 'e' ? precision : Math.max(0, precision - 1)
  return signed(scientific('0', digits, flags, -scale), false, style)
}

/** Formats a floating-point number or decimal from the text of Java or SQL. */
export function floating(text: string, style: NumberStyle): string {
  const { conversion, flags, precision = 6 } = style
  const negative = text.startsWith('-')
  const plain = negative ? text.slice(1) : text
  if (/NaN|Infinity/.test(text)) {
    return text === 'NaN' ? text : signed(plain, negative, { ...style, flags: flags.replace('0', '') })
  }
  switch (conversion) {
    case 'f':
      return signed(grouped(withPoint(fixed(plain, precision), flags), flags), negative, style)
    case 'e':
      return signed(scientific(plain, precision, flags), negative, style)
    default: {
      const digits = precision === 0 ? 1 : precision
      const exponent = exponentOf(plain, digits)
      const body =
        exponent !== undefined && (exponent < -4 || exponent >= digits)
          ? scientific(plain, digits - 1, flags)
          : fixed(plain, Math.max(0, digits - 1 - (exponent ?? 0)))
      return signed(grouped(body, flags), negative, style)
    }
  }
}

/** Formats a whole number, given without its sign. */
export function wholeNumber(digits: string, negative: boolean, style: NumberStyle): string {
  return signed(grouped(digits, style.flags), negative, style)
}

/** The digits, and the power of ten of the last digit: 1.25e3 is 125 and 1. */
function parts(text: string): { readonly digits: bigint; readonly power: number } {
  const [mantissa = '', exponent = '0'] = text.split(/e/i)
  const [whole = '', fraction = ''] = mantissa.split('.')
  return { digits: BigInt(whole + fraction), power: Number(exponent) - fraction.length }
}

/** The exponent of the first digit after rounding to a number of digits; undefined for zero. */
function exponentOf(text: string, digits: number): number | undefined {
  return rounded(text, digits)?.exponent
}

/** Rounds half up to a number of digits; exact for any number, and undefined for zero. */
function rounded(text: string, digits: number): { readonly digits: string; readonly exponent: number } | undefined {
  const { digits: all, power } = parts(text)
  if (all === 0n) return undefined
  const length = all.toString().length
  const exponent = power + length - 1
  if (length <= digits) return { digits: all.toString().padEnd(digits, '0'), exponent }
  const unit = 10n ** BigInt(length - digits)
  const kept = ((all + unit / 2n) / unit).toString()
  return kept.length > digits ? { digits: kept.slice(0, -1), exponent: exponent + 1 } : { digits: kept, exponent }
}

function scientific(text: string, precision: number, flags: string, ofZero = 0): string {
  const { digits, exponent } = rounded(text, precision + 1) ?? { digits: '0'.repeat(precision + 1), exponent: ofZero }
  const mantissa = precision === 0 ? digits : `${digits[0]}.${digits.slice(1)}`
  return `${withPoint(mantissa, flags)}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`
}

/** Rounds half up, like Formatter; exact for any number of digits. */
function fixed(text: string, precision: number): string {
  const { digits, power } = parts(text)
  const scale = -power
  let all = digits
  if (scale > precision) {
    const unit = 10n ** BigInt(scale - precision)
    all = (all + unit / 2n) / unit
  } else all *= 10n ** BigInt(precision - scale)
  const out = all.toString().padStart(precision + 1, '0')
  return precision === 0 ? out : `${out.slice(0, -precision)}.${out.slice(-precision)}`
}

function withPoint(text: string, flags: string): string {
  return flags.includes('#') && !text.includes('.') ? `${text}.` : text
}

function grouped(text: string, flags: string): string {
  if (!flags.includes(',')) return text
  const [whole = '', fraction] = text.split('.')
  const groups = whole.replaceAll(/\B(?=(\d{3})+$)/g, ',')
  return fraction === undefined ? groups : `${groups}.${fraction}`
}

function signed(text: string, negative: boolean, { flags, width }: NumberStyle): string {
  const parentheses = negative && flags.includes('(')
  const sign = negative ? (parentheses ? '(' : '-') : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  const end = parentheses ? ')' : ''
  const body = flags.includes('0') ? text.padStart((width ?? 0) - sign.length - end.length, '0') : text
  return sign + body + end
}
