import { Signal } from '../../../shared/quipu-error.ts'

/** A JSON value; numbers as written, objects as members in order. */
export type JsonValue =
  | null
  | boolean
  | string
  | { readonly number: string }
  | readonly JsonValue[]
  | { readonly members: ReadonlyMap<string, JsonValue> }

/** The text is no JSON. */
export class JsonSyntaxError extends Signal {}

const MAX_DEPTH = 2000

const TAB = 9
const NEWLINE = 10
const RETURN = 13
const SPACE = 32
const QUOTE = 34
const PLUS = 43
const COMMA = 44
const MINUS = 45
const POINT = 46
const ZERO = 48
const NINE = 57
const COLON = 58
const UPPER_E = 69
const OPEN_BRACKET = 91
const BACKSLASH = 92
const CLOSE_BRACKET = 93
const LOWER_E = 101
const OPEN_BRACE = 123
const CLOSE_BRACE = 125
const SURROGATE = 0xd800
const AFTER_SURROGATES = 0xe000

/** Reads JSON strictly: no trailing commas, comments or NaN. */
export class JsonReader {
  #at = 0
  #depth = 0
  /** Whether the string read last is written as it stands between its quotes. */
  #plain = true
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
    return this.#nested(() => {
      switch (this.#peek()) {
        case OPEN_BRACE: {
          const members = new Map<string, JsonValue>()
          this.#members((name) => {
            members.set(name, this.value())
            return false
          })
          return { members }
        }
        case OPEN_BRACKET: {
          const items: JsonValue[] = []
          this.#elements(() => {
            items.push(this.value())
            return false
          })
          return items
        }
        case QUOTE:
          return this.#string()
        default:
          return this.#bare()
      }
    })
  }

  /** Trino's text of the value that comes, its members as they stand, also those of one name. */
  copy(): string {
    return this.#copied(false)
  }

  /** How many members or elements the value that comes has, those of one name each; none in a scalar. */
  count(): bigint {
    let count = 0n
    const counted = (): boolean => {
      count++
      this.#pass()
      return false
    }
    this.#space()
    switch (this.#peek()) {
      case OPEN_BRACE:
        this.#members(counted)
        break
      case OPEN_BRACKET:
        this.#elements(counted)
        break
      default:
        this.#pass()
    }
    return count
  }

  #nested<T>(read: () => T): T {
    this.#space()
    if (++this.#depth > MAX_DEPTH) throw new JsonSyntaxError('nested too deeply')
    const value = read()
    this.#depth--
    return value
  }

  #pass(): void {
    this.#nested(() => {
      switch (this.#peek()) {
        case OPEN_BRACE:
          this.#members(() => {
            this.#pass()
            return false
          })
          break
        case OPEN_BRACKET:
          this.#elements(() => {
            this.#pass()
            return false
          })
          break
        case QUOTE:
          this.#string()
          break
        default:
          this.#bare()
      }
    })
  }

  #copied(sorted: boolean): string {
    return this.#nested(() => {
      switch (this.#peek()) {
        case OPEN_BRACE:
          return this.#copiedObject(sorted)
        case OPEN_BRACKET: {
          let items = ''
          this.#elements(() => {
            items += items === '' ? this.#copied(sorted) : `,${this.#copied(sorted)}`
            return false
          })
          return `[${items}]`
        }
        case QUOTE:
          return this.#quoted(this.#string())
        default: {
          const value = this.#bare()
          return typeof value === 'object' && value !== null ? canonicalNumber(value.number) : String(value)
        }
      }
    })
  }

  #copiedObject(sorted: boolean): string {
    const names: string[] = []
    const members: string[] = []
    let inOrder = true
    this.#members((name) => {
      const quoted = this.#quoted(name)
      inOrder &&= names.length === 0 || names.at(-1)! < name
      names.push(name)
      members.push(`${quoted}:${this.#copied(sorted)}`)
      return false
    })
    if (!sorted || inOrder) return `{${members.join(',')}}`
    const last = new Map(names.map((name, i) => [name, members[i]!]))
    const ordered = [...last].sort(([a], [b]) => (a < b ? -1 : 1))
    return `{${ordered.map(([, member]) => member).join(',')}}`
  }

  /** The text of the string that was read last. */
  #quoted(value: string): string {
    return this.#plain ? `"${value}"` : quoteJson(value)
  }

  #toMember(name: string): boolean {
    return this.#members((each) => {
      if (each === name) return true
      this.#pass()
      return false
    })
  }

  #toElement(step: string): boolean {
    if (!/^\d+$/.test(step)) return false
    const wanted = Number(step)
    let index = 0
    return this.#elements(() => {
      if (index++ === wanted) return true
      this.#pass()
      return false
    })
  }

  /** Visits members until the visitor, which stands at the value, says stop. */
  #members(visit: (name: string) => boolean): boolean {
    this.#expect(OPEN_BRACE)
    this.#space()
    if (this.#skip(CLOSE_BRACE)) return false
    for (;;) {
      this.#space()
      const name = this.#string()
      this.#space()
      this.#expect(COLON)
      if (visit(name)) return true
      this.#space()
      if (this.#skip(CLOSE_BRACE)) return false
      this.#expect(COMMA)
    }
  }

  #elements(visit: () => boolean): boolean {
    this.#expect(OPEN_BRACKET)
    this.#space()
    if (this.#skip(CLOSE_BRACKET)) return false
    for (;;) {
      if (visit()) return true
      this.#space()
      if (this.#skip(CLOSE_BRACKET)) return false
      this.#expect(COMMA)
    }
  }

  #string(): string {
    const text = this.#text
    if (this.#peek() !== QUOTE) throw new JsonSyntaxError('a string was expected')
    const start = this.#at
    let at = start + 1
    let isEscaped = false
    this.#plain = true
    for (; ; at++) {
      const char = text.charCodeAt(at)
      if (char === QUOTE) break
      // Also where the text has ended: NaN.
      if (!(char >= SPACE)) throw new JsonSyntaxError('unended string')
      if (char === BACKSLASH) {
        isEscaped = true
        at++
      } else if (char >= SURROGATE && char < AFTER_SURROGATES) {
        this.#plain = false
      }
    }
    this.#at = at + 1
    if (!isEscaped) return text.slice(start + 1, at)
    this.#plain = false
    try {
      return JSON.parse(text.slice(start, at + 1)) as string
    } catch {
      throw new JsonSyntaxError('bad escape')
    }
  }

  /** What is neither container nor string. */
  #bare(): boolean | null | { readonly number: string } {
    switch (this.#text[this.#at]) {
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
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
    if (/[\w.+-]/.test(this.#text[this.#at] ?? '')) throw new JsonSyntaxError('bad number')
    return this.#text.slice(start, this.#at)
  }

  /** One digit or more. */
  #digits(): void {
    const start = this.#at
    while (this.#peek() >= ZERO && this.#peek() <= NINE) this.#at++
    if (this.#at === start) throw new JsonSyntaxError('no value')
  }

  #word<T extends JsonValue>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at) || /\w/.test(this.#text[this.#at + word.length] ?? '')) {
      throw new JsonSyntaxError('bad word')
    }
    this.#at += word.length
    return value
  }

  #space(): void {
    for (; ; this.#at++) {
      const char = this.#peek()
      if (char !== SPACE && char !== TAB && char !== NEWLINE && char !== RETURN) return
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

/** Trino's text of a value. `sorted`: members by UTF-16 unit, the canonical form of type json. */
export function writeJson(value: JsonValue, sorted: boolean): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return quoteJson(value)
  if (isArray(value)) return `[${value.map((item) => writeJson(item, sorted)).join(',')}]`
  if ('number' in value) return canonicalNumber(value.number)
  const members = [...value.members]
  if (sorted) members.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return `{${members.map(([name, member]) => `${quoteJson(name)}:${writeJson(member, sorted)}`).join(',')}}`
}

export function isArray(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}

export function isContainer(value: JsonValue): boolean {
  return value !== null && typeof value === 'object' && !('number' in value)
}

/** Integers as written, others as Java's Double.toString. */
export function canonicalNumber(text: string): string {
  if (/^-?\d+$/.test(text)) return text === '-0' ? '0' : text
  const value = Number(text)
  return Number.isFinite(value) ? javaDouble(value) : `"${value > 0 ? 'Infinity' : '-Infinity'}"`
}

/** Java's Double.toString. */
export function javaDouble(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? 'Infinity' : '-Infinity'
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0'
  const size = Math.abs(value)
  if (size >= 1e-3 && size < 1e7) return Number.isInteger(value) ? `${value}.0` : String(value)
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${Number(exponent)}`
}

/** `1.5E0`: CAST(double AS varchar). */
export function sqlDouble(value: number): string {
  if (!Number.isFinite(value)) return javaDouble(value)
  if (value === 0) return Object.is(value, -0) ? '-0E0' : '0E0'
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${Number(exponent)}`
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
  return `"${text.replaceAll(/["\\\u0000-\u001f\ud800-\udfff]/g, (char) => shortEscapes[char] ?? `\\u${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`)}"`
}
