import { z } from 'zod'
import { inSlices } from '../../security/rules/read-in-slices.ts'
import { readStrictJson } from '../../security/rules/read-rules.ts'
import { pattern, wrong } from '../../security/rules/rule-patterns.ts'
import { faultOfValue, sessionProperty } from '../../sql/session/session-properties.ts'
import type { QuerySession } from '../query/stream/events.ts'
import type { GroupedStatement } from './groups/group-selector.ts'

/** Like Trino's reader, which takes numbers and booleans as texts too. */
const propertyText = z.union([z.string(), z.number(), z.boolean()]).transform(String)

const properties = z.record(z.string(), propertyText).superRefine((given, context) => {
  for (const [name, value] of Object.entries(given)) {
    const property = sessionProperty(name)
    const fault = property && faultOfValue(property, value)
    if (fault !== undefined) wrong(context, [name], fault)
  }
})

const rule = z.strictObject({
  user: pattern,
  source: pattern,
  group: pattern,
  queryType: z
    .string()
    .nullish()
    .transform((type) => type?.toUpperCase()),
  clientTags: z
    .array(z.string())
    .nullish()
    .transform((tags) => tags ?? []),
  sessionProperties: properties,
  overrideSessionProperties: z
    .boolean()
    .nullish()
    .transform((given) => given ?? false),
})

type PropertyRule = z.output<typeof rule>

/** Trino's file of the session property manager, with Presto's `overrideSessionProperties`. */
export interface PropertyRules {
  readonly rules: readonly PropertyRule[]
  /** Properties that the file sets and that no code reads. */
  readonly withoutEffect: readonly string[]
}

/** Reads a file of property rules. @throws Error with the line, when the text is wrong */
export function readPropertyRules(text: string): PropertyRules {
  return propertyRulesOf(readStrictJson(text, z.array(rule)))
}

/**
 * Reads, in slices, a text that `readPropertyRules` has accepted elsewhere.
 * @param nextSlice resolves when other work had the event loop
 */
export async function readPropertyRulesInSlices(text: string, nextSlice: () => Promise<void>): Promise<PropertyRules> {
  await nextSlice()
  const raw = JSON.parse(text) as readonly unknown[]
  const rules = await inSlices(raw, nextSlice, (some) => z.array(rule).parse(some))
  await nextSlice()
  return propertyRulesOf(rules)
}

function propertyRulesOf(rules: readonly PropertyRule[]): PropertyRules {
  const names = rules.flatMap(({ sessionProperties }) => Object.keys(sessionProperties))
  return {
    rules,
    withoutEffect: [...new Set(names)].filter((name) => !sessionProperty(name)?.acts).toSorted(),
  }
}

/**
 * The session properties that the rules set for a statement. The last rule that fits decides a property's value; a
 * property that any rule overrides stays overridden, whatever rules come after it.
 * @param statement as it is posted, with its resource group and the digest by which the log knows the file
 * @returns a function that gives the session in force, with a record of how the rules changed it
 */
export function ruledSession(
  { rules }: PropertyRules,
  statement: GroupedStatement,
  { group, digest }: { readonly group: string; readonly digest: string },
): (sent: QuerySession) => QuerySession {
  const values = new Map<string, string>()
  const fixed = new Set<string>()
  for (const each of rules) {
    if (!fits(each, statement, group)) continue
    for (const [name, value] of Object.entries(each.sessionProperties)) {
      values.set(name, value)
      if (each.overrideSessionProperties) fixed.add(name)
    }
  }
  return (sent) => {
    const given = [...values].filter(([name]) => fixed.has(name) || !Object.hasOwn(sent.properties, name))
    const overridden = Object.entries(sent.properties).filter(([name]) => fixed.has(name))
    return {
      ...sent,
      properties: { ...sent.properties, ...Object.fromEntries(given) },
      propertyRules: {
        digest,
        given: given.map(([name]) => name),
        fixed: [...fixed],
        overridden: Object.fromEntries(overridden),
      },
    }
  }
}

/** Whether all conditions of the rule hold; a session without a source has an empty one. */
function fits(each: PropertyRule, { session, queryType }: GroupedStatement, group: string): boolean {
  return (
    (each.user?.matches(session.user) ?? true) &&
    (each.source?.matches(session.source ?? '') ?? true) &&
    each.clientTags.every((tag) => session.clientTags.includes(tag)) &&
    (each.group?.matches(group) ?? true) &&
    (each.queryType === undefined || each.queryType === queryType())
  )
}
