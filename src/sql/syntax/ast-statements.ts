import type { Expression, StringLiteral } from './ast.ts'
import type { Identifier, Node, QualifiedName } from './ast-node.ts'
import type { Query, Relation } from './ast-query.ts'
import type { DefinitionStatement, Property } from './ast-definitions.ts'
import type { GrantObject, AccessStatement } from './ast-access.ts'

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
  | SetSession
  | ResetSession
  | SetSessionAuthorization
  | ResetSessionAuthorization
  | SetTimeZone
  | SetPath
  | SetRole

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
  | Insert
  | Delete
  | Update
  | Merge
  | TruncateTable
  | Call
  | Analyze
  | TableExecute
  | RefreshMaterializedView

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
