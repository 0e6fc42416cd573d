import { linesOf, withoutSpaceAround } from './file-lines.ts'
import { isTellable } from './principal.ts'
import { isUserName, NO_USER_NAME } from './user-name.ts'

/** Returns the groups of a user. */
export type GroupsOf = (user: string) => readonly string[]

const NONE: readonly string[] = []

/**
 * Parses Trino's form: one line for each group, `group:user,user`.
 * @throws Error that names the line, also where a name is not one that a user can log in with
 */
export function parseGroupsFile(text: string): GroupsOf {
  const groups = new Map<string, string[]>()
  const seen = new Set<string>()
  for (const { number, line } of linesOf(text)) {
    const at = line.indexOf(':')
    const group = withoutSpaceAround(line.slice(0, at))
    const wrong = (what: string): Error => new Error(`Line ${number}: ${what}`)
    if (at < 0 || group === '') throw wrong('the line must have the form group:user,user')
    if (!isTellable(group)) throw wrong('the name of the group has invisible or invalid characters')
    if (seen.has(group)) throw wrong('the group already has a line')
    seen.add(group)
    for (const part of line.slice(at + 1).split(',')) {
      const user = withoutSpaceAround(part)
      if (user === '') continue
      if (!isUserName(user)) throw wrong(`${JSON.stringify(user)} ${NO_USER_NAME}`)
      const ofUser = groups.get(user) ?? []
      if (!ofUser.includes(group)) groups.set(user, [...ofUser, group])
    }
  }
  return (user) => groups.get(user) ?? NONE
}
