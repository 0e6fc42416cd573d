import { z } from 'zod'
import { inSlices } from '../../../security/rules/read-in-slices.ts'
import type { NamePattern } from '../../../security/rules/java-regex.ts'
import { readStrictJson } from '../../../security/rules/read-rules.ts'
import { pattern, wrong } from '../../../security/rules/rule-patterns.ts'
import { queryTypeText, sizeText } from '../../dispatch/groups/selector-schema.ts'
import { isRemoteRoute, type Route } from './route.ts'

/** The conditions of a rule. All that are given must hold. */
export interface RuleMatch {
  readonly user: NamePattern | undefined
  /** Fits if one of the user's groups matches. */
  readonly userGroup: NamePattern | undefined
  /** A statement without a source has an empty one. */
  readonly source: NamePattern | undefined
  readonly resourceGroup: NamePattern | undefined
  /** The statement must have all of them. */
  readonly clientTags: readonly string[] | undefined
  /** The statement must have one of them. */
  readonly queryType: readonly string[] | undefined
  /** The statement must use at least one of them. */
  readonly catalogs: readonly string[] | undefined
  /** The percentage of users for which the rule holds. A user who is in this part stays in it. */
  readonly percent: number | undefined
  /** The number of bytes that the statement reads must be known, and larger than this. */
  readonly bytesOver: number | undefined
}

export interface RoutingRule {
  readonly name: string
  readonly match: RuleMatch
  readonly route: Route
  /** Where the statement runs instead while no cluster of a delegating route can take it. */
  readonly fallback: Exclude<Route, { to: 'reject' }> | undefined
  /** Whether the rule also delegates statements whose tables this server cannot find out. */
  readonly unchecked: boolean
}

/** The content of a file of routing rules. */
export interface RoutingRules {
  /** The first rule that fits, and whose target has all catalogs, decides. */
  readonly rules: readonly RoutingRule[]
}

const MOST_NAME = 100
const MOST_MESSAGE = 500

const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((given) => given ?? undefined)
const name = z.string().min(1).max(MOST_NAME)

const FORM = 'A route is "local", or an object with one of the keys group, cluster and reject'

const route = z
  .union(
    [
      z.literal('local'),
      z.strictObject({ group: name }),
      z.strictObject({ cluster: name }),
      z.strictObject({ reject: z.string().min(1).max(MOST_MESSAGE) }),
    ],
    { error: FORM },
  )
  .transform((given): Route => {
    if (given === 'local') return { to: 'local' }
    if ('group' in given) return { to: 'group', group: given.group }
    if ('cluster' in given) return { to: 'cluster', cluster: given.cluster }
    return { to: 'reject', message: given.reject }
  })

const fallback = route.transform((given, context) =>
  given.to === 'reject' ? wrong(context, [], 'A fallback cannot reject') : given,
)

const match = z.strictObject({
  user: pattern,
  userGroup: pattern,
  source: pattern,
  resourceGroup: pattern,
  clientTags: optional(z.array(z.string()).min(1)),
  queryType: optional(z.array(queryTypeText).min(1)),
  catalogs: optional(z.array(name).min(1)),
  percent: optional(z.number().gt(0).max(100)),
  bytesOver: optional(sizeText),
})

const rule = z
  .strictObject({
    name,
    match: match.prefault({}),
    route,
    fallback: optional(fallback),
    unchecked: optional(z.boolean()).transform((given) => given ?? false),
  })
  .superRefine((given, context) => {
    const delegates = isRemoteRoute(given.route)
    if (given.unchecked && !delegates) wrong(context, ['unchecked'], 'Only a rule that delegates can have it')
    if (given.fallback === undefined) return
    if (!delegates) wrong(context, ['fallback'], 'Only a rule that delegates can have it')
    else if (JSON.stringify(given.fallback) === JSON.stringify(given.route))
      wrong(context, ['fallback'], 'It is the same as the route')
  })

const fileSchema = z.strictObject({
  rules: z.array(rule).superRefine((rules, context) => {
    const names = new Set<string>()
    for (const [index, each] of rules.entries()) {
      if (names.has(each.name)) {
        const message = `The rule '${each.name}' occurs twice`
        context.addIssue({ code: 'custom', message, path: [index, 'name'] })
      }
      names.add(each.name)
    }
  }),
})

/**
 * Reads a whole file of routing rules: one error anywhere makes the whole file invalid.
 * @throws Error whose text begins with the line
 */
export function readRoutingRules(text: string): RoutingRules {
  return readStrictJson(text, fileSchema)
}

/**
 * Reads, in slices, a text that `readRoutingRules` has accepted elsewhere.
 * @param nextSlice resolves when other work had the event loop
 */
export async function readRoutingRulesInSlices(text: string, nextSlice: () => Promise<void>): Promise<RoutingRules> {
  await nextSlice()
  const file = JSON.parse(text) as { readonly rules: readonly unknown[] }
  return { rules: await inSlices(file.rules, nextSlice, (some) => z.array(rule).parse(some)) }
}
