import { joined, sql, type Sql } from '../text/sql.ts'
import { joniToV8 } from './joni-to-v8.ts'

/** A Java pattern that RE2 interprets in the same way. */
export interface NativePattern {
  readonly re2: string
  /** A condition on a text that is true if both give the same result; absent: for all texts. */
  readonly guard?: ((text: Sql) => Sql) | undefined
  /** Whether the pattern may match the empty text. Then replace, split and count differ. */
  readonly mayBeEmpty: boolean
  /** Whether its matches depend on the surrounding text: `^`, `$`, `\b`. */
  readonly looksAround: boolean
  /** Its groups, in order. */
  readonly groups: readonly NativeGroup[]
}

export interface NativeGroup {
  readonly name: string | undefined
  /** Whether each match has a text for the group: the group is not in an alternative, and is not repeated. */
  readonly steady: boolean
  readonly mayBeEmpty: boolean
}

/** A token that RE2 and Joni interpret in the same way. */
type Token =
  | { readonly kind: 'atom'; readonly re2: string; readonly size: number }
  | { readonly kind: 'edge'; readonly re2: string }
  | { readonly kind: 'open'; readonly re2: string; readonly captures: boolean; readonly name: string | undefined }
  | { readonly kind: 'close' | 'or'; readonly re2: string }
  | { readonly kind: 'repeat'; readonly re2: string; readonly least: number; readonly most: number }

// A class without nesting; its ranges are of ASCII letters and digits.
const CLASS = String.raw`\[\^?(?:\\[dwDWs\\\]^\-[.*+?(){}|/$]|[^\]\\[&-]|(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9])|-(?=\]))+\]`
const TOKENS = new RegExp(
  [
    String.raw`(?<space>\\[sS])`,
    String.raw`(?<property>\\p\{L[ul]?\})`,
    String.raw`(?<edge>\\[Azb]|\^|\$)`,
    String.raw`(?<open>\(\?:|\(\?<(?<name>[a-zA-Z]\w*)>|\((?!\?))`,
    String.raw`(?<close>\))`,
    String.raw`(?<or>\|)`,
    String.raw`(?<repeat>(?:[*+?]|\{(?<least>\d{1,3})(?:(?<comma>,)(?<most>\d{0,3}))?\})\??(?![*+?{]))`,
    String.raw`(?<class>${CLASS})`,
    String.raw`(?<atom>\\[dDwW]|\\[\\^$.*+?()[\]{}|/\-"'#%&,:;<=>@!~` +
      '`' +
      String.raw` ]|\\[nrtf]|\.|[^\\^$.*+?()[\]{}|])`,
  ].join('|'),
  'uy',
)

const BLANKS = String.raw`\x09-\x0d\x20`
/** The assumed size of `\p{L}`, which becomes hundreds of ranges. */
const SIZE_OF_PROPERTY = 20
/** The size limit: RE2 refuses more repetitions, and programs that need more memory than it has. */
const MOST_SIZE = 1000

/** The pattern for DuckDB's own functions; undefined if only JavaScript interprets it correctly. */
export function nativePattern(pattern: string): NativePattern | undefined {
  const flags = /^\(\?([ims]+)\)/.exec(pattern)
  const prefix = flags?.[0] ?? ''
  const ignoresCase = flags?.[1]?.includes('i') === true
  // RE2 differs in case folding of non-ASCII letters and of properties, and for surrogates without a pair.
  if (/\p{Cs}/u.test(pattern) || (ignoresCase && /[^\0-\x7f]|\\p/.test(pattern))) return undefined
  const tokens = tokensOf(pattern.slice(prefix.length))
  const shape = tokens && shapeOf(tokens)
  if (shape === undefined || !compiles(pattern)) return undefined
  const edges = tokens!.flatMap((token) => (token.kind === 'edge' ? [token.re2] : []))
  const ofAscii = ignoresCase || edges.includes('\\b') || pattern.includes('\\p{')
  const guards = [
    ...(edges.includes('$') ? [(text: Sql) => sql`NOT ends_with(${text}, chr(10))`] : []),
    ...(ofAscii ? [(text: Sql) => sql`strlen(${text}) = length(${text})`] : []),
  ]
  return {
    re2: prefix + tokens!.map(({ re2 }) => re2).join(''),
    guard:
      guards.length === 0
        ? undefined
        : (text) =>
            joined(
              guards.map((guard) => guard(text)),
              ' AND ',
            ),
    mayBeEmpty: shape.mayBeEmpty,
    looksAround: edges.length > 0,
    groups: shape.groups,
  }
}

function tokensOf(body: string): readonly Token[] | undefined {
  const tokens: Token[] = []
  TOKENS.lastIndex = 0
  while (TOKENS.lastIndex < body.length) {
    const match = TOKENS.exec(body)
    if (match === null) return undefined
    tokens.push(tokenOf(match[0], match.groups!))
  }
  return tokens
}

function tokenOf(text: string, found: Readonly<Record<string, string | undefined>>): Token {
  if (found['edge'] !== undefined) return { kind: 'edge', re2: text }
  if (found['close'] !== undefined) return { kind: 'close', re2: text }
  if (found['or'] !== undefined) return { kind: 'or', re2: text }
  if (found['open'] !== undefined) {
    const name = found['name']
    return { kind: 'open', re2: name === undefined ? text : `(?P<${name}>`, captures: text !== '(?:', name }
  }
  if (found['repeat'] !== undefined) {
    const [least, comma, most] = [found['least'], found['comma'], found['most']]
    if (least === undefined) {
      return {
        kind: 'repeat',
        re2: text,
        least: text.startsWith('+') ? 1 : 0,
        most: text.startsWith('?') ? 1 : Infinity,
      }
    }
    const end = comma === undefined ? Number(least) : most === '' ? Infinity : Number(most)
    return { kind: 'repeat', re2: text, least: Number(least), most: end }
  }
  if (found['property'] !== undefined) return { kind: 'atom', re2: text, size: SIZE_OF_PROPERTY }
  // RE2 does not count the vertical tab among blanks.
  if (found['space'] !== undefined)
    return { kind: 'atom', re2: text === '\\s' ? `[${BLANKS}]` : `[^${BLANKS}]`, size: 1 }
  if (found['class'] !== undefined) {
    return { kind: 'atom', re2: text.replaceAll(/\\([^])/g, (all, char) => (char === 's' ? BLANKS : all)), size: 1 }
  }
  return { kind: 'atom', re2: text, size: 1 }
}

/** The facts of a part of a pattern. */
interface Part {
  readonly mayBeEmpty: boolean
  readonly size: number
  /** Number of groups before it. */
  readonly before: number
  /** Whether the part ends with `$` or `\z`. Behind these, DuckDB's LIKE finds text where RE2 finds none. */
  readonly isEnd?: boolean
}

const BEGINS: readonly string[] = ['^', '\\A']
const END_ANCHORS: readonly string[] = ['$', '\\z']

/** A group whose content is being read, or the whole pattern. */
interface Open {
  readonly token: Extract<Token, { kind: 'open' }> | undefined
  /** The number of its own group, from 0. */
  readonly group: number | undefined
  /** Number of groups before it. */
  readonly before: number
  alternatives: Part[][]
}

interface Shape extends Part {
  readonly groups: readonly NativeGroup[]
}

/**
 * The shape of a pattern. Undefined if RE2 and Joni differ in which patterns they refuse, or in what they match:
 * repetitions of parts that may be empty, a beginning behind something (`^^` finds nothing), an end before something.
 */
function shapeOf(tokens: readonly Token[]): Shape | undefined {
  const groups: { name: string | undefined; steady: boolean; mayBeEmpty: boolean }[] = []
  const open: Open[] = [{ token: undefined, group: undefined, before: 0, alternatives: [[]] }]
  const unsteady = (from: number): void => groups.slice(from).forEach((group) => (group.steady = false))
  for (const [i, token] of tokens.entries()) {
    const inner = open.at(-1)!
    const parts = inner.alternatives.at(-1)!
    if (parts.at(-1)?.isEnd === true && token.kind !== 'close' && token.kind !== 'or') return undefined
    switch (token.kind) {
      case 'atom':
        parts.push({ mayBeEmpty: false, size: token.size, before: groups.length })
        break
      case 'edge':
        if (BEGINS.includes(token.re2) && open.some(({ alternatives }) => alternatives.at(-1)!.length > 0))
          return undefined
        parts.push({ mayBeEmpty: true, size: 1, before: groups.length, isEnd: END_ANCHORS.includes(token.re2) })
        break
      case 'open': {
        const group = token.captures
          ? groups.push({ name: token.name, steady: true, mayBeEmpty: false }) - 1
          : undefined
        open.push({ token, group, before: token.captures ? groups.length - 1 : groups.length, alternatives: [[]] })
        break
      }
      case 'or':
        inner.alternatives.push([])
        break
      case 'close': {
        if (inner.token === undefined) return undefined
        // DuckDB turns some patterns into LIKE, and `(?:)A` then matches nothing.
        if (inner.group === undefined && inner.alternatives.flat().length === 0) return undefined
        open.pop()
        const whole = wholeOf(inner.alternatives, inner.before)
        if (inner.group !== undefined) groups[inner.group]!.mayBeEmpty = whole.mayBeEmpty
        if (inner.alternatives.length > 1) unsteady(inner.group === undefined ? inner.before : inner.group + 1)
        open.at(-1)!.alternatives.at(-1)!.push(whole)
        break
      }
      case 'repeat': {
        const before = tokens[i - 1]
        const part = parts.pop()
        if (part === undefined || (before?.kind !== 'atom' && before?.kind !== 'close') || part.mayBeEmpty)
          return undefined
        unsteady(part.before)
        const times = Math.max(1, token.most === Infinity ? token.least + 1 : token.most)
        parts.push({ ...part, mayBeEmpty: token.least === 0, size: part.size * times })
        break
      }
    }
  }
  const [all, ...rest] = open
  if (rest.length > 0) return undefined
  const whole = wholeOf(all!.alternatives, 0)
  if (all!.alternatives.length > 1) unsteady(0)
  return whole.size > MOST_SIZE ? undefined : { ...whole, groups }
}

function wholeOf(alternatives: readonly (readonly Part[])[], before: number): Part {
  return {
    before,
    mayBeEmpty: alternatives.some((parts) => parts.every((part) => part.mayBeEmpty)),
    size: alternatives.flat().reduce((size, part) => size + part.size, 0),
    isEnd: alternatives.some((parts) => parts.at(-1)?.isEnd === true),
  }
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(joniToV8(pattern).source, 'v').exec('') !== undefined
  } catch {
    return false
  }
}

/** The last group that DuckDB's functions and RE2's replacements can name. */
export const LAST_GROUP = 9

/** Java's replacement in RE2's syntax: `$1` becomes `\1`; undefined if JavaScript must interpret it. */
export function nativeReplacement(replacement: string, { groups }: NativePattern): string | undefined {
  let out = ''
  for (const [part, escaped, number, name] of replacement.matchAll(/\\([^])|\$(\d+)|\$\{(\w+)\}|[^\\$]+|[^]/g)) {
    if (part === '\\' || part === '$') return undefined
    if (number !== undefined || name !== undefined) {
      const digits = name === undefined ? groupDigits(number!, groups.length) : ''
      const group = name === undefined ? Number(digits) : groups.findIndex((each) => each.name === name) + 1
      const isWhole = name === undefined && group === 0
      if (group > LAST_GROUP || (!isWhole && groups[group - 1]?.steady !== true)) return undefined
      out += `\\${group}${number?.slice(digits.length) ?? ''}`
    } else out += (escaped ?? part).replaceAll('\\', '\\\\')
  }
  return out
}

/** The longest prefix of the digits that names a group, at least the first digit. */
function groupDigits(digits: string, count: number): string {
  let length = 1
  while (length < digits.length && Number(digits.slice(0, length + 1)) <= count) length++
  return digits.slice(0, length)
}
