import type { Expression, IntervalLiteral, StringLiteral } from './ast.ts'
import type { Identifier, Node, QualifiedName } from './ast-node.ts'
import type { DataType } from './ast-types.ts'
import type { Query } from './ast-query.ts'
import type { FunctionSpecification, ParameterDeclaration } from './ast-routines.ts'
import type { Principal } from './ast-access.ts'

export type DefinitionStatement =
  | CreateCatalog
  | DropCatalog
  | CreateSchema
  | DropSchema
  | RenameSchema
  | CreateTable
  | CreateTableAsSelect
  | DropTable
  | RenameTable
  | SetProperties
  | CommentOn
  | AddColumn
  | RenameColumn
  | DropColumn
  | SetColumnType
  | DropNotNullConstraint
  | CreateView
  | DropView
  | RenameView
  | RefreshView
  | CreateMaterializedView
  | DropMaterializedView
  | RenameMaterializedView
  | SetAuthorization
  | CreateFunction
  | DropFunction

/** `name = value`; without a value: DEFAULT. */
export interface Property extends Node<'Property'> {
  readonly name: Identifier
  readonly value: Expression | undefined
}

export interface CreateCatalog extends Node<'CreateCatalog'> {
  readonly name: Identifier
  readonly notExists: boolean
  readonly connector: Identifier
  readonly comment: StringLiteral | undefined
  readonly principal: Principal | undefined
  readonly properties: readonly Property[]
}

export interface DropCatalog extends Node<'DropCatalog'> {
  readonly name: Identifier
  readonly exists: boolean
  readonly cascade: boolean
}

export interface CreateSchema extends Node<'CreateSchema'> {
  readonly name: QualifiedName
  readonly notExists: boolean
  readonly principal: Principal | undefined
  readonly properties: readonly Property[]
}

export interface DropSchema extends Node<'DropSchema'> {
  readonly name: QualifiedName
  readonly exists: boolean
  readonly cascade: boolean
}

export interface RenameSchema extends Node<'RenameSchema'> {
  readonly source: QualifiedName
  readonly target: Identifier
}

/** OR REPLACE, IF NOT EXISTS, or neither. */
export type SaveMode = 'FAIL' | 'IGNORE' | 'REPLACE'

export interface CreateTable extends Node<'CreateTable'> {
  readonly name: QualifiedName
  readonly elements: readonly TableElement[]
  readonly saveMode: SaveMode
  readonly comment: StringLiteral | undefined
  readonly properties: readonly Property[]
}

export type TableElement = ColumnDefinition | LikeTable

export interface ColumnDefinition extends Node<'ColumnDefinition'> {
  /** Has more than one part for a field of a row, in ADD COLUMN. */
  readonly name: QualifiedName
  readonly type: DataType
  readonly nullable: boolean
  readonly comment: StringLiteral | undefined
  readonly properties: readonly Property[]
}

/** `LIKE other INCLUDING PROPERTIES` among the columns of a new table (Trino's LikeClause). */
export interface LikeTable extends Node<'LikeTable'> {
  readonly table: QualifiedName
  readonly properties: 'INCLUDING' | 'EXCLUDING' | undefined
}

export interface CreateTableAsSelect extends Node<'CreateTableAsSelect'> {
  readonly name: QualifiedName
  readonly query: Query
  readonly saveMode: SaveMode
  readonly properties: readonly Property[]
  readonly withData: boolean
  readonly columnAliases: readonly Identifier[] | undefined
  readonly comment: StringLiteral | undefined
}

export interface DropTable extends Node<'DropTable'> {
  readonly name: QualifiedName
  readonly exists: boolean
}

export interface RenameTable extends Node<'RenameTable'> {
  readonly source: QualifiedName
  readonly target: QualifiedName
  readonly exists: boolean
}

export interface SetProperties extends Node<'SetProperties'> {
  readonly type: 'TABLE' | 'MATERIALIZED_VIEW'
  readonly name: QualifiedName
  readonly properties: readonly Property[]
}

/** Without a comment: `IS NULL`. */
export interface CommentOn extends Node<'CommentOn'> {
  readonly type: 'TABLE' | 'VIEW' | 'COLUMN'
  readonly name: QualifiedName
  readonly comment: StringLiteral | undefined
}

export type ColumnPosition =
  | { readonly position: 'FIRST' | 'LAST' }
  | { readonly position: 'AFTER'; readonly column: Identifier }

export interface AddColumn extends Node<'AddColumn'> {
  readonly table: QualifiedName
  readonly column: ColumnDefinition
  readonly tableExists: boolean
  readonly columnNotExists: boolean
  readonly position: ColumnPosition | undefined
}

export interface RenameColumn extends Node<'RenameColumn'> {
  readonly table: QualifiedName
  readonly source: QualifiedName
  readonly target: Identifier
  readonly tableExists: boolean
  readonly columnExists: boolean
}

export interface DropColumn extends Node<'DropColumn'> {
  readonly table: QualifiedName
  readonly field: QualifiedName
  readonly tableExists: boolean
  readonly columnExists: boolean
}

export interface SetColumnType extends Node<'SetColumnType'> {
  readonly table: QualifiedName
  readonly column: QualifiedName
  readonly type: DataType
  readonly tableExists: boolean
}

export interface DropNotNullConstraint extends Node<'DropNotNullConstraint'> {
  readonly table: QualifiedName
  readonly column: Identifier
  readonly tableExists: boolean
}

export interface CreateView extends Node<'CreateView'> {
  readonly name: QualifiedName
  readonly query: Query
  readonly replace: boolean
  readonly comment: StringLiteral | undefined
  readonly security: 'DEFINER' | 'INVOKER' | undefined
  readonly properties: readonly Property[]
}

export interface DropView extends Node<'DropView'> {
  readonly name: QualifiedName
  readonly exists: boolean
}

export interface RenameView extends Node<'RenameView'> {
  readonly source: QualifiedName
  readonly target: QualifiedName
}

/** `ALTER VIEW v REFRESH` */
export interface RefreshView extends Node<'RefreshView'> {
  readonly name: QualifiedName
}

export interface CreateMaterializedView extends Node<'CreateMaterializedView'> {
  readonly name: QualifiedName
  readonly query: Query
  readonly replace: boolean
  readonly notExists: boolean
  readonly gracePeriod: IntervalLiteral | undefined
  readonly properties: readonly Property[]
  readonly comment: StringLiteral | undefined
}

export interface DropMaterializedView extends Node<'DropMaterializedView'> {
  readonly name: QualifiedName
  readonly exists: boolean
}

export interface RenameMaterializedView extends Node<'RenameMaterializedView'> {
  readonly source: QualifiedName
  readonly target: QualifiedName
  readonly exists: boolean
}

/** `ALTER SCHEMA|TABLE|VIEW|… name SET AUTHORIZATION principal`; the kind of entity is in upper case. */
export interface SetAuthorization extends Node<'SetAuthorization'> {
  readonly entityKind: string
  readonly name: QualifiedName
  readonly principal: Principal
}

export interface CreateFunction extends Node<'CreateFunction'> {
  readonly specification: FunctionSpecification
  readonly replace: boolean
}

export interface DropFunction extends Node<'DropFunction'> {
  readonly name: QualifiedName
  readonly parameters: readonly ParameterDeclaration[]
  readonly exists: boolean
}
