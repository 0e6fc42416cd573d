import { z } from 'zod'
import { compileJava, namePattern, type NamePattern } from './java-regex.ts'
import { objectSections } from './object-sections.ts'
import { pattern, section, subject, wrong } from './rule-patterns.ts'
import { systemSections } from './system-sections.ts'
import { userTemplate, type UserTemplate } from './user-template.ts'

const queryAccess = ['execute', 'view', 'kill'] as const
export type QueryAccess = (typeof queryAccess)[number]

const queryRule = z
  .strictObject({
    ...subject,
    queryOwner: pattern,
    allow: z
      .array(
        z
          .string()
          .transform((text) => text.toLowerCase())
          .pipe(z.enum(queryAccess)),
      )
      .transform((modes): ReadonlySet<QueryAccess> => new Set(modes)),
  })
  .refine((rule) => rule.queryOwner === undefined || !rule.allow.has('execute'), {
    error: "A rule with queryOwner cannot allow 'execute'",
    path: ['queryOwner'],
  })

const impersonationKeys = z.strictObject({
  original_user: z.string().nullish(),
  originalUser: z.string().nullish(),
  original_role: pattern,
  new_user: z.string().optional(),
  newUser: z.string().optional(),
  allow: z
    .boolean()
    .nullish()
    .transform((given) => given ?? true),
})

export interface ImpersonationRule {
  readonly originalUser: NamePattern | undefined
  readonly originalRole: NamePattern | undefined
  readonly newUser: UserTemplate
  readonly allow: boolean
}

const impersonationRule = impersonationKeys.transform((keys, context): ImpersonationRule => {
  const original = keys.original_user ?? keys.originalUser ?? undefined
  const newUser = keys.new_user ?? keys.newUser
  if (newUser === undefined) return wrong(context, [], 'new_user is missing')
  let key = typeof keys.original_user === 'string' ? 'original_user' : 'originalUser'
  try {
    const originalUser = original === undefined ? undefined : namePattern(original)
    const groups = original === undefined ? undefined : compileJava(original)
    key = keys.new_user === undefined ? 'newUser' : 'new_user'
    return { originalUser, originalRole: keys.original_role, newUser: userTemplate(newUser, groups), allow: keys.allow }
  } catch (error) {
    return wrong(context, [key], (error as Error).message)
  }
})

/** The schema of Trino's access control file. */
export const rulesSchema = z.strictObject({
  queries: section(queryRule),
  impersonation: section(impersonationRule),
  ...objectSections,
  ...systemSections,
})

export type QueryRule = z.output<typeof queryRule>
export type RulesFile = z.output<typeof rulesSchema>
