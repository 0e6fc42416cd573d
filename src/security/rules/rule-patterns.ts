import { z } from 'zod'
import type { Identity } from '../authorization.ts'
import { namePattern, type NamePattern } from './java-regex.ts'

/** A regular expression of names; see `namePattern`. */
const namePatternText = z.string().transform((text, context): NamePattern => {
  try {
    return namePattern(text)
  } catch (error) {
    return wrong(context, [], (error as Error).message)
  }
})

/** A pattern whose key may be missing or null. Then it matches everything. */
export const pattern = namePatternText.nullish().transform((given) => given ?? undefined)

/** Reports to zod that the value cannot be made, and why. */
export function wrong(context: z.RefinementCtx, path: string[], message: string): never {
  context.addIssue({ code: 'custom', message, path })
  return z.NEVER
}

/** A list of rules, in order. Null counts as missing. */
export function section<T extends z.ZodType>(rule: T) {
  return z
    .array(rule)
    .nullish()
    .transform((rules) => rules ?? undefined)
}

/** The keys of a rule that say which users it applies to. */
export const subject = { user: pattern, role: pattern, group: pattern }

export interface RuleSubject {
  readonly user: NamePattern | undefined
  readonly role: NamePattern | undefined
  readonly group: NamePattern | undefined
}

/** A key that is equal for users with the same rules. */
export function identityKey({ user, groups }: Pick<Identity, 'user' | 'groups'>): string {
  return JSON.stringify([user, groups])
}

/** Whether a rule applies to a user. Users have no roles here, so a rule for a role applies to nobody. */
export function isAbout(rule: RuleSubject, { user, groups }: Pick<Identity, 'user' | 'groups'>): boolean {
  return (
    rule.role === undefined &&
    (rule.user?.matches(user) ?? true) &&
    (rule.group === undefined || groups.some((group) => rule.group!.matches(group)))
  )
}
