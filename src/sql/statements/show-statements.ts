import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { accessOf, shownName } from '../access-control.ts'
import { PARTITION_KEY, type ConnectorTable } from '../../connectors/spi/connector.ts'
import { qualify, type TableName } from '../analyzer/resolve.ts'
import { functionFamilies, nameOf } from '../functions/function-table.ts'
import { parseSignature } from '../functions/signature.ts'
import type { QualifiedName } from '../syntax/ast-node.ts'
import type { Query } from '../syntax/ast-query.ts'
import type { LikeClause, ShowColumns, ShowFunctions, ShowStatement, ShowTables } from '../syntax/ast-statements.ts'
import type { AnyNode } from '../syntax/tree.ts'
import { parseTypeText } from '../types/type-names.ts'
import { typeName } from '../types/type-text.ts'
import { rowsQuery, type GeneratedType, type RowsQuery, type RowValue } from './rows-query.ts'
import { sessionProperties, settingOf } from '../session/session-properties.ts'
import { showCreate } from './show-create.ts'
import { showStats } from './show-stats.ts'
import { errorAt } from '../analyzer/context.ts'
import { likeTest } from '../../shared/like-pattern.ts'
import type { StatementInput } from '../statement-input.ts'

/**
 * Turns SHOW and DESCRIBE into a query that returns their rows.
 * @throws EngineError with Trino's name and position if the object to show does not exist
 */
export async function showQuery(input: StatementInput, node: ShowStatement): Promise<Query> {
  return rowsQuery(await shownRows(input, node), node.span)
}

async function shownRows(input: StatementInput, node: ShowStatement): Promise<RowsQuery> {
  const { session, metadata } = input
  switch (node.kind) {
    case 'ShowCatalogs':
      return { ...names('Catalog', shownCatalogs(input).toSorted()), like: likeOf(node) }
    case 'ShowSchemas': {
      const named = node.catalog?.value.toLowerCase()
      // Trino's error has no position here.
      if (named !== undefined && !metadata.catalogs().includes(named)) {
        throw new EngineError('CATALOG_NOT_FOUND', `Catalog '${named}' not found`)
      }
      const catalog = catalogOf(input, node, named)
      const access = accessOf(session)
      access?.checkShowSchemas(catalog)
      const listed = (await metadata.schemas(catalog)).filter(likely(node))
      const schemas = listed.filter((schema) => access?.showsSchema(catalog, schema) !== false).toSorted()
      return { ...names('Schema', schemas, VARCHAR), like: likeOf(node) }
    }
    case 'ShowTables':
      return showTables(input, node)
    case 'ShowColumns':
      return showColumns(input, node)
    case 'ShowFunctions':
      return { ...(await showFunctions(input, node)), like: likeOf(node) }
    case 'ShowSession':
      return { ...sessionRows(session), like: likeOf(node) }
    case 'ShowCreate':
      return showCreate(input, node)
    case 'ShowStats':
      return showStats(input, node)
    case 'ShowGrants':
      return emptyRows(grantColumns)
    case 'ShowRoles':
      return emptyRows(['Role'])
    case 'ShowRoleGrants':
      return emptyRows(['Role Grants'])
    default:
      return unreachable(node)
  }
}

function names(column: string, values: readonly string[], type?: GeneratedType): RowsQuery {
  return { columns: [{ name: column, ...(type && { type }) }], rows: values.map((value) => [value]) }
}

const BOOLEAN: GeneratedType = { name: 'boolean' }
const VARCHAR: GeneratedType = { name: 'varchar' }

const grantColumns = [
  'Grantor',
  'Grantor Type',
  'Grantee',
  'Grantee Type',
  'Catalog',
  'Schema',
  'Table',
  'Privilege',
  'Grantable',
  'With Hierarchy',
]

function emptyRows(columns: readonly string[]): RowsQuery {
  return { columns: columns.map((name) => ({ name, type: VARCHAR })), rows: [] }
}

function likeOf(node: LikeClause): RowsQuery['like'] {
  return node.likePattern && { pattern: node.likePattern.value, escape: node.escape?.value }
}

/** A prefilter of names by the LIKE pattern. The query applies the pattern again and reports an invalid one. */
function likely(node: LikeClause): (name: string) => boolean {
  const like = likeOf(node)
  return like ? likeTest(like) : () => true
}

/** The named catalog, or the session's. */
function catalogOf(input: StatementInput, node: AnyNode, named: string | undefined): string {
  const catalog = named?.toLowerCase() ?? input.session.catalog
  if (catalog === undefined) {
    throw errorAt(input, node, 'MISSING_CATALOG_NAME', 'Catalog must be specified when session catalog is not set')
  }
  if (!input.metadata.catalogs().includes(catalog)) {
    throw errorAt(input, node, 'CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
  }
  return catalog
}

function shownCatalogs({ session, metadata }: StatementInput): readonly string[] {
  const access = accessOf(session)
  return access ? metadata.catalogs().filter((catalog) => access.showsCatalog(catalog)) : metadata.catalogs()
}

/** Completes `schema` or `catalog.schema` from the session. */
function schemaOf(
  input: StatementInput,
  node: AnyNode,
  name: QualifiedName | undefined,
): { catalog: string; schema: string } {
  const parts = name?.parts.map((part) => part.value.toLowerCase()) ?? []
  if (parts.length > 2) {
    throw errorAt(input, node, 'SYNTAX_ERROR', `Too many parts in schema name: ${parts.join('.')}`)
  }
  const catalog = catalogOf(input, node, parts.length === 2 ? parts[0] : undefined)
  const schema = parts.at(-1) ?? input.session.schema
  if (schema === undefined) {
    throw errorAt(input, node, 'MISSING_SCHEMA_NAME', 'Schema must be specified when session schema is not set')
  }
  return { catalog, schema }
}

async function showTables(input: StatementInput, node: ShowTables): Promise<RowsQuery> {
  const { catalog, schema } = schemaOf(input, node, node.schema)
  const access = accessOf(input.session)
  access?.checkShowTables(catalog, schema)
  if (!(await input.metadata.schemas(catalog)).includes(schema)) {
    throw errorAt(input, node, 'SCHEMA_NOT_FOUND', `Schema '${schema}' does not exist`)
  }
  const named = likely(node)
  const listed = await input.metadata.tables(catalog, schema, named)
  const tables = listed
    .map(({ table }) => table)
    .filter((table) => named(table) && access?.showsTable({ catalog, schema, table }) !== false)
    .toSorted()
  return { ...names('Table', tables, VARCHAR), like: likeOf(node) }
}

/** The parts of a table's name; a missing part is reported at the statement's position. */
function tableNameOf(input: StatementInput, node: AnyNode, name: QualifiedName): TableName {
  try {
    return qualify(name, input.session)
  } catch (error) {
    if (error instanceof EngineError && error.errorName.startsWith('MISSING')) {
      throw errorAt(input, node, error.errorName, error.message)
    }
    throw error
  }
}

async function showColumns(input: StatementInput, node: ShowColumns): Promise<RowsQuery> {
  const name = tableNameOf(input, node, node.table)
  const { catalog, schema } = name
  catalogOf(input, node, catalog)
  const table = await input.metadata.table(catalog, schema, name.table)
  if (table === undefined) {
    if (!(await input.metadata.schemas(catalog)).includes(schema)) {
      throw errorAt(input, node, 'SCHEMA_NOT_FOUND', `Schema '${schema}' does not exist`)
    }
    throw errorAt(input, node, 'TABLE_NOT_FOUND', `Table '${shownName(name)}' does not exist`)
  }
  const access = accessOf(input.session)
  // A table about another one (`"t$history"`) is read with the rights on that table.
  access?.checkShowColumns({ ...name, table: table.about ?? name.table })
  const isLikely = likely(node)
  const shown = visibleColumns(table).filter(
    (column) =>
      isLikely(column.name) && (table.about !== undefined || access?.showsColumn(name, column.name) !== false),
  )
  const rows = shown.map(({ name: column, type, partitionKey, comment }) => {
    return [column, shownType(type), partitionKey === true ? PARTITION_KEY : '', comment ?? '']
  })
  const columns = ['Column', 'Type', 'Extra', 'Comment'].map((column) => ({ name: column, type: VARCHAR }))
  return { columns, rows, like: likeOf(node) }
}

/** The type as Trino shows it. A cluster may have types that this server does not know: their text stays as it is. */
function shownType(type: string): string {
  try {
    return typeName(parseTypeText(type))
  } catch (error) {
    if (error instanceof EngineError) return type
    throw error
  }
}

function visibleColumns(table: ConnectorTable): ConnectorTable['columns'] {
  return table.columns.filter((column) => column.hidden !== true)
}

/** Trino's width of a column, or a larger one if our text is longer. */
function width(trinos: number, rows: readonly (readonly RowValue[])[], index: number): GeneratedType {
  const ours = rows.map((row) => {
    const value = row[index]
    return typeof value === 'string' ? [...value].length : 0
  })
  return { name: 'varchar', length: ours.reduce((most, length) => Math.max(most, length), trinos) }
}

/** All functions are global, so a schema has none. */
async function showFunctions(input: StatementInput, node: ShowFunctions): Promise<RowsQuery> {
  const all = functionRows()
  if (node.schema === undefined) return all
  const { catalog, schema } = schemaOf(input, node, node.schema)
  accessOf(input.session)?.checkShowFunctions(catalog, schema)
  if (!(await input.metadata.schemas(catalog)).includes(schema)) {
    throw errorAt(input, node, 'SCHEMA_NOT_FOUND', `Schema '${schema}' does not exist`)
  }
  return { ...all, rows: [] }
}

function functionRows(): RowsQuery {
  const rows = Object.values(functionFamilies())
    .flat()
    .filter((definition) => !definition.hidden)
    .map((definition): RowValue[] => {
      const text = parseSignature(definition.signature).text
      const list = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
      const result = typeof definition.result === 'string' ? definition.result : 'unknown'
      return [nameOf(definition), result, list, definition.kind, definition.deterministic, definition.note]
    })
    .toSorted((a, b) => compare(String(a[0]), String(b[0])) || compare(String(a[2]), String(b[2])))
  return {
    columns: [
      { name: 'Function', type: width(31, rows, 0) },
      { name: 'Return Type', type: width(28, rows, 1) },
      { name: 'Argument Types', type: width(78, rows, 2) },
      { name: 'Function Type', type: { name: 'varchar', length: 9 } },
      { name: 'Deterministic', type: BOOLEAN },
      { name: 'Description', type: width(205, rows, 5) },
    ],
    rows,
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function sessionRows(session: StatementInput['session']): RowsQuery {
  const shown = sessionProperties().filter((property) => property.shown)
  const rows = shown.map((property): RowValue[] => {
    const standard = session.bounds?.[property.name]?.shown ?? property.defaultValue ?? ''
    return [property.name, settingOf(session, property) ?? standard, standard, property.type, property.description]
  })
  return {
    columns: [
      { name: 'Name', type: width(57, rows, 0) },
      { name: 'Value', type: width(14, rows, 1) },
      { name: 'Default', type: width(14, rows, 2) },
      { name: 'Type', type: width(14, rows, 3) },
      { name: 'Description', type: width(162, rows, 4) },
    ],
    rows,
  }
}
