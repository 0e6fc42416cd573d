import type { TableChange } from '../../connectors/spi/table-writer.ts'
import { EngineError } from '../../shared/engine-error.ts'
import { typeOf } from '../analyzer/data-types.ts'
import type { StatementInput } from '../statement-input.ts'
import type { QualifiedName } from '../syntax/ast-node.ts'
import type { Statement, TruncateTable } from '../syntax/ast-statements.ts'
import type {
  AddColumn,
  CommentOn,
  DropColumn,
  DropNotNullConstraint,
  RenameColumn,
  RenameMaterializedView,
  RenameSchema,
  RenameTable,
  RenameView,
  SetColumnType,
} from '../syntax/ast-definitions.ts'
import { duckdbType } from '../types/duckdb-representation.ts'
import { typeText } from '../types/type-text.ts'
import {
  allow,
  definition,
  findObject,
  schemaName,
  type BoundWrite,
  type NeededAbility,
  type Tolerance,
} from './bound-write.ts'
import { columnNamed } from './object-checks.ts'
import { refuseProperties } from './object-properties.ts'
import { newNameOf } from './table-checks.ts'

/** A statement that changes the definition of an object, or removes all its rows, and has no rows of its own. */
export type AlterStatement =
  | RenameSchema
  | RenameTable
  | RenameView
  | RenameMaterializedView
  | AddColumn
  | DropColumn
  | RenameColumn
  | SetColumnType
  | DropNotNullConstraint
  | CommentOn
  | TruncateTable

/** Trino's words for what the connector cannot do. */
const DOING: Readonly<Record<Exclude<AlterStatement['kind'], 'CommentOn'>, string>> = {
  RenameSchema: 'renaming schemas',
  RenameTable: 'renaming tables',
  RenameView: 'renaming views',
  RenameMaterializedView: 'renaming materialized views',
  AddColumn: 'adding columns',
  DropColumn: 'dropping columns',
  RenameColumn: 'renaming columns',
  SetColumnType: 'setting column types',
  DropNotNullConstraint: 'dropping a not null constraint',
  TruncateTable: 'truncating tables',
}

export function isAlterStatement(node: Statement): node is AlterStatement {
  return node.kind === 'CommentOn' || Object.hasOwn(DOING, node.kind)
}

/**
 * The change of a checked statement.
 * @throws EngineError NOT_SUPPORTED the connector cannot; AUTOCOMMIT_WRITE_CONFLICT a transaction is open;
 * INVALID_COLUMN_PROPERTY
 */
export async function analyzeAlter(input: StatementInput, node: AlterStatement): Promise<BoundWrite> {
  switch (node.kind) {
    case 'RenameSchema': {
      const { catalog, schema } = schemaName(input, node.source)
      const change = { kind: 'renameSchema', schema, to: node.target.value.toLowerCase() } as const
      return altered(input, node, { catalog, updateType: 'RENAME SCHEMA', change })
    }
    case 'RenameTable':
      return renamed(input, node, 'renameTable', 'RENAME TABLE')
    case 'RenameView':
      return renamed(input, node, 'renameView', 'RENAME VIEW')
    case 'RenameMaterializedView':
      return renamed(input, node, 'renameMaterializedView', 'RENAME MATERIALIZED VIEW')
    case 'AddColumn':
      return addColumn(input, node)
    case 'DropColumn': {
      refuseFields(node.field, 'dropping fields')
      const column = node.field.parts[0]!.value.toLowerCase()
      return alterColumn(input, node, 'DROP COLUMN', { kind: 'drop', column })
    }
    case 'RenameColumn': {
      refuseFields(node.source, 'renaming fields')
      const column = node.source.parts[0]!.value.toLowerCase()
      const to = node.target.value.toLowerCase()
      return alterColumn(input, node, 'RENAME COLUMN', { kind: 'rename', column, to })
    }
    case 'SetColumnType': {
      refuseFields(node.column, 'setting field types')
      const type = typeOf(node.type)
      duckdbType(type)
      const column = node.column.parts[0]!.value.toLowerCase()
      return alterColumn(input, node, 'SET COLUMN TYPE', { kind: 'setType', column, type: typeText(type) })
    }
    case 'DropNotNullConstraint': {
      const column = node.column.value.toLowerCase()
      return alterColumn(input, node, 'DROP NOT NULL', { kind: 'dropNotNull', column })
    }
    case 'CommentOn':
      return comment(input, node)
    case 'TruncateTable': {
      const { name } = await findObject(input, node.table)
      const change = { kind: 'truncateTable', schema: name.schema, table: name.table } as const
      return altered(input, node, { catalog: name.catalog, updateType: 'TRUNCATE TABLE', change })
    }
  }
}

interface Altered {
  readonly catalog: string
  readonly updateType: string
  readonly change: TableChange
  readonly tolerance?: Tolerance
}

/** As in Trino, a connector is not asked about a statement that changes nothing. */
function altered(
  input: StatementInput,
  node: AlterStatement,
  { catalog, updateType, change, tolerance = {} }: Altered,
): BoundWrite {
  if (tolerance.settled !== true) allow(input, catalog, neededOf(node))
  return definition(catalog, updateType, change, tolerance)
}

function neededOf(node: AlterStatement): NeededAbility {
  if (node.kind === 'CommentOn') return { ability: 'comments', doing: `setting ${node.type.toLowerCase()} comments` }
  const ability = node.kind === 'RenameMaterializedView' ? 'materializedViews' : 'alterTable'
  return { ability, doing: DOING[node.kind] }
}

async function renamed(
  input: StatementInput,
  node: RenameTable | RenameView | RenameMaterializedView,
  kind: 'renameTable' | 'renameView' | 'renameMaterializedView',
  updateType: string,
): Promise<BoundWrite> {
  const { name, exists } = await findObject(input, node.source)
  const { schema, table } = newNameOf(name, node.target)
  const change = { kind, schema: name.schema, table: name.table, to: { schema, table } } as const
  const tolerance: Tolerance =
    node.kind !== 'RenameView' && node.exists ? { settled: !exists, tolerated: 'TABLE_NOT_FOUND' } : {}
  return altered(input, node, { catalog: name.catalog, updateType, change, tolerance })
}

// ---- Columns

type ColumnStatement = AddColumn | DropColumn | RenameColumn | SetColumnType | DropNotNullConstraint
type Alteration = Extract<TableChange, { kind: 'alterColumns' }>['alteration']

async function alterColumn(
  input: StatementInput,
  node: ColumnStatement,
  updateType: string,
  alteration: Alteration,
): Promise<BoundWrite> {
  const { name, found } = await findObject(input, node.table)
  const column = alteration.kind === 'add' ? alteration.column.name : alteration.column
  const exists = columnNamed(found, { value: column }) !== undefined
  return {
    ...altered(input, node, {
      catalog: name.catalog,
      updateType,
      change: { kind: 'alterColumns', schema: name.schema, table: name.table, alteration },
      // The checks treat a view like a table that does not exist.
      tolerance: toleranceOf(node, { table: found !== undefined && found.view === undefined, column: exists }),
    }),
    writes: alteration.kind === 'rename' ? [column, alteration.to] : [column],
  }
}

function toleranceOf(node: ColumnStatement, exists: { readonly table: boolean; readonly column: boolean }): Tolerance {
  if (node.tableExists && !exists.table) return { settled: true }
  switch (node.kind) {
    case 'AddColumn':
      if (node.columnNotExists) return { settled: exists.column, tolerated: 'COLUMN_ALREADY_EXISTS' }
      break
    case 'DropColumn':
    case 'RenameColumn':
      if (node.columnExists) return { settled: !exists.column, tolerated: 'COLUMN_NOT_FOUND' }
      break
    case 'SetColumnType':
    case 'DropNotNullConstraint':
      break
  }
  return node.tableExists ? { tolerated: 'TABLE_NOT_FOUND' } : {}
}

async function addColumn(input: StatementInput, node: AddColumn): Promise<BoundWrite> {
  const { column, position } = node
  refuseFields(column.name, 'adding fields')
  const { catalog } = (await findObject(input, node.table)).name
  refuseProperties(input, catalog, 'column', column.properties)
  const type = typeOf(column.type)
  duckdbType(type)
  return alterColumn(input, node, 'ADD COLUMN', {
    kind: 'add',
    column: {
      name: column.name.parts[0]!.value.toLowerCase(),
      type: typeText(type),
      nullable: column.nullable,
      ...(column.comment && { comment: column.comment.value }),
    },
    ...(position?.position === 'FIRST' && { position: { first: true } }),
    ...(position?.position === 'AFTER' && { position: { after: position.column.value.toLowerCase() } }),
  })
}

/** Refuses names of fields of a row: no connector here can change them. */
function refuseFields({ parts }: QualifiedName, doing: string): void {
  if (parts.length > 1) throw new EngineError('NOT_SUPPORTED', `This connector does not support ${doing}`)
}

// ---- Comments

async function comment(input: StatementInput, node: CommentOn): Promise<BoundWrite> {
  const { parts } = node.name
  const column = node.type === 'COLUMN' ? parts.at(-1)!.value.toLowerCase() : undefined
  const written = column === undefined ? node.name : { ...node.name, parts: parts.slice(0, -1) }
  const { name, found } = await findObject(input, written)
  const change: TableChange = {
    kind: 'comment',
    schema: name.schema,
    table: name.table,
    object: found?.materialized ? 'materializedView' : found?.view === undefined ? 'table' : 'view',
    ...(column !== undefined && { column }),
    ...(node.comment && { text: node.comment.value }),
  }
  return {
    ...altered(input, node, { catalog: name.catalog, updateType: 'COMMENT', change }),
    writes: column === undefined ? [] : [column],
  }
}
