/** The names of a group and of those above it, from the root on. */
export type GroupPath = readonly string[]

/**
 * The text of a group in events, lists and messages: its names joined by dots. A dot in a name becomes `%2E`, a percent
 * sign `%25`, so that a user's name cannot form a path.
 */
export function groupText(path: GroupPath): string {
  return path.map((name) => Array.from(name, (character) => escapes.get(character) ?? character).join('')).join('.')
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['.', '%2E'],
  ['%', '%25'],
])

/** Parses the text of `groupText`; empty for a query that no group took. */
export function groupPath(text: string): GroupPath {
  return text === '' ? [] : text.split('.').map((name) => name.split('%2E').join('.').split('%25').join('%'))
}
