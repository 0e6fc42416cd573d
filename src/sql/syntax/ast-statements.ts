import type { DataType, Expression, Identifier, IntervalLiteral, Node, QualifiedName, StringLiteral } from './ast.ts'
import type { Query, Relation } from './ast-query.ts'
import type { FunctionSpecification, ParameterDeclaration } from './ast-routines.ts'

/** All statements that a client may send, modeled after Trino's tree; a query is a statement of its own. */
export type Statement =
  | Query
  | Explain
  | ExplainAnalyze
  | Use
  | SessionStatement
  | ShowStatement
  | PreparedStatement
  | TransactionStatement
  | DataStatement
  | DefinitionStatement
  | AccessStatement

// ---- EXPLAIN

export interface Explain extends Node<'Explain'> {
  readonly statement: Statement
  readonly options: readonly ExplainOption[]
}

export type ExplainOption = ExplainType | ExplainFormat

export interface ExplainType extends Node<'ExplainType'> {
  readonly type: 'LOGICAL' | 'DISTRIBUTED' | 'VALIDATE' | 'IO'
}

export interface ExplainFormat extends Node<'ExplainFormat'> {
  readonly format: 'TEXT' | 'GRAPHVIZ' | 'JSON'
}

export interface ExplainAnalyze extends Node<'ExplainAnalyze'> {
  readonly statement: Statement
  readonly verbose: boolean
}

// ---- Session

export interface Use extends Node<'Use'> {
  readonly catalog: Identifier | undefined
  readonly schema: Identifier
}

export type SessionStatement =
  SetSession | ResetSession | SetSessionAuthorization | ResetSessionAuthorization | SetTimeZone | SetPath | SetRole

export interface SetSession extends Node<'SetSession'> {
  readonly name: QualifiedName
  readonly value: Expression
}

export interface ResetSession extends Node<'ResetSession'> {
  readonly name: QualifiedName
}

export interface SetSessionAuthorization extends Node<'SetSessionAuthorization'> {
  readonly user: Identifier | StringLiteral
}

export interface ResetSessionAuthorization extends Node<'ResetSessionAuthorization'> {}

/** Without a zone: SET TIME ZONE LOCAL. */
export interface SetTimeZone extends Node<'SetTimeZone'> {
  readonly timeZone: Expression | undefined
}

export interface SetPath extends Node<'SetPath'> {
  readonly path: readonly PathElement[]
}

export interface PathElement extends Node<'PathElement'> {
  readonly catalog: Identifier | undefined
  readonly schema: Identifier
}

export interface SetRole extends Node<'SetRole'> {
  readonly type: 'ROLE' | 'ALL' | 'NONE'
  readonly role: Identifier | undefined
  readonly catalog: Identifier | undefined
}

// ---- SHOW

export type ShowStatement =
  | ShowCatalogs
  | ShowSchemas
  | ShowTables
  | ShowColumns
  | ShowFunctions
  | ShowSession
  | ShowCreate
  | ShowStats
  | ShowGrants
  | ShowRoles
  | ShowRoleGrants

/** `LIKE '…' ESCAPE '…'` */
export interface LikeClause {
  readonly likePattern: StringLiteral | undefined
  readonly escape: StringLiteral | undefined
}

export interface ShowCatalogs extends Node<'ShowCatalogs'>, LikeClause {}

export interface ShowSchemas extends Node<'ShowSchemas'>, LikeClause {
  readonly catalog: Identifier | undefined
}

export interface ShowTables extends Node<'ShowTables'>, LikeClause {
  readonly schema: QualifiedName | undefined
}

/** Also DESCRIBE and DESC. */
export interface ShowColumns extends Node<'ShowColumns'>, LikeClause {
  readonly table: QualifiedName
}

export interface ShowFunctions extends Node<'ShowFunctions'>, LikeClause {
  readonly schema: QualifiedName | undefined
}

export interface ShowSession extends Node<'ShowSession'>, LikeClause {}

export interface ShowCreate extends Node<'ShowCreate'> {
  readonly type: 'TABLE' | 'VIEW' | 'MATERIALIZED_VIEW' | 'SCHEMA' | 'FUNCTION'
  readonly name: QualifiedName
}

/** FOR a table, or FOR (a query). */
export interface ShowStats extends Node<'ShowStats'> {
  readonly relation: Relation
}

export interface ShowGrants extends Node<'ShowGrants'> {
  readonly object: GrantObject | undefined
}

export interface ShowRoles extends Node<'ShowRoles'> {
  readonly current: boolean
  readonly catalog: Identifier | undefined
}

export interface ShowRoleGrants extends Node<'ShowRoleGrants'> {
  readonly catalog: Identifier | undefined
}

// ---- Prepared statements

export type PreparedStatement = Prepare | Deallocate | Execute | ExecuteImmediate | DescribeInput | DescribeOutput

export interface Prepare extends Node<'Prepare'> {
  readonly name: Identifier
  readonly statement: Statement
}

export interface Deallocate extends Node<'Deallocate'> {
  readonly name: Identifier
}

export interface Execute extends Node<'Execute'> {
  readonly name: Identifier
  readonly parameters: readonly Expression[]
}

/** The text is not parsed here: use `parseStatement(statement.value, …)` with the literal's position as origin. */
export interface ExecuteImmediate extends Node<'ExecuteImmediate'> {
  readonly statement: StringLiteral
  readonly parameters: readonly Expression[]
}

export interface DescribeInput extends Node<'DescribeInput'> {
  readonly name: Identifier
}

export interface DescribeOutput extends Node<'DescribeOutput'> {
  readonly name: Identifier
}

// ---- Transactions

export type TransactionStatement = StartTransaction | Commit | Rollback

export interface StartTransaction extends Node<'StartTransaction'> {
  readonly modes: readonly TransactionMode[]
}

export type TransactionMode = IsolationLevel | TransactionAccessMode

export interface IsolationLevel extends Node<'IsolationLevel'> {
  readonly level: 'READ UNCOMMITTED' | 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE'
}

export interface TransactionAccessMode extends Node<'TransactionAccessMode'> {
  readonly readOnly: boolean
}

export interface Commit extends Node<'Commit'> {}
export interface Rollback extends Node<'Rollback'> {}

// ---- Data

export type DataStatement =
  Insert | Delete | Update | Merge | TruncateTable | Call | Analyze | TableExecute | RefreshMaterializedView

export interface Insert extends Node<'Insert'> {
  readonly target: QualifiedName
  readonly columns: readonly Identifier[] | undefined
  readonly query: Query
}

export interface Delete extends Node<'Delete'> {
  readonly table: QualifiedName
  readonly where: Expression | undefined
}

export interface Update extends Node<'Update'> {
  readonly table: QualifiedName
  readonly assignments: readonly UpdateAssignment[]
  readonly where: Expression | undefined
}

export interface UpdateAssignment extends Node<'UpdateAssignment'> {
  readonly name: Identifier
  readonly value: Expression
}

export interface Merge extends Node<'Merge'> {
  readonly target: QualifiedName
  readonly targetAlias: Identifier | undefined
  readonly source: Relation
  readonly predicate: Expression
  readonly cases: readonly MergeCase[]
}

export type MergeCase = MergeUpdate | MergeDelete | MergeInsert

export interface MergeUpdate extends Node<'MergeUpdate'> {
  readonly condition: Expression | undefined
  readonly assignments: readonly UpdateAssignment[]
}

export interface MergeDelete extends Node<'MergeDelete'> {
  readonly condition: Expression | undefined
}

export interface MergeInsert extends Node<'MergeInsert'> {
  readonly condition: Expression | undefined
  readonly columns: readonly Identifier[]
  readonly values: readonly Expression[]
}

export interface TruncateTable extends Node<'TruncateTable'> {
  readonly table: QualifiedName
}

export interface Call extends Node<'Call'> {
  readonly name: QualifiedName
  readonly arguments: readonly CallArgument[]
}

export interface CallArgument extends Node<'CallArgument'> {
  readonly name: Identifier | undefined
  readonly value: Expression
}

export interface Analyze extends Node<'Analyze'> {
  readonly table: QualifiedName
  readonly properties: readonly Property[]
}

/** `ALTER TABLE t EXECUTE procedure(…) WHERE …` */
export interface TableExecute extends Node<'TableExecute'> {
  readonly table: QualifiedName
  readonly procedure: Identifier
  readonly arguments: readonly CallArgument[]
  readonly where: Expression | undefined
}

export interface RefreshMaterializedView extends Node<'RefreshMaterializedView'> {
  readonly name: QualifiedName
}

// ---- Definitions

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
  { readonly position: 'FIRST' | 'LAST' } | { readonly position: 'AFTER'; readonly column: Identifier }

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

// ---- Access

export type AccessStatement = CreateRole | DropRole | GrantRoles | RevokeRoles | Grant | Revoke | Deny

export interface Principal extends Node<'Principal'> {
  readonly type: 'UNSPECIFIED' | 'USER' | 'ROLE'
  readonly name: Identifier
}

export type Grantor = Principal | CurrentGrantor

export interface CurrentGrantor extends Node<'CurrentGrantor'> {
  readonly type: 'CURRENT_USER' | 'CURRENT_ROLE'
}

/** `SELECT`, `INSERT` … in upper case, or a privilege of a connector; undefined for ALL PRIVILEGES. */
export type Privileges = readonly Identifier[] | undefined

export interface GrantObject extends Node<'GrantObject'> {
  /** TABLE, SCHEMA or another word, in upper case, if written. */
  readonly entityKind: string | undefined
  readonly name: QualifiedName
}

export interface CreateRole extends Node<'CreateRole'> {
  readonly name: Identifier
  readonly grantor: Grantor | undefined
  readonly catalog: Identifier | undefined
}

export interface DropRole extends Node<'DropRole'> {
  readonly name: Identifier
  readonly exists: boolean
  readonly catalog: Identifier | undefined
}

export interface GrantRoles extends Node<'GrantRoles'> {
  readonly roles: readonly Identifier[]
  readonly grantees: readonly Principal[]
  readonly adminOption: boolean
  readonly grantor: Grantor | undefined
  readonly catalog: Identifier | undefined
}

export interface RevokeRoles extends Node<'RevokeRoles'> {
  readonly roles: readonly Identifier[]
  readonly grantees: readonly Principal[]
  readonly adminOption: boolean
  readonly grantor: Grantor | undefined
  readonly catalog: Identifier | undefined
}

export interface Grant extends Node<'Grant'> {
  readonly privileges: Privileges
  readonly object: GrantObject
  readonly grantee: Principal
  readonly withGrantOption: boolean
}

export interface Revoke extends Node<'Revoke'> {
  readonly grantOptionFor: boolean
  readonly privileges: Privileges
  readonly object: GrantObject
  readonly grantee: Principal
}

export interface Deny extends Node<'Deny'> {
  readonly privileges: Privileges
  readonly object: GrantObject
  readonly grantee: Principal
}
