/** Names of a group and of those above it, from the root on. */
export type GroupPath = readonly string[]

/**
 * A group as events, lists and messages name it: its names by dots. A dot within a name is `%2E`, a percent sign `%25`, so
 * that a user's name is no path of its own.
 */
export function groupText(path: GroupPath): string {
  return path.map((name) => Array.from(name, (character) => escapes.get(character) ?? character).join('')).join('.')
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['.', '%2E'],
  ['%', '%25'],
])

/** The way back from `groupText`; empty for a query that no group took. */
export function groupPath(text: string): GroupPath {
  return text === '' ? [] : text.split('.').map((name) => name.split('%2E').join('.').split('%25').join('%'))
}
