import type { JsonTable } from './ast-json.ts'
import type { PatternRecognitionRelation } from './ast-patterns.ts'
import type { FunctionSpecification } from './ast-routines.ts'
import type { Expression, LongLiteral, Parameter, WindowDefinition } from './ast.ts'
import type { Identifier, Node, QualifiedName } from './ast-node.ts'
import type { DataType } from './ast-types.ts'

/**
 * `WITH … body ORDER BY … OFFSET … LIMIT …`. Unlike in Trino, the last three stay here if the body is a
 * QuerySpecification (Trino moves them into it). Only then can ORDER BY refer to the body's source columns.
 */
export interface Query extends Node<'Query'> {
  /** `WITH FUNCTION …`: only in a statement's outermost query. */
  readonly functions: readonly FunctionSpecification[]
  /** `WITH SESSION name = value`: only in a statement's outermost query. */
  readonly sessionProperties: readonly SessionPropertyValue[]
  readonly with: With | undefined
  readonly body: QueryBody
  readonly orderBy: OrderBy | undefined
  readonly offset: Offset | undefined
  readonly limit: Limit | FetchFirst | undefined
}

export interface SessionPropertyValue extends Node<'SessionProperty'> {
  readonly name: QualifiedName
  readonly value: Expression
}

export interface With extends Node<'With'> {
  readonly recursive: boolean
  readonly queries: readonly WithQuery[]
}

export interface WithQuery extends Node<'WithQuery'> {
  readonly name: Identifier
  readonly query: Query
  readonly columnNames: readonly Identifier[] | undefined
}

export type QueryBody = QuerySpecification | SetOperation | Values | Table | TableSubquery

export interface QuerySpecification extends Node<'QuerySpecification'> {
  readonly select: Select
  readonly from: Relation | undefined
  readonly where: Expression | undefined
  readonly groupBy: GroupBy | undefined
  readonly having: Expression | undefined
  readonly windows: readonly WindowDefinition[]
}

export interface Select extends Node<'Select'> {
  readonly distinct: boolean
  readonly items: readonly SelectItem[]
}

export type SelectItem = SingleColumn | AllColumns

export interface SingleColumn extends Node<'SingleColumn'> {
  readonly expression: Expression
  readonly alias: Identifier | undefined
}

/** `*`, `t.*`, `row_value.* AS (a, b)`. */
export interface AllColumns extends Node<'AllColumns'> {
  readonly target: Expression | undefined
  readonly aliases: readonly Identifier[]
}

export interface GroupBy extends Node<'GroupBy'> {
  readonly distinct: boolean
  readonly elements: readonly GroupingElement[]
}

export type GroupingElement = SimpleGroupBy | GroupingSets | GroupByAuto

/** One expression, or `(a, b)` as one grouping set of several columns. */
export interface SimpleGroupBy extends Node<'SimpleGroupBy'> {
  readonly columns: readonly Expression[]
}

/** ROLLUP, CUBE and GROUPING SETS; `sets` as written. */
export interface GroupingSets extends Node<'GroupingSets'> {
  readonly type: 'EXPLICIT' | 'ROLLUP' | 'CUBE'
  readonly sets: readonly (readonly Expression[])[]
}

/** `GROUP BY AUTO`: groups by every select item without an aggregate. */
export interface GroupByAuto extends Node<'GroupByAuto'> {}

/** UNION, INTERSECT, EXCEPT; `distinct` if ALL is not written. */
export interface SetOperation extends Node<'SetOperation'> {
  readonly operator: 'UNION' | 'INTERSECT' | 'EXCEPT'
  readonly distinct: boolean
  /** `CORRESPONDING`, with the columns that `BY` names (otherwise empty). */
  readonly corresponding: Corresponding | undefined
  readonly left: QueryBody
  readonly right: QueryBody
}

export interface Corresponding extends Node<'Corresponding'> {
  readonly columns: readonly Identifier[]
}

/** Each row is an expression: a Row, or a single value. */
export interface Values extends Node<'Values'> {
  readonly rows: readonly Expression[]
}

export interface OrderBy extends Node<'OrderBy'> {
  readonly sortItems: readonly SortItem[]
}

export interface SortItem extends Node<'SortItem'> {
  readonly sortKey: Expression
  readonly ordering: 'ASCENDING' | 'DESCENDING'
  /** UNDEFINED means NULLS LAST in Trino, whatever the ordering. */
  readonly nullOrdering: 'FIRST' | 'LAST' | 'UNDEFINED'
}

export interface Offset extends Node<'Offset'> {
  readonly rowCount: LongLiteral | Parameter
}

/** LIMIT n; LIMIT ALL if the count is `ALL`. */
export interface Limit extends Node<'Limit'> {
  readonly rowCount: LongLiteral | Parameter | 'ALL'
}

/** FETCH FIRST n ROWS ONLY; without a count, one row. */
export interface FetchFirst extends Node<'FetchFirst'> {
  readonly rowCount: LongLiteral | Parameter | undefined
  readonly withTies: boolean
}

// ---- Relations

export type Relation =
  | Table
  | TableSubquery
  | AliasedRelation
  | Join
  | Unnest
  | Lateral
  | SampledRelation
  | TableFunctionInvocation
  | PatternRecognitionRelation
  | JsonTable

export interface Table extends Node<'Table'> {
  readonly name: QualifiedName
  readonly queryPeriod: QueryPeriod | undefined
}

/** `FOR VERSION AS OF …` */
export interface QueryPeriod extends Node<'QueryPeriod'> {
  readonly rangeType: 'TIMESTAMP' | 'VERSION'
  readonly end: Expression
}

/** `(query)` in FROM, or as an operand of a set operation. */
export interface TableSubquery extends Node<'TableSubquery'> {
  readonly query: Query
}

export interface AliasedRelation extends Node<'AliasedRelation'> {
  readonly relation: Relation
  readonly alias: Identifier
  readonly columnNames: readonly Identifier[] | undefined
}

/** IMPLICIT is `FROM a, b`. CROSS and IMPLICIT have no criteria; all others have. */
export interface Join extends Node<'Join'> {
  readonly type: 'CROSS' | 'IMPLICIT' | 'INNER' | 'LEFT' | 'RIGHT' | 'FULL'
  readonly left: Relation
  readonly right: Relation
  readonly criteria: JoinCriteria | undefined
}

export type JoinCriteria = JoinOn | JoinUsing | NaturalJoin

export interface JoinOn extends Node<'JoinOn'> {
  readonly expression: Expression
}

export interface JoinUsing extends Node<'JoinUsing'> {
  readonly columns: readonly Identifier[]
}

export interface NaturalJoin extends Node<'NaturalJoin'> {}

export interface Unnest extends Node<'Unnest'> {
  readonly expressions: readonly Expression[]
  readonly withOrdinality: boolean
}

export interface Lateral extends Node<'Lateral'> {
  readonly query: Query
}

export interface SampledRelation extends Node<'SampledRelation'> {
  readonly relation: Relation
  readonly type: 'BERNOULLI' | 'SYSTEM'
  readonly samplePercentage: Expression
}

/** `TABLE(f(…))` */
export interface TableFunctionInvocation extends Node<'TableFunctionInvocation'> {
  readonly name: QualifiedName
  readonly arguments: readonly TableFunctionArgument[]
  readonly copartitioning: readonly (readonly QualifiedName[])[]
}

export interface TableFunctionArgument extends Node<'TableFunctionArgument'> {
  readonly name: Identifier | undefined
  readonly value: Expression | TableFunctionTableArgument | TableFunctionDescriptorArgument
}

export interface TableFunctionTableArgument extends Node<'TableFunctionTableArgument'> {
  /** A Table or TableSubquery, possibly inside an AliasedRelation. */
  readonly table: Relation
  /** Undefined if not partitioned; empty for `PARTITION BY ()`. */
  readonly partitionBy: readonly Expression[] | undefined
  readonly orderBy: OrderBy | undefined
  readonly emptyTreatment: 'KEEP' | 'PRUNE' | undefined
}

/** `DESCRIPTOR(a bigint, b)`; without fields it is `CAST(NULL AS DESCRIPTOR)`. */
export interface TableFunctionDescriptorArgument extends Node<'TableFunctionDescriptorArgument'> {
  readonly fields: readonly DescriptorField[] | undefined
}

export interface DescriptorField extends Node<'DescriptorField'> {
  readonly name: Identifier
  readonly type: DataType | undefined
}
