import { RE2JS } from 're2js'

/** A regular expression of a rules file: it stands for the whole of a name. */
export interface NamePattern {
  readonly text: string
  /** It stands for every name. */
  readonly any: boolean
  /** All that it stands for, where those are a few names. */
  readonly names?: ReadonlySet<string>
  matches(name: string): boolean
  /** Compiles it now, where it has to be. */
  prepare(): void
}

/**
 * An expression of Java's syntax as far as RE2 has it, so that no name makes a check take long.
 * @throws Error for what is none, and for what would mean something else here than there
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
    // Compiled each takes ten kilobytes, and most are never asked.
    matches: (name) => name.startsWith(start) && (compiled ??= compileJava(text)).matches(name),
    prepare: () => void (compiled ??= start === '' ? compileJava(text) : undefined),
  }
}

/** Texts that are expressions: those of a file are there again when it has changed, or were found to be in another thread. */
const sound = new Set<string>()
const MOST_SOUND = 100_000

/** Takes texts for expressions, as `soundPatterns` of the program that compiled them told. */
export function knowSound(texts: Iterable<string>): void {
  for (const text of texts) {
    if (sound.size >= MOST_SOUND && !sound.has(text)) sound.delete(sound.values().next().value!)
    sound.add(text)
  }
}

export function soundPatterns(): readonly string[] {
  return [...sound]
}

// Ten thousand rules are asked for each table of a list: an expression is evaluated where nothing less decides.

/** Names, and beginnings of names, one by one, of characters that mean themselves. */
const PLAIN_NAMES = /^[\w-]+(?:\.\*)?(?:\|[\w-]+(?:\.\*)?)*$/

function plainPattern(text: string): NamePattern {
  const alternatives = text.split('|')
  const names = new Set(alternatives.filter((one) => !one.endsWith('.*')))
  const starts = alternatives.filter((one) => one.endsWith('.*')).map((one) => one.slice(0, -2))
  const same = { text, any: false, prepare: () => {} }
  if (starts.length === 0) return { ...same, names, matches: (name) => names.has(name) }
  return {
    ...same,
    // A dot stands for no end of a line.
    matches: (name) =>
      names.has(name) || starts.some((start) => name.startsWith(start) && !name.includes('\n', start.length)),
  }
}

/** What all names begin with that an expression stands for. */
function plainStart(text: string): string {
  if (text.includes('|')) return ''
  const [start = ''] = /^[\w-]*/.exec(text) ?? []
  return '?*{'.includes(text[start.length] ?? '.') ? start.slice(0, -1) : start
}

/** @throws Error as `namePattern` */
export function compileJava(text: string): RE2JS {
  refuseOtherMeaning(text)
  try {
    return RE2JS.compile(text)
  } catch (error) {
    throw new Error(`'${text}' is no regular expression that is understood here: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** What RE2 takes and Java reads otherwise: classes within classes, and their intersections. */
function refuseOtherMeaning(text: string): void {
  for (const { character, inClass, at } of unescaped(text)) {
    if (!inClass) continue
    if (character === '[' || (character === '&' && text[at + 1] === '&'))
      throw new Error(`'${text}': classes within classes, and intersections of them, are not understood here`)
  }
}

export interface PatternCharacter {
  readonly character: string
  readonly at: number
  /** Between `[` and `]`; not the brackets themselves. */
  readonly inClass: boolean
}

/** The characters of an expression that mean something by themselves: none after `\`, none between `\Q` and `\E`. */
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
