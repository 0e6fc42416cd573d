import type { StoredColumn, TableChange } from '../../connectors/spi/table-writer.ts'
import { typeOf } from '../analyzer/data-types.ts'
import { analyzeNewRows, type QueryAnalysis } from '../analyzer/analyze.ts'
import { qualify, resolve, type TableName } from '../analyzer/resolve.ts'
import type { RowStatement } from '../analyzer/row-changes.ts'
import { boundRows, resultColumn } from '../bound-rows.ts'
import { lineageOf } from '../analyzer/lineage.ts'
import type { StringLiteral } from '../syntax/ast.ts'
import type { Query } from '../syntax/ast-query.ts'
import type { Insert, Statement } from '../syntax/ast-statements.ts'
import type {
  CreateSchema,
  CreateTable,
  CreateTableAsSelect,
  CreateView,
  DropSchema,
  DropTable,
  DropView,
} from '../syntax/ast-definitions.ts'
import { printStatement } from '../syntax/printer.ts'
import { duckdbType } from '../types/duckdb-representation.ts'
import { BIGINT } from '../types/sql-type.ts'
import { parseTypeText } from '../types/type-names.ts'
import { typeText } from '../types/type-text.ts'
import { errorAt } from '../analyzer/context.ts'
import type { StatementInput } from '../statement-input.ts'
import { analyzeAlter, isAlterStatement, type AlterStatement } from './alter-statements.ts'
import {
  allow,
  asAnalyzed,
  definition,
  findObject,
  schemaName,
  type BoundWrite,
  type NeededAbility,
  type Tolerance,
} from './bound-write.ts'
import {
  analyzeMaterializedView,
  isMaterializedViewStatement,
  type MaterializedViewStatement,
} from './materialized-view-statements.ts'
import { checkTableProperties, refuseProperties } from './object-properties.ts'
import { analyzeRowWrite, isRowStatement } from './row-change-statements.ts'
import { storedRows } from './stored-rows.ts'

/** A statement that a connector may execute. */
export type ConnectorStatement =
  | CreateSchema
  | DropSchema
  | CreateTable
  | CreateTableAsSelect
  | Insert
  | DropTable
  | CreateView
  | DropView
  | AlterStatement
  | RowStatement
  | MaterializedViewStatement

type DefiningStatement = Exclude<ConnectorStatement, AlterStatement | RowStatement | MaterializedViewStatement>

export function isConnectorStatement(node: Statement): node is ConnectorStatement {
  return (
    Object.hasOwn(needed, node.kind) ||
    isAlterStatement(node) ||
    isRowStatement(node) ||
    isMaterializedViewStatement(node)
  )
}

const needed: Readonly<Record<DefiningStatement['kind'], NeededAbility>> = {
  CreateSchema: { ability: 'createSchema', doing: 'creating schemas' },
  DropSchema: { ability: 'createSchema', doing: 'dropping schemas' },
  CreateTable: { ability: 'createTable', doing: 'creating tables' },
  CreateTableAsSelect: { ability: 'createTable', doing: 'creating tables with data' },
  Insert: { ability: 'insert', doing: 'inserts' },
  DropTable: { ability: 'createTable', doing: 'dropping tables' },
  CreateView: { ability: 'views', doing: 'creating views' },
  DropView: { ability: 'views', doing: 'dropping views' },
}

/** How the parts of a statement are analyzed. */
export interface PartAnalysis {
  /** Analyzes a query in the statement. */
  query(query: Query): Promise<QueryAnalysis>
  /** Finds the rows that the statement writes. */
  rows(node: RowStatement): Promise<QueryAnalysis>
}

/**
 * The change that a checked statement makes.
 * @throws EngineError NOT_SUPPORTED the connector cannot; AUTOCOMMIT_WRITE_CONFLICT a transaction is open;
 * INVALID_TABLE_PROPERTY and the like
 */
export async function analyzeWrite(
  input: StatementInput,
  node: ConnectorStatement,
  parts: PartAnalysis,
): Promise<BoundWrite> {
  if (isAlterStatement(node)) return analyzeAlter(input, node)
  if (isRowStatement(node)) return analyzeRowWrite(input, node, parts.rows)
  if (isMaterializedViewStatement(node)) return analyzeMaterializedView(input, node, parts.query)
  switch (node.kind) {
    case 'CreateSchema':
      return createSchema(input, node)
    case 'DropSchema':
      return dropSchema(input, node)
    case 'CreateTable':
      return createTable(input, node)
    case 'CreateTableAsSelect':
      return createTableAs(input, node, parts)
    case 'Insert':
      return insert(input, node, await parts.query(node.query))
    case 'DropTable':
      return dropTable(input, node)
    case 'CreateView':
      return createView(input, node, await parts.query(node.query))
    case 'DropView':
      return dropView(input, node)
  }
}

// ---- Schemas

async function createSchema(input: StatementInput, node: CreateSchema): Promise<BoundWrite> {
  const { catalog, schema } = schemaName(input, node.name)
  allow(input, catalog, needed[node.kind])
  refuseProperties(input, catalog, 'schema', node.properties)
  const exists = (await input.metadata.schemas(catalog)).includes(schema)
  return definition(
    catalog,
    'CREATE SCHEMA',
    { kind: 'createSchema', schema },
    {
      settled: exists && node.notExists,
      ...(node.notExists && { tolerated: 'SCHEMA_ALREADY_EXISTS' }),
    },
  )
}

async function dropSchema(input: StatementInput, node: DropSchema): Promise<BoundWrite> {
  const { catalog, schema } = schemaName(input, node.name)
  allow(input, catalog, needed[node.kind])
  const exists = (await input.metadata.schemas(catalog)).includes(schema)
  return definition(
    catalog,
    'DROP SCHEMA',
    { kind: 'dropSchema', schema, cascade: node.cascade },
    {
      settled: !exists && node.exists,
      ...(node.exists && { tolerated: 'SCHEMA_NOT_FOUND' }),
    },
  )
}

// ---- Tables

async function createTable(input: StatementInput, node: CreateTable): Promise<BoundWrite> {
  const { name, exists } = await findObject(input, node.name)
  allow(input, name.catalog, needed[node.kind])
  checkTableProperties(input, name.catalog, node.properties)
  const columns: StoredColumn[] = []
  for (const element of node.elements) {
    if (element.kind === 'LikeTable') {
      const other = qualify(element.table, input.session)
      const like = await input.metadata.table(other.catalog, other.schema, other.table)
      for (const column of like?.columns ?? []) {
        if (column.hidden === true) continue
        columns.push(storedColumn(column.name, typeText(parseTypeText(column.type)), column.comment))
      }
      continue
    }
    const column = element.name.parts[0]!.value
    refuseProperties(input, name.catalog, 'column', element.properties)
    const type = typeOf(element.type)
    duckdbType(type)
    columns.push({ ...storedColumn(column, typeText(type), element.comment?.value), nullable: element.nullable })
  }
  const names = new Set<string>()
  for (const column of columns) {
    if (names.has(column.name)) {
      throw errorAt(input, node, 'DUPLICATE_COLUMN_NAME', `Column name '${column.name}' specified more than once`)
    }
    names.add(column.name)
  }
  const change = tableChange(name, columns, node)
  return {
    ...definition(name.catalog, 'CREATE TABLE', change, creation(node, exists)),
    writes: columns.map((column) => column.name),
  }
}

async function createTableAs(
  input: StatementInput,
  node: CreateTableAsSelect,
  parts: PartAnalysis,
): Promise<BoundWrite> {
  const { name, exists } = await findObject(input, node.name)
  // If the table exists and stays unchanged, its query is not analyzed.
  const analysis = exists && node.saveMode === 'IGNORE' ? undefined : await parts.query(node.query)
  allow(input, name.catalog, needed[node.kind])
  checkTableProperties(input, name.catalog, node.properties)
  const visible = (analysis?.columns ?? []).filter((column) => column.hidden !== true)
  const targets = visible.map(({ name: own, type }, source) => ({
    name: (node.columnAliases?.[source]?.value ?? own!).toLowerCase(),
    type,
    source,
  }))
  for (const { type } of targets) duckdbType(type)
  const columns = targets.map((target) => storedColumn(target.name, typeText(target.type), undefined))
  const change = tableChange(name, columns, node)
  return {
    ...definition(name.catalog, 'CREATE TABLE', change, creation(node, exists)),
    queryType: 'INSERT',
    columns: [resultColumn('rows', BIGINT, input.session)],
    writes: columns.map((column) => column.name),
    warnings: analysis?.warnings ?? [],
    ...(analysis !== undefined && node.withData && { source: boundRows(storedRows(analysis, targets), input.session) }),
  }
}

async function insert(input: StatementInput, node: Insert, analysis: QueryAnalysis): Promise<BoundWrite> {
  const { name, found } = await findObject(input, node.target)
  allow(input, name.catalog, needed[node.kind])
  const columns = (found?.columns ?? []).filter((column) => column.hidden !== true)
  const written = node.columns?.map((column) => column.value.toLowerCase()) ?? columns.map((column) => column.name)
  const targets = columns.map((column) => {
    const source = written.indexOf(column.name)
    const { name: target, nullable } = column
    return { name: target, type: parseTypeText(column.type), source: source < 0 ? undefined : source, nullable }
  })
  const rows = storedRows(analysis, targets)
  const metadata = await resolve(name, input)
  return {
    ...definition(name.catalog, 'INSERT', { kind: 'insert', schema: name.schema, table: name.table }, {}),
    queryType: 'INSERT',
    ...(found && { analyzedTable: asAnalyzed(found) }),
    columns: [resultColumn('rows', BIGINT, input.session)],
    writes: written,
    warnings: analysis.warnings,
    source: boundRows(
      analyzeNewRows({ ...input, metadata }, rows, node, name),
      input.session,
      // The lineage excludes the row filter on new rows, which users must not see.
      lineageOf(rows),
    ),
  }
}

async function dropTable(input: StatementInput, node: DropTable): Promise<BoundWrite> {
  const { name, exists } = await findObject(input, node.name)
  allow(input, name.catalog, needed[node.kind])
  const change = { kind: 'dropTable', schema: name.schema, table: name.table } as const
  return definition(name.catalog, 'DROP TABLE', change, {
    settled: !exists && node.exists,
    ...(node.exists && { tolerated: 'TABLE_NOT_FOUND' }),
  })
}

function tableChange(
  { schema, table }: TableName,
  columns: StoredColumn[],
  node: { readonly saveMode: CreateTable['saveMode']; readonly comment: StringLiteral | undefined },
): TableChange {
  return {
    kind: 'createTable',
    schema,
    table,
    columns,
    replace: node.saveMode === 'REPLACE',
    ...(node.comment && { comment: node.comment.value }),
  }
}

function creation(node: { readonly saveMode: CreateTable['saveMode'] }, exists: boolean): Tolerance {
  if (node.saveMode !== 'IGNORE') return {}
  return { settled: exists, tolerated: 'TABLE_ALREADY_EXISTS' }
}

function storedColumn(name: string, type: string, comment: string | undefined): StoredColumn {
  return { name: name.toLowerCase(), type, nullable: true, ...(comment !== undefined && { comment }) }
}

// ---- Views

async function createView(input: StatementInput, node: CreateView, analysis: QueryAnalysis): Promise<BoundWrite> {
  const { name } = await findObject(input, node.name)
  allow(input, name.catalog, needed[node.kind])
  refuseProperties(input, name.catalog, 'view', node.properties)
  const { session } = input
  const invoker = node.security === 'INVOKER'
  const columns = analysis.columns
    .filter((column) => column.hidden !== true)
    .map((column) => storedColumn(column.name!, typeText(column.type), undefined))
  const change: TableChange = {
    kind: 'createView',
    schema: name.schema,
    table: name.table,
    replace: node.replace,
    definition: {
      // The text in Trino's formatting.
      sql: `${printStatement(node.query)}\n`,
      columns,
      runAsInvoker: invoker,
      ...(session.catalog !== undefined && { catalog: session.catalog }),
      ...(session.schema !== undefined && { schema: session.schema }),
      ...(!invoker && { owner: session.user }),
      ...(node.comment && { comment: node.comment.value }),
    },
  }
  return {
    ...definition(name.catalog, 'CREATE VIEW', change, {}),
    defines: { columns, lineage: lineageOf(analysis) },
    writes: columns.map((column) => column.name),
    warnings: analysis.warnings,
  }
}

async function dropView(input: StatementInput, node: DropView): Promise<BoundWrite> {
  const { name, found } = await findObject(input, node.name)
  allow(input, name.catalog, needed[node.kind])
  const change = { kind: 'dropView', schema: name.schema, table: name.table } as const
  return definition(name.catalog, 'DROP VIEW', change, {
    settled: found?.kind !== 'VIEW' && node.exists,
    ...(node.exists && { tolerated: 'TABLE_NOT_FOUND' }),
  })
}
