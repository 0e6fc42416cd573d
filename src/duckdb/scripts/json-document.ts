import { Signal } from '../../shared/quipu-error.ts'
import { javaDouble } from './double-text.ts'
import {
  TAB,
  NEWLINE,
  RETURN,
  SPACE,
  QUOTE,
  PLUS,
  COMMA,
  MINUS,
  POINT,
  ZERO,
  NINE,
  COLON,
  UPPER_E,
  OPEN_BRACKET,
  BACKSLASH,
  CLOSE_BRACKET,
  LOWER_E,
  LOWER_F,
  LOWER_N,
  LOWER_T,
  OPEN_BRACE,
  CLOSE_BRACE,
  SURROGATE,
  AFTER_SURROGATES,
} from './json-characters.ts'

/** A JSON value; numbers as written, objects as members in order: of those of one name the last, and the name in `repeated`. */
export type JsonValue =
  | null
  | boolean
  | string
  | { readonly number: string }
  | readonly JsonValue[]
  | { readonly members: ReadonlyMap<string, JsonValue>; readonly repeated?: readonly string[] }

/** The text is no JSON. */
export class JsonSyntaxError extends Signal {}

const MAX_DEPTH = 2000

/** Reads JSON strictly: no trailing commas, comments or NaN. */
export class JsonReader {
  #at = 0
  #depth = 0
  /** Whether the string read last is written as it stands between its quotes. */
  #plain = true
  /** Whether escapes are in it. */
  #isEscaped = false
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  static parse(text: string): JsonValue {
    return new JsonReader(text).#whole((reader) => reader.value())
  }

  /** What `writeJson(parse(text), true)` is. */
  static canonical(text: string): string {
    return new JsonReader(text).#whole((reader) => reader.#copied(true))
  }

  #whole<T>(read: (reader: JsonReader) => T): T {
    const value = read(this)
    this.#space()
    if (this.#at < this.#text.length) throw new JsonSyntaxError('text after the value')
    return value
  }

  /** Goes to the value at a path, reading no further; false where there is none. */
  seek(path: readonly string[]): boolean {
    for (const step of path) {
      this.#space()
      const char = this.#peek()
      if (!(char === OPEN_BRACE ? this.#toMember(step) : char === OPEN_BRACKET && this.#toElement(step))) return false
    }
    return true
  }

  value(): JsonValue {
    this.#enter()
    let value: JsonValue
    switch (this.#peek()) {
      case OPEN_BRACE: {
        const members = new Map<string, JsonValue>()
        const repeated: string[] = []
        for (let more = this.#opens(OPEN_BRACE, CLOSE_BRACE); more; more = this.#goesOn(CLOSE_BRACE)) {
          const name = this.#name()
          const before = members.size
          members.set(name, this.value())
          if (members.size === before) repeated.push(name)
        }
        value = repeated.length > 0 ? { members, repeated } : { members }
        break
      }
      case OPEN_BRACKET: {
        const items: JsonValue[] = []
        for (let more = this.#opens(OPEN_BRACKET, CLOSE_BRACKET); more; more = this.#goesOn(CLOSE_BRACKET)) {
          items.push(this.value())
        }
        value = items
        break
      }
      case QUOTE:
        value = this.#string()
        break
      default:
        value = this.#bare()
    }
    this.#depth--
    return value
  }

  /** Trino's text of the value that comes, its members as they stand, also those of one name. */
  copy(): string {
    return this.#copied(false)
  }

  /** How many members or elements the value that comes has, those of one name each; none in a scalar. */
  count(): bigint {
    this.#space()
    const open = this.#peek()
    if (open !== OPEN_BRACE && open !== OPEN_BRACKET) {
      this.pass()
      return 0n
    }
    let count = 0n
    const close = open === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET
    for (let more = this.#opens(open, close); more; more = this.#goesOn(close)) {
      if (open === OPEN_BRACE) this.#name()
      this.pass()
      count++
    }
    return count
  }

  /**
   * Goes through the elements of the array that comes, which `found` reads, until it says so of one; what is behind is not
   * read. Undefined where there is no array.
   */
  find(found: (reader: JsonReader) => boolean): boolean | undefined {
    this.#space()
    if (this.#peek() !== OPEN_BRACKET) return undefined
    for (let more = this.#opens(OPEN_BRACKET, CLOSE_BRACKET); more; more = this.#goesOn(CLOSE_BRACKET)) {
      if (found(this)) return true
    }
    return false
  }

  /** Goes to a value, within those that it stands in. */
  #enter(): void {
    this.#space()
    if (++this.#depth > MAX_DEPTH) throw new JsonSyntaxError('nested too deeply')
  }

  /** Goes behind the value that comes. */
  pass(): void {
    this.#enter()
    switch (this.#peek()) {
      case OPEN_BRACE:
        for (let more = this.#opens(OPEN_BRACE, CLOSE_BRACE); more; more = this.#goesOn(CLOSE_BRACE)) {
          this.#name()
          this.pass()
        }
        break
      case OPEN_BRACKET:
        for (let more = this.#opens(OPEN_BRACKET, CLOSE_BRACKET); more; more = this.#goesOn(CLOSE_BRACKET)) this.pass()
        break
      case QUOTE:
        this.#string()
        break
      default:
        this.#bare()
    }
    this.#depth--
  }

  /** The text of the value that comes. */
  #copied(sorted: boolean): string {
    this.#space()
    const start = this.#at
    return this.#rewritten(sorted) ?? this.#text.slice(start, this.#at)
  }

  /** The text of the value that comes, where it is another than stands there. */
  #rewritten(sorted: boolean): string | undefined {
    this.#enter()
    let text: string | undefined
    switch (this.#peek()) {
      case OPEN_BRACE:
        text = this.#rewrittenObject(sorted)
        break
      case OPEN_BRACKET:
        text = this.#rewrittenArray(sorted)
        break
      case QUOTE:
        text = this.#rewrittenString()
        break
      default: {
        const value = this.#bare()
        if (typeof value === 'object' && value !== null) {
          const number = canonicalNumber(value.number)
          if (number !== value.number) text = number
        }
      }
    }
    this.#depth--
    return text
  }

  #rewrittenString(): string | undefined {
    const start = this.#at
    this.#passString()
    return this.#plain ? undefined : quoteJson(this.#stringFrom(start))
  }

  #rewrittenArray(sorted: boolean): string | undefined {
    const source = this.#text
    const first = this.#at + 1
    /** The items so far, once they are not as they stand, and where they end. */
    let items: string | undefined
    let end = first
    for (let more = this.#opens(OPEN_BRACKET, CLOSE_BRACKET); more; more = this.#goesOn(CLOSE_BRACKET)) {
      this.#space()
      const start = this.#at
      const item = this.#rewritten(sorted)
      const comma = end === first ? '' : ','
      if (item !== undefined || start !== end + comma.length) items ??= source.slice(first, end)
      if (items !== undefined) items += comma + (item ?? source.slice(start, this.#at))
      end = this.#at
    }
    if (items === undefined && this.#at === end + 1) return undefined
    return `[${items ?? source.slice(first, end)}]`
  }

  #rewrittenObject(sorted: boolean): string | undefined {
    const first = this.#at + 1
    const members: Member[] = []
    let inOrder = true
    let asItStands = true
    let end = first
    for (let more = this.#opens(OPEN_BRACE, CLOSE_BRACE); more; more = this.#goesOn(CLOSE_BRACE)) {
      const member = this.#rewrittenMember(sorted)
      asItStands &&= member.text === undefined && member.start === (end === first ? first : end + 1)
      inOrder &&= end === first || members.at(-1)!.name < member.name
      members.push(member)
      end = member.end
    }
    const ordered = inOrder || !sorted ? members : inOrderOnce(members)
    if (ordered === members && asItStands && this.#at === end + 1) return undefined
    return `{${ordered.map((member) => member.text ?? this.#text.slice(member.start, member.end)).join(',')}}`
  }

  #rewrittenMember(sorted: boolean): Member {
    this.#space()
    const start = this.#at
    const name = this.#string()
    const isPlain = this.#plain
    const colon = this.#at
    this.#space()
    this.#expect(COLON)
    this.#space()
    const from = this.#at
    const value = this.#rewritten(sorted)
    const end = this.#at
    if (isPlain && value === undefined && from === colon + 1) return { name, start, end, text: undefined }
    return {
      name,
      start,
      end,
      text: `${isPlain ? `"${name}"` : quoteJson(name)}:${value ?? this.#text.slice(from, end)}`,
    }
  }

  #toMember(name: string): boolean {
    for (let more = this.#opens(OPEN_BRACE, CLOSE_BRACE); more; more = this.#goesOn(CLOSE_BRACE)) {
      if (this.#name() === name) return true
      this.pass()
    }
    return false
  }

  #toElement(step: string): boolean {
    if (!/^\d+$/.test(step)) return false
    const wanted = Number(step)
    let index = 0
    for (let more = this.#opens(OPEN_BRACKET, CLOSE_BRACKET); more; more = this.#goesOn(CLOSE_BRACKET)) {
      if (index++ === wanted) return true
      this.pass()
    }
    return false
  }

  /** Enters a container; false where nothing is in it. */
  #opens(open: number, close: number): boolean {
    this.#expect(open)
    this.#space()
    return !this.#skip(close)
  }

  /** Goes to the next in a container, behind one that was read; false at its end. */
  #goesOn(close: number): boolean {
    this.#space()
    if (this.#skip(close)) return false
    this.#expect(COMMA)
    return true
  }

  /** The name of the member that comes, up to its value. */
  #name(): string {
    this.#space()
    const name = this.#string()
    this.#space()
    this.#expect(COLON)
    return name
  }

  #string(): string {
    const start = this.#at
    this.#passString()
    return this.#stringFrom(start)
  }

  /** What the string says that was read last. */
  #stringFrom(start: number): string {
    const text = this.#text
    if (!this.#isEscaped) return text.slice(start + 1, this.#at - 1)
    try {
      return JSON.parse(text.slice(start, this.#at)) as string
    } catch {
      throw new JsonSyntaxError('bad escape')
    }
  }

  /** Goes behind the string that comes, whose escapes may be none. */
  #passString(): void {
    const text = this.#text
    let at = this.#at
    if (text.charCodeAt(at) !== QUOTE) throw new JsonSyntaxError('a string was expected')
    let isEscaped = false
    let isPlain = true
    for (;;) {
      const char = text.charCodeAt(++at)
      if (char === QUOTE) break
      // Also where the text has ended: NaN.
      if (!(char >= SPACE)) throw new JsonSyntaxError('unended string')
      if (char === BACKSLASH) {
        isEscaped = true
        at++
      } else if (char >= SURROGATE && char < AFTER_SURROGATES) isPlain = false
    }
    this.#isEscaped = isEscaped
    this.#plain = isPlain && !isEscaped
    this.#at = at + 1
  }

  /** What is neither container nor string. */
  #bare(): boolean | null | { readonly number: string } {
    switch (this.#peek()) {
      case LOWER_T:
        return this.#word('true', true)
      case LOWER_F:
        return this.#word('false', false)
      case LOWER_N:
        return this.#word('null', null)
      default:
        return { number: this.#number() }
    }
  }

  #number(): string {
    const start = this.#at
    this.#skip(MINUS)
    if (!this.#skip(ZERO)) this.#digits()
    if (this.#skip(POINT)) this.#digits()
    if (this.#skip(LOWER_E) || this.#skip(UPPER_E)) {
      if (!this.#skip(PLUS)) this.#skip(MINUS)
      this.#digits()
    }
    if (this.#isInWord(true)) throw new JsonSyntaxError('bad number')
    return this.#text.slice(start, this.#at)
  }

  /** One digit or more. */
  #digits(): void {
    const text = this.#text
    const start = this.#at
    let at = start
    for (let char = text.charCodeAt(at); char >= ZERO && char <= NINE; char = text.charCodeAt(at)) at++
    if (at === start) throw new JsonSyntaxError('no value')
    this.#at = at
  }

  /** Whether a letter, a digit or `_` comes; of a number what else may be in one. */
  #isInWord(ofNumber: boolean): boolean {
    const char = this.#peek()
    // Commas and ends of containers and texts come most.
    if (char === COMMA || char === CLOSE_BRACE || char === CLOSE_BRACKET || Number.isNaN(char)) return false
    return (ofNumber ? /[\w.+-]/ : /\w/).test(String.fromCharCode(char))
  }

  #word<T extends JsonValue>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw new JsonSyntaxError('bad word')
    this.#at += word.length
    if (this.#isInWord(false)) throw new JsonSyntaxError('bad word')
    return value
  }

  #space(): void {
    for (;;) {
      const char = this.#text.charCodeAt(this.#at)
      // What is no blank is mostly above all of them; NaN at the end.
      if (!(char <= SPACE) || (char !== SPACE && char !== TAB && char !== NEWLINE && char !== RETURN)) return
      this.#at++
    }
  }

  /** The unit of UTF-16 that comes; NaN at the end. */
  #peek(): number {
    return this.#text.charCodeAt(this.#at)
  }

  #skip(char: number): boolean {
    if (this.#peek() !== char) return false
    this.#at++
    return true
  }

  #expect(char: number): void {
    if (!this.#skip(char)) throw new JsonSyntaxError(`'${String.fromCharCode(char)}' was expected`)
  }
}

/** A member of an object where it stands in the text; its text where that is another. */
interface Member {
  readonly name: string
  readonly start: number
  readonly end: number
  readonly text: string | undefined
}

/** By their names, of one name the last. */
function inOrderOnce(members: readonly Member[]): readonly Member[] {
  const sorted = members.length > FEW ? members.toSorted(byName) : inserted(members)
  return sorted.filter(({ name }, i) => i + 1 === sorted.length || sorted[i + 1]!.name !== name)
}

/** Up to so many are sorted faster by hand. */
const FEW = 20

function byName(a: Member, b: Member): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

function inserted(members: readonly Member[]): readonly Member[] {
  const sorted: Member[] = []
  for (const member of members) {
    let at = sorted.length
    for (; at > 0 && sorted[at - 1]!.name > member.name; at--) sorted[at] = sorted[at - 1]!
    sorted[at] = member
  }
  return sorted
}

/** Trino's text of a value. `sorted`: members by UTF-16 unit, the canonical form of type json. `quote`: texts in it. */
export function writeJson(value: JsonValue, sorted: boolean, quote: (text: string) => string = quoteJson): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return quote(value)
  if (isArray(value)) return `[${value.map((item) => writeJson(item, sorted, quote)).join(',')}]`
  if ('number' in value) return canonicalNumber(value.number)
  const members = [...value.members]
  if (sorted) members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${members.map(([name, member]) => `${quote(name)}:${writeJson(member, sorted, quote)}`).join(',')}}`
}

export function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}

export function isContainer(value: JsonValue): boolean {
  return value !== null && typeof value === 'object' && !('number' in value)
}

/** As Double.toString of Java writes it: fifteen digits at most are the shortest of their value. */
export const JAVA_FRACTION = /^-?(?:[1-9]\d{0,6}\.(?:0|\d{0,7}[1-9])|0\.(?!000)\d{0,14}[1-9])$/

/** Integers as written, others as Java's Double.toString. */
export function canonicalNumber(text: string): string {
  if (JAVA_FRACTION.test(text)) return text
  if (isWholeNumber(text)) return text === '-0' ? '0' : text
  const value = Number(text)
  return Number.isFinite(value) ? javaDouble(value) : `"${javaDouble(value)}"`
}

/** Written without fraction and exponent. */
export function isWholeNumber(text: string): boolean {
  return /^-?\d+$/.test(text)
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

export function quoteJson(text: string): string {
  return `"${text.replaceAll(/["\\\u0000-\u001f\ud800-\udfff]/g, escaped)}"`
}

/** As `quoteJson`, but characters beyond 16 bits as they are; half of one is a question mark, as Java's encoders have it. */
export function quoteJsonPlain(text: string): string {
  return wholeCharacters(`"${text.replaceAll(/["\\\u0000-\u001f]/g, escaped)}"`)
}

export function wholeCharacters(text: string): string {
  return text.replaceAll(/[\ud800-\udfff]/gu, '?')
}

function escaped(char: string): string {
  return shortEscapes[char] ?? `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`
}
