import { joniToV8, PatternError } from '../regexp/joni-to-v8.ts'
import { invalidArgument, type ScalarFunction } from './scalar-function.ts'

const MAX_CACHED = 500
interface Compiled {
  readonly expression: RegExp
  /** See V8Pattern. */
  readonly groups: readonly number[] | undefined
}

const cache = new Map<string, Compiled>()

/** The compiled pattern for V8, cached: patterns from columns repeat. */
function compiled(pattern: string): Compiled {
  const known = cache.get(pattern)
  if (known !== undefined) return known
  let result: Compiled
  try {
    const { source, groups } = joniToV8(pattern)
    result = { expression: new RegExp(source, 'dgv'), groups }
    // V8 compiles a pattern at its first use, and refuses one that is too large only then.
    result.expression.exec('')
  } catch (error) {
    throw invalidArgument(error instanceof PatternError ? error.message : 'invalid pattern')
  }
  if (cache.size >= MAX_CACHED) cache.clear()
  cache.set(pattern, result)
  return result
}

/** A match with only the pattern's own groups. */
function owned(match: RegExpExecArray, { groups }: Compiled): RegExpExecArray {
  if (groups === undefined) return match
  const parts = [match[0], ...groups.map((group) => match[group]!)]
  return Object.assign(parts, { index: match.index, input: match.input, groups: match.groups }) as RegExpExecArray
}

function matches(text: string, pattern: string, from = 0): RegExpExecArray[] {
  const known = compiled(pattern)
  // matchAll begins at lastIndex, where the expression stopped last.
  known.expression.lastIndex = from
  return [...text.matchAll(known.expression)].map((match) => owned(match, known))
}

function checkGroup(pattern: string, group: bigint): number {
  if (group < 0n) throw invalidArgument('Group cannot be negative')
  const { expression, groups } = compiled(pattern)
  const count = groups?.length ?? new RegExp(`${expression.source}|`, 'v').exec('')!.length - 1
  if (group > BigInt(count)) throw invalidArgument(`Pattern has ${count} groups. Cannot access group ${group}`)
  return Number(group)
}

function extract(text: string, pattern: string, group: bigint): string | null {
  const index = checkGroup(pattern, group)
  const known = compiled(pattern)
  known.expression.lastIndex = 0
  const match = known.expression.exec(text)
  return match === null ? null : (owned(match, known)[index] ?? null)
}

function position(text: string, pattern: string, start: bigint, occurrence: bigint): bigint {
  if (start < 1n) throw invalidArgument('start position cannot be smaller than 1')
  if (occurrence < 1n) throw invalidArgument('occurrence cannot be smaller than 1')
  const points = [...text]
  compiled(pattern)
  if (start > BigInt(points.length)) return -1n
  const from = points.slice(0, Number(start) - 1).join('').length
  const found = matches(text, pattern, from)[Number(occurrence) - 1]
  return found === undefined ? -1n : BigInt(Array.from(text.slice(0, found.index)).length + 1)
}

/** Expands Java's replacement: `$1`, `${name}`, `\x` for x. */
function expand(replacement: string, match: RegExpExecArray): string {
  let out = ''
  for (let at = 0; at < replacement.length; at++) {
    const char = replacement[at]!
    if (char === '\\') {
      if (++at >= replacement.length) throw invalidArgument(`Illegal replacement sequence: ${replacement}`)
      out += replacement[at]
    } else if (char !== '$') out += char
    else {
      const named = /^\{(\w+)\}/.exec(replacement.slice(at + 1))
      if (named !== null) {
        const value =
          match.groups === undefined || !(named[1]! in match.groups)
            ? undefined
            : { text: match.groups[named[1]!] ?? '' }
        if (value === undefined) throw invalidArgument(`Illegal replacement sequence: unknown group { ${named[1]} }`)
        out += value.text
        at += named[0].length
        continue
      }
      const digits = /^\d+/.exec(replacement.slice(at + 1))?.[0]
      if (digits === undefined) throw invalidArgument(`Illegal replacement sequence: ${replacement}`)
      let length = 1
      while (length < digits.length && Number(digits.slice(0, length + 1)) < match.length) length++
      const group = Number(digits.slice(0, length))
      if (group >= match.length) throw invalidArgument(`Illegal replacement sequence: unknown group ${group}`)
      out += match[group] ?? ''
      at += length
    }
  }
  return out
}

function replace(text: string, pattern: string, replacement: string): string {
  let out = ''
  let last = 0
  for (const match of matches(text, pattern)) {
    out += text.slice(last, match.index) + expand(replacement, match)
    last = match.index + match[0].length
  }
  return out + text.slice(last)
}

function gaps(text: string, pattern: string): string[] {
  const parts: string[] = []
  let last = 0
  for (const match of matches(text, pattern)) {
    parts.push(text.slice(last, match.index))
    last = match.index + match[0].length
  }
  return [...parts, text.slice(last)]
}

export const regexpScripts: readonly ScalarFunction[] = [
  {
    name: 'u_rx_like',
    parameters: ['VARCHAR', 'VARCHAR'],
    returns: 'BOOLEAN',
    call: (text: string, pattern: string) => {
      const { expression } = compiled(pattern)
      expression.lastIndex = 0
      return expression.test(text)
    },
  },
  { name: 'u_rx_extract', parameters: ['VARCHAR', 'VARCHAR', 'BIGINT'], returns: 'VARCHAR', call: extract },
  {
    name: 'u_rx_extract_all',
    parameters: ['VARCHAR', 'VARCHAR', 'BIGINT'],
    returns: 'VARCHAR[]',
    call: (text: string, pattern: string, group: bigint) => {
      const index = checkGroup(pattern, group)
      return matches(text, pattern).map((match) => match[index] ?? null)
    },
  },
  {
    name: 'u_rx_count',
    parameters: ['VARCHAR', 'VARCHAR'],
    returns: 'BIGINT',
    call: (text: string, pattern: string) => BigInt(matches(text, pattern).length),
  },
  { name: 'u_rx_position', parameters: ['VARCHAR', 'VARCHAR', 'BIGINT', 'BIGINT'], returns: 'BIGINT', call: position },
  { name: 'u_rx_replace', parameters: ['VARCHAR', 'VARCHAR', 'VARCHAR'], returns: 'VARCHAR', call: replace },
  { name: 'u_rx_split', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR[]', call: gaps },
  { name: 'u_rx_gaps', parameters: ['VARCHAR', 'VARCHAR'], returns: 'VARCHAR[]', call: gaps },
  {
    name: 'u_rx_groups',
    parameters: ['VARCHAR', 'VARCHAR'],
    returns: 'VARCHAR[]',
    call: (text: string, pattern: string) =>
      matches(text, pattern).map((match) => JSON.stringify(match.slice(1).map((group) => group ?? null))),
  },
]
