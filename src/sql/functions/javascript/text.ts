import { invalidArgument, type ScalarFunction } from './scalar-function.ts'
import { stem } from './stemmer.ts'

/** Code points of a text; surrogate pairs are one. */
const points = (text: string): string[] => [...text]

function levenshtein(a: string, b: string): bigint {
  const [x, y] = [points(a), points(b)]
  let row = Array.from({ length: y.length + 1 }, (_, i) => i)
  for (let i = 1; i <= x.length; i++) {
    const next = [i]
    for (let j = 1; j <= y.length; j++) {
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (x[i - 1] === y[j - 1] ? 0 : 1))
    }
    row = next
  }
  return BigInt(row[y.length]!)
}

function hamming(a: string, b: string): bigint {
  const [x, y] = [points(a), points(b)]
  if (x.length !== y.length) {
    throw invalidArgument('The input strings to hamming_distance function must have the same length')
  }
  return BigInt(x.filter((char, i) => char !== y[i]).length)
}

function normalize(text: string, form: string): string {
  if (!/^NFK?[CD]$/.test(form)) {
    throw invalidArgument('Normalization form must be one of [NFD, NFC, NFKD, NFKC]')
  }
  return text.normalize(form)
}

// American Soundex as Apache Commons Codec has it: H and W do not separate equal codes, vowels do.
const SOUNDEX = '01230120022455012623010202'

function soundex(text: string): string {
  const letters = points(text.toUpperCase()).filter((char) => /\p{L}/u.test(char))
  for (const letter of letters) {
    if (!/[A-Z]/.test(letter)) {
      throw invalidArgument(`The character is not mapped: ${letter} (index=${letter.codePointAt(0)! - 65})`)
    }
  }
  if (letters.length === 0) return ''
  const code = (letter: string): string => SOUNDEX[letter.charCodeAt(0) - 65]!
  let out = letters[0]!
  let last = code(letters[0]!)
  for (const letter of letters.slice(1)) {
    if (letter === 'H' || letter === 'W') continue
    const digit = code(letter)
    if (digit !== '0' && digit !== last) out += digit
    last = digit
  }
  return out.slice(0, 4).padEnd(4, '0')
}

const LARGEST = 1n << 63n

/** So many digits of any base are a whole number of JavaScript's. */
const SAFE_DIGITS = 10

function fromBase(text: string, radix: bigint): bigint {
  if (radix < 2n || radix > 36n) throw invalidArgument('Radix must be between 2 and 36')
  const failure = (): Error => invalidArgument(`Not a valid base-${radix} number: ${text}`)
  const match = /^([+-]?)([0-9a-z]+)$/i.exec(text)
  if (match === null) throw failure()
  const digits = match[2]!
  if (digits.length <= SAFE_DIGITS) {
    let small = 0
    for (const char of digits) {
      const digit = Number.parseInt(char, 36)
      if (digit >= Number(radix)) throw failure()
      small = small * Number(radix) + digit
    }
    return BigInt(match[1] === '-' ? -small : small)
  }
  let value = 0n
  for (const char of digits) {
    const digit = Number.parseInt(char, 36)
    if (digit >= Number(radix)) throw failure()
    value = value * radix + BigInt(digit)
    if (value > LARGEST) throw failure()
  }
  if (match[1] === '-') value = -value
  if (BigInt.asIntN(64, value) !== value) throw failure()
  return value
}

/** The text's UTF-16 units, the higher byte first. */
function utf16Digits(text: string): string {
  return Buffer.from(text, 'utf16le').swap16().toString('hex').toUpperCase()
}

/**
 * Where the n-th of all places begins at which a text holds another, also where they overlap; from the end for n < 0. The
 * text is read once (Knuth, Morris, Pratt). Trino counts code points from the beginning and halves of pairs from the end.
 */
function position(text: string, sought: string, instance: bigint): number {
  if (sought === '') return 1
  const borders = bordersOf(sought)
  const found: number[] = []
  for (let i = 0, matched = 0; i < text.length; i++) {
    while (matched > 0 && text.charCodeAt(i) !== sought.charCodeAt(matched)) matched = borders[matched - 1]!
    if (text.charCodeAt(i) === sought.charCodeAt(matched)) matched++
    if (matched < sought.length) continue
    found.push(i + 1 - sought.length)
    if (BigInt(found.length) === instance) return points(text.slice(0, found.at(-1))).length + 1
    matched = borders[matched - 1]!
  }
  const last = instance < 0n ? found.at(Number(instance)) : undefined
  return last === undefined ? 0 : last + 1
}

/** Of each beginning of a text the length of the longest one that is its end as well. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length)
  for (let i = 1, matched = 0; i < text.length; i++) {
    while (matched > 0 && text.charCodeAt(i) !== text.charCodeAt(matched)) matched = borders[matched - 1]!
    if (text.charCodeAt(i) === text.charCodeAt(matched)) matched++
    borders[i] = matched
  }
  return borders
}

function wordStem(word: string, language: string): string {
  if (language !== 'en') throw invalidArgument(`Unknown stemmer language: ${language}`)
  return stem(word)
}

export const textScripts: readonly ScalarFunction[] = [
  {
    name: 'u_reverse',
    parameters: ['VARCHAR'],
    returns: 'VARCHAR',
    call: (text: string) => points(text).toReversed().join(''),
  },
  { name: 'u_strpos', parameters: ['VARCHAR', 'VARCHAR', 'BIGINT'], returns: 'BIGINT', call: position },
  { name: 'u_levenshtein', parameters: ['VARCHAR', 'VARCHAR'], returns: 'BIGINT', call: levenshtein },
  { name: 'u_hamming', parameters: ['VARCHAR', 'VARCHAR'], returns: 'BIGINT', call: hamming },
  { name: 'u_normalize', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: normalize },
  { name: 'u_soundex', parameters: ['VARCHAR'], returns: 'VARCHAR', call: soundex },
  { name: 'u_word_stem', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: wordStem },
  { name: 'u_char2hexint', parameters: ['VARCHAR'], returns: 'VARCHAR', call: utf16Digits },
  { name: 'u_from_base', parameters: ['VARCHAR', 'BIGINT'], returns: 'BIGINT', call: fromBase },
]
