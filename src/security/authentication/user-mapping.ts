import { RE2JS } from 're2js'
import { z } from 'zod'
import { isUserName, lowerName, upperName } from './user-name.ts'

/**
 * Maps a verified name to the user that it is here; undefined: none, so the holder of that name may not log in. A user
 * is always a name in the one spelling that `isUserName` accepts. Nothing is cut off or replaced, because that would
 * make another user.
 */
export type UserMapping = (name: string) => string | undefined

const ruleSchema = z.strictObject({
  pattern: z.string(),
  user: z.string().default('$1'),
  allow: z.boolean().default(true),
  case: z
    .preprocess(
      (value) => (typeof value === 'string' ? value.toLowerCase() : value),
      z.enum(['keep', 'lower', 'upper']),
    )
    .default('keep'),
})
const fileSchema = z.strictObject({ rules: z.array(ruleSchema).min(1) })
type Rule = z.output<typeof ruleSchema>

/** Without a mapping the name is the user. */
export const sameName: UserMapping = (name) => (isUserName(name) ? name : undefined)

/**
 * Parses Trino's user mapping file: the first rule whose pattern matches the whole name decides.
 * @throws Error when the text is no such file
 */
export function parseUserMapping(text: string): UserMapping {
  const parsed = fileSchema.safeParse(JSON.parse(text))
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new Error(`${issue?.path.join('.')}: ${issue?.message}`)
  }
  return mappingOf(parsed.data.rules)
}

/** A mapping by one pattern, whose first group is the user. @throws Error when the text is no pattern */
export function userMappingBy(pattern: string): UserMapping {
  return mappingOf([{ pattern, user: '$1', allow: true, case: 'keep' }])
}

const LETTERS: Readonly<Record<Rule['case'], UserMapping>> = { keep: sameName, lower: lowerName, upper: upperName }

function mappingOf(rules: readonly Rule[]): UserMapping {
  const compiled = rules.map((rule) => ({ ...rule, pattern: RE2JS.compile(rule.pattern) }))
  for (const { pattern, user, allow } of compiled) if (allow) checkReplacement(pattern, user)
  return (name) => {
    for (const { pattern, user, allow, case: letters } of compiled) {
      const matcher = pattern.matcher(name)
      if (!matcher.matches()) continue
      if (!allow) return undefined
      // The whole name matches, so the replacement is the user.
      const mapped = replacement(user, (group) => matcher.group(group) ?? '')
      return LETTERS[letters](mapped)
    }
    return undefined
  }
}

/** Java's replacement syntax: `$1`, `${name}`, and a backslash before a character that stands for itself. */
function replacement(text: string, groupOf: (group: number | string) => string): string {
  const parts = text.matchAll(/\\(.)|\$(\d)|\$\{([A-Za-z][A-Za-z0-9]*)\}|([^\\$]+)|([\\$])/gs)
  return Array.from(parts, ([, escaped, digit, name, plain, stray]) => {
    if (stray !== undefined) throw new Error(`The replacement is invalid: '${stray}' has no meaning`)
    return escaped ?? plain ?? groupOf(digit === undefined ? name! : Number(digit))
  }).join('')
}

function checkReplacement(pattern: RE2JS, user: string): void {
  const names = pattern.namedGroups() as Readonly<Record<string, number>>
  replacement(user, (group) => {
    const there = typeof group === 'number' ? group <= pattern.groupCount() : Object.hasOwn(names, group)
    if (!there) throw new Error(`The pattern has no group ${group}`)
    return ''
  })
}
