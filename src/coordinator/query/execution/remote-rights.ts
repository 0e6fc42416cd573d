import type { ObjectRights, TableRights } from '../../../shared/object-rights.ts'
import type { ObjectName, RightsOf } from '../../../sql/access-control.ts'

const MAY_READ: TableRights = { privileges: new Set(['SELECT']), restricted: new Set(), masks: new Map() }

/**
 * The rights of users where clusters decide about some catalogs themselves: the rules of this server are not about these
 * catalogs. Each user may list and read everything that such a cluster shows to that user.
 */
export function rightsBeside(rightsOf: RightsOf, decidesItself: (catalog: string) => boolean): RightsOf {
  const known = new Map<string, boolean>()
  // Lists ask for each of their tables.
  const isTheirs = (catalog: string): boolean => {
    const found = known.get(catalog) ?? decidesItself(catalog)
    known.set(catalog, found)
    return found
  }
  return (user) => {
    const own = rightsOf(user)
    return {
      ...allOf(own),
      catalog: (catalog) => (isTheirs(catalog) ? 'read-only' : own.catalog(catalog)),
      showsCatalog: (catalog) => isTheirs(catalog) || own.showsCatalog(catalog),
      showsSchema: (catalog, schema) => isTheirs(catalog) || own.showsSchema(catalog, schema),
      table: (catalog, schema, table) => (isTheirs(catalog) ? MAY_READ : own.table(catalog, schema, table)),
    }
  }
}

/** The same rights. Reports the rights on each table that are asked for. */
export function watchedRights(rightsOf: RightsOf, onTable: (name: ObjectName, rights: TableRights) => void): RightsOf {
  return (user) => {
    const own = rightsOf(user)
    return {
      ...allOf(own),
      table(catalog, schema, table) {
        const rights = own.table(catalog, schema, table)
        onTable({ catalog, schema, table }, rights)
        return rights
      },
    }
  }
}

/** The functions of the rights as plain members, which a copy keeps. */
function allOf(rights: ObjectRights): ObjectRights {
  return {
    catalog: (...name) => rights.catalog(...name),
    showsCatalog: (...name) => rights.showsCatalog(...name),
    showsSchema: (...name) => rights.showsSchema(...name),
    ownsSchema: (...name) => rights.ownsSchema(...name),
    table: (...name) => rights.table(...name),
    functionPrivileges: (...name) => rights.functionPrivileges(...name),
    procedurePrivileges: (...name) => rights.procedurePrivileges(...name),
    givesTo: (owner) => rights.givesTo(owner),
    setsSystemProperty: (name) => rights.setsSystemProperty(name),
    setsCatalogProperty: (...name) => rights.setsCatalogProperty(...name),
  }
}
