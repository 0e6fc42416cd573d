import { joined, sql, type Sql } from '../../text/sql.ts'
import { joniToV8 } from './joni-to-v8.ts'

/** A Java pattern that RE2 reads alike. */
export interface NativePattern {
  readonly re2: string
  /** A condition over a text that is true where both agree; absent: on all. */
  readonly guard?: ((text: Sql) => Sql) | undefined
  /** It may match the empty text, where replace, split and count differ. */
  readonly mayBeEmpty: boolean
}

// Tokens that RE2 and Joni read alike: characters, classes without nesting, groups, quantifiers up to 1000.
const TOKEN =
  /\\[dDsSwWAz]|\\[\\^$.*+?()[\]{}|/\-"'#%&,:;<=>@!~`_ ]|\\[nrtf]|\\p\{L[ul]?\}|\[\^?(?:\\[dswDSW\\\]^\-[.*+?(){}|/$]|[^\]\\[&-]|(?:[a-zA-Z0-9]-[a-zA-Z0-9])|-(?=\]))+\]|\(\?:|\(\?<[a-zA-Z]\w*>|\((?!\?)|\)|\||\^|\$|\\b|[*+?]\??(?![*+?{])|\{\d{1,3}(?:,\d{0,3})?\}\??(?![*+?{])|\.|[^\\^$.*+?()[\]{}|]/y

/** The pattern for DuckDB's own functions; undefined where only the general way reads it rightly. */
export function nativePattern(pattern: string): NativePattern | undefined {
  let body = pattern
  let prefix = ''
  let ignoresCase = false
  const flags = /^\(\?([ims]+)\)/.exec(body)
  if (flags !== null) {
    body = body.slice(flags[0].length)
    prefix = flags[0]
    ignoresCase = flags[1]!.includes('i')
  }
  let out = ''
  let endsLine = false
  let wordEdge = false
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < body.length) {
    const match = TOKEN.exec(body)
    if (match === null) return undefined
    const token = match[0]
    if (token === '$') endsLine = true
    if (token === '\\b') wordEdge = true
    out += token.startsWith('(?<') ? `(?P<${token.slice(3)}` : token
  }
  const compiled = compile(pattern)
  if (compiled === undefined) return undefined
  const guards = [
    ...(endsLine ? [(text: Sql) => sql`NOT ends_with(${text}, chr(10))`] : []),
    ...(ignoresCase || wordEdge ? [(text: Sql) => sql`strlen(${text}) = length(${text})`] : []),
  ]
  return {
    re2: prefix + out,
    guard:
      guards.length === 0
        ? undefined
        : (text) =>
            joined(
              guards.map((guard) => guard(text)),
              ' AND ',
            ),
    mayBeEmpty: wordEdge || endsLine || out.includes('^') || compiled.test(''),
  }
}

function compile(pattern: string): RegExp | undefined {
  try {
    return new RegExp(joniToV8(pattern).source, 'v')
  } catch {
    return undefined
  }
}

/** Java's replacement as RE2's: `$1` is `\1`; undefined where the general way must read it. */
export function nativeReplacement(replacement: string, pattern: string): string | undefined {
  const groups = (pattern.match(/(?<!\\)\((?!\?)/g) ?? []).length
  let out = ''
  for (const [part] of replacement.matchAll(/\\[^]|\$\d|[^\\$]+|[^]/g)) {
    if (part === '\\' || part === '$') return undefined
    if (/^\$\d$/.test(part)) {
      const group = Number(part[1])
      // Named groups and further digits are read by the general way.
      if (group > groups || pattern.includes('(?<') || new RegExp(`\\$${group}\\d`).test(replacement)) return undefined
      out += `\\${group}`
    } else out += (part.startsWith('\\') ? part.slice(1) : part).replaceAll('\\', '\\\\')
  }
  return out
}
