import type { TableHandle } from '../../connectors/spi/connector.ts'
import type { ScanQuestion } from '../../connectors/spi/scan-question.ts'
import type { ArrayType, SqlType } from '../types/sql-type.ts'
import type { ComparisonKind } from '../functions/operators.ts'
import type { ResolvedOperator } from '../functions/resolved-operator.ts'
import type { ResolvedFunction } from '../functions/resolve-function.ts'

/**
 * The typed tree: a query's meaning, with names resolved, types known and every coercion an explicit cast. A column is
 * a number that is unique in the whole statement. Each node says which columns it adds or passes on, so no later step
 * depends on names, and a column of an outer query is used like any other.
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

/** Scans a table of a catalog: `columns` maps column ids to the table's names. */
export interface ScanNode {
  readonly kind: 'scan'
  readonly catalog: string
  readonly schema: string
  readonly table: string
  readonly handle: TableHandle
  /** Identifies the table's contents; absent if their version is unknown. */
  readonly snapshot?: string | undefined
  /** The version that the statement names (FOR VERSION AS OF and the like); absent for the table of today. */
  readonly version?: number
  /** Columns about which the connector answers questions. */
  readonly answers?: readonly string[] | undefined
  /** The views that the statement reads it through, the outermost first; absent if the statement names it itself. */
  readonly via?: readonly string[]
  /** Partition columns: conditions on them avoid reading whole files. */
  readonly partitionedBy?: readonly string[] | undefined
  /** The question for the connector. If it asks for groups, `columns` are the columns of the answer. */
  readonly question?: ScanQuestion
  readonly columns: readonly { readonly id: ColumnId; readonly name: string; readonly type: SqlType }[]
  /** The columns `$file` and `$row`, which identify a row of this version of the table. */
  readonly rowIds?: readonly { readonly id: ColumnId; readonly name: string }[]
}

/** A view that the statement reads. */
export interface ReadView {
  readonly catalog: string
  readonly schema: string
  readonly table: string
  /** The views that name it, the outermost first; empty if the statement names it itself. */
  readonly via: readonly string[]
  readonly columns: readonly { readonly id: ColumnId; readonly name: string }[]
}

/** Has at least one row. A SELECT without FROM is one row without columns. */
export interface ValuesNode {
  readonly kind: 'values'
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
  readonly rows: readonly (readonly Expr[])[]
}

/** The rows of VALUES, stored by column: all arrays have the same length, and the items at one position form a row. */
export interface ArraysNode {
  readonly kind: 'arrays'
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
  readonly rowCount: number
  /** One array per column. They read no columns and contain no queries. */
  readonly arrays: readonly Expr[]
}

export interface FilterNode {
  readonly kind: 'filter'
  readonly input: RelationNode
  readonly predicate: Expr
}

/** Adds columns. The input's columns stay readable above it, up to a node that lists its own outputs. */
export interface ProjectNode {
  readonly kind: 'project'
  readonly input: RelationNode
  readonly columns: readonly ComputedColumn[]
}

/**
 * Separates a table's rows and values as filtered and masked by rules from the query above. Expressions above are
 * evaluated on no other rows or values.
 */
export interface BarrierNode {
  readonly kind: 'barrier'
  readonly input: RelationNode
  /** Whether `input` contains a row filter of the rules; it stands below the masks, if any. */
  readonly filtered: boolean
  /** Masks, each with the column that it replaces. */
  readonly masked: readonly { readonly id: ColumnId; readonly column: ColumnId }[]
}

export type JoinType = 'cross' | 'inner' | 'left' | 'right' | 'full'

/** `lateral`: the right side reads columns of the left side. */
export interface JoinNode {
  readonly kind: 'join'
  readonly type: JoinType
  readonly lateral: boolean
  readonly left: RelationNode
  readonly right: RelationNode
  readonly condition: Expr | undefined
}

/**
 * Expands arrays and maps side by side; shorter ones are padded with NULL. Arrays of rows expand into the rows'
 * columns.
 */
export interface UnnestNode {
  readonly kind: 'unnest'
  readonly arguments: readonly { readonly value: Expr; readonly columns: readonly ColumnId[] }[]
  readonly ordinality: ColumnId | undefined
}

export interface AggregateNode {
  readonly kind: 'aggregate'
  readonly input: RelationNode
  readonly keys: readonly { readonly id: ColumnId; readonly input: ColumnId; readonly type: SqlType }[]
  /** Lists of indexes into `keys`; undefined for one set of all keys. */
  readonly sets: readonly (readonly number[])[] | undefined
  readonly aggregates: readonly { readonly id: ColumnId; readonly call: AggregateExpr }[]
  /** GROUPING(…) over key indexes. */
  readonly groupings: readonly { readonly id: ColumnId; readonly keys: readonly number[]; readonly type: SqlType }[]
}

/** Adds one column per window call. */
export interface WindowNode {
  readonly kind: 'window'
  readonly input: RelationNode
  readonly columns: readonly { readonly id: ColumnId; readonly call: WindowExpr }[]
}

/** Distinct rows of exactly these columns. */
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
  /** Digits; undefined for all rows. */
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
  /** The inputs' columns correspond to `columns` in order and type. */
  readonly inputs: readonly { readonly node: RelationNode; readonly columns: readonly ColumnId[] }[]
}

export interface CommonTable {
  readonly id: number
  readonly node: RelationNode
  readonly columns: readonly { readonly id: ColumnId; readonly type: SqlType }[]
  /** The recursive part of a recursive table; it reads the table itself. */
  readonly step?: {
    readonly node: RelationNode
    readonly columns: readonly ColumnId[]
    /** The number of steps after which the query fails (max_recursion_depth). */
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

/** Reads a common table; `columns` map to the table's columns by position. */
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

/** `TABLE(sequence(start, stop, step))`: 64-bit integers. */
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
 * The representation of `value`, by type: boolean; digits for integers and decimals (with point); text for double and
 * real, as `Number()` reads it; text for varchar, char, json, uuid, ipaddress; upper-case hexadecimal for varbinary;
 * days since the epoch for date; picoseconds for time and timestamp (since midnight, since the epoch; in UTC if the
 * type has a zone); milliseconds and months for the intervals.
 */
export interface ConstantExpr extends Typed<'constant'> {
  readonly value: string | boolean | bigint | null
  /** The zone id of a timestamp with time zone; `+hh:mm` for a time with time zone. */
  readonly zone?: string
  /** The index of the `?` that the constant replaces while a statement is described. */
  readonly parameter?: number
}

export interface ColumnExpr extends Typed<'column'> {
  readonly id: ColumnId
}

export interface LambdaArgumentExpr extends Typed<'lambdaArgument'> {
  /** Unique in the statement. */
  readonly id: ColumnId
}

/** A call of a function in the function table; the arguments have exactly its argument types. */
export interface CallExpr extends Typed<'call'> {
  readonly function: ResolvedFunction
  readonly arguments: readonly Expr[]
  /** The body of a function that the query itself declares. */
  readonly routine?: Routine
}

/** The parameters and body of a declared function; the body reads no columns. */
export interface Routine {
  readonly parameters: readonly LambdaArgumentExpr[]
  readonly body: Expr
}

/** A call of an internal engine function that no SQL name reaches; special syntax is rendered with these. */
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

/** Arithmetic or a subscript; the operands have exactly the operator's types. */
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

/** Both operands have the same type. */
export interface CompareExpr extends Typed<'compare'> {
  readonly operator: ComparisonKind
  readonly left: Expr
  readonly right: Expr
}

export interface CastExpr extends Typed<'cast'> {
  readonly value: Expr
  /** TRY_CAST */
  readonly safe: boolean
  /** A value to be stored in a table: text that is too long fails instead of being cut. */
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

/** Every `when` is a condition: `CASE x WHEN y` becomes comparisons with x. */
export interface CaseExpr extends Typed<'case'> {
  readonly branches: readonly { readonly when: Expr; readonly then: Expr }[]
  readonly otherwise: Expr | undefined
}

export interface CoalesceExpr extends Typed<'coalesce'> {
  readonly operands: readonly Expr[]
}

/** Binds `value` to a name in `body`: it is computed once, however often the body uses it. */
export interface LetExpr extends Typed<'let'> {
  readonly name: LambdaArgumentExpr
  readonly value: Expr
  readonly body: Expr
  /** Whether the value is computed even if the body does not use it, because it may fail. */
  readonly strict?: true
}

export interface TryExpr extends Typed<'try'> {
  readonly value: Expr
}

/** All operands have one type. */
export interface InListExpr extends Typed<'inList'> {
  readonly value: Expr
  readonly values: readonly Expr[]
}

/** `value IN (…)` with a long list of constants of the value's type. */
export interface InLiteralsExpr extends Typed<'inLiterals'> {
  readonly value: Expr
  readonly literals: LiteralsExpr
}

/** Value, pattern and escape have character types. */
export interface LikeExpr extends Typed<'like'> {
  readonly value: Expr
  readonly pattern: Expr
  readonly escape: Expr | undefined
}

/** All operands have one type. */
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
  /** Counted from 0. */
  readonly index: number
}

export interface ArrayExpr extends Typed<'array'> {
  readonly items: readonly Expr[]
}

/** An array of many constants. It is a leaf of the tree: walks do not visit its items. */
export interface LiteralsExpr extends Typed<'literals'> {
  readonly type: ArrayType
  /** Each represented as in `ConstantExpr`. */
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

/** More than one row fails with SUBQUERY_MULTIPLE_ROWS; no row gives NULL. Several columns form a row. */
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
  /** The ORDER BY inside the aggregate call. */
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

/** GROUPING(a, b); later replaced by a column of the aggregation. */
export interface GroupingExpr extends Typed<'grouping'> {
  readonly columns: readonly Expr[]
}
