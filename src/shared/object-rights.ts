/** A privilege on a table. */
export type TablePrivilege = 'SELECT' | 'INSERT' | 'DELETE' | 'UPDATE' | 'OWNERSHIP' | 'GRANT_SELECT'

export type FunctionPrivilege = 'EXECUTE' | 'GRANT_EXECUTE' | 'OWNERSHIP'

export type ProcedurePrivilege = 'EXECUTE' | 'GRANT_EXECUTE'

/** Each level includes the levels before it. */
export const catalogAccess = ['none', 'read-only', 'all', 'owner'] as const
export type CatalogAccess = (typeof catalogAccess)[number]

export function includesAccess(given: CatalogAccess, wanted: CatalogAccess): boolean {
  return catalogAccess.indexOf(given) >= catalogAccess.indexOf(wanted)
}

/**
 * SQL of a rule on the columns of a table. `user`: the SQL reads its own tables as this user; absent: as the querying
 * user.
 */
export interface RuleExpression {
  readonly sql: string
  readonly user?: string
}

/** The rights of one user on one table. */
export interface TableRights {
  readonly privileges: ReadonlySet<TablePrivilege>
  /** Columns that may not be selected. */
  readonly restricted: ReadonlySet<string>
  /** Filter of the rows: the user sees only rows for which it is true. */
  readonly filter?: RuleExpression
  /** Expressions that replace columns when they are read. */
  readonly masks: ReadonlyMap<string, RuleExpression>
}

/**
 * The rights of one user on catalogs and their contents. Names are lower case. A right on a table needs a right on its
 * catalog: a user who may not read the catalog has no rights on its tables.
 */
export interface ObjectRights {
  catalog(catalog: string): CatalogAccess
  /** Whether lists show the catalog, because the user has a right on something in it. */
  showsCatalog(catalog: string): boolean
  showsSchema(catalog: string, schema: string): boolean
  ownsSchema(catalog: string, schema: string): boolean
  /** By the rules on tables only. */
  table(catalog: string, schema: string, table: string): TableRights
  functionPrivileges(catalog: string, schema: string, name: string): ReadonlySet<FunctionPrivilege>
  procedurePrivileges(catalog: string, schema: string, name: string): ReadonlySet<ProcedurePrivilege>
  /** Whether the user may give an object that they own to a new owner. */
  givesTo(owner: { readonly kind: 'USER' | 'ROLE'; readonly name: string }): boolean
  setsSystemProperty(name: string): boolean
  setsCatalogProperty(catalog: string, name: string): boolean
}
