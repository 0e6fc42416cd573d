/** Groups of a user. */
export type GroupsOf = (user: string) => readonly string[]

const NONE: readonly string[] = []

/**
 * Trino's form: a line a group, `group:user,user`.
 * @throws Error that names the line
 */
export function parseGroupsFile(text: string): GroupsOf {
  const groups = new Map<string, string[]>()
  const seen = new Set<string>()
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim()
    if (line === '') continue
    const at = line.indexOf(':')
    const group = line.slice(0, at).trim()
    if (at < 0 || group === '') throw new Error(`Line ${index + 1}: not of the form group:user,user`)
    if (seen.has(group)) throw new Error(`Line ${index + 1}: the group has a line already`)
    seen.add(group)
    for (const user of line
      .slice(at + 1)
      .split(',')
      .map((one) => one.trim())) {
      if (user === '') continue
      const his = groups.get(user) ?? []
      if (!his.includes(group)) groups.set(user, [...his, group])
    }
  }
  return (user) => groups.get(user) ?? NONE
}
