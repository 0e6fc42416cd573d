import { hash } from 'node:crypto'
import type { ConnectorTable, SourceTable } from '../../connectors/spi/connector.ts'
import { freshnessOf } from '../../connectors/spi/freshness.ts'
import type { MaterializedViewDefinition, TableChange } from '../../connectors/spi/table-writer.ts'
import { accessDenied, shownName } from '../access-control.ts'
import { analyzeParameters, NO_TABLES, type QueryAnalysis } from '../analyzer/analyze.ts'
import { errorAt } from '../analyzer/context.ts'
import { lineageOf } from '../analyzer/lineage.ts'
import type { TableName } from '../analyzer/resolve.ts'
import type { RelationNode } from '../analyzer/tree.ts'
import { someNode, treeText } from '../analyzer/walk.ts'
import { boundRows, resultColumn } from '../bound-rows.ts'
import type { SessionContext } from '../session.ts'
import type { StatementInput } from '../statement-input.ts'
import type { IntervalLiteral } from '../syntax/ast.ts'
import type { Query } from '../syntax/ast-query.ts'
import type { RefreshMaterializedView, Statement } from '../syntax/ast-statements.ts'
import type { CreateMaterializedView, DropMaterializedView } from '../syntax/ast-definitions.ts'
import { printStatement } from '../syntax/printer.ts'
import { duckdbType } from '../types/duckdb-representation.ts'
import { BIGINT } from '../types/sql-type.ts'
import { parseTypeText } from '../types/type-names.ts'
import { typeText } from '../types/type-text.ts'
import { allow, definition, findObject, type BoundWrite, type NeededAbility } from './bound-write.ts'
import { refuseProperties } from './object-properties.ts'
import { allOf } from './plain-query.ts'
import { storedRows } from './stored-rows.ts'

export type MaterializedViewStatement = CreateMaterializedView | DropMaterializedView | RefreshMaterializedView

export function isMaterializedViewStatement(node: Statement): node is MaterializedViewStatement {
  return Object.hasOwn(DOING, node.kind)
}

/** Trino's words for what the connector cannot do. */
const DOING: Readonly<Record<MaterializedViewStatement['kind'], string>> = {
  CreateMaterializedView: 'creating materialized views',
  DropMaterializedView: 'dropping materialized views',
  RefreshMaterializedView: 'refreshing materialized views',
}

function needed({ kind }: MaterializedViewStatement): NeededAbility {
  return { ability: 'materializedViews', doing: DOING[kind] }
}

/** The change that a checked statement makes. @param analyze analyzes a query in the statement */
export async function analyzeMaterializedView(
  input: StatementInput,
  node: MaterializedViewStatement,
  analyze: (query: Query) => Promise<QueryAnalysis>,
): Promise<BoundWrite> {
  switch (node.kind) {
    case 'CreateMaterializedView':
      return create(input, node, analyze)
    case 'DropMaterializedView':
      return drop(input, node)
    case 'RefreshMaterializedView':
      return refresh(input, node, analyze)
  }
}

async function create(
  input: StatementInput,
  node: CreateMaterializedView,
  analyze: (query: Query) => Promise<QueryAnalysis>,
): Promise<BoundWrite> {
  const { name, exists } = await findObject(input, node.name)
  const analysis = await analyze(node.query)
  allow(input, name.catalog, needed(node))
  refuseProperties(input, name.catalog, 'materialized view', node.properties)
  const { session } = input
  const columns = analysis.columns
    .filter((column) => column.hidden !== true)
    .map(({ name: own, type }) => {
      duckdbType(type)
      return { name: own!.toLowerCase(), type: typeText(type), nullable: true }
    })
  const gracePeriodMillis = gracePeriodOf(input, node.gracePeriod)
  const made: MaterializedViewDefinition = {
    sql: `${printStatement(node.query)}\n`,
    columns,
    runAsInvoker: false,
    owner: session.user,
    ...(session.catalog !== undefined && { catalog: session.catalog }),
    ...(session.schema !== undefined && { schema: session.schema }),
    ...(node.comment && { comment: node.comment.value }),
    ...(gracePeriodMillis !== undefined && { gracePeriodMillis }),
  }
  const { schema, table } = name
  const change = { kind: 'createMaterializedView', schema, table, replace: node.replace, definition: made } as const
  const tolerance = node.notExists ? { settled: exists, tolerated: 'TABLE_ALREADY_EXISTS' as const } : {}
  return {
    ...definition(name.catalog, 'CREATE MATERIALIZED VIEW', change, tolerance),
    defines: { columns, lineage: lineageOf(analysis) },
    writes: columns.map((column) => column.name),
    warnings: analysis.warnings,
  }
}

/** @throws EngineError TYPE_MISMATCH for an interval of months or years */
function gracePeriodOf(input: StatementInput, interval: IntervalLiteral | undefined): number | undefined {
  if (interval === undefined) return undefined
  const [value] = analyzeParameters({ ...input, metadata: NO_TABLES }, [interval])
  if (value?.kind === 'constant' && value.type.kind === 'interval day to second') return Number(value.value)
  const message = 'Unsupported grace period type: expected interval day to second'
  throw errorAt(input, interval, 'TYPE_MISMATCH', message)
}

async function drop(input: StatementInput, node: DropMaterializedView): Promise<BoundWrite> {
  const { name, exists } = await findObject(input, node.name)
  const change = { kind: 'dropMaterializedView', schema: name.schema, table: name.table } as const
  const settled = !exists && node.exists
  if (!settled) allow(input, name.catalog, needed(node))
  return definition(name.catalog, 'DROP MATERIALIZED VIEW', change, {
    settled,
    ...(node.exists && { tolerated: 'TABLE_NOT_FOUND' }),
  })
}

/**
 * A refresh stores the rows of the view's query, as its owner may see them. It does nothing if the view is fresh and
 * its query is still the same.
 */
async function refresh(
  input: StatementInput,
  node: RefreshMaterializedView,
  analyze: (query: Query) => Promise<QueryAnalysis>,
): Promise<BoundWrite> {
  const { name, found } = await findObject(input, node.name)
  const view = found!
  const analysis = await analyze(queryOfRefresh(node))
  allow(input, name.catalog, needed(node))
  const session = sessionOfRefresh(input.session, view)
  refuseRowsForUser(input, name, view.view!.owner!, analysis.node)
  const query = input.budget.run(() => digestOf(analysis.node, session))
  const change: TableChange = {
    kind: 'refreshMaterializedView',
    schema: name.schema,
    table: name.table,
    version: view.version ?? 1,
    startedAt: input.session.startTimeMillis,
    sources: sourcesOf(analysis.node),
    query,
  }
  const targets = view.columns.map(({ name: own, type, nullable }, source) => ({ name: own, type: parseTypeText(type), source, nullable })) // prettier-ignore
  const settled = view.materialized?.stored?.query === query && (await isFresh(input, view))
  return {
    ...definition(name.catalog, 'REFRESH MATERIALIZED VIEW', change, { settled }),
    queryType: 'INSERT',
    columns: [resultColumn('rows', BIGINT, input.session)],
    writes: targets.map((target) => target.name),
    warnings: analysis.warnings,
    source: boundRows(storedRows(analysis, targets), session),
  }
}

/** The session in which the query of a refresh runs: that of the owner. The groups of another user are not known. */
function sessionOfRefresh(session: SessionContext, { view }: ConnectorTable): SessionContext {
  const owner = view!.owner!
  return owner === session.user ? session : { ...session, user: owner, groups: [] }
}

/**
 * Refuses a refresh that reads system tables, unless the owner runs it. System tables list rows for the user that runs
 * the statement, and the owner may not see all rows that this user sees.
 * @throws EngineError PERMISSION_DENIED
 */
function refuseRowsForUser(input: StatementInput, name: TableName, owner: string, node: RelationNode): void {
  if (owner === input.session.user) return
  someNode(node, (one) => {
    if (one.kind === 'scan' && (one.catalog === 'system' || one.schema === 'information_schema')) {
      const table = shownName(one)
      const message = `Cannot refresh materialized view ${shownName(name)}: it reads ${table}, which has other rows for each user; its owner '${owner}' can refresh it`
      throw accessDenied(message)
    }
    return false
  })
}

/** @see MaterializedView.stored */
function digestOf(node: RelationNode, { startTimeMillis, timeZone, groups }: SessionContext): string {
  // Functions of the time that are written without parentheses are constants in the tree.
  const isNew = someNode(node, (one) => one.kind === 'call' && (!one.function.deterministic || one.function.ofTime === true)) // prettier-ignore
  const text = treeText(node, (property, value) => (OF_TODAY.has(property) ? undefined : value))
  return hash('sha256', JSON.stringify([text, timeZone, groups, ...(isNew ? [startTimeMillis] : [])]))
}

/** Properties of scans that change with the rows of their tables. */
const OF_TODAY = new Set(['handle', 'snapshot'])

/** The query of a refresh: the analyzer runs the query of the view for it (`StatementInput.defined`). */
function queryOfRefresh({ name, span }: RefreshMaterializedView): Query {
  return allOf({ kind: 'Table', span, name, queryPeriod: undefined })
}

async function isFresh(input: StatementInput, { materialized }: ConnectorTable): Promise<boolean> {
  const source = ({ catalog, schema, table }: SourceTable) => input.metadata.table(catalog, schema, table)
  return materialized !== undefined && (await freshnessOf(materialized, source)) === 'FRESH'
}

/** The tables that the rows are made from, also those that only access rules read. A version never changes. */
function sourcesOf(node: RelationNode): SourceTable[] {
  const sources = new Map<string, SourceTable>()
  someNode(node, (one) => {
    if (one.kind === 'scan' && one.version === undefined) {
      const { catalog, schema, table, snapshot } = one
      sources.set(JSON.stringify([catalog, schema, table]), { catalog, schema, table, ...(snapshot !== undefined && { snapshot }) }) // prettier-ignore
    }
    return false
  })
  return [...sources.values()]
}
