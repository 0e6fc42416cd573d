import {
  afterBlanks,
  afterDigits,
  SPACE,
  QUOTE,
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
import { JAVA_FRACTION } from './write-json.ts'

/** Deeper nesting is not usual. */
const DEEP = 200

/** The result for a text that is not JSON, or with a canonical form that differs by more than blanks. */
const UNUSUAL = -1

/**
 * The canonical form of usual JSON, from which only blanks have to be removed. Undefined for any other text, also for
 * invalid JSON. Reads each character once, and creates nothing but the result.
 */
export function tidied(text: string): string | undefined {
  const tidying = new Tidying(text)
  return tidying.isUsual() ? tidying.result() : undefined
}

class Tidying {
  readonly #text: string
  /** The text before `from`, without blanks. */
  #kept = ''
  #from = 0

  constructor(text: string) {
    this.#text = text
  }

  isUsual(): boolean {
    const end = this.#value(this.#blanks(0), 0)
    return end !== UNUSUAL && this.#blanks(end) === this.#text.length
  }

  result(): string {
    return this.#from === 0 ? this.#text : this.#kept + this.#text.slice(this.#from)
  }

  /** Skips blanks. @returns the position of the next other character */
  #blanks(start: number): number {
    const at = afterBlanks(this.#text, start)
    if (at > start) {
      this.#kept += this.#text.slice(this.#from, start)
      this.#from = at
    }
    return at
  }

  /** Each of these methods returns the end of what it read, or UNUSUAL. */
  #value(at: number, depth: number): number {
    switch (this.#text.charCodeAt(at)) {
      case QUOTE:
        return this.#string(at)
      case OPEN_BRACE:
        return depth > DEEP ? UNUSUAL : this.#object(at, depth + 1)
      case OPEN_BRACKET:
        return depth > DEEP ? UNUSUAL : this.#array(at, depth + 1)
      case LOWER_T:
        return this.#word(at, 'true')
      case LOWER_F:
        return this.#word(at, 'false')
      case LOWER_N:
        return this.#word(at, 'null')
      default:
        return this.#number(at)
    }
  }

  #object(start: number, depth: number): number {
    let at = this.#blanks(start + 1)
    if (this.#text.charCodeAt(at) === CLOSE_BRACE) return at + 1
    /** The start of the previous name, without its quotes. */
    let first = UNUSUAL
    let end = 0
    for (;;) {
      if (this.#text.charCodeAt(at) !== QUOTE) return UNUSUAL
      const behind = this.#string(at)
      if (behind === UNUSUAL || (first !== UNUSUAL && !this.#isBefore(first, end, at + 1, behind - 1))) return UNUSUAL
      first = at + 1
      end = behind - 1
      at = this.#blanks(behind)
      if (this.#text.charCodeAt(at) !== COLON) return UNUSUAL
      at = this.#value(this.#blanks(at + 1), depth)
      if (at === UNUSUAL) return UNUSUAL
      at = this.#blanks(at)
      const char = this.#text.charCodeAt(at)
      if (char === CLOSE_BRACE) return at + 1
      if (char !== COMMA) return UNUSUAL
      at = this.#blanks(at + 1)
    }
  }

  #array(start: number, depth: number): number {
    let at = this.#blanks(start + 1)
    if (this.#text.charCodeAt(at) === CLOSE_BRACKET) return at + 1
    for (;;) {
      at = this.#value(at, depth)
      if (at === UNUSUAL) return UNUSUAL
      at = this.#blanks(at)
      const char = this.#text.charCodeAt(at)
      if (char === CLOSE_BRACKET) return at + 1
      if (char !== COMMA) return UNUSUAL
      at = this.#blanks(at + 1)
    }
  }

  /** Whether the text from `a` to its end is before the text from `b`, by UTF-16 units. */
  #isBefore(a: number, endOfA: number, b: number, endOfB: number): boolean {
    const length = Math.min(endOfA - a, endOfB - b)
    for (let i = 0; i < length; i++) {
      const difference = this.#text.charCodeAt(a + i) - this.#text.charCodeAt(b + i)
      if (difference !== 0) return difference < 0
    }
    return endOfA - a < endOfB - b
  }

  #string(start: number): number {
    for (let at = start + 1; ; at++) {
      const char = this.#text.charCodeAt(at)
      if (char === QUOTE) return at + 1
      // The condition is also true at the end of the text, for NaN.
      if (!(char >= SPACE) || char === BACKSLASH || (char >= SURROGATE && char < AFTER_SURROGATES)) return UNUSUAL
    }
  }

  #word(at: number, word: string): number {
    return this.#text.startsWith(word, at) ? at + word.length : UNUSUAL
  }

  #number(start: number): number {
    let at = this.#text.charCodeAt(start) === MINUS ? start + 1 : start
    const first = this.#text.charCodeAt(at)
    const from = at
    at = afterDigits(this.#text, at)
    if (at === from || (first === ZERO && (at > from + 1 || from > start))) return this.#fraction(start, at)
    const char = this.#text.charCodeAt(at)
    return char === POINT || char === LOWER_E || char === UPPER_E ? this.#fraction(start, at) : at
  }

  /** Reads the rest of a number that is not a plain whole number. */
  #fraction(start: number, point: number): number {
    if (this.#text.charCodeAt(point) !== POINT) return UNUSUAL
    const end = afterDigits(this.#text, point + 1)
    const char = this.#text.charCodeAt(end)
    if (char === LOWER_E || char === UPPER_E) return UNUSUAL
    return JAVA_FRACTION.test(this.#text.slice(start, end)) ? end : UNUSUAL
  }
}
