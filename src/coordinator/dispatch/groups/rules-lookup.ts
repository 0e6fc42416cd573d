import { groupText, type GroupPath } from './group-path.ts'
import type { GroupRule, GroupRules } from './group-rules.ts'
import type { ChosenGroup, GroupedStatement, GroupSelector } from './group-selector.ts'
import { templateText, type NameTemplate } from './name-template.ts'

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

/** The rule of a group in the file. */
export interface GroupLevel {
  /** Its label in the file: one for all groups that a template makes. */
  readonly label: string
  /** Undefined where the file has no such group. */
  readonly rule: GroupRule | undefined
}

/**
 * The rule for the group of a path. A rule with exactly these names comes first, whichever selector leads to the group;
 * else a template that fits.
 * @param label of the template to take where several fit; without a label, or if it is gone, the first
 */
export function levelAt(path: GroupPath, rootGroups: readonly GroupRule[], label?: string): GroupLevel {
  let first: GroupLevel | undefined
  for (const rules of fitting(path, rootGroups)) {
    const level = { label: templateText(rules.map(({ name }) => name)), rule: rules.at(-1) }
    if (level.label === label || rules.every(({ name }) => isLiteral(name))) return level
    first ??= level
  }
  return first ?? { label: groupText(path), rule: undefined }
}

/** A group by its path alone, for a group that exists already: no selector is evaluated. */
export function groupAt(path: GroupPath, rootGroups: readonly GroupRule[]): ChosenGroup {
  return { path, levels: path.map((_, at) => levelAt(path.slice(0, at + 1), rootGroups)), leaf: true }
}

/** The label of a group in metrics: those of the file, and one for all other groups. */
export function groupLabel(path: GroupPath, rootGroups: readonly GroupRule[]): string {
  if (path.length === 0) return 'none'
  const { label, rule } = levelAt(path, rootGroups)
  return rule ? label : 'other'
}

/** All groups of a file, with their labels in metrics. */
export function* labelledRules(
  groups: readonly GroupRule[],
  above: readonly NameTemplate[] = [],
): Generator<readonly [label: string, rule: GroupRule, isTemplate: boolean]> {
  for (const rule of groups) {
    const templates = [...above, rule.name]
    yield [templateText(templates), rule, !templates.every(isLiteral)]
    yield* labelledRules(rule.subGroups, templates)
  }
}

/**
 * Rules that may make a path, from the root on: at each step literal names before templates, else in the order of the
 * file.
 */
function* fitting([name, ...rest]: GroupPath, groups: readonly GroupRule[]): Generator<readonly GroupRule[]> {
  if (name === undefined) return yield []
  const { literals, templates } = namesOf(groups)
  const literal = literals.get(name)
  if (literal) for (const below of fitting(rest, literal.subGroups)) yield [literal, ...below]
  for (const rule of templates)
    if (rule.name.fits(name)) for (const below of fitting(rest, rule.subGroups)) yield [rule, ...below]
}

interface GroupNames {
  /** Rules with a literal name, by that name; names are unique among the sub-groups of one group. */
  readonly literals: ReadonlyMap<string, GroupRule>
  readonly templates: readonly GroupRule[]
}

const groupNames = new WeakMap<readonly GroupRule[], GroupNames>()

function namesOf(groups: readonly GroupRule[]): GroupNames {
  const known = groupNames.get(groups)
  if (known) return known
  const names = {
    literals: new Map(groups.flatMap((rule) => (isLiteral(rule.name) ? [[rule.name.text, rule] as const] : []))),
    templates: groups.filter(({ name }) => !isLiteral(name)),
  }
  groupNames.set(groups, names)
  return names
}

function isLiteral({ variables }: NameTemplate): boolean {
  return variables.length === 0
}
