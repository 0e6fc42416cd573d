import { Signal } from '../../shared/quipu-error.ts'
import {
  afterBlanks,
  afterDigits,
  SPACE,
  QUOTE,
  PLUS,
  COMMA,
  MINUS,
  POINT,
  ZERO,
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
import type { JsonValue, JsonNumber } from './json-value.ts'
import { canonicalNumber, quoteJson } from './write-json.ts'

/** The text is not JSON. */
export class JsonSyntaxError extends Signal {}

const MAX_DEPTH = 2000

/** Reads JSON strictly: no trailing commas, comments or NaN. */
export class JsonReader {
  #at = 0
  #depth = 0
  /** Whether the string that was read last is written out as its source text. */
  #plain = true
  /** Whether that string has escapes. */
  #isEscaped = false
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  static parse(text: string): JsonValue {
    return new JsonReader(text).#whole((reader) => reader.value())
  }

  /** The same text as `writeJson(parse(text), true)`. */
  static canonical(text: string): string {
    return new JsonReader(text).#whole((reader) => reader.#copied(true))
  }

  #whole<T>(read: (reader: JsonReader) => T): T {
    const value = read(this)
    this.#space()
    if (this.#at < this.#text.length) throw new JsonSyntaxError('text after the value')
    return value
  }

  /** Moves to the value at a path and reads no further; false when there is none. */
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

  /** Trino's text of the next value, with its members in the order of the source, and repeated names kept. */
  copy(): string {
    return this.#copied(false)
  }

  /** The number of members or elements of the next value, repeated names counted each time; 0 for a scalar. */
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
   * Reads the elements of the next array with `found`, until it returns true; the rest is not read. Undefined when the
   * next value is not an array.
   */
  find(found: (reader: JsonReader) => boolean): boolean | undefined {
    this.#space()
    if (this.#peek() !== OPEN_BRACKET) return undefined
    for (let more = this.#opens(OPEN_BRACKET, CLOSE_BRACKET); more; more = this.#goesOn(CLOSE_BRACKET)) {
      if (found(this)) return true
    }
    return false
  }

  /** Moves to a value and counts its depth. */
  #enter(): void {
    this.#space()
    if (++this.#depth > MAX_DEPTH) throw new JsonSyntaxError('nested too deeply')
  }

  /** Skips the next value. */
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

  /** The text of the next value. */
  #copied(sorted: boolean): string {
    this.#space()
    const start = this.#at
    return this.#rewritten(sorted) ?? this.#text.slice(start, this.#at)
  }

  /** The text of the next value, if it differs from the source; else undefined. */
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
    /** The text of the items so far, once it differs from the source, and the end of the last item. */
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

  /** Enters a container; false when it is empty. */
  #opens(open: number, close: number): boolean {
    this.#expect(open)
    this.#space()
    return !this.#skip(close)
  }

  /** Moves to the next item of a container, behind an item that was read; false at the end of the container. */
  #goesOn(close: number): boolean {
    this.#space()
    if (this.#skip(close)) return false
    this.#expect(COMMA)
    return true
  }

  /** The name of the next member; moves to its value. */
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

  /** The value of the string that was read last. */
  #stringFrom(start: number): string {
    const text = this.#text
    if (!this.#isEscaped) return text.slice(start + 1, this.#at - 1)
    try {
      return JSON.parse(text.slice(start, this.#at)) as string
    } catch {
      throw new JsonSyntaxError('bad escape')
    }
  }

  /** Skips the next string, without checking its escapes. */
  #passString(): void {
    const text = this.#text
    let at = this.#at
    if (text.charCodeAt(at) !== QUOTE) throw new JsonSyntaxError('a string was expected')
    let isEscaped = false
    let isPlain = true
    for (;;) {
      const char = text.charCodeAt(++at)
      if (char === QUOTE) break
      // The comparison is also false for NaN, at the end of the text.
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

  /** A value that is neither a container nor a string. */
  #bare(): boolean | null | JsonNumber {
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

  /** Skips one or more digits. */
  #digits(): void {
    const end = afterDigits(this.#text, this.#at)
    if (end === this.#at) throw new JsonSyntaxError('no value')
    this.#at = end
  }

  /** Whether the next character is a letter, a digit or `_`; for a number also any other character of numbers. */
  #isInWord(ofNumber: boolean): boolean {
    const char = this.#peek()
    // Commas and ends of containers and of the text are the most common.
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
    this.#at = afterBlanks(this.#text, this.#at)
  }

  /** The next UTF-16 unit; NaN at the end. */
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

/** A member of an object, with its position in the source; `text` is set if it differs from the source. */
interface Member {
  readonly name: string
  readonly start: number
  readonly end: number
  readonly text: string | undefined
}

/** Members by name; for a repeated name only the last. */
function inOrderOnce(members: readonly Member[]): readonly Member[] {
  const sorted = members.length > FEW ? members.toSorted(byName) : inserted(members)
  return sorted.filter(({ name }, i) => i + 1 === sorted.length || sorted[i + 1]!.name !== name)
}

/** Up to this number of members insertion sort is faster. */
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
