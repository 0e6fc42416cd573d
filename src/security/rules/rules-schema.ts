import { z } from 'zod'
import { compileJava, namePattern, type NamePattern } from './java-regex.ts'
import { userTemplate, type UserTemplate } from './user-template.ts'

const namePatternText = z.string().transform((text, context): NamePattern => {
  try {
    return namePattern(text)
  } catch (error) {
    return wrong(context, [], (error as Error).message)
  }
})

/** Its key may be left out or null: then it stands for everybody. */
const pattern = namePatternText.nullish().transform((given) => given ?? undefined)

const queryAccess = ['execute', 'view', 'kill'] as const
export type QueryAccess = (typeof queryAccess)[number]

const queryRule = z
  .strictObject({
    user: pattern,
    role: pattern,
    group: pattern,
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
  let place = typeof keys.original_user === 'string' ? 'original_user' : 'originalUser'
  try {
    const originalUser = original === undefined ? undefined : namePattern(original)
    const groups = original === undefined ? undefined : compileJava(original)
    place = keys.new_user === undefined ? 'newUser' : 'new_user'
    return { originalUser, originalRole: keys.original_role, newUser: userTemplate(newUser, groups), allow: keys.allow }
  } catch (error) {
    return wrong(context, [place], (error as Error).message)
  }
})

function wrong(context: z.RefinementCtx, path: string[], message: string): never {
  context.addIssue({ code: 'custom', message, path })
  return z.NEVER
}

/** One that is null is one that is not there. */
function section<T extends z.ZodType>(rule: T) {
  return z
    .array(rule)
    .nullish()
    .transform((rules) => rules ?? undefined)
}

/** Of a section that nothing acts on yet: rules, whatever they say. */
const notActing = section(z.looseObject({}))

/** Trino's file of access control: the sections that decide something here, and those that do not yet. */
export const rulesSchema = z.strictObject({
  queries: section(queryRule),
  impersonation: section(impersonationRule),
  catalogs: notActing,
  schemas: notActing,
  tables: notActing,
  functions: notActing,
  procedures: notActing,
  system_information: notActing,
  system_session_properties: notActing,
  catalog_session_properties: notActing,
  authorization: notActing,
  principals: notActing,
})

export type QueryRule = z.output<typeof queryRule>
export type RulesFile = z.output<typeof rulesSchema>

const ACTING: readonly string[] = ['queries', 'impersonation'] satisfies (keyof RulesFile)[]

/** Sections that are there and decide nothing. */
export function sectionsWithoutEffect(file: RulesFile): readonly string[] {
  return Object.entries(file)
    .filter(([name, section]) => section !== undefined && !ACTING.includes(name))
    .map(([name]) => name)
}
