import { fits } from './text-file.ts'

const ZERO = 0x30
const MINUS = 0x2d
const PLUS = 0x2b
const POINT = 0x2e
const COLON = 0x3a
const SPACE = 0x20
const LETTER_T = 0x54

/** The number of digits that a double always keeps. */
const DOUBLE_DIGITS = 15
/** The most digits of a double's exact text that are compared. */
const MOST_DIGITS = 100
const WORDS: Readonly<Record<string, number>> = {
  true: fits.boolean,
  True: fits.boolean,
  TRUE: fits.boolean,
  false: fits.boolean,
  False: fits.boolean,
  FALSE: fits.boolean,
  NaN: fits.double,
  nan: fits.double,
  inf: fits.double,
  '-inf': fits.double,
  Inf: fits.double,
  '-Inf': fits.double,
  Infinity: fits.double,
  '-Infinity': fits.double,
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39
}

/**
 * The types as which the text in `bytes[from..to)` can be read without loss: bits of `fits`, always including `text`.
 */
export function classifyText(bytes: Buffer, from: number, to: number): number {
  const length = to - from
  const first = bytes[from]!
  if (isDigit(first) || first === MINUS || first === POINT) {
    const number = classifyNumber(bytes, from, to)
    if (number !== 0) return number | fits.text
    if (length >= 8 && length <= 40 && isDigit(first))
      return timeBits(bytes, from, to) | uuidBit(bytes, from, to) | fits.text
  }
  if (length <= 9 && length >= 3) {
    const word = WORDS[bytes.toString('latin1', from, to)]
    if (word !== undefined) return word | fits.text
  }
  return uuidBit(bytes, from, to) | fits.text
}

/** Bits of a JSON string's content: like those of a text, but without numbers and words. */
export function classifyString(bytes: Buffer, from: number, to: number): number {
  const length = to - from
  if (length >= 8 && length <= 40 && isDigit(bytes[from]))
    return timeBits(bytes, from, to) | uuidBit(bytes, from, to) | fits.text
  return uuidBit(bytes, from, to) | fits.text
}

function uuidBit(bytes: Buffer, from: number, to: number): number {
  if (to - from !== 36 || bytes[from + 8] !== MINUS) return 0
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(bytes.toString('latin1', from, to)) ? fits.uuid : 0
}

/** Bits of a number in its plain form: no leading zeros, no plus, no blanks. 0 for any other text. */
export function classifyNumber(bytes: Buffer, from: number, to: number): number {
  const negative = bytes[from] === MINUS
  const start = negative ? from + 1 : from
  let at = start
  while (at < to && isDigit(bytes[at])) at++
  const whole = at - start
  if (whole > 1 && bytes[start] === ZERO) return 0
  if (at === to) return whole === 0 ? 0 : wholeBits(bytes, from, to, negative)
  if (bytes[at] === POINT) {
    const point = at++
    while (at < to && isDigit(bytes[at])) at++
    if (at === point + 1) return 0
  } else if (whole === 0) return 0
  const mantissa = at
  if (at < to && (bytes[at] === 0x65 || bytes[at] === 0x45)) {
    at++
    if (bytes[at] === PLUS || bytes[at] === MINUS) at++
    const exponent = at
    while (at < to && isDigit(bytes[at])) at++
    if (at === exponent) return 0
  }
  if (at !== to) return 0
  return mantissa === to && to - from <= DOUBLE_DIGITS
    ? fits.double
    : isExact(bytes.toString('latin1', from, to))
      ? fits.double
      : 0
}

const LEAST = -(2n ** 63n)
const LARGEST = 2n ** 63n - 1n

function wholeBits(bytes: Buffer, from: number, to: number, negative: boolean): number {
  const digits = to - from - (negative ? 1 : 0)
  if (negative && bytes[from + 1] === ZERO) return fits.double
  if (digits <= DOUBLE_DIGITS) return fits.bigint | fits.whole | fits.double
  const text = bytes.toString('latin1', from, to)
  const exact = isExact(text) ? fits.double : 0
  if (digits > 38) return exact
  if (digits < 19) return fits.bigint | fits.whole | exact
  const value = BigInt(text)
  return fits.whole | exact | (value >= LEAST && value <= LARGEST ? fits.bigint : 0)
}

/** Whether the text's double, rounded to as many digits as the text has, gives the text again. */
export function isExact(text: string, value = Number(text)): boolean {
  if (!Number.isFinite(value)) return false
  const [mantissa = '', exponent = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.replace(/^[-+]/, '').split('.')
  const all = `${whole}${fraction}`.replace(/^0+/, '')
  const digits = all.replace(/0+$/, '')
  if (digits === '') return value === 0
  if (value === 0 || digits.length > MOST_DIGITS) return false
  const [sameDigits = '', sameExponent] = Math.abs(value)
    .toExponential(Math.max(0, digits.length - 1))
    .split('e')
  const leading = whole.replace(/^0+/, '') === '' ? -1 - leadingZeros(fraction) : whole.replace(/^0+/, '').length - 1
  return sameDigits.replace('.', '') === digits && Number(sameExponent) === leading + Number(exponent)
}

function leadingZeros(text: string): number {
  return /^0*/.exec(text)![0].length
}

/** A number of two digits; above 99 for any other bytes. */
function twoDigits(bytes: Buffer, at: number): number {
  const [tens, ones] = [bytes[at]! - ZERO, bytes[at + 1]! - ZERO]
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : 100
}

const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function isDate(bytes: Buffer, from: number): boolean {
  if (bytes[from + 4] !== MINUS || bytes[from + 7] !== MINUS) return false
  const [century, years] = [twoDigits(bytes, from), twoDigits(bytes, from + 2)]
  const [month, day] = [twoDigits(bytes, from + 5), twoDigits(bytes, from + 8)]
  if (century > 99 || years > 99 || day < 1 || day > (DAYS[month - 1] ?? 0)) return false
  const year = century * 100 + years
  return year > 0 && (month !== 2 || day < 29 || (year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)))
}

/**
 * @returns the position behind `hh:mm[:ss[.f]]`, with at most six digits of a second's fraction; -1 for any other text
 */
function behindTime(bytes: Buffer, from: number, to: number): number {
  if (to < from + 5 || twoDigits(bytes, from) > 23 || bytes[from + 2] !== COLON) return -1
  if (twoDigits(bytes, from + 3) > 59) return -1
  if (bytes[from + 5] !== COLON || to <= from + 5) return from + 5
  if (to < from + 8 || twoDigits(bytes, from + 6) > 59) return -1
  if (bytes[from + 8] !== POINT || to <= from + 8) return from + 8
  let at = from + 9
  while (at < to && isDigit(bytes[at])) at++
  const digits = at - from - 9
  return digits >= 1 && digits <= 6 ? at : -1
}

const ZONE = /^(Z|[+-](0\d|1[0-4])(:?[0-5]\d)?)$/

function timeBits(bytes: Buffer, from: number, to: number): number {
  if (bytes[from + 2] === COLON) return behindTime(bytes, from, to) === to ? fits.time : 0
  if (to - from < 10 || !isDate(bytes, from)) return 0
  if (to - from === 10) return fits.date
  if (bytes[from + 10] !== SPACE && bytes[from + 10] !== LETTER_T) return 0
  const at = behindTime(bytes, from + 11, to)
  if (at === to) return fits.timestamp
  return at !== -1 && ZONE.test(bytes.toString('latin1', at, to)) ? fits.zoned : 0
}
