import {
  includesAccess,
  type CatalogAccess,
  type ObjectRights,
  type RuleExpression,
  type TableRights,
} from '../../shared/object-rights.ts'
import type { Identity } from '../authorization.ts'
import { namePattern, type NamePattern } from './java-regex.ts'
import type { ObjectSections, TableRule } from './object-sections.ts'
import type { SystemSections } from './system-sections.ts'
import { remembering } from './remembering.ts'
import { isAbout, identityKey, type RuleSubject } from './rule-patterns.ts'

/** Trino adds this rule: every user may read the server's own tables. */
const SYSTEM_CATALOG: NonNullable<ObjectSections['catalogs']>[number] = {
  user: undefined,
  role: undefined,
  group: undefined,
  catalog: namePattern('system'),
  allow: 'all',
}

/** The sections of a rules file that this module uses. */
type GivenSections = ObjectSections & Pick<SystemSections, 'authorization'>

const NOTHING: TableRights = { privileges: new Set(), restricted: new Set(), masks: new Map() }

/** All rights that a section could grant, for a section that is missing. */
const EVERYTHING: TableRights = {
  ...NOTHING,
  privileges: new Set(['SELECT', 'INSERT', 'DELETE', 'UPDATE', 'OWNERSHIP', 'GRANT_SELECT']),
}

/**
 * Decides by the sections about catalogs, schemas, tables, functions, procedures and session properties. The first rule
 * that fits decides. A section without a rule that fits refuses, and a missing section allows (functions and
 * procedures: those of `system.builtin`).
 * Source: Trino 476, FileBasedSystemAccessControl.
 */
export function objectRulesOf(sections: GivenSections): (identity: Pick<Identity, 'user' | 'groups'>) => ObjectRights {
  const given = new Map(sections.tables?.map((rule) => [rule, ofRule(rule)] as const))
  return remembering(identityKey, (identity) => rightsOf(sections, given, identity))
}

function rightsOf(
  sections: GivenSections,
  given: ReadonlyMap<TableRule, TableRights>,
  identity: Pick<Identity, 'user' | 'groups'>,
): ObjectRights {
  const own = <R extends RuleSubject>(rules: readonly R[] | undefined): readonly R[] | undefined =>
    rules?.filter((rule) => isAbout(rule, identity))
  const catalogs = own(sections.catalogs && [...sections.catalogs, SYSTEM_CATALOG])
  const schemas = own(sections.schemas)
  const tables = own(sections.tables)
  const functions = own(sections.functions)
  const procedures = own(sections.procedures)
  const authorization = own(sections.authorization)
  const systemProperties = own(sections.system_session_properties)
  const catalogProperties = own(sections.catalog_session_properties)

  /** Rules that grant anything in a catalog or in a schema of it. A missing section grants everything. */
  const giving: readonly { readonly catalog: NamePattern | undefined; readonly schema?: NamePattern | undefined }[] = [
    ...(schemas?.filter(({ owner }) => owner) ?? [ANY]),
    ...(tables?.filter(({ privileges }) => privileges.size > 0) ?? [ANY]),
    ...(functions?.filter(({ privileges }) => privileges.size > 0) ?? [BUILTIN]),
  ]
  const givingCatalogs = [...giving, ...(catalogProperties?.filter(({ allow }) => allow) ?? [ANY])]

  const catalog = remembering(String, (name: string): CatalogAccess => {
    if (catalogs === undefined) return 'all'
    return catalogs.find((rule) => fits(rule.catalog, name))?.allow ?? 'none'
  })
  return {
    catalog,
    showsCatalog: (name) =>
      includesAccess(catalog(name), 'owner') ||
      (includesAccess(catalog(name), 'read-only') && givingCatalogs.some((rule) => fits(rule.catalog, name))),
    showsSchema: (name, schema) =>
      includesAccess(catalog(name), 'read-only') &&
      giving.some((rule) => fits(rule.catalog, name) && fits(rule.schema, schema)),
    ownsSchema: (name, schema) =>
      includesAccess(catalog(name), 'all') &&
      (schemas === undefined ||
        (schemas.find((rule) => fits(rule.catalog, name) && fits(rule.schema, schema))?.owner ?? false)),
    table: tableRightsBy(tables, given),
    functionPrivileges: (name, schema, routine) =>
      (functions ?? [BUILTIN]).find(
        (rule) => fits(rule.catalog, name) && fits(rule.schema, schema) && fits(rule.function, routine),
      )?.privileges ?? new Set(),
    procedurePrivileges: (name, schema, routine) =>
      (procedures ?? [BUILTIN]).find(
        (rule) => fits(rule.catalog, name) && fits(rule.schema, schema) && fits(rule.procedure, routine),
      )?.privileges ?? new Set(),
    givesTo({ kind, name }) {
      const rule = authorization?.find(({ newUser, newRole }) => (kind === 'USER' ? newUser : newRole)?.matches(name))
      return rule?.allow ?? false
    },
    setsSystemProperty: (name) =>
      systemProperties === undefined || (systemProperties.find((rule) => fits(rule.property, name))?.allow ?? false),
    setsCatalogProperty: (of, name) =>
      includesAccess(catalog(of), 'read-only') &&
      (catalogProperties === undefined ||
        (catalogProperties.find((rule) => fits(rule.catalog, of) && fits(rule.property, name))?.allow ?? false)),
  }
}

const ANY = { catalog: undefined }

const BUILTIN = {
  catalog: namePattern('system'),
  schema: namePattern('builtin'),
  function: undefined,
  procedure: undefined,
  privileges: new Set(['EXECUTE', 'GRANT_EXECUTE'] as const),
}

function tableRightsBy(
  rules: readonly TableRule[] | undefined,
  given: ReadonlyMap<TableRule, TableRights>,
): ObjectRights['table'] {
  if (rules === undefined) return () => EVERYTHING
  // Lists check all tables of a schema, one after the other.
  const inSchema = remembering(
    (name: readonly [string, string]) => JSON.stringify(name),
    ([catalog, schema]) => rules.filter((each) => fits(each.catalog, catalog) && fits(each.schema, schema)),
    1,
  )
  const found = remembering(
    (name: readonly [string, string, string]) => JSON.stringify(name),
    ([catalog, schema, table]) => {
      const rule = inSchema([catalog, schema]).find((each) => fits(each.table, table))
      return rule === undefined ? NOTHING : given.get(rule)!
    },
  )
  return (catalog, schema, table) => found([catalog, schema, table])
}

function ofRule({ privileges, columns, filter, filter_environment: asUser }: TableRule): TableRights {
  return {
    privileges,
    restricted: new Set(columns.filter(({ allow }) => !allow).map(({ name }) => name.toLowerCase())),
    masks: new Map(
      columns.flatMap(({ name, allow, mask, mask_environment: user }) =>
        // A column that may not be selected is never read, so its mask does not matter.
        mask === undefined || !allow ? [] : [[name.toLowerCase(), expressionOf(mask, user)] as const],
      ),
    ),
    ...(filter !== undefined && { filter: expressionOf(filter, asUser) }),
  }
}

function expressionOf(sql: string, user: string | undefined): RuleExpression {
  return { sql, ...(user !== undefined && { user }) }
}

function fits(pattern: NamePattern | undefined, name: string): boolean {
  return pattern?.matches(name) ?? true
}
