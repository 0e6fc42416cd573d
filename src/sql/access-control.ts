import { EngineError } from '../shared/engine-error.ts'
import {
  includesAccess,
  type CatalogAccess,
  type ObjectRights,
  type TablePrivilege,
  type TableRights,
} from '../shared/object-rights.ts'

/** A table or view, existing or about to be created; in lower case. */
export interface ObjectName {
  readonly catalog: string
  readonly schema: string
  readonly table: string
}

/** Returns the rights of a user according to the rules in force. */
export type RightsOf = (user: string) => ObjectRights

/** The access control a statement starts with; undefined if no rules are in force and every access is allowed. */
export function accessOf({
  rightsOf,
  user,
}: {
  readonly rightsOf?: RightsOf
  readonly user: string
}): AccessControl | undefined {
  return rightsOf && new AccessControl(rightsOf, user)
}

/** An access error with Trino's wording. */
export function accessDenied(message: string): EngineError {
  return new EngineError('PERMISSION_DENIED', `Access Denied: ${message}`)
}

/** Reading this schema needs no rights: its tables list only objects that the user may see. */
const INFORMATION_SCHEMA = 'information_schema'

/**
 * Checks the rights of one user for each part of a statement; each `check…` method refuses by throwing.
 * Source: Trino 476, AccessControlManager and FileBasedSystemAccessControl.
 */
export class AccessControl {
  readonly user: string
  readonly #rightsOf: RightsOf
  readonly #rights: ObjectRights
  /**
   * Whether another user reads through a view of this user: the view's owner then also needs the right to grant SELECT.
   */
  readonly grants: boolean

  constructor(rightsOf: RightsOf, user: string, grants = false) {
    this.user = user
    this.#rightsOf = rightsOf
    this.#rights = rightsOf(user)
    this.grants = grants
  }

  /** The access control of another user, for a rule that reads tables as that user. */
  as(user: string | undefined): AccessControl {
    return user === undefined || user === this.user ? this : new AccessControl(this.#rightsOf, user, this.grants)
  }

  /**
   * The access control inside a view's query: it runs as the view's owner, or as the current user if the view has no
   * owner.
   */
  withinView(owner: string | undefined): AccessControl {
    return owner === undefined || owner === this.user ? this : new AccessControl(this.#rightsOf, owner, true)
  }

  /** The row filter and the column masks of a table; undefined if it has neither. */
  policies({ catalog, schema, table }: ObjectName): Pick<TableRights, 'filter' | 'masks'> | undefined {
    if (schema === INFORMATION_SCHEMA) return undefined
    const rights = this.#rights.table(catalog, schema, table)
    return rights.filter === undefined && rights.masks.size === 0 ? undefined : rights
  }

  // ---- Reading

  /** @param columns the columns that are read; empty for a query that only counts rows */
  checkSelect(name: ObjectName, columns: ReadonlySet<string>): void {
    if (this.grants) {
      this.#asOwner(() => this.#checkPassOn(name, columns))
      return
    }
    this.checkCatalog(name.catalog)
    if (name.schema !== INFORMATION_SCHEMA && !this.#selects(name, columns)) {
      throw accessDenied(`Cannot select from table ${shownName(name)}`)
    }
  }

  /** Checks the right to read a table that CREATE TABLE LIKE copies. */
  checkReference(name: ObjectName, columns: ReadonlySet<string>): void {
    if (
      !this.#has(name.catalog, 'read-only') ||
      (name.schema !== INFORMATION_SCHEMA && !this.#selects(name, columns))
    ) {
      throw accessDenied(`Cannot reference columns of table ${shownName(name)}`)
    }
  }

  /** Checks that the owner of a view may grant others SELECT on a table that the view reads. */
  #checkPassOn(name: ObjectName, columns: ReadonlySet<string>): void {
    this.checkCatalog(name.catalog)
    const all = this.#has(name.catalog, 'all')
    if (name.schema === INFORMATION_SCHEMA && all) return
    if (!all || !this.#selects(name, columns)) throw accessDenied(`Cannot select from table ${shownName(name)}`)
    if (!this.#table(name).privileges.has('GRANT_SELECT')) {
      throw accessDenied(`View owner '${this.user}' cannot create view that selects from ${shownName(name)}`)
    }
  }

  #asOwner(check: () => void): void {
    try {
      check()
    } catch (error) {
      if (!(error instanceof EngineError) || error.errorName !== 'PERMISSION_DENIED') throw error
      throw accessDenied(
        `View owner does not have sufficient privileges: ${error.message.slice('Access Denied: '.length)}`,
      )
    }
  }

  #selects(name: ObjectName, columns: ReadonlySet<string>): boolean {
    const { privileges, restricted } = this.#table(name)
    if (!privileges.has('SELECT') && !privileges.has('GRANT_SELECT')) return false
    return ![...columns].some((column) => restricted.has(column.toLowerCase()))
  }

  // ---- Catalogs, schemas and what lists show

  checkCatalog(catalog: string): void {
    if (!this.#has(catalog, 'read-only')) throw accessDenied(`Cannot access catalog ${catalog}`)
  }

  showsCatalog(catalog: string): boolean {
    return this.#rights.showsCatalog(catalog)
  }

  checkShowSchemas(catalog: string): void {
    this.checkCatalog(catalog)
    if (!this.#rights.showsCatalog(catalog)) throw accessDenied('Cannot show schemas')
  }

  showsSchema(catalog: string, schema: string): boolean {
    return this.#rights.showsCatalog(catalog) && this.#rights.showsSchema(catalog, schema)
  }

  checkShowTables(catalog: string, schema: string): void {
    this.checkCatalog(catalog)
    if (!this.#rights.showsSchema(catalog, schema))
      throw accessDenied(`Cannot show tables of schema ${catalog}.${schema}`)
  }

  checkShowFunctions(catalog: string, schema: string): void {
    this.checkCatalog(catalog)
    if (!this.#rights.showsSchema(catalog, schema))
      throw accessDenied(`Cannot show functions of schema ${catalog}.${schema}`)
  }

  showsTable(name: ObjectName): boolean {
    const { catalog, schema } = name
    return this.#rights.showsCatalog(catalog) && (this.#rights.ownsSchema(catalog, schema) || this.#hasAny(name))
  }

  checkShowColumns(name: ObjectName): void {
    this.checkCatalog(name.catalog)
    if (!this.#hasAny(name)) throw accessDenied(`Cannot show columns of table ${shownName(name)}`)
  }

  /** Restricted columns are hidden only from users with no more than read privileges. */
  showsColumn(name: ObjectName, column: string): boolean {
    if (!this.#rights.showsCatalog(name.catalog) || !this.#hasAny(name)) return false
    if (name.schema === INFORMATION_SCHEMA) return true
    const { privileges, restricted } = this.#table(name)
    const reads = [...privileges].every((privilege) => privilege === 'SELECT' || privilege === 'GRANT_SELECT')
    return !reads || !restricted.has(column.toLowerCase())
  }

  /** The size of a table counts all its rows, so it is shown only to users who may read all of them. */
  showsSize(name: ObjectName): boolean {
    if (!this.#has(name.catalog, 'read-only') || !this.#selects(name, new Set())) return false
    return this.policies(name)?.filter === undefined
  }

  // ---- Changes

  /** @param doing the action in Trino's words: `create schema` */
  checkOwnsSchema(catalog: string, schema: string, doing: string, further = ''): void {
    this.checkCatalog(catalog)
    if (this.#rights.ownsSchema(catalog, schema)) return
    throw accessDenied(`Cannot ${doing} ${catalog}.${schema}${further}`)
  }

  /**
   * @param doing the action in Trino's words: `insert into table`
   * @param further the end of Trino's message: ` to c.s.other`
   */
  checkTable(name: ObjectName, privilege: TablePrivilege, doing: string, further = ''): void {
    this.checkCatalog(name.catalog)
    const reads = privilege === 'SELECT' || privilege === 'GRANT_SELECT'
    const mayTouch =
      this.#has(name.catalog, reads ? 'read-only' : 'all') &&
      (name.schema === INFORMATION_SCHEMA || this.#table(name).privileges.has(privilege))
    if (!mayTouch) throw accessDenied(`Cannot ${doing} ${shownName(name)}${further}`)
  }

  /** @param owner the new owner */
  checkGives(
    name: Pick<ObjectName, 'catalog' | 'schema'> & Partial<ObjectName>,
    kind: string,
    owner: { readonly kind: 'USER' | 'ROLE'; readonly name: string },
  ): void {
    const { catalog, schema, table } = name
    this.checkCatalog(catalog)
    const owns =
      table === undefined
        ? this.#rights.ownsSchema(catalog, schema)
        : this.#has(catalog, 'all') && this.#table({ catalog, schema, table }).privileges.has('OWNERSHIP')
    if (owns && this.#rights.givesTo(owner)) return
    const of = [catalog, schema, ...(table === undefined ? [] : [table])].join('.')
    throw accessDenied(`Cannot set authorization for ${kind} ${of} to ${owner.kind} ${owner.name}`)
  }

  checkProcedure(catalog: string, schema: string, procedure: string): void {
    this.checkCatalog(catalog)
    const privileges = this.#rights.procedurePrivileges(catalog, schema, procedure)
    if (privileges.size === 0) throw accessDenied(`Cannot execute procedure ${catalog}.${schema}.${procedure}`)
  }

  /** @param catalog undefined for a system property */
  checkSetProperty(catalog: string | undefined, property: string): void {
    if (catalog === undefined) {
      if (!this.#rights.setsSystemProperty(property))
        throw accessDenied(`Cannot set system session property ${property}`)
      return
    }
    this.checkCatalog(catalog)
    if (!this.#rights.setsCatalogProperty(catalog, property)) {
      throw accessDenied(`Cannot set catalog session property ${property}`)
    }
  }

  #has(catalog: string, wanted: CatalogAccess): boolean {
    return includesAccess(this.#rights.catalog(catalog), wanted)
  }

  #hasAny(name: ObjectName): boolean {
    if (!this.#has(name.catalog, 'read-only')) return false
    return name.schema === INFORMATION_SCHEMA || this.#table(name).privileges.size > 0
  }

  #table({ catalog, schema, table }: ObjectName): TableRights {
    return this.#rights.table(catalog, schema, table)
  }
}

/** The name of an object in messages. */
export function shownName({ catalog, schema, table }: ObjectName): string {
  return `${catalog}.${schema}.${table}`
}
