import { groupText, type GroupPath } from './group-path.ts'
import type { GroupRule } from './group-rule.ts'
import { templateText, type NameTemplate } from './name-template.ts'

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
