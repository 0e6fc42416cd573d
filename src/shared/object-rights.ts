/** What of a table somebody may touch. */
export type TablePrivilege = 'SELECT' | 'INSERT' | 'DELETE' | 'UPDATE' | 'OWNERSHIP' | 'GRANT_SELECT'

export type FunctionPrivilege = 'EXECUTE' | 'GRANT_EXECUTE' | 'OWNERSHIP'

export type ProcedurePrivilege = 'EXECUTE' | 'GRANT_EXECUTE'

/** Each has what the ones before it have. */
export const catalogAccess = ['none', 'read-only', 'all', 'owner'] as const
export type CatalogAccess = (typeof catalogAccess)[number]

export function includesAccess(given: CatalogAccess, wanted: CatalogAccess): boolean {
  return catalogAccess.indexOf(given) >= catalogAccess.indexOf(wanted)
}

/** SQL of the rules over the columns of a table, and as whom its own tables are read: absent, as who asks. */
export interface RuleExpression {
  readonly sql: string
  readonly user?: string
}

/** Of one table. */
export interface TableRights {
  readonly privileges: ReadonlySet<TablePrivilege>
  /** Columns that may not be selected. */
  readonly restricted: ReadonlySet<string>
  /** Rows that are there: those for which it is true. */
  readonly filter?: RuleExpression
  /** What is read instead of a column. */
  readonly masks: ReadonlyMap<string, RuleExpression>
}

/**
 * What one user may do with catalogs and what is in them. Names are lower case.
 * A right over a table is one over its catalog too: whoever may not read the catalog has none.
 */
export interface ObjectRights {
  catalog(catalog: string): CatalogAccess
  /** In lists: something of it is his. */
  showsCatalog(catalog: string): boolean
  showsSchema(catalog: string, schema: string): boolean
  ownsSchema(catalog: string, schema: string): boolean
  /** By the rules of tables alone. */
  table(catalog: string, schema: string, table: string): TableRights
  functionPrivileges(catalog: string, schema: string, name: string): ReadonlySet<FunctionPrivilege>
  procedurePrivileges(catalog: string, schema: string, name: string): ReadonlySet<ProcedurePrivilege>
  /** May he give what he owns to somebody? */
  givesTo(owner: { readonly kind: 'USER' | 'ROLE'; readonly name: string }): boolean
  setsSystemProperty(name: string): boolean
  setsCatalogProperty(catalog: string, name: string): boolean
}
