import { z } from 'zod'
import { catalogAccess, type CatalogAccess } from '../../shared/object-rights.ts'
import { pattern, section, subject } from './rule-patterns.ts'

// The sections about catalogs and their contents, as Trino reads them (FileBasedSystemAccessControl of 476).

const catalogRule = z.strictObject({
  ...subject,
  catalog: pattern,
  allow: z.union([
    z.boolean().transform((all): CatalogAccess => (all ? 'all' : 'none')),
    z
      .string()
      .transform((text) => text.toLowerCase())
      .pipe(z.enum(catalogAccess)),
  ]),
})

const schemaRule = z.strictObject({ ...subject, catalog: pattern, schema: pattern, owner: z.boolean().default(false) })

const environment = z
  .strictObject({ user: z.string().nullish() })
  .nullish()
  .transform((given) => given?.user ?? undefined)

const expression = z
  .string()
  .nullish()
  .transform((given) => given ?? undefined)

const columnRule = z.strictObject({
  name: z.string(),
  allow: z
    .boolean()
    .nullish()
    .transform((given) => given ?? true),
  mask: expression,
  mask_environment: environment,
})

const tableRule = z
  .strictObject({
    ...subject,
    catalog: pattern,
    schema: pattern,
    table: pattern,
    privileges: privileges(['SELECT', 'INSERT', 'DELETE', 'UPDATE', 'OWNERSHIP', 'GRANT_SELECT']),
    columns: z
      .array(columnRule)
      .nullish()
      .transform((given) => given ?? []),
    filter: expression,
    filter_environment: environment,
  })
  .superRefine(({ columns }, context) => {
    const names = new Set<string>()
    columns.forEach(({ name }, at) => {
      if (names.has(name)) {
        context.addIssue({
          code: 'custom',
          message: `The column ${name} occurs twice`,
          path: ['columns', at, 'name'],
        })
      }
      names.add(name)
    })
  })

const functionRule = z
  .strictObject({
    ...subject,
    catalog: pattern,
    schema: pattern,
    function: pattern,
    privileges: privileges(['EXECUTE', 'GRANT_EXECUTE', 'OWNERSHIP']),
    function_kinds: z.array(z.string()).nullish(),
    functionKinds: z.array(z.string()).nullish(),
  })
  .superRefine((rule, context) => {
    for (const key of ['function_kinds', 'functionKinds'] as const) {
      if ((rule[key]?.length ?? 0) === 0) continue
      context.addIssue({ code: 'custom', message: 'function_kind is no longer supported in rules', path: [key] })
    }
  })

const procedureRule = z.strictObject({
  ...subject,
  catalog: pattern,
  schema: pattern,
  procedure: pattern,
  privileges: privileges(['EXECUTE', 'GRANT_EXECUTE']),
})

const systemPropertyRule = z.strictObject({ ...subject, property: pattern, allow: z.boolean().default(false) })

const catalogPropertyRule = systemPropertyRule.extend({ catalog: pattern })

function privileges<const P extends readonly [string, ...string[]]>(names: P) {
  return z.array(z.enum(names)).transform((given): ReadonlySet<P[number]> => new Set(given))
}

export const objectSections = {
  catalogs: section(catalogRule),
  schemas: section(schemaRule),
  tables: section(tableRule),
  functions: section(functionRule),
  procedures: section(procedureRule),
  system_session_properties: section(systemPropertyRule),
  catalog_session_properties: section(catalogPropertyRule),
}

export type TableRule = z.output<typeof tableRule>
export type ObjectSections = { readonly [K in keyof typeof objectSections]: z.output<(typeof objectSections)[K]> }
