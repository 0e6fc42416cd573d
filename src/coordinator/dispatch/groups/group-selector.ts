import type { QuerySession } from '../../query/stream/events.ts'
import type { GroupPath } from './group-path.ts'
import type { GroupRule } from './group-rule.ts'
import { expandPath, pathTemplates, templateText } from './name-template.ts'
import { levelAt, type GroupLevel } from './group-level.ts'
import type { FindingPattern, SelectorKeys } from './selector-schema.ts'
import { durationMillis, sizeBytes } from '../../../shared/quantities.ts'

/** The session data by which a group is chosen: only data that the statement's record has too. */
export type GroupedSession = Pick<
  QuerySession,
  'user' | 'groups' | 'originalUser' | 'principal' | 'source' | 'clientTags' | 'resourceEstimates'
>

/** A statement as selectors see it. */
export interface GroupedStatement {
  readonly session: GroupedSession
  /** The type of the statement; undefined if the text is not a statement. Computed only where a selector needs it. */
  readonly queryType: () => string | undefined
}

/** The group that a selector chose. */
export interface ChosenGroup {
  readonly path: GroupPath
  /** The rules of the group and of those above it, from the root on. */
  readonly levels: readonly GroupLevel[]
  /** Whether the group may have queries: it has no sub-groups. */
  readonly leaf: boolean
}

export interface GroupSelector {
  /** The only users that it can fit; undefined: any user. */
  readonly users: ReadonlySet<string> | undefined
  /** @returns undefined where it does not fit; 'unnamed' where it fits, but a name of the group would be empty */
  choose(statement: GroupedStatement): ChosenGroup | 'unnamed' | undefined
}

/** Variables that every selector has. */
const STANDARD = ['USER', 'SOURCE'] as const

/**
 * Makes a selector with Trino's meaning: all its conditions must hold, and the values of its named groups go into the
 * name of the group.
 * @param knownLabels the labels of all groups of the file
 * @param complain called with the fault of a key
 */
export function groupSelector(
  keys: SelectorKeys,
  rootGroups: readonly GroupRule[],
  knownLabels: ReadonlySet<string>,
  complain: (key: string, message: string) => void,
): GroupSelector {
  const templates = pathTemplates(keys.group)
  if (!knownLabels.has(templateText(templates))) complain('group', 'The group does not exist')
  const labels = templates.map((_, at) => templateText(templates.slice(0, at + 1)))
  const patterns = [
    ['user', keys.user, (session: GroupedSession) => session.user],
    ['originalUser', keys.originalUser, (session: GroupedSession) => session.originalUser ?? session.user],
    ['authenticatedUser', keys.authenticatedUser, (session: GroupedSession) => session.principal ?? ''],
    ['source', keys.source, (session: GroupedSession) => session.source ?? ''],
  ] as const
  const known = new Set<string>(STANDARD)
  for (const [key, pattern] of patterns)
    for (const name of pattern?.names ?? []) {
      if (known.has(name)) complain(key, `Several expressions define '${name}'`)
      known.add(name)
    }
  for (const name of templates.flatMap(({ variables }) => variables))
    if (!known.has(name)) complain('group', `No expression defines '\${${name}}'`)
  const asked = patterns.flatMap(([, pattern, of]) => (pattern ? [{ pattern, of }] : []))
  return {
    users: keys.user?.pattern.names,
    choose(statement) {
      const { session } = statement
      if (!asked.every(({ pattern, of }) => pattern.pattern.matches(of(session)))) return undefined
      if (!fitsRest(keys, statement)) return undefined
      const values = new Map([
        ['USER', session.user],
        ['SOURCE', session.source ?? ''],
      ])
      for (const { pattern, of } of asked) addFound(pattern, of(session), values)
      const path = expandPath(templates, values)
      if (!path) return 'unnamed'
      const levels = labels.map((label, at) => levelAt(path.slice(0, at + 1), rootGroups, label))
      return { path, levels, leaf: levels.at(-1)?.rule?.subGroups.length === 0 }
    },
  }
}

function addFound({ finding, names }: FindingPattern, text: string, values: Map<string, string>): void {
  const found = finding?.matcher(text)
  if (!found?.matches()) return
  for (const name of names) {
    const value = found.group(name)
    if (value !== null && value !== undefined) values.set(name, value)
  }
}

function fitsRest(keys: SelectorKeys, { session, queryType }: GroupedStatement): boolean {
  const { userGroup, clientTags, selectorResourceEstimate: estimate } = keys
  return (
    (!userGroup || session.groups.some((group) => userGroup.pattern.matches(group))) &&
    clientTags.every((tag) => session.clientTags.includes(tag)) &&
    (!estimate || fitsEstimate(estimate, session.resourceEstimates)) &&
    (keys.queryType === undefined || keys.queryType === queryType())
  )
}

/** Whether an estimate is in the range. Both ends belong to a range; a session without an estimate is in none. */
function fitsEstimate(
  { executionTime, cpuTime, peakMemory }: NonNullable<SelectorKeys['selectorResourceEstimate']>,
  given: Readonly<Record<string, string>>,
): boolean {
  return (
    isIn(executionTime, given['EXECUTION_TIME'], durationMillis) &&
    isIn(cpuTime, given['CPU_TIME'], durationMillis) &&
    isIn(peakMemory, given['PEAK_MEMORY'], sizeBytes)
  )
}

function isIn(
  range: { readonly min: number | undefined; readonly max: number | undefined } | undefined,
  text: string | undefined,
  parse: (text: string) => number | undefined,
): boolean {
  if (!range) return true
  const value = text === undefined ? undefined : parse(text)
  return value !== undefined && value >= (range.min ?? 0) && value <= (range.max ?? Infinity)
}
