import type { ConnectorTable } from '../../connectors/spi/connector.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { Signal } from '../../shared/quipu-error.ts'
import { shownName } from '../access-control.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import { accessDenied } from '../access-control.ts'
import type { Table } from '../syntax/ast-query.ts'
import type { Warning } from '../front-end.ts'
import { canCoerceUnnamed } from '../types/coercion.ts'
import { parseTypeText } from '../types/type-names.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, columnOf } from './build.ts'
import {
  errorAt,
  locatedAt,
  newId,
  type AnalysisContext,
  type AnalyzedQuery,
  type AnalyzedRelation,
  type QueryColumn,
} from './context.ts'
import { qualify, viewSession, withinView, type ResolvedTable, type TableName } from './resolve.ts'
import { findNamedQuery, type NamedQuery, type Scope } from './scope.ts'
import { analyzePeriod, pointOf } from './table-points.ts'
import { withPolicies, type RuleNames } from './table-policies.ts'
import type { CteScanNode, ScanNode } from './tree.ts'
import { visitStatementColumns } from './walk.ts'

const MAX_VIEW_NESTING = 50
/** A view that reads another view twice doubles the plan: thirty levels of such views would be a billion scans. */
const MAX_VIEWS_READ = 1000

/** As in Trino, FOR VERSION AS OF has no effect on a view. */
const VERSION_IGNORED: Warning = {
  warningCode: { code: 0x0000_ff04, name: 'VERSION_OF_VIEW_IGNORED' },
  message: 'FOR VERSION AS OF and FOR TIMESTAMP AS OF have no effect on a view: it shows the tables of today',
}

/** Analyzes a table, a view, or a query of an enclosing WITH clause. */
export function analyzeTable(context: AnalysisContext, table: Table, scope: Scope): AnalyzedRelation {
  const { parts } = table.name
  if (parts.length === 1) {
    const named = findNamedQuery(scope, parts[0]!.value.toLowerCase())
    if (named !== undefined) return scanCommonTable(context, parts[0]!, named)
  }
  const name = locatedAt(context, table, () => qualify(table.name, context.session))
  const found = context.metadata.table(name)
  if (found === undefined) throw missingTable(context, table, name)
  // A column prefix must use no more of the table's name than the statement gives.
  const relation = parts.map((part) => part.value.toLowerCase())
  if (found.view !== undefined) {
    if (table.queryPeriod !== undefined) context.warnings.push(VERSION_IGNORED)
    return analyzeView(context, table, found, name)
  }
  const read = table.queryPeriod === undefined ? found : versionOf(context, table, name, found)
  if (found.about !== undefined) return aboutTable(context, { ...name, table: found.about }, scanTable(context, name, found, relation)) // prettier-ignore
  const scan = scanTable(context, name, read, relation)
  if (read === found) return withPolicies(context, table, name, scan)
  const { version } = read
  const node: ScanNode = { ...scan.node, ...(version !== undefined && { version }) }
  return withPolicies(context, table, name, { node, fields: scan.fields }, namesForRules(read, found))
}

/** Rows that describe a table (`"t$history"`). Only users that may read the table itself may read them. */
function aboutTable(context: AnalysisContext, name: TableName, rows: AnalyzedRelation): AnalyzedRelation {
  const { access } = context
  if (access === undefined) return rows
  if (access.policies(name)?.filter !== undefined)
    throw accessDenied(
      `Cannot select from tables about ${name.catalog}.${name.schema}.${name.table}: its rows are filtered`,
    )
  context.named.push({ access, name, columns: new Map(), read: context.read })
  return rows
}

/** The version of a table that the text names. */
function versionOf(context: AnalysisContext, table: Table, name: TableName, today: ConnectorTable): ConnectorTable {
  const period = table.queryPeriod!
  const value = analyzePeriod(context, period)
  // DESCRIBE does not know the value of a parameter.
  if (value === undefined) return today
  if (!context.metadata.hasVersions(name.catalog) || today.about !== undefined) {
    throw errorAt(context, period, 'NOT_SUPPORTED', 'This connector does not support versioned tables')
  }
  const version = context.metadata.tableAt(name, pointOf(context, period, value))
  if (version === undefined) throw missingTable(context, table, name)
  if (version instanceof EngineError) {
    context.access?.checkSelect(name, new Set())
    throw version
  }
  return version
}

/**
 * The names by which rules find the columns of an older version: rules name the columns of today. A dropped column keeps
 * its last name for them, unless today's table has another column of that name.
 */
function namesForRules(read: ConnectorTable, today: ConnectorTable): readonly RuleNames[] {
  const names = new Set(today.columns.map(({ name }) => name))
  return read.columns.map(({ name, nameToday, lastName = name }) => ({
    inRules: nameToday ?? (names.has(lastName) ? undefined : lastName),
    all: [...new Set([nameToday ?? lastName, name])],
  }))
}

/** All rows of a table, without the policies of the rules. @param relation the prefix of its columns' names */
export function scanTable(
  context: AnalysisContext,
  name: TableName,
  found: ConnectorTable,
  relation: readonly string[],
): AnalyzedRelation & { readonly node: ScanNode } {
  const columns = found.columns.map((column) => ({
    id: newId(context),
    name: column.name,
    type: parseTypeText(column.type),
    hidden: column.hidden === true,
  }))
  for (const { id, name: column } of columns)
    context.sources.set(id, [name.catalog, name.schema, name.table, column].join('.'))
  const { handle, snapshot, answers } = found
  const keys = found.columns.filter(({ partitionKey }) => partitionKey === true).map(({ name: column }) => column)
  return {
    node: {
      kind: 'scan',
      ...name,
      handle,
      snapshot,
      answers,
      ...(context.views.length > 0 && { via: context.views }),
      ...(keys.length > 0 && { partitionedBy: keys }),
      columns,
    },
    fields: columns.map(({ id, name: column, type, hidden }) => ({ name: column, relation, type, column: id, hidden })),
  }
}

function missingTable(context: AnalysisContext, node: Table, { catalog, schema, table }: TableName): Error {
  if (!context.metadata.hasCatalog(catalog)) {
    return errorAt(context, node, 'CATALOG_NOT_FOUND', `Catalog '${catalog}' not found`)
  }
  if (!context.metadata.hasSchema(catalog, schema)) {
    return errorAt(context, node, 'SCHEMA_NOT_FOUND', `Schema '${schema}' does not exist`)
  }
  return errorAt(
    context,
    node,
    'TABLE_NOT_FOUND',
    `Table '${[catalog, schema, table].map(quoted).join('.')}' does not exist`,
  )
}

/** A part of a name as messages show it. */
function quoted(part: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(part) ? part : `"${part.replaceAll('"', '""')}"`
}

function scanCommonTable(context: AnalysisContext, name: Identifier, named: NamedQuery): AnalyzedRelation {
  const columns = named.columns.map(({ column, type }) => ({ id: newId(context), source: column, type }))
  const node: CteScanNode = { kind: 'cte', table: named.table, columns }
  const relation = [name.value.toLowerCase()]
  return {
    node,
    fields: named.columns.map(({ name: column, type }, i) => ({
      name: column,
      relation,
      type,
      column: columns[i]!.id,
    })),
  }
}

/** An error that does not mention the view in which it was found. */
class TooManyViews extends EngineError {
  constructor() {
    super(
      'QUERY_EXCEEDED_COMPILER_LIMIT',
      `Query reads more than ${MAX_VIEWS_READ} views, those that its views read among them`,
    )
  }
}

/** Analyzes a view's text in the session of its creation, then coerces its columns to their declared types. */
function analyzeView(context: AnalysisContext, node: Table, table: ResolvedTable, name: TableName): AnalyzedRelation {
  const label = shownName(name)
  if (context.views.includes(label) || context.views.length >= MAX_VIEW_NESTING) {
    throw errorAt(context, node, 'VIEW_IS_RECURSIVE', 'View is recursive')
  }
  if (context.defined?.label === label && !context.defined.refreshed) {
    const kind = table.materialized ? 'materialized view' : 'view'
    throw errorAt(context, node, 'VIEW_IS_RECURSIVE', `Statement would create a recursive ${kind}`)
  }
  if (++context.viewsRead.count > MAX_VIEWS_READ) throw new TooManyViews()
  if (table.query === undefined) {
    throw errorAt(context, node, 'INVALID_VIEW', `Invalid view '${label}': its text cannot be parsed`)
  }
  const refreshed = context.defined?.label === label
  const inner: AnalysisContext = {
    ...context,
    text: { sql: table.view!.sql, origin: { lineNumber: 1, columnNumber: 1 } },
    session: { ...context.session, ...viewSession(table, name), ...(refreshed && { user: table.view!.owner! }) },
    parameters: { kind: 'values', values: [] },
    views: [...context.views, label],
    functions: new Map(),
    access: withinView(context.access, table),
  }
  let query: AnalyzedQuery
  try {
    query = inner.analyzeQuery(inner, table.query, undefined)
  } catch (error) {
    // A time limit is not an error of the view.
    if (error instanceof Signal) throw error
    if (error instanceof EngineError && error.errorName === 'EXCEEDED_TIME_LIMIT') throw error
    if (error instanceof TooManyViews) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw errorAt(context, node, 'INVALID_VIEW', `Failed analyzing stored view '${label}': ${reason}`)
  }
  const declared = table.columns.filter((column) => column.hidden !== true)
  const stale = stalenessOf(declared, query.columns)
  if (stale !== undefined) {
    throw errorAt(context, node, 'VIEW_IS_STALE', `View '${label}' is stale or in invalid state: ${stale}`)
  }
  const relation = node.name.parts.map((part) => part.value.toLowerCase())
  const columns = declared.map((column, i) => {
    const { column: source, type } = query.columns[i]!
    return { id: newId(context), expression: castTo(columnOf(source, type), parseTypeText(column.type)) }
  })
  const rows = {
    node: { kind: 'project', input: query.node, columns },
    fields: declared.map((column, i) => ({
      name: column.name,
      relation,
      type: columns[i]!.expression.type,
      column: columns[i]!.id,
    })),
  } as const
  if (refreshed) return rows
  // The query of stored rows is not run, but its owner needs the rights to read all of it.
  if (table.readsStored) visitStatementColumns(rows.node, (id) => context.read.add(id))
  const read = table.readsStored ? scanTable(context, name, table, relation) : rows
  context.viewsRead.named.push({
    ...name,
    via: context.views,
    columns: read.fields.map(({ column, name: own }) => ({ id: column, name: own! })),
  })
  return withPolicies(context, node, name, read)
}

/**
 * Why a view does not fit its text any more: the tables that it reads were altered. Columns are compared by position, and
 * the types as Trino compares them: a column of the text must be coercible to the declared type.
 */
function stalenessOf(
  declared: ResolvedTable['columns'],
  columns: readonly Pick<QueryColumn, 'name' | 'type'>[],
): string | undefined {
  if (declared.length !== columns.length) {
    return `stored view column count (${declared.length}) does not match column count derived from the view query analysis (${columns.length})`
  }
  for (const [i, stored] of declared.entries()) {
    const { name, type } = columns[i]!
    const wanted = parseTypeText(stored.type)
    const projected = `of type ${typeName(type)} projected from query view at position ${i}`
    const view = `column [${stored.name}] of type ${typeName(wanted)} stored in view definition`
    if (name === undefined) return `a column ${projected} has no name`
    if (name.toLowerCase() !== stored.name.toLowerCase()) {
      return `column [${name}] ${projected} has a different name from ${view}`
    }
    if (!canCoerceUnnamed(type, wanted)) return `column [${name}] ${projected} cannot be coerced to ${view}`
  }
  return undefined
}
