import type { GroupPath } from './group-path.ts'
import type { GroupRule, GroupRules } from './group-rules.ts'
import type { ChosenGroup, GroupedStatement } from './group-selector.ts'
import { nameTemplate, templateText, type NameTemplate } from './name-template.ts'

/** The group that the first selector which fits a statement gives it; `none` where none fits. */
export type Choice = ChosenGroup | 'unnamed' | 'none'

export function choose({ selectors }: GroupRules, statement: GroupedStatement): Choice {
  for (const selector of selectors) {
    const chosen = selector.choose(statement)
    if (chosen) return chosen
  }
  return 'none'
}

/**
 * What a group of this path is made of: a name that stands in the file comes before a template that fits. Names of groups that
 * the file has no more stand for themselves.
 */
export function groupAt(path: GroupPath, rootGroups: readonly GroupRule[]): ChosenGroup {
  for (let length = path.length; length > 0; length--) {
    const known = templatesOf(path.slice(0, length), rootGroups)
    if (known) return { path, templates: [...known, ...path.slice(length).map(nameTemplate)], leaf: true }
  }
  return { path, templates: path.map(nameTemplate), leaf: true }
}

/** The name that figures have for a group: those of the file, and one for all others. */
export function groupLabel(path: GroupPath, rootGroups: readonly GroupRule[]): string {
  if (path.length === 0) return 'none'
  const templates = templatesOf(path, rootGroups)
  return templates ? templateText(templates) : 'other'
}

/** All groups of a file by their names among figures. */
export function* labelledRules(
  groups: readonly GroupRule[],
  above: readonly NameTemplate[] = [],
): Generator<readonly [label: string, rule: GroupRule, isTemplate: boolean]> {
  for (const rule of groups) {
    const templates = [...above, rule.name]
    yield [templateText(templates), rule, templates.some(({ variables }) => variables.length > 0)]
    yield* labelledRules(rule.subGroups, templates)
  }
}

function templatesOf(path: GroupPath, groups: readonly GroupRule[]): readonly NameTemplate[] | undefined {
  const [name, ...rest] = path
  if (name === undefined) return []
  const fitting = groups.filter((rule) => rule.name.fits(name))
  const literal = fitting.filter((rule) => rule.name.variables.length === 0)
  for (const rule of [...literal, ...fitting]) {
    const below = templatesOf(rest, rule.subGroups)
    if (below) return [rule.name, ...below]
  }
  return undefined
}
