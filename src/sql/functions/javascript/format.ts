import { invalidArgument, type ScalarFunction } from './scalar-function.ts'

interface Value {
  /** What the value is: `integer`, `double`, `decimal`, `boolean`, `varchar`, `date` … */
  readonly k: string
  readonly v: string | null
}

const SPECIFIER =
  /%(?:(?<index>\d+)\$|(?<same><))?(?<flags>[-#+ 0,(]*)(?<width>\d+)?(?:\.(?<precision>\d+))?(?<conversion>[a-zA-Z%])/g

/** One place of a pattern: `%-10.2f`. */
interface Specifier {
  /** The whole pattern, for messages. */
  readonly pattern: string
  readonly flags: string
  readonly width: string | undefined
  readonly precision: number | undefined
  /** In lower case. */
  readonly conversion: string
}

/** java.util.Formatter, as far as SQL values reach. */
function format(pattern: string, json: string): string {
  const values = JSON.parse(json) as Value[]
  let next = 0
  let last = -1
  const rest = pattern.replaceAll(SPECIFIER, '')
  if (rest.includes('%')) throw illegal(pattern, `UnknownFormatConversion: Conversion = '%'`)
  return pattern.replaceAll(SPECIFIER, (...match) => {
    const {
      index,
      same,
      flags = '',
      width,
      precision,
      conversion = '',
    } = match.at(-1) as Partial<Record<string, string>>
    if (conversion === '%') return pad('%', flags, width)
    if (conversion === 'n') return '\n'
    if (!/[sSdfeEgGxXocCbBhH]/.test(conversion)) {
      throw illegal(pattern, `UnknownFormatConversion: Conversion = '${conversion}'`)
    }
    last = index !== undefined ? Number(index) - 1 : same !== undefined ? last : next++
    const value = values[last]
    if (value === undefined) throw illegal(pattern, `MissingFormatArgument: Format specifier '${match[0]}'`)
    const text = convert(value, {
      pattern,
      flags,
      width,
      precision: precision === undefined ? undefined : Number(precision),
      conversion: conversion.toLowerCase(),
    })
    return pad(/[A-Z]/.test(conversion) ? text.toUpperCase() : text, flags, width)
  })
}

function illegal(pattern: string, why: string): Error {
  return invalidArgument(`Invalid format string: ${pattern} (${why})`)
}

function pad(text: string, flags: string, width: string | undefined): string {
  const length = Number(width ?? 0)
  return flags.includes('-') ? text.padEnd(length) : text.padStart(length)
}

const javaClass: Readonly<Record<string, string>> = {
  integer: 'java.lang.Long',
  double: 'java.lang.Double',
  decimal: 'java.math.BigDecimal',
  boolean: 'java.lang.Boolean',
  date: 'java.time.LocalDate',
  timestamp: 'java.time.LocalDateTime',
  time: 'java.time.LocalTime',
}

function convert(value: Value, specifier: Specifier): string {
  const { pattern, flags, width, precision, conversion } = specifier
  const mismatch = (): Error =>
    illegal(pattern, `IllegalFormatConversion: ${conversion} != ${javaClass[value.k] ?? 'java.lang.String'}`)
  if (conversion === 'b') return value.v === null ? 'false' : value.k === 'boolean' ? value.v : 'true'
  if (value.v === null) return 'null'
  switch (conversion) {
    case 's':
      return precision === undefined ? value.v : value.v.slice(0, precision)
    case 'd':
      if (value.k !== 'integer') throw mismatch()
      return signed(grouped(value.v.replace('-', ''), flags), value.v.startsWith('-'), flags, width)
    case 'x':
    case 'o': {
      if (value.k !== 'integer') throw mismatch()
      const digits = BigInt.asUintN(64, BigInt(value.v)).toString(conversion === 'x' ? 16 : 8)
      const prefix = flags.includes('#') ? (conversion === 'x' ? '0x' : '0') : ''
      return flags.includes('0') ? prefix + digits.padStart(Number(width ?? 0) - prefix.length, '0') : prefix + digits
    }
    case 'c':
      if (value.k !== 'integer') throw mismatch()
      return String.fromCodePoint(Number(value.v))
    case 'h':
      return hash(value.v)
    default:
      if (value.k !== 'double' && value.k !== 'decimal') throw mismatch()
      return floating(value.v, specifier)
  }
}

function floating(text: string, { conversion, flags, precision = 6, width }: Specifier): string {
  if (/NaN|Infinity/.test(text)) return text
  const negative = text.startsWith('-')
  const plain = text.replace('-', '')
  const size = Number(plain)
  switch (conversion) {
    case 'f':
      return signed(grouped(fixed(plain, precision), flags), negative, flags, width)
    case 'e':
      return signed(scientific(size, precision), negative, flags, width)
    default: {
      const digits = precision === 0 ? 1 : precision
      const rounded = Number(size.toPrecision(digits))
      const body =
        rounded !== 0 && (rounded < 1e-4 || rounded >= 10 ** digits)
          ? scientific(size, digits - 1)
          : fixed(plain, Math.max(0, digits - 1 - (rounded === 0 ? 0 : Math.floor(Math.log10(rounded)))))
      return signed(grouped(body, flags), negative, flags, width)
    }
  }
}

function scientific(value: number, digits: number): string {
  const [mantissa = '', exponent = '0'] = value.toExponential(digits).split('e')
  const power = Number(exponent)
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

/** Rounds the decimal writing of a number half up, as Formatter does; exact for any number of digits. */
function fixed(text: string, digits: number): string {
  const [mantissa = '', exponent = '0'] = text.split(/e/i)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const shift = Number(exponent)
  let all = BigInt(whole + fraction)
  const scale = fraction.length - shift
  if (scale > digits) {
    const unit = 10n ** BigInt(scale - digits)
    all = (all + unit / 2n) / unit
  } else all *= 10n ** BigInt(digits - scale)
  const out = all.toString().padStart(digits + 1, '0')
  return digits === 0 ? out : `${out.slice(0, -digits)}.${out.slice(-digits)}`
}

function grouped(text: string, flags: string): string {
  if (!flags.includes(',')) return text
  const [whole = '', fraction] = text.split('.')
  const groups = whole.replaceAll(/\B(?=(\d{3})+$)/g, ',')
  return fraction === undefined ? groups : `${groups}.${fraction}`
}

function signed(text: string, negative: boolean, flags: string, width: string | undefined): string {
  const parentheses = negative && flags.includes('(')
  const sign = negative ? (parentheses ? '(' : '-') : flags.includes('+') ? '+' : flags.includes(' ') ? ' ' : ''
  const end = parentheses ? ')' : ''
  const body = flags.includes('0') ? text.padStart(Number(width ?? 0) - sign.length - end.length, '0') : text
  return sign + body + end
}

/** String.hashCode in hexadecimal. */
function hash(text: string): string {
  let value = 0
  for (let i = 0; i < text.length; i++) value = (Math.imul(31, value) + text.charCodeAt(i)) | 0
  return (value >>> 0).toString(16)
}

export const formatFunctions: readonly ScalarFunction[] = [
  { name: 'u_format', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: format },
]
