import { Signal } from '../../shared/quipu-error.ts'
import { posix, propertyClass, WORD } from './properties.ts'

/** A pattern for V8 with the flag `v`. */
export interface V8Pattern {
  readonly source: string
  /** V8's numbers of the pattern's own groups, if the translation adds other groups. */
  readonly groups?: readonly number[]
}

/** A pattern that Joni refuses, with Joni's message. */
export class PatternError extends Signal {}

const SPACE = '\\t-\\r\\x20'
const BOUNDARY = `(?:(?<=[${WORD}])(?![${WORD}])|(?<![${WORD}])(?=[${WORD}]))`
const NO_BOUNDARY = `(?:(?<=[${WORD}])(?=[${WORD}])|(?<![${WORD}])(?![${WORD}]))`
const MAX_REPEAT = 100_000
/** The beginning of the names of added groups: Joni allows no such name. */
const HIDDEN = '$'

interface Flags {
  i: boolean
  m: boolean
  s: boolean
  x: boolean
}

/**
 * Translates Trino's regular expressions (Joni, Java syntax) into V8's. Spelled out: `. \s \d \w \b $`; possessive and
 * atomic groups by lookahead and back reference; `(?i)` letter by letter.
 * @throws PatternError for patterns that Joni refuses
 */
export function joniToV8(pattern: string): V8Pattern {
  const reader = new Reader(pattern)
  const source = reader.alternatives()
  if (!reader.atEnd) throw new PatternError('unmatched close parenthesis')
  try {
    new RegExp(source, 'v')
  } catch {
    throw new PatternError('invalid pattern')
  }
  return reader.hasHidden ? withoutHidden(source) : { source }
}

/** The possible beginning of a group, and texts that are not one: escapes and classes. */
const OPENING = /\\[^]|[[\]]|\((?:\?<([\w$]+)>|\?)?/g

/** Renumbers back references so that they count only the pattern's own groups. */
function withoutHidden(source: string): V8Pattern {
  const groups: number[] = []
  let [all, depth] = [0, 0]
  for (const [token, name] of source.matchAll(OPENING)) {
    if (token === '[') depth++
    else if (token === ']') depth--
    else if (depth === 0 && token.startsWith('(') && (token === '(' || name !== undefined)) {
      all++
      if (name?.startsWith(HIDDEN) !== true) groups.push(all)
    }
  }
  const numbered = source.replaceAll(/\\(\d+)|\\[^]/g, (escape, digits?: string) =>
    digits === undefined ? escape : `\\${groups[Number(digits) - 1]}`,
  )
  return { source: numbered, groups }
}

class Reader {
  private at = 0
  private flags: Flags = { i: false, m: false, s: false, x: false }
  private hidden = 0
  private readonly names = new Set<string>()
  private readonly pattern: string

  constructor(pattern: string) {
    this.pattern = pattern
  }

  get hasHidden(): boolean {
    return this.hidden > 0
  }

  get atEnd(): boolean {
    return this.at >= this.pattern.length
  }

  alternatives(): string {
    const outer = { ...this.flags }
    let out = ''
    while (!this.atEnd && this.peek() !== ')') {
      if (this.peek() === '|') {
        this.at++
        out += '|'
        continue
      }
      const atom = this.atom()
      if (atom !== undefined) out += this.quantified(atom)
    }
    this.flags = outer
    return out
  }

  private peek(): string {
    return this.pattern[this.at] ?? ''
  }

  private rest(): string {
    return this.pattern.slice(this.at)
  }

  private take(expression: RegExp): RegExpExecArray | undefined {
    const match = expression.exec(this.rest())
    if (match === null) return undefined
    this.at += match[0].length
    return match
  }

  /** One unit to which a quantifier may apply; undefined for comments and flags. */
  private atom(): string | undefined {
    if (this.flags.x && (this.take(/^[\t-\r ]+/) ?? this.take(/^#[^\n]*/))) return undefined
    const char = this.peek()
    switch (char) {
      case '(':
        this.at++
        return this.group()
      case '[':
        this.at++
        return this.characterClass()
      case '.':
        this.at++
        return this.flags.s ? '[\\s\\S]' : noneOf('\\n')
      case '^':
        this.at++
        return this.flags.m ? `(?<!${noneOf('\\n')})` : '^'
      case '$':
        this.at++
        return this.flags.m ? '(?=\\n|$)' : '(?=\\n?$)'
      case '\\':
        this.at++
        return this.escape(false)
      case '*':
      case '+':
      case '?':
        throw new PatternError('target of repeat operator is not specified')
      default:
        return this.literal()
    }
  }

  private group(): string | undefined {
    if (this.take(/^\?#[^)]*\)/)) return undefined
    const inline = this.take(/^\?([imsx]*)(?:-([imsx]*))?\)/)
    if (inline !== undefined) {
      this.setFlags(inline[1]!, inline[2] ?? '')
      return undefined
    }
    const scoped = this.take(/^\?([imsx]*)(?:-([imsx]*))?:/)
    if (scoped !== undefined) {
      const outer = { ...this.flags }
      this.setFlags(scoped[1]!, scoped[2] ?? '')
      const inner = this.closed()
      this.flags = outer
      return `(?:${inner})`
    }
    const look = this.take(/^\?(=|!|<=|<!)/)
    if (look !== undefined) return `(?:(?${look[1]}${this.closed()}))`
    if (this.take(/^\?>/)) {
      const name = `${HIDDEN}${this.hidden++}`
      return `(?:(?=(?<${name}>${this.closed()}))\\k<${name}>)`
    }
    const named = this.take(/^\?<([A-Za-z_]\w*)>/)
    if (named !== undefined) {
      if (this.names.has(named[1]!)) throw new PatternError(`multiplex defined name <${named[1]}>`)
      this.names.add(named[1]!)
      return `(?<${named[1]}>${this.closed()})`
    }
    if (this.peek() === '?') throw new PatternError('undefined group option')
    return `(${this.closed()})`
  }

  private closed(): string {
    const inner = this.alternatives()
    if (this.peek() !== ')') throw new PatternError('end pattern with unmatched parenthesis')
    this.at++
    return inner
  }

  private setFlags(on: string, off: string): void {
    for (const flag of on) this.flags[flag as keyof Flags] = true
    for (const flag of off) this.flags[flag as keyof Flags] = false
  }

  private quantified(first: string): string {
    let atom = first
    for (;;) {
      const match = this.take(/^(?:([*+?])|\{(\d+)(,?)(\d*)\})([?+]?)/)
      if (match === undefined) return atom
      const [, simple, low, comma, high, mode = ''] = match
      let times = simple
      if (low !== undefined) {
        const [from, to] = [Number(low), high === '' ? undefined : Number(high)]
        if (from > MAX_REPEAT || (to ?? 0) > MAX_REPEAT) throw new PatternError('too big number for repeat range')
        if (to !== undefined && to < from) throw new PatternError('upper is smaller than lower in repeat range')
        times = `{${low}${comma}${high}}`
      }
      if (mode === '+') {
        const name = `${HIDDEN}${this.hidden++}`
        atom = `(?:(?=(?<${name}>${enclosed(atom)}${times}))\\k<${name}>)`
      } else atom = `${enclosed(atom)}${times}${mode}`
    }
  }

  private literal(): string {
    const code = this.pattern.codePointAt(this.at)!
    this.at += code > 0xffff ? 2 : 1
    if (!this.flags.i) return codePoint(code)
    const char = String.fromCodePoint(code)
    const forms = new Set([char, char.toLowerCase(), char.toUpperCase()].filter((form) => [...form].length === 1))
    if ('sS'.includes(char)) forms.add('ſ')
    if ('kK'.includes(char)) forms.add('\u212a')
    if (forms.size === 1) return codePoint(code)
    return `[${[...forms].map((form) => codePoint(form.codePointAt(0)!)).join('')}]`
  }

  private escape(inClass: boolean): string {
    if (this.atEnd) throw new PatternError('end pattern at escape')
    const char = this.pattern[this.at++]!
    switch (char) {
      case 'd':
        return inClass ? '0-9' : '[0-9]'
      case 'D':
        return noneOf('0-9')
      case 'w':
        return inClass ? 'a-zA-Z0-9_' : '[a-zA-Z0-9_]'
      case 'W':
        return noneOf('a-zA-Z0-9_')
      case 's':
        return inClass ? SPACE : `[${SPACE}]`
      case 'S':
        return noneOf(SPACE)
      case 'p':
        return this.property(false)
      case 'P':
        return this.property(true)
      case 'n':
      case 'r':
      case 't':
      case 'f':
        return `\\${char}`
      case 'v':
        return '\\x0b'
      case 'e':
        return '\\x1b'
      case 'a':
        return '\\x07'
      case 'x': {
        const long = this.take(/^\{([0-9a-fA-F]+)\}/) ?? this.take(/^([0-9a-fA-F]{1,2})/)
        return codePoint(long === undefined ? 0 : Number.parseInt(long[1]!, 16))
      }
      case 'u': {
        const hex = this.take(/^[0-9a-fA-F]{4}/)
        if (hex === undefined) throw new PatternError('too short digits')
        return codePoint(Number.parseInt(hex[0], 16))
      }
      case '0': {
        const octal = this.take(/^[0-7]{1,2}/)
        return codePoint(Number.parseInt(octal?.[0] ?? '0', 8))
      }
      default:
        return inClass ? this.escapeInClass(char) : this.escapeOutside(char)
    }
  }

  private escapeInClass(char: string): string {
    return char === 'b' ? '\\x08' : this.plainEscape()
  }

  private escapeOutside(char: string): string {
    switch (char) {
      case 'b':
        return BOUNDARY
      case 'B':
        return NO_BOUNDARY
      case 'A':
        return '^'
      case 'z':
        return '$'
      case 'Z':
        return '(?=\\n?$)'
      case 'G':
        throw new PatternError('\\G is not supported')
      case 'k': {
        const name = this.take(/^<(\w+)>/)
        if (name === undefined) throw new PatternError('invalid backref number/name')
        return /^\d+$/.test(name[1]!) ? `(?:\\${name[1]})` : `\\k<${name[1]}>`
      }
      case 'Q': {
        const end = this.pattern.indexOf('\\E', this.at)
        const text = this.pattern.slice(this.at, end < 0 ? undefined : end)
        this.at = end < 0 ? this.pattern.length : end + 2
        return `(?:${[...text].map((each) => codePoint(each.codePointAt(0)!)).join('')})`
      }
      default: {
        if (!/[1-9]/.test(char)) return this.plainEscape()
        const digits = char + (this.take(/^\d*/)?.[0] ?? '')
        if (Number(digits) > this.groupCount()) throw new PatternError('invalid backref number/name')
        return `(?:\\${digits})`
      }
    }
  }

  private groupCount(): number {
    return (this.pattern.match(/\\[^]|\[(?:\\[^]|[^\]\\])*\]|\((?!\?)|\(\?<(?![=!])/g) ?? []).filter((part) =>
      part.startsWith('('),
    ).length
  }

  /** The character after the backslash stands for itself. */
  private plainEscape(): string {
    this.at--
    const code = this.pattern.codePointAt(this.at)!
    this.at += code > 0xffff ? 2 : 1
    return codePoint(code)
  }

  private property(negated: boolean): string {
    const braced = this.take(/^\{([^}]*)\}/) ?? this.take(/^([A-Za-z])/)
    if (braced === undefined) throw new PatternError('invalid character property name {p}')
    const name = braced[1]!
    const found = propertyClass(name)
    if (found === undefined) throw new PatternError(`invalid character property name <${name}>`)
    if (/^\\p\{[^}]*\}$/.test(found)) return negated ? found.replace('\\p', '\\P') : found
    return negated ? noneOf(found) : `[${found}]`
  }

  /** The class after its `[`; intersections `&&` become V8's. */
  private characterClass(): string {
    const isNegated = this.take(/^\^/) !== undefined
    const parts: string[] = []
    let current = ''
    for (let first = true; ; first = false) {
      if (this.atEnd) throw new PatternError('premature end of char-class')
      const char = this.peek()
      if (char === ']' && !first) {
        this.at++
        break
      }
      if (char === '[') {
        const named = this.take(/^\[:(\^?)(\w+):\]/)
        if (named !== undefined) {
          const set = posix[named[2]!]
          if (set === undefined) throw new PatternError('invalid POSIX bracket type')
          current += named[1] === '^' ? noneOf(set) : set
        } else {
          this.at++
          current += this.characterClass()
        }
      } else if (this.take(/^&&/)) {
        parts.push(current)
        current = ''
      } else if (char === '\\') {
        this.at++
        const escaped = this.escape(true)
        current += escaped
        if (/^(?:0-9|a-z|\\t-|\[|\\[pP])/.test(escaped) && this.take(/^-(?=[^\]])/)) current += '\\-'
      } else if (char === '-') {
        const range = current !== '' && this.pattern[this.at + 1] !== ']'
        this.at++
        current += range ? '-' : '\\-'
      } else current += this.classLiteral(current)
    }
    for (const part of [...parts, current]) checkRanges(part)
    const folded = this.flags.i ? [...parts, current].map(foldRanges) : [...parts, current]
    const body = parts.length === 0 ? folded[0]! : folded.map((part) => `[${part}]`).join('&&')
    return isNegated ? noneOf(body) : `[${body}]`
  }

  private classLiteral(before: string): string {
    const code = this.pattern.codePointAt(this.at)!
    this.at += code > 0xffff ? 2 : 1
    const char = String.fromCodePoint(code)
    const inRange = before.endsWith('-') || this.peek() === '-'
    if (!this.flags.i || inRange || char.toLowerCase() === char.toUpperCase()) return codePoint(code)
    return [...new Set([char.toLowerCase(), char.toUpperCase()])]
      .map((form) => codePoint(form.codePointAt(0)!))
      .join('')
  }
}

/**
 * A class of the characters that are not in `body`. V8 (Node 20) with the flag `v` negates a class again for each round
 * of a loop that it unrolls: `(?:[^a]?1)+` matches `a1`. Within another class it is negated once.
 */
function noneOf(body: string): string {
  return `[[^${body}]]`
}

const RANGE = /\\u\{([0-9a-f]+)\}-\\u\{([0-9a-f]+)\}/g

function checkRanges(body: string): void {
  for (const [, from, to] of body.matchAll(RANGE)) {
    if (Number.parseInt(from!, 16) > Number.parseInt(to!, 16)) throw new PatternError('empty range in char class')
  }
}

/** Adds the other case to ranges of ASCII letters. */
function foldRanges(body: string): string {
  return body.replaceAll(RANGE, (range, from: string, to: string) => {
    const bounds = [String.fromCodePoint(Number.parseInt(from, 16)), String.fromCodePoint(Number.parseInt(to, 16))]
    if (!bounds.every((end) => /[a-z]/.test(end)) && !bounds.every((end) => /[A-Z]/.test(end))) return range
    const [low, high] = bounds.map((end) => (/[a-z]/.test(end) ? end.toUpperCase() : end.toLowerCase()).codePointAt(0)!)
    return `${range}${codePoint(low!)}-${codePoint(high!)}`
  })
}

function codePoint(code: number): string {
  return `\\u{${code.toString(16)}}`
}

/** An atom that a quantifier may follow: one character, a class or a group stays, anything else is put into a group. */
function enclosed(atom: string): string {
  return /^(?:\\u\{[0-9a-f]+\}|\[(?:\\.|[^[\]\\])*\])$/.test(atom) ? atom : `(?:${atom})`
}
