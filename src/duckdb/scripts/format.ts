import { hashOfDecimal, hashOfDouble, hashOfFloat, hashOfText, hashOfTime, hashOfWhole } from './java-hash.ts'
import { hexadecimal } from './format-hexadecimal.ts'
import { decimalNumber, floating, wholeNumber } from './format-numbers.ts'
import { javaText, javaTimeOf, TIME_CONVERSIONS, timeField, type JavaTime } from './format-times.ts'
import { invalidArgument, type ScalarFunction } from './scalar-function.ts'

interface Value {
  /** The type of the value: `integer`, `double`, `real`, `decimal`, `boolean`, `varchar`, `date` … */
  readonly k: string
  readonly v: string | null
}

const SPECIFIER =
  /%(?:(?<index>\d+)\$)?(?<flags>[-#+ 0,(<]*)(?<width>\d+)?(?:\.(?<precision>\d+))?(?<time>[tT])?(?<conversion>[a-zA-Z%])/g

/** A specifier in a pattern: `%-10.2f`. */
interface Specifier {
  /** The whole pattern, for messages. */
  readonly pattern: string
  /** Its text in the pattern. */
  readonly text: string
  /** Index of the argument, from 1; undefined: the next argument. */
  readonly index: string | undefined
  readonly flags: string
  readonly width: number | undefined
  readonly precision: number | undefined
  /** Whether the conversion formats a part of a date or time. */
  readonly ofTime: boolean
  /** In lower case, except for times. */
  readonly conversion: string
  readonly upperCase: boolean
}

/** java.util.Formatter, for SQL values. */
function format(pattern: string, json: string): string {
  const values = JSON.parse(json) as Value[]
  let next = 0
  let last = -1
  const rest = pattern.replaceAll(SPECIFIER, '')
  if (rest.includes('%')) throw illegal(pattern, `UnknownFormatConversion: Conversion = '%'`)
  // Java checks the whole pattern before it formats a value.
  for (const match of pattern.matchAll(SPECIFIER)) check(specifierOf(pattern, match[0], match.groups!))
  return pattern.replaceAll(SPECIFIER, (...match) => {
    const specifier = specifierOf(pattern, String(match[0]), match.at(-1) as Record<string, string | undefined>)
    const { index, flags, conversion, upperCase } = specifier
    if (conversion === '%') return padded('%', specifier)
    if (conversion === 'n' && !specifier.ofTime) return '\n'
    last = flags.includes('<') ? last : index !== undefined && index !== '0' ? Number(index) - 1 : next++
    const value = values[last]
    if (value === undefined) throw illegal(pattern, `MissingFormatArgument: Format specifier '${specifier.text}'`)
    const text = convert(value, specifier)
    return padded(upperCase ? text.toUpperCase() : text, specifier)
  })
}

function specifierOf(pattern: string, text: string, found: Record<string, string | undefined>): Specifier {
  const { index, flags = '', width, precision, time, conversion = '' } = found
  return {
    pattern,
    text,
    index,
    flags,
    width: width === undefined ? undefined : Number(width),
    precision: precision === undefined ? undefined : Number(precision),
    ofTime: time !== undefined,
    conversion: time === undefined ? conversion.toLowerCase() : conversion,
    upperCase: time === undefined ? /[A-Z]/.test(conversion) : time === 'T',
  }
}

function illegal(pattern: string, why: string): Error {
  return invalidArgument(`Invalid format string: ${pattern} (${why})`)
}

const NUMERIC_FLAGS = '#+ 0,('

/** Refuses a specifier that java.util.Formatter refuses for any value. */
function check(specifier: Specifier): void {
  const { pattern, text, flags, width, precision, ofTime, conversion } = specifier
  const written = ofTime ? `t${conversion}` : (text.at(-1) ?? '')
  const unknown = ofTime ? !TIME_CONVERSIONS.includes(conversion) : !/[sSdeEfgGxXoaAcCbBhHn%]/.test(written)
  if (unknown) throw illegal(pattern, `UnknownFormatConversion: Conversion = '${written}'`)
  const twice = [...flags].find((flag, i) => flags.indexOf(flag) !== i)
  if (twice !== undefined) throw illegal(pattern, `DuplicateFormatFlags: Flags = '${twice}'`)
  const refuse = (bad: string): void => {
    const found = [...bad].find((flag) => flags.includes(flag))
    if (found !== undefined) {
      throw illegal(pattern, `FormatFlagsConversionMismatch: Conversion = ${written}, Flags = ${found}`)
    }
  }
  const noPrecision = (): void => {
    if (precision !== undefined) throw illegal(pattern, `IllegalFormatPrecision: ${precision}`)
  }
  const widthFor = (needing: string): void => {
    if (width === undefined && [...needing].some((flag) => flags.includes(flag))) {
      throw illegal(pattern, `MissingFormatWidth: ${text}`)
    }
  }
  const illegalFlags = (): Error => illegal(pattern, `IllegalFormatFlags: Flags = '${flags}'`)
  if (ofTime || conversion === 'c') {
    noPrecision()
    refuse(NUMERIC_FLAGS)
    widthFor('-')
    return
  }
  switch (conversion) {
    case 's':
    case 'b':
    case 'h':
      widthFor('-')
      refuse(NUMERIC_FLAGS)
      return
    case '%':
    case 'n':
      noPrecision()
      if (conversion === 'n' && width !== undefined) throw illegal(pattern, `IllegalFormatWidth: ${width}`)
      if (flags !== '' && (conversion === 'n' || flags !== '-')) throw illegalFlags()
      widthFor('-')
      return
    default:
      widthFor('-0')
      if ((flags.includes('+') && flags.includes(' ')) || (flags.includes('-') && flags.includes('0'))) {
        throw illegalFlags()
      }
      if ('dxo'.includes(conversion)) noPrecision()
      refuse({ d: '#', x: ',', o: ',', e: ',', g: '#', a: '(,' }[conversion] ?? '')
  }
}

function padded(text: string, { flags, width = 0 }: Specifier): string {
  return flags.includes('-') ? text.padEnd(width) : text.padStart(width)
}

const javaClass: Readonly<Record<string, string>> = {
  integer: 'java.lang.Long',
  double: 'java.lang.Double',
  real: 'java.lang.Float',
  decimal: 'java.math.BigDecimal',
  boolean: 'java.lang.Boolean',
  date: 'java.time.LocalDate',
  timestamp: 'java.time.LocalDateTime',
  'timestamp with time zone': 'java.time.ZonedDateTime',
  time: 'java.time.LocalTime',
}

function convert(value: Value, specifier: Specifier): string {
  const { pattern, flags, precision, conversion, width } = specifier
  const mismatch = (): Error =>
    illegal(pattern, `IllegalFormatConversion: ${conversion} != ${javaClass[value.k] ?? 'java.lang.String'}`)
  const cut = (text: string): string => (precision === undefined ? text : text.slice(0, precision))
  if (specifier.ofTime) {
    if (value.v === null) return 'null'
    const time = timeOf(value)
    const field = time && timeField(time, conversion)
    if (field === undefined) throw mismatch()
    return field
  }
  if (conversion === 'b') return cut(value.v === null ? 'false' : value.k === 'boolean' ? value.v : 'true')
  if (value.v === null) return cut('null')
  switch (conversion) {
    case 's':
      return cut(textOf(value.k, value.v))
    case 'h':
      return cut((hashOf(value.k, value.v) >>> 0).toString(16))
    case 'd':
      if (value.k !== 'integer') throw mismatch()
      return wholeNumber(value.v.replace('-', ''), value.v.startsWith('-'), specifier)
    case 'x':
    case 'o': {
      if (value.k !== 'integer') throw mismatch()
      const bad = [...'( +'].find((flag) => flags.includes(flag))
      if (bad !== undefined) {
        throw illegal(pattern, `FormatFlagsConversionMismatch: Conversion = ${conversion}, Flags = ${bad}`)
      }
      const digits = BigInt.asUintN(64, BigInt(value.v)).toString(conversion === 'x' ? 16 : 8)
      const prefix = flags.includes('#') ? (conversion === 'x' ? '0x' : '0') : ''
      return flags.includes('0') ? prefix + digits.padStart((width ?? 0) - prefix.length, '0') : prefix + digits
    }
    case 'c':
      // A whole number is a Long here, which Java does not format as a character.
      throw mismatch()
    case 'a':
      if (value.k !== 'double' && value.k !== 'real') throw mismatch()
      return hexadecimal(value.k === 'real' ? Math.fround(Number(value.v)) : Number(value.v), specifier)
    default:
      if (value.k === 'real')
        return floating(
          Object.is(Math.fround(Number(value.v)), -0) ? '-0' : String(Math.fround(Number(value.v))),
          specifier,
        )
      if (value.k !== 'double' && value.k !== 'decimal') throw mismatch()
      return value.k === 'decimal' ? decimalNumber(value.v, specifier) : floating(value.v, specifier)
  }
}

const TIMES = new Set(['date', 'time', 'timestamp', 'timestamp with time zone'])

function textOf(kind: string, text: string): string {
  return TIMES.has(kind) ? javaText(javaTimeOf(text)) : text
}

/** Java treats a Long as milliseconds since 1970. */
function timeOf({ k, v }: Value): JavaTime | undefined {
  if (v === null) return undefined
  if (TIMES.has(k)) return javaTimeOf(v)
  if (k !== 'integer') return undefined
  const millis = BigInt(v)
  // The calendar repeats after 400 years, and a Long may be beyond the range of Date.
  const cycles = millis / CYCLE - (millis % CYCLE < 0n ? 1n : 0n)
  const date = new Date(Number(millis - cycles * CYCLE))
  return {
    date: {
      year: date.getUTCFullYear() + 400 * Number(cycles),
      month: date.getUTCMonth() + 1,
      day: date.getUTCDate(),
    },
    time: {
      hour: date.getUTCHours(),
      minute: date.getUTCMinutes(),
      second: date.getUTCSeconds(),
      nanos: date.getUTCMilliseconds() * 1_000_000,
    },
    zone: { id: 'UTC', offsetSeconds: 0 },
    millis,
  }
}

/** Milliseconds of 400 years. */
const CYCLE = 12_622_780_800_000n

/** `hashCode()` */
function hashOf(kind: string, text: string): number {
  switch (kind) {
    case 'boolean':
      return text === 'true' ? 1231 : 1237
    case 'integer':
      return hashOfWhole(BigInt(text))
    case 'double':
      return hashOfDouble(Number(text))
    case 'real':
      return hashOfFloat(Number(text))
    case 'decimal':
      return hashOfDecimal(text)
    case 'date':
    case 'time':
    case 'timestamp':
    case 'timestamp with time zone':
      return hashOfTime(javaTimeOf(text))
    default:
      return hashOfText(textOf(kind, text))
  }
}

export const formatScripts: readonly ScalarFunction[] = [
  { name: 'u_format', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: format },
]
