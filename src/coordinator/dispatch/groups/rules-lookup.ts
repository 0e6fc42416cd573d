import { levelAt } from './group-level.ts'
import type { GroupPath } from './group-path.ts'
import type { GroupRules } from './group-rules.ts'
import type { GroupRule } from './group-rule.ts'
import type { ChosenGroup, GroupedStatement, GroupSelector } from './group-selector.ts'

/** The group from the first selector that fits a statement; `none` where none fits. */
export type Choice = ChosenGroup | 'unnamed' | 'none'

export function choose({ selectors }: GroupRules, statement: GroupedStatement): Choice {
  for (const selector of selectorsFor(selectors, statement.session.user)) {
    const chosen = selector.choose(statement)
    if (chosen) return chosen
  }
  return 'none'
}

/** The positions of selectors in the file. */
interface SelectorIndex {
  readonly ofUsers: ReadonlyMap<string, readonly number[]>
  readonly ofAnybody: readonly number[]
}

const selectorIndexes = new WeakMap<readonly GroupSelector[], SelectorIndex>()

/**
 * The selectors that may fit a user, in their order. If ten thousand selectors name one user each, only one is
 * evaluated.
 */
function* selectorsFor(selectors: readonly GroupSelector[], user: string): Generator<GroupSelector> {
  const index = selectorIndexes.get(selectors) ?? indexOf(selectors)
  const ofUser = index.ofUsers.get(user) ?? []
  let next = 0
  for (const at of index.ofAnybody) {
    for (; next < ofUser.length && ofUser[next]! < at; next++) yield selectors[ofUser[next]!]!
    yield selectors[at]!
  }
  for (; next < ofUser.length; next++) yield selectors[ofUser[next]!]!
}

function indexOf(selectors: readonly GroupSelector[]): SelectorIndex {
  const ofUsers = new Map<string, number[]>()
  const ofAnybody: number[] = []
  for (const [at, { users }] of selectors.entries()) {
    if (!users) ofAnybody.push(at)
    for (const user of users ?? []) {
      const ofUser = ofUsers.get(user)
      if (ofUser) ofUser.push(at)
      else ofUsers.set(user, [at])
    }
  }
  const index = { ofUsers, ofAnybody }
  selectorIndexes.set(selectors, index)
  return index
}

/** A group by its path alone, for a group that exists already: no selector is evaluated. */
export function groupAt(path: GroupPath, rootGroups: readonly GroupRule[]): ChosenGroup {
  return { path, levels: path.map((_, at) => levelAt(path.slice(0, at + 1), rootGroups)), leaf: true }
}
