import { EngineError } from '../../shared/engine-error.ts'
import { accessOf, type AccessControl } from '../access-control.ts'
import type { ConnectorTable, TablePoint } from '../../connectors/spi/connector.ts'
import { freshnessOf, mayReadStored } from '../../connectors/spi/freshness.ts'
import type { SessionContext } from '../session.ts'
import type { StatementInput } from '../statement-input.ts'
import type { QualifiedName } from '../syntax/ast-node.ts'
import type { Query, QueryPeriod } from '../syntax/ast-query.ts'
import type { Statement } from '../syntax/ast-statements.ts'
import { tablesIn } from '../syntax/names-of-tables.ts'
import type { AnyNode } from '../syntax/tree.ts'
import { parseExpressionText, parseStatement } from '../syntax/parser.ts'

/** The maximum depth of views that read views. */
const MAX_VIEW_DEPTH = 50

export interface TableName {
  readonly catalog: string
  readonly schema: string
  readonly table: string
}

/** The catalogs' answers for all objects that a statement names. From here on nothing is asynchronous. */
export interface ResolvedMetadata {
  table(name: TableName): ResolvedTable | undefined
  /**
   * A version of a table, with the columns that it had then; the connector's error if it has no such version. The
   * caller throws that error only for users that may read the table.
   */
  tableAt(name: TableName, at: TablePoint): ConnectorTable | EngineError | undefined
  /** Whether older versions of the catalog's tables can be read. */
  hasVersions(catalog: string): boolean
  hasCatalog(catalog: string): boolean
  /** Known only for schemas in which a table was looked up and not found. */
  hasSchema(catalog: string, schema: string): boolean
}

export interface ResolvedTable extends ConnectorTable {
  /** The parsed query of a view; absent for tables, and for views whose text is not a query. */
  readonly query?: Query
  /** For a materialized view: whether the stored rows are read, and not its query. */
  readonly readsStored?: boolean
}

/**
 * Splits a table's name into its three parts, in lower case. @throws EngineError without a position, if a part is
 * missing or there are too many
 */
export function qualify(name: QualifiedName, session: Pick<SessionContext, 'catalog' | 'schema'>): TableName {
  const parts = name.parts.map((part) => part.value.toLowerCase())
  if (parts.length > 3) {
    throw new EngineError('SYNTAX_ERROR', `Too many dots in table name: ${parts.join('.')}`)
  }
  const [table, schema = session.schema, catalog = session.catalog] = parts.reverse()
  if (catalog === undefined) {
    throw new EngineError('MISSING_CATALOG_NAME', 'Catalog must be specified when session catalog is not set')
  }
  if (schema === undefined) {
    throw new EngineError('MISSING_SCHEMA_NAME', 'Schema must be specified when session schema is not set')
  }
  return { catalog, schema, table: table! }
}

/** How names of a text are completed, and with which rights they are read. */
interface NameScope {
  readonly at: Pick<SessionContext, 'catalog' | 'schema'>
  readonly access: AccessControl | undefined
  readonly depth: number
}

/** Finds out which version of a table a text names; undefined if the analyzer will refuse it. */
export type PeriodReader = (
  period: QueryPeriod,
  at: Pick<SessionContext, 'catalog' | 'schema'>,
) => TablePoint | undefined

export interface ResolveOptions {
  /** The table whose rows the statement changes: no query names it. */
  readonly changed?: TableName
  /** Absent: no older version is looked up. Only the statement itself has parameters. */
  readonly periods?: { readonly statement: PeriodReader; readonly views: PeriodReader }
}

/**
 * Looks up every table that a statement names (or one table), and the tables that its views and the rules on its tables
 * name. Names that cannot be completed are skipped; the analyzer reports them with their position.
 */
export async function resolve(
  root: Statement | TableName,
  { session, metadata, budget }: Omit<StatementInput, 'text'>,
  { changed, periods }: ResolveOptions = {},
): Promise<ResolvedMetadata> {
  const tables = new Map<string, Promise<ResolvedTable | undefined>>()
  const reads = new Map<string, Promise<ConnectorTable | undefined>>()
  const found = new Map<string, ResolvedTable>()
  const versions = new Map<string, ConnectorTable | EngineError>()
  const walked = new Set<string>()
  const schemas = new Map<string, readonly string[]>()
  const catalogs = new Set(metadata.catalogs())

  const visit = async (node: AnyNode, { at, access, depth }: NameScope): Promise<void> => {
    const named = budget
      .run(() => tablesIn(node))
      .flatMap(({ name, queryPeriod }) => {
        try {
          return [{ name: qualify(name, at), queryPeriod }]
        } catch {
          return []
        }
      })
    await Promise.all(
      named.map(async ({ name, queryPeriod }) => {
        await look(name, access, depth)
        const reader = depth === 0 ? periods?.statement : periods?.views
        const point = queryPeriod && reader && budget.run(() => reader(queryPeriod, at))
        if (point) await lookAt(name, point)
      }),
    )
  }

  const lookAt = async (name: TableName, at: TablePoint): Promise<void> => {
    const { catalog, schema, table } = name
    const today = await tables.get(keyOf(name))
    const key = versionKey(name, at)
    // The version of a view is ignored, as in Trino.
    if (!today || today.view || !hasVersions(catalog) || versions.has(key)) return
    const version = await metadata.table(catalog, schema, table, at).catch((error: unknown) => {
      if (error instanceof EngineError) return error
      throw error
    })
    if (version) versions.set(key, version)
  }

  const hasVersions = (catalog: string): boolean => metadata.abilities(catalog)?.snapshots === true

  const look = async (name: TableName, access: AccessControl | undefined, depth: number): Promise<void> => {
    if (!catalogs.has(name.catalog)) return
    const walk = JSON.stringify([keyOf(name), access?.user])
    if (walked.has(walk)) return
    walked.add(walk)
    const table = await tableOf(name)
    if (table === undefined || depth >= MAX_VIEW_DEPTH) return
    const policies = access?.policies(name)
    const rules =
      policies === undefined ? [] : [...(policies.filter ? [policies.filter] : []), ...policies.masks.values()]
    await Promise.all([
      ...(table.query === undefined
        ? []
        : [visit(table.query, { at: viewSession(table, name), access: withinView(access, table), depth: depth + 1 })]),
      ...rules.map(async (rule) => {
        const expression = budget.run(() => parsed(() => parseExpressionText(rule.sql)))
        if (expression) await visit(expression, { at: name, access: access?.as(rule.user), depth: depth + 1 })
      }),
    ])
  }

  const tableOf = (name: TableName): Promise<ResolvedTable | undefined> => {
    const key = keyOf(name)
    const asked = tables.get(key) ?? ask(name)
    tables.set(key, asked)
    return asked
  }

  /** Asks for each table once: a materialized view needs the tables that its query names to know whether it is fresh. */
  const read = (name: TableName): Promise<ConnectorTable | undefined> => {
    const key = keyOf(name)
    const asked = reads.get(key) ?? metadata.table(name.catalog, name.schema, name.table)
    reads.set(key, asked)
    return asked
  }

  const ask = async (name: TableName): Promise<ResolvedTable | undefined> => {
    const table = await read(name)
    if (table === undefined) {
      if (!schemas.has(name.catalog)) schemas.set(name.catalog, await metadata.schemas(name.catalog))
      return undefined
    }
    const { view } = table
    const query = view === undefined ? undefined : budget.run(() => parseView(view.sql))
    const resolved = { ...table, ...(query && { query }), ...(await storedOf(table)) }
    found.set(keyOf(name), resolved)
    return resolved
  }

  const storedOf = async ({ materialized }: ConnectorTable): Promise<Pick<ResolvedTable, 'readsStored'>> => {
    if (!materialized) return {}
    const freshness = await freshnessOf(materialized, read)
    return { readsStored: mayReadStored(materialized, freshness, session.startTimeMillis) }
  }

  const access = accessOf(session)
  if ('kind' in root) await visit(root, { at: session, access, depth: 0 })
  else await look(root, access, 0)
  if (changed) await look(changed, access, 0)
  return {
    table: (name) => found.get(keyOf(name)),
    tableAt: (name, at) => versions.get(versionKey(name, at)),
    hasVersions,
    hasCatalog: (catalog) => catalogs.has(catalog),
    hasSchema: (catalog, schema) => schemas.get(catalog)?.includes(schema) ?? false,
  }
}

/** The rights with which the query of a view is read. */
export function withinView(access: AccessControl | undefined, { view }: ConnectorTable): AccessControl | undefined {
  return access?.withinView(view?.runAsInvoker === true ? undefined : view?.owner)
}

/** Names in a view's text are completed with the session catalog and schema from the view's creation. */
export function viewSession(
  table: ConnectorTable,
  name: TableName,
): { readonly catalog: string; readonly schema: string } {
  return { catalog: table.view?.catalog ?? name.catalog, schema: table.view?.schema ?? name.schema }
}

function keyOf({ catalog, schema, table }: TableName): string {
  return JSON.stringify([catalog, schema, table])
}

function versionKey(name: TableName, at: TablePoint): string {
  return JSON.stringify([keyOf(name), at])
}

function parseView(sql: string): Query | undefined {
  const statement = parsed(() => parseStatement(sql))
  return statement?.kind === 'Query' ? statement : undefined
}

/** Returns undefined if the text does not parse; the analyzer reports the error. */
function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch (error) {
    if (error instanceof EngineError) return undefined
    throw error
  }
}
