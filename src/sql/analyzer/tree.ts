import type { TableHandle } from '../../connectors/spi/connector.ts'
import type { ScanQuestion } from '../../connectors/spi/scan-question.ts'
import type { ArrayType, SqlType } from '../types/sql-type.ts'
import type { ComparisonKind, ResolvedOperator } from '../functions/operators.ts'
import type { ResolvedFunction } from '../functions/resolve-function.ts'

/**
 * The typed tree: what a query means, with names resolved, types known and every coercion an explicit cast.
 * A column is a number that is unique in the whole statement; each node says which columns it adds or passes on, so
 * nothing below depends on names, and a column of an outer query is used like any other.
 */

export type ColumnId = number

export interface ComputedColumn {
  readonly id: ColumnId
  readonly expression: Expr
}

export interface SortKey {
  readonly column: ColumnId
  readonly type: SqlType
  readonly descending: boolean
  readonly nullsFirst: boolean
}

// ---- Relations

export type RelationNode =
  | ScanNode
  | ValuesNode
  | ArraysNode
  | FilterNode
  | ProjectNode
  | BarrierNode
  | JoinNode
  | UnnestNode
  | AggregateNode
  | WindowNode
  | DistinctNode
  | SortNode
  | LimitNode
  | SetNode
  | WithNode
  | CteScanNode
  | SampleNode
  | SequenceNode

/** A table of a catalog: `columns` maps ours to the table's own names. */
export interface ScanNode {
  readonly kind: 'scan'
  readonly catalog: string
  readonly schema: string
  readonly table: string
  readonly handle: TableHandle
  /** Names the rows; absent: nobody knows. */
  readonly snapshot?: string | undefined
  /** Columns that its connector can be asked questions of. */
  readonly answers?: readonly string[] | undefined
  /** Columns that divide the table into partitions: conditions on them spare whole files. */
  readonly partitionedBy?: readonly string[] | undefined
  /** What it is asked; of one with groups `columns` are those of the answer. */
  readonly question?: ScanQuestion
  readonly columns: readonly { readonly id: ColumnId; readonly name: string; readonly type: SqlType }[]
}

/** At least one row; no columns at all for the one row of a SELECT without FROM. */
export interface ValuesNode {
  readonly kind: 'values'
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
  readonly rows: readonly (readonly Expr[])[]
}

/** The rows of VALUES by column: the arrays are of one length, and the items at one position make a row. */
export interface ArraysNode {
  readonly kind: 'arrays'
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
  readonly rowCount: number
  /** One array a column. They read no columns and hold no queries. */
  readonly arrays: readonly Expr[]
}

export interface FilterNode {
  readonly kind: 'filter'
  readonly input: RelationNode
  readonly predicate: Expr
}

/** Adds columns; the input's columns stay usable above it until a node that lists its own outputs. */
export interface ProjectNode {
  readonly kind: 'project'
  readonly input: RelationNode
  readonly columns: readonly ComputedColumn[]
}

/** Rows and values as rules leave them: what stands above is asked of no others. */
export interface BarrierNode {
  readonly kind: 'barrier'
  readonly input: RelationNode
  /** Whether there is a filter of the rules in `input`: below their masks, where there are any. */
  readonly filtered: boolean
  /** A mask, and the column that it stands for. */
  readonly masked: readonly { readonly id: ColumnId; readonly column: ColumnId }[]
}

export type JoinType = 'cross' | 'inner' | 'left' | 'right' | 'full'

/** `lateral`: the right side uses columns of the left one. */
export interface JoinNode {
  readonly kind: 'join'
  readonly type: JoinType
  readonly lateral: boolean
  readonly left: RelationNode
  readonly right: RelationNode
  readonly condition: Expr | undefined
}

/** Rows of arrays and maps side by side, shorter ones padded with NULL; rows of arrays of rows spread into columns. */
export interface UnnestNode {
  readonly kind: 'unnest'
  readonly arguments: readonly { readonly value: Expr; readonly columns: readonly ColumnId[] }[]
  readonly ordinality: ColumnId | undefined
}

export interface AggregateNode {
  readonly kind: 'aggregate'
  readonly input: RelationNode
  readonly keys: readonly { readonly id: ColumnId; readonly input: ColumnId; readonly type: SqlType }[]
  /** Each a list of indexes into `keys`; undefined: one set of all keys. */
  readonly sets: readonly (readonly number[])[] | undefined
  readonly aggregates: readonly { readonly id: ColumnId; readonly call: AggregateExpr }[]
  /** GROUPING(…) over key indexes. */
  readonly groupings: readonly { readonly id: ColumnId; readonly keys: readonly number[]; readonly type: SqlType }[]
}

/** Adds one column a window call. */
export interface WindowNode {
  readonly kind: 'window'
  readonly input: RelationNode
  readonly columns: readonly { readonly id: ColumnId; readonly call: WindowExpr }[]
}

/** Of exactly these columns. */
export interface DistinctNode {
  readonly kind: 'distinct'
  readonly input: RelationNode
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
}

export interface SortNode {
  readonly kind: 'sort'
  readonly input: RelationNode
  readonly keys: readonly SortKey[]
}

export interface LimitNode {
  readonly kind: 'limit'
  readonly input: RelationNode
  /** Digits; undefined: all rows. */
  readonly count: string | undefined
  readonly offset: string | undefined
  /** FETCH FIRST … WITH TIES: the keys of the sort below. */
  readonly ties: readonly SortKey[] | undefined
}

export interface SetNode {
  readonly kind: 'set'
  readonly operator: 'union' | 'intersect' | 'except'
  readonly all: boolean
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
  /** Columns in the order of `columns`, of their types. */
  readonly inputs: readonly { readonly node: RelationNode; readonly columns: readonly ColumnId[] }[]
}

export interface CommonTable {
  readonly id: number
  readonly node: RelationNode
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
  /** The repeated part of a recursive one, reading the table itself. */
  readonly step?: {
    readonly node: RelationNode
    readonly columns: readonly ColumnId[]
    /** Steps after which the query fails (max_recursion_depth). */
    readonly maxDepth: number
    /** UNION without ALL. */
    readonly distinct: boolean
  }
}

export interface WithNode {
  readonly kind: 'with'
  readonly tables: readonly CommonTable[]
  readonly body: RelationNode
}

/** Reads a common table: `columns` stand for its columns, by position. */
export interface CteScanNode {
  readonly kind: 'cte'
  readonly table: number
  readonly columns: readonly { readonly id: ColumnId; readonly source: ColumnId; readonly type: SqlType }[]
}

export interface SampleNode {
  readonly kind: 'sample'
  readonly input: RelationNode
  readonly percentage: number
  readonly system: boolean
}

/** `TABLE(sequence(start, stop, step))`: whole numbers within 64 bits. */
export interface SequenceNode {
  readonly kind: 'sequence'
  readonly id: ColumnId
  readonly start: bigint
  readonly stop: bigint
  readonly step: bigint
}

// ---- Expressions

export type Expr =
  | ConstantExpr
  | ColumnExpr
  | LambdaArgumentExpr
  | CallExpr
  | EngineCallExpr
  | OperatorExpr
  | NegateExpr
  | CompareExpr
  | CastExpr
  | LogicalExpr
  | NotExpr
  | IsNullExpr
  | CaseExpr
  | CoalesceExpr
  | LetExpr
  | TryExpr
  | InListExpr
  | InLiteralsExpr
  | LikeExpr
  | BetweenExpr
  | RowExpr
  | FieldExpr
  | ArrayExpr
  | LiteralsExpr
  | LambdaExpr
  | ScalarSubqueryExpr
  | ExistsExpr
  | InSubqueryExpr
  | QuantifiedExpr
  | AggregateExpr
  | WindowExpr
  | GroupingExpr

interface Typed<Kind extends string> {
  readonly kind: Kind
  readonly type: SqlType
}

/**
 * What `value` is, by type: boolean; digits for integers and decimals (with point); text for double and real, as
 * `Number()` takes it; text for varchar, char, json, uuid, ipaddress; upper-case hexadecimal for varbinary; days
 * since the epoch for date; picoseconds for time and timestamp (since midnight, since the epoch; of UTC when it has
 * a zone); milliseconds and months for the intervals.
 */
export interface ConstantExpr extends Typed<'constant'> {
  readonly value: string | boolean | bigint | null
  /** The zone id of a time or timestamp with time zone; of a time: `+hh:mm`. */
  readonly zone?: string
  /** The `?` it stands for while a statement is described. */
  readonly parameter?: number
}

export interface ColumnExpr extends Typed<'column'> {
  readonly id: ColumnId
}

export interface LambdaArgumentExpr extends Typed<'lambdaArgument'> {
  /** Unique in the statement. */
  readonly id: ColumnId
}

/** A scalar function of the function table; arguments are of exactly its argument types. */
export interface CallExpr extends Typed<'call'> {
  readonly function: ResolvedFunction
  readonly arguments: readonly Expr[]
  /** What a function that the query declares itself does. */
  readonly routine?: Routine
}

/** The value of `body` once the parameters have their arguments; it uses no columns. */
export interface Routine {
  readonly parameters: readonly LambdaArgumentExpr[]
  readonly body: Expr
}

/** A function of the engine that no name of the language reaches: what syntax of its own is made of. */
export interface EngineCallExpr extends Typed<'engineCall'> {
  readonly name: EngineFunction
  readonly arguments: readonly Expr[]
}

export type EngineFunction =
  | 'chr'
  | 'length'
  | 'split_part'
  | 'u_match_rows'
  | 'u_raise'
  | 'q_json_exists'
  | 'q_json_query'
  | 'q_json_value'
  | 'u_json_exists'
  | 'u_json_value'
  | 'u_json_query'
  | 'u_json_table'
  | 'json_extract_string'
  | 'json_array'
  | 'u_json_document'
  | 'u_json_passed'
  | 'u_json_object'
  | 'array_to_string'
  | 'concat'
  | 'left'
  | 'range'
  | 'substr'

/** Arithmetic or a subscript; operands are of exactly the operator's types. */
export interface OperatorExpr extends Typed<'operator'> {
  /** `+`, `-`, `*`, `/`, `%`, `[]` */
  readonly name: string
  readonly operator: ResolvedOperator
  readonly left: Expr
  readonly right: Expr
}

export interface NegateExpr extends Typed<'negate'> {
  readonly value: Expr
}

/** Both sides have the same type. */
export interface CompareExpr extends Typed<'compare'> {
  readonly operator: ComparisonKind
  readonly left: Expr
  readonly right: Expr
}

export interface CastExpr extends Typed<'cast'> {
  readonly value: Expr
  /** TRY_CAST */
  readonly safe: boolean
  /** A value on its way into a table: text that does not fit fails instead of being cut. */
  readonly stored?: true
}

export interface LogicalExpr extends Typed<'and' | 'or'> {
  readonly terms: readonly Expr[]
}

export interface NotExpr extends Typed<'not'> {
  readonly value: Expr
}

export interface IsNullExpr extends Typed<'isNull'> {
  readonly value: Expr
}

/** Every `when` is a condition: `CASE x WHEN y` has comparisons with x. */
export interface CaseExpr extends Typed<'case'> {
  readonly branches: readonly { readonly when: Expr; readonly then: Expr }[]
  readonly otherwise: Expr | undefined
}

export interface CoalesceExpr extends Typed<'coalesce'> {
  readonly operands: readonly Expr[]
}

/** `value` under a name in `body`: calculated once however often the body uses it. */
export interface LetExpr extends Typed<'let'> {
  readonly name: LambdaArgumentExpr
  readonly value: Expr
  readonly body: Expr
  /** The value is calculated where the body does not use it, too: it may fail. */
  readonly strict?: true
}

export interface TryExpr extends Typed<'try'> {
  readonly value: Expr
}

/** All of one type. */
export interface InListExpr extends Typed<'inList'> {
  readonly value: Expr
  readonly values: readonly Expr[]
}

/** `value IN (…)` with a long list of constants of the value's type. */
export interface InLiteralsExpr extends Typed<'inLiterals'> {
  readonly value: Expr
  readonly literals: LiteralsExpr
}

/** Value, pattern and escape are of character types. */
export interface LikeExpr extends Typed<'like'> {
  readonly value: Expr
  readonly pattern: Expr
  readonly escape: Expr | undefined
}

/** All of one type. */
export interface BetweenExpr extends Typed<'between'> {
  readonly value: Expr
  readonly min: Expr
  readonly max: Expr
}

export interface RowExpr extends Typed<'row'> {
  readonly items: readonly Expr[]
}

export interface FieldExpr extends Typed<'field'> {
  readonly base: Expr
  /** From 0. */
  readonly index: number
}

export interface ArrayExpr extends Typed<'array'> {
  readonly items: readonly Expr[]
}

/** An array of many constants. It is one leaf of the tree: nobody walks over its items. */
export interface LiteralsExpr extends Typed<'literals'> {
  readonly type: ArrayType
  /** Each as `ConstantExpr` has it. */
  readonly literals: readonly ConstantExpr['value'][]
}

export interface LambdaExpr extends Typed<'lambda'> {
  readonly parameters: readonly LambdaArgumentExpr[]
  readonly body: Expr
}

export interface Subquery {
  readonly node: RelationNode
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
}

/** More than one row is SUBQUERY_MULTIPLE_ROWS, none is NULL. Of several columns a row. */
export interface ScalarSubqueryExpr extends Typed<'scalarSubquery'> {
  readonly query: Subquery
}

export interface ExistsExpr extends Typed<'exists'> {
  readonly query: Subquery
}

/** The query has one column, of the value's type. */
export interface InSubqueryExpr extends Typed<'inSubquery'> {
  readonly value: Expr
  readonly query: Subquery
}

export interface QuantifiedExpr extends Typed<'quantified'> {
  readonly operator: '=' | '<>' | '<' | '<=' | '>' | '>='
  readonly all: boolean
  readonly value: Expr
  readonly query: Subquery
}

export interface AggregateExpr extends Typed<'aggregate'> {
  readonly function: ResolvedFunction
  readonly arguments: readonly Expr[]
  readonly distinct: boolean
  readonly orderBy: readonly ExprSortKey[]
  readonly filter: Expr | undefined
}

export interface ExprSortKey {
  readonly value: Expr
  readonly descending: boolean
  readonly nullsFirst: boolean
}

export interface WindowExpr extends Typed<'window'> {
  readonly function: ResolvedFunction
  readonly arguments: readonly Expr[]
  readonly ignoreNulls: boolean
  readonly distinct: boolean
  readonly filter: Expr | undefined
  /** The ORDER BY of the aggregate's own arguments. */
  readonly argumentOrder: readonly ExprSortKey[]
  readonly partitionBy: readonly Expr[]
  readonly orderBy: readonly ExprSortKey[]
  readonly frame: BoundFrame | undefined
}

export interface BoundFrame {
  readonly type: 'RANGE' | 'ROWS' | 'GROUPS'
  readonly start: FrameEnd
  readonly end: FrameEnd
}

export interface FrameEnd {
  readonly type: 'UNBOUNDED_PRECEDING' | 'PRECEDING' | 'CURRENT_ROW' | 'FOLLOWING' | 'UNBOUNDED_FOLLOWING'
  readonly value: Expr | undefined
}

/** GROUPING(a, b): replaced by a column of the aggregation. */
export interface GroupingExpr extends Typed<'grouping'> {
  readonly columns: readonly Expr[]
}
