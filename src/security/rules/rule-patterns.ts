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

/** Its key may be left out or null: then it stands for everything. */
export const pattern = namePatternText.nullish().transform((given) => given ?? undefined)

/** Tells zod what is wrong, where the value cannot be made. */
export function wrong(context: z.RefinementCtx, path: string[], message: string): never {
  context.addIssue({ code: 'custom', message, path })
  return z.NEVER
}

/** Rules in their order. One that is null is one that is not there. */
export function section<T extends z.ZodType>(rule: T) {
  return z
    .array(rule)
    .nullish()
    .transform((rules) => rules ?? undefined)
}

/** Whom a rule is about. */
export const subject = { user: pattern, role: pattern, group: pattern }

export interface Whom {
  readonly user: NamePattern | undefined
  readonly role: NamePattern | undefined
  readonly group: NamePattern | undefined
}

/** The same for all about whom each rule is or is not. */
export function identityKey({ user, groups }: Pick<Identity, 'user' | 'groups'>): string {
  return JSON.stringify([user, groups])
}

/** Is a rule about somebody? Nobody has roles here, so one for a role is about nobody. */
export function isAbout(rule: Whom, { user, groups }: Pick<Identity, 'user' | 'groups'>): boolean {
  return (
    rule.role === undefined &&
    (rule.user?.matches(user) ?? true) &&
    (rule.group === undefined || groups.some((group) => rule.group!.matches(group)))
  )
}
