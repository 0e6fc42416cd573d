import { RE2JS } from 're2js'
import { compileJava, unescaped } from './java-regex.ts'

/**
 * The part of an impersonation rule that says which users a user may become, using what `original_user` matched in
 * their name.
 */
export interface UserTemplate {
  matches(newUser: string, originalUser: string): boolean
}

interface Reference {
  readonly from: number
  readonly to: number
  readonly group: number | string
}

/**
 * Parses an expression in which `$1` and `${name}` stand for groups of another. The matched text is inserted literally:
 * a name with `.*` in it gives no right to more than that name (Trino inserts it as an expression).
 * @throws Error for a text that is no expression, or that names a group that does not exist
 */
export function userTemplate(text: string, original: RE2JS | undefined): UserTemplate {
  const references = original === undefined ? [] : referencesIn(text, original)
  const written = (valueOf: (reference: Reference) => string): string => {
    let done = 0
    let result = ''
    for (const reference of references) {
      result += text.slice(done, reference.from) + valueOf(reference)
      done = reference.to
    }
    return result + text.slice(done)
  }
  const fixed = compileJava(written(() => 'x'))
  if (original === undefined || references.length === 0) return { matches: (newUser) => fixed.matches(newUser) }
  return {
    matches(newUser, originalUser) {
      const found = original.matcher(originalUser)
      if (!found.matches()) return false
      return compileJava(written(({ group }) => quoted(found.group(group) ?? ''))).matches(newUser)
    },
  }
}

/** The text as a group of its own, so that `$1*` repeats all of it. */
function quoted(text: string): string {
  return `(?:${RE2JS.quote(text)})`
}

function referencesIn(text: string, original: RE2JS): readonly Reference[] {
  const found: Reference[] = []
  for (const { character, at, inClass } of unescaped(text)) {
    if (character !== '$' || inClass) continue
    const rest = text.slice(at + 1)
    const named = /^\{([A-Za-z][A-Za-z0-9]*)\}/.exec(rest)
    const digits = /^\d+/.exec(rest)?.[0]
    if (named) {
      const name = named[1]!
      if (!Object.hasOwn(original.namedGroups(), name)) throw noGroup(text, name)
      found.push({ from: at, to: at + 1 + named[0].length, group: name })
    } else if (digits) {
      const number = longestGroup(digits, original.groupCount())
      if (number === undefined) throw noGroup(text, digits)
      found.push({ from: at, to: at + 1 + number.length, group: Number(number) })
    }
  }
  return found
}

/** As in Java, the longest number that is still a group. */
function longestGroup(digits: string, groups: number): string | undefined {
  if (Number(digits[0]) > groups) return undefined
  let length = 1
  while (length < digits.length && Number(digits.slice(0, length + 1)) <= groups) length++
  return digits.slice(0, length)
}

function noGroup(text: string, group: string): Error {
  return new Error(`'${text}' names the group ${group}, which original_user does not have`)
}
