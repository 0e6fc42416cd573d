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

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const SPACE = /[ \t\n\r]*/y
const MAX_DEPTH = 2000

/** Reads JSON strictly: no trailing commas, comments or NaN. */
export class JsonReader {
  private at = 0
  private depth = 0
  private readonly text: string

  constructor(text: string) {
    this.text = text
  }

  static parse(text: string): JsonValue {
    const reader = new JsonReader(text)
    const value = reader.value()
    reader.space()
    if (reader.at < text.length) throw new JsonSyntaxError('text after the value')
    return value
  }

  /** The value at a path, reading no further than it; undefined where there is none. */
  find(path: readonly string[]): JsonValue | undefined {
    for (const step of path) {
      this.space()
      const found = this.peek() === '{' ? this.toMember(step) : this.peek() === '[' ? this.toElement(step) : false
      if (!found) return undefined
    }
    return this.value()
  }

  value(): JsonValue {
    this.space()
    if (++this.depth > MAX_DEPTH) throw new JsonSyntaxError('nested too deeply')
    const value = this.bare()
    this.depth--
    return value
  }

  private bare(): JsonValue {
    switch (this.peek()) {
      case '{':
        return this.object()
      case '[':
        return this.array()
      case '"':
        return this.string()
      case 't':
        return this.word('true', true)
      case 'f':
        return this.word('false', false)
      case 'n':
        return this.word('null', null)
      default:
        return { number: this.number() }
    }
  }

  private object(): JsonValue {
    const members = new Map<string, JsonValue>()
    this.members((name) => {
      members.set(name, this.value())
      return false
    })
    return { members }
  }

  private array(): JsonValue {
    const items: JsonValue[] = []
    this.elements(() => {
      items.push(this.value())
      return false
    })
    return items
  }

  private toMember(name: string): boolean {
    return this.members((each) => {
      if (each === name) return true
      this.value()
      return false
    })
  }

  private toElement(step: string): boolean {
    if (!/^\d+$/.test(step)) return false
    let index = 0
    return this.elements(() => {
      if (index++ === Number(step)) return true
      this.value()
      return false
    })
  }

  /** Visits members until the visitor, which stands at the value, says stop. */
  private members(visit: (name: string) => boolean): boolean {
    this.expect('{')
    this.space()
    if (this.skip('}')) return false
    for (;;) {
      this.space()
      const name = this.string()
      this.space()
      this.expect(':')
      if (visit(name)) return true
      this.space()
      if (this.skip('}')) return false
      this.expect(',')
    }
  }

  private elements(visit: () => boolean): boolean {
    this.expect('[')
    this.space()
    if (this.skip(']')) return false
    for (;;) {
      if (visit()) return true
      this.space()
      if (this.skip(']')) return false
      this.expect(',')
    }
  }

  private string(): string {
    if (this.peek() !== '"') throw new JsonSyntaxError('a string was expected')
    const start = this.at++
    for (;;) {
      const char = this.text[this.at]
      if (char === undefined || char < ' ') throw new JsonSyntaxError('unended string')
      this.at++
      if (char === '"') break
      if (char === '\\') this.at++
    }
    const raw = this.text.slice(start, this.at)
    if (!raw.includes('\\')) return raw.slice(1, -1)
    try {
      return JSON.parse(raw) as string
    } catch {
      throw new JsonSyntaxError('bad escape')
    }
  }

  private number(): string {
    NUMBER.lastIndex = this.at
    const match = NUMBER.exec(this.text)
    if (match === null) throw new JsonSyntaxError('no value')
    this.at += match[0].length
    if (/[\w.+-]/.test(this.peek())) throw new JsonSyntaxError('bad number')
    return match[0]
  }

  private word<T extends JsonValue>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.at) || /\w/.test(this.text[this.at + word.length] ?? '')) {
      throw new JsonSyntaxError('bad word')
    }
    this.at += word.length
    return value
  }

  private space(): void {
    SPACE.lastIndex = this.at
    SPACE.exec(this.text)
    this.at = SPACE.lastIndex
  }

  private peek(): string {
    return this.text[this.at] ?? ''
  }

  private skip(char: string): boolean {
    if (this.peek() !== char) return false
    this.at++
    return true
  }

  private expect(char: string): void {
    if (!this.skip(char)) throw new JsonSyntaxError(`'${char}' was expected`)
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
