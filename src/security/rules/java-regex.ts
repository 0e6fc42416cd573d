import { RE2JS } from 're2js'

/** A regular expression of a rules file. It must match the whole name. */
export interface NamePattern {
  readonly text: string
  /** It matches every name. */
  readonly any: boolean
  /** All names that it matches, where those are a fixed few. */
  readonly names?: ReadonlySet<string>
  matches(name: string): boolean
  /** Compiles the expression now, where it needs compiling. */
  prepare(): void
}

/**
 * Parses an expression of Java's syntax as far as RE2 supports it, so that no name makes a match slow.
 * @throws Error for a text that is no expression, and for one that RE2 and Java read differently
 */
export function namePattern(text: string): NamePattern {
  if (text === '.*') return { text, any: true, matches: () => true, prepare: () => {} }
  if (PLAIN_NAMES.test(text)) return plainPattern(text)
  if (!sound.has(text)) compileJava(text)
  knowSound([text])
  const start = plainStart(text)
  let compiled: RE2JS | undefined
  return {
    text,
    any: false,
    // Each compiled expression takes ten kilobytes, and most are never matched.
    matches: (name) => name.startsWith(start) && (compiled ??= compileJava(text)).matches(name),
    prepare: () => void (compiled ??= start === '' ? compileJava(text) : undefined),
  }
}

/**
 * Texts that are known to be valid expressions: they were in an earlier version of a file, or another thread has
 * compiled them.
 */
const sound = new Set<string>()
const MOST_SOUND = 100_000

/** Adds texts that are known to be valid expressions, as `soundPatterns` in another thread reported them. */
export function knowSound(texts: Iterable<string>): void {
  for (const text of texts) {
    if (sound.size >= MOST_SOUND && !sound.has(text)) sound.delete(sound.values().next().value!)
    sound.add(text)
  }
}

export function soundPatterns(): readonly string[] {
  return [...sound]
}

// Up to ten thousand rules are checked for each table of a list, so an expression is evaluated only where cheaper
// checks do not decide.

/** Alternatives of names and beginnings of names, all of characters without special meaning. */
const PLAIN_NAMES = /^[\w-]+(?:\.\*)?(?:\|[\w-]+(?:\.\*)?)*$/

function plainPattern(text: string): NamePattern {
  const alternatives = text.split('|')
  const names = new Set(alternatives.filter((one) => !one.endsWith('.*')))
  const starts = alternatives.filter((one) => one.endsWith('.*')).map((one) => one.slice(0, -2))
  const same = { text, any: false, prepare: () => {} }
  if (starts.length === 0) return { ...same, names, matches: (name) => names.has(name) }
  return {
    ...same,
    // A dot does not match a line end.
    matches: (name) =>
      names.has(name) || starts.some((start) => name.startsWith(start) && !name.includes('\n', start.length)),
  }
}

/** The text that every name begins with that the expression matches. */
function plainStart(text: string): string {
  if (text.includes('|')) return ''
  const [start = ''] = /^[\w-]*/.exec(text) ?? []
  return '?*{'.includes(text[start.length] ?? '.') ? start.slice(0, -1) : start
}

/** Compiles an expression of Java's syntax. @throws Error as `namePattern` */
export function compileJava(text: string): RE2JS {
  refuseOtherMeaning(text)
  try {
    return RE2JS.compile(text)
  } catch (error) {
    throw new Error(`'${text}' is not a supported regular expression: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** Refuses syntax that RE2 accepts and Java reads differently: nested classes and their intersections. */
function refuseOtherMeaning(text: string): void {
  for (const { character, inClass, at } of unescaped(text)) {
    if (!inClass) continue
    if (character === '[' || (character === '&' && text[at + 1] === '&'))
      throw new Error(`'${text}': classes within classes, and intersections of classes, are not supported`)
  }
}

export interface PatternCharacter {
  readonly character: string
  readonly at: number
  /** Whether the character is between `[` and `]`. The brackets themselves do not count. */
  readonly inClass: boolean
}

/** The characters of an expression that have their special meaning: none after `\`, none between `\Q` and `\E`. */
export function* unescaped(text: string): Generator<PatternCharacter> {
  let classAt: number | undefined
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!
    if (character === '\\') {
      if (text[at + 1] === 'Q') {
        const end = text.indexOf('\\E', at + 2)
        if (end < 0) return
        at = end
      }
      at++
      continue
    }
    if (classAt === undefined) {
      yield { character, at, inClass: false }
      if (character === '[') classAt = text[at + 1] === '^' ? ++at : at
    } else if (character === ']' && at > classAt + 1) {
      classAt = undefined
      yield { character, at, inClass: false }
    } else yield { character, at, inClass: true }
  }
}
