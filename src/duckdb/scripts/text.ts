import { invalidArgument, type ScalarFunction } from './scalar-function.ts'
import { stem } from './stemmer.ts'

/** Code points of a text; a surrogate pair is one. */
const points = (text: string): string[] => [...text]

function levenshtein(a: string, b: string): bigint {
  const [x, y] = [codesOf(a), codesOf(b)]
  const row = [0]
  for (let j = 1; j <= y.length; j++) row.push(j)
  for (let i = 0; i < x.length; i++) {
    let before = i
    row[0] = i + 1
    for (let j = 0; j < y.length; j++) {
      const above = row[j + 1]!
      row[j + 1] = Math.min(above + 1, row[j]! + 1, before + (x[i] === y[j] ? 0 : 1))
      before = above
    }
  }
  return BigInt(row[y.length]!)
}

function codesOf(text: string): number[] {
  const codes: number[] = []
  for (let i = 0; i < text.length; i++) {
    const code = text.codePointAt(i)!
    codes.push(code)
    if (code > 0xffff) i++
  }
  return codes
}

function hamming(a: string, b: string): bigint {
  const [x, y] = [codesOf(a), codesOf(b)]
  if (x.length !== y.length) {
    throw invalidArgument('The input strings to hamming_distance function must have the same length')
  }
  let different = 0
  for (let i = 0; i < x.length; i++) if (x[i] !== y[i]) different++
  return BigInt(different)
}

function normalize(text: string, form: string): string {
  if (!/^NFK?[CD]$/.test(form)) {
    throw invalidArgument('Normalization form must be one of [NFD, NFC, NFKD, NFKC]')
  }
  return text.normalize(form)
}

// American Soundex as in Apache Commons Codec: H and W do not separate equal codes, vowels do.
const SOUNDEX = '01230120022455012623010202'

const LETTERS = /\p{L}/u

function soundex(text: string): string {
  const upper = text.toUpperCase()
  let code = ''
  let last = 0
  for (let i = 0; i < upper.length; i++) {
    const at = upper.charCodeAt(i) - 65
    if (at < 0 || at > 25) {
      // All ASCII letters are mapped.
      if (at > 62) i += unmapped(upper, i)
      continue
    }
    const digit = SOUNDEX.charCodeAt(at)
    if (code === '') code = upper[i]!
    else if (at === LETTER_H || at === LETTER_W) continue
    else if (digit !== NO_CODE && digit !== last && code.length < 4) code += SOUNDEX[at]
    last = digit
  }
  return code === '' ? '' : code.padEnd(4, '0')
}

const LETTER_H = 7
const LETTER_W = 22
const NO_CODE = 48

/** The number of further units of a character that is not a letter. @throws for a letter */
function unmapped(text: string, at: number): number {
  const point = text.codePointAt(at)!
  const character = String.fromCodePoint(point)
  if (LETTERS.test(character)) {
    throw invalidArgument(`The character is not mapped: ${character} (index=${point - 65})`)
  }
  return character.length - 1
}

const LARGEST = 1n << 63n

/** A number with up to this many digits, in any base, is a safe integer of JavaScript. */
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

/** The text's UTF-16 units in hexadecimal, the higher byte first. */
function utf16Digits(text: string): string {
  return Buffer.from(text, 'utf16le').swap16().toString('hex').toUpperCase()
}

/**
 * The start of the n-th occurrence of a text in another, overlapping ones included; counted from the end for n < 0. The
 * text is read once (Knuth, Morris, Pratt). Trino counts code points from the beginning, and UTF-16 units from the end.
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

/** For each prefix of a text, the length of the longest shorter prefix that is also its suffix. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length)
  for (let i = 1, matched = 0; i < text.length; i++) {
    while (matched > 0 && text.charCodeAt(i) !== text.charCodeAt(matched)) matched = borders[matched - 1]!
    if (text.charCodeAt(i) === text.charCodeAt(matched)) matched++
    borders[i] = matched
  }
  return borders
}

/** Stems of recent words: texts have few different words. */
const stems = new Map<string, string>()
const MOST_STEMS = 10_000
const LONGEST_WORD = 64

function wordStem(word: string, language: string): string {
  if (language !== 'en') throw invalidArgument(`Unknown stemmer language: ${language}`)
  if (word.length > LONGEST_WORD) return stem(word)
  const known = stems.get(word)
  if (known !== undefined) return known
  if (stems.size >= MOST_STEMS) stems.clear()
  const found = stem(word)
  stems.set(word, found)
  return found
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
