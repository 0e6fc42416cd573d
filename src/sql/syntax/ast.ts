import type { JsonArray, JsonExists, JsonObject, JsonQuery, JsonValueCall } from './ast-json.ts'
import type { MeasureDefinition, RowPattern, SkipTo, SubsetDefinition, VariableDefinition } from './ast-patterns.ts'
import type { OrderBy, Query } from './ast-query.ts'
import type { IntervalField, DataType } from './ast-types.ts'
import type { Node, QualifiedName, Identifier } from './ast-node.ts'

// The syntax tree of a statement, modeled after Trino's io.trino.sql.tree: the same names and structure (AND/OR
// flattened into terms, `IS NOT DISTINCT FROM` a NotExpression, `FROM a, b` an IMPLICIT join …). Differences are noted
// at the node. This file has the expressions. The other files ast-*.ts have names, types, queries and statements.

export type Expression =
  | Literal
  | Identifier
  | Parameter
  | LogicalExpression
  | NotExpression
  | ComparisonExpression
  | QuantifiedComparisonExpression
  | BetweenPredicate
  | InPredicate
  | LikePredicate
  | IsNullPredicate
  | IsNotNullPredicate
  | ExistsPredicate
  | SubqueryExpression
  | ArithmeticUnaryExpression
  | ArithmeticBinaryExpression
  | ConcatExpression
  | AtTimeZone
  | FunctionCall
  | Listagg
  | LabelDereference
  | WindowOperation
  | LambdaExpression
  | IfExpression
  | NullIfExpression
  | CoalesceExpression
  | TryExpression
  | Format
  | SimpleCaseExpression
  | SearchedCaseExpression
  | Cast
  | ArrayConstructor
  | Row
  | SubscriptExpression
  | DereferenceExpression
  | Trim
  | Extract
  | Normalize
  | CurrentDate
  | CurrentTime
  | CurrentTimestamp
  | LocalTimeCall
  | LocalTimestampCall
  | CurrentCatalog
  | CurrentSchema
  | CurrentPath
  | CurrentUser
  | GroupingOperation
  | JsonExists
  | JsonValueCall
  | JsonQuery
  | JsonObject
  | JsonArray

export type Literal =
  | NullLiteral
  | BooleanLiteral
  | LongLiteral
  | DecimalLiteral
  | DoubleLiteral
  | StringLiteral
  | BinaryLiteral
  | GenericLiteral
  | IntervalLiteral

export interface NullLiteral extends Node<'NullLiteral'> {}

export interface BooleanLiteral extends Node<'BooleanLiteral'> {
  readonly value: boolean
}

/** An integer within 64 bits; a minus sign directly before it is part of it. */
export interface LongLiteral extends Node<'LongLiteral'> {
  /** Plain decimal digits with an optional minus: `BigInt(value)`. */
  readonly value: string
  /** As written: `0x1F`, `1_000`. */
  readonly text: string
}

/** `1.5`; `DECIMAL '1.5'` is a GenericLiteral. Any number of digits: the analyzer limits the precision. */
export interface DecimalLiteral extends Node<'DecimalLiteral'> {
  /** Without digit separators. */
  readonly value: string
}

/** `1e5`: a number with an exponent. */
export interface DoubleLiteral extends Node<'DoubleLiteral'> {
  /** Without whitespace; `Number(value)` gives its value. */
  readonly value: string
}

/** `'it''s'` and `U&'\00e9'`, both decoded. */
export interface StringLiteral extends Node<'StringLiteral'> {
  readonly value: string
}

export interface BinaryLiteral extends Node<'BinaryLiteral'> {
  /** Upper-case hexadecimal digits, an even number. */
  readonly hex: string
}

/** `DATE '2020-01-01'`, `TIMESTAMP '…'`, `JSON '…'`: a type's name before a string. */
export interface GenericLiteral extends Node<'GenericLiteral'> {
  readonly type: string
  readonly value: string
}

export interface IntervalLiteral extends Node<'IntervalLiteral'> {
  readonly value: string
  readonly sign: 'POSITIVE' | 'NEGATIVE'
  readonly startField: IntervalField
  readonly endField: IntervalField | undefined
}

/** `?`; `index` counts from 0 in the order of the text. */
export interface Parameter extends Node<'Parameter'> {
  readonly index: number
}

/** Has at least two terms; nested only through parentheses or the other operator. */
export interface LogicalExpression extends Node<'LogicalExpression'> {
  readonly operator: 'AND' | 'OR'
  readonly terms: readonly Expression[]
}

export interface NotExpression extends Node<'NotExpression'> {
  readonly value: Expression
}

export type ComparisonOperator = '=' | '<>' | '<' | '<=' | '>' | '>='

export interface ComparisonExpression extends Node<'ComparisonExpression'> {
  readonly operator: ComparisonOperator | 'IS DISTINCT FROM'
  readonly left: Expression
  readonly right: Expression
}

export interface QuantifiedComparisonExpression extends Node<'QuantifiedComparisonExpression'> {
  readonly operator: ComparisonOperator
  readonly quantifier: 'ALL' | 'ANY' | 'SOME'
  readonly value: Expression
  readonly subquery: SubqueryExpression
}

/** `NOT BETWEEN`, `NOT IN` and `NOT LIKE` are these nodes inside a NotExpression. */
export interface BetweenPredicate extends Node<'BetweenPredicate'> {
  readonly value: Expression
  readonly min: Expression
  readonly max: Expression
}

export interface InPredicate extends Node<'InPredicate'> {
  readonly value: Expression
  readonly valueList: InListExpression | SubqueryExpression
}

export interface InListExpression extends Node<'InListExpression'> {
  readonly values: readonly Expression[]
}

export interface LikePredicate extends Node<'LikePredicate'> {
  readonly value: Expression
  readonly pattern: Expression
  readonly escape: Expression | undefined
}

export interface IsNullPredicate extends Node<'IsNullPredicate'> {
  readonly value: Expression
}

export interface IsNotNullPredicate extends Node<'IsNotNullPredicate'> {
  readonly value: Expression
}

export interface ExistsPredicate extends Node<'ExistsPredicate'> {
  readonly subquery: SubqueryExpression
}

export interface SubqueryExpression extends Node<'SubqueryExpression'> {
  readonly query: Query
}

export interface ArithmeticUnaryExpression extends Node<'ArithmeticUnaryExpression'> {
  readonly sign: '+' | '-'
  readonly value: Expression
}

export interface ArithmeticBinaryExpression extends Node<'ArithmeticBinaryExpression'> {
  readonly operator: '+' | '-' | '*' | '/' | '%'
  readonly left: Expression
  readonly right: Expression
}

/**
 * `left || right`. In Trino it is a FunctionCall of `concat` at the operator; functions named `concat` are not looked
 * up for it.
 */
export interface ConcatExpression extends Node<'ConcatExpression'> {
  readonly left: Expression
  readonly right: Expression
}

export interface AtTimeZone extends Node<'AtTimeZone'> {
  readonly value: Expression
  readonly timeZone: StringLiteral | IntervalLiteral
}

/**
 * A call of a function. As in Trino, `POSITION(a IN b)` is `strpos(b, a)` and `SUBSTRING(a FROM b FOR c)` is
 * `substring(a, b, c)`. The functions if, nullif, coalesce, try and format have nodes of their own.
 */
export interface FunctionCall extends Node<'FunctionCall'> {
  readonly name: QualifiedName
  readonly arguments: readonly Expression[]
  /** `count(*)`: no arguments. */
  readonly star: boolean
  readonly distinct: boolean
  readonly orderBy: OrderBy | undefined
  readonly filter: Expression | undefined
  readonly window: Window | undefined
  readonly nullTreatment: 'IGNORE' | 'RESPECT' | undefined
  /** RUNNING or FINAL, inside MATCH_RECOGNIZE. */
  readonly processingMode: ProcessingMode | undefined
}

export interface ProcessingMode extends Node<'ProcessingMode'> {
  readonly mode: 'RUNNING' | 'FINAL'
}

/** In Trino a FunctionCall of `listagg`; here it keeps its clauses. */
export interface Listagg extends Node<'Listagg'> {
  readonly distinct: boolean
  readonly value: Expression
  readonly separator: StringLiteral | undefined
  readonly overflow: ListaggOverflow | undefined
  readonly orderBy: OrderBy
  readonly filter: Expression | undefined
  readonly window: Window | undefined
}

/** ON OVERFLOW ERROR (the default) or TRUNCATE; the default filler is `...`. */
export type ListaggOverflow =
  | { readonly behavior: 'ERROR' }
  | { readonly behavior: 'TRUNCATE'; readonly filler: StringLiteral | undefined; readonly withCount: boolean }

/** `A.*` as the argument of a call inside MATCH_RECOGNIZE. */
export interface LabelDereference extends Node<'LabelDereference'> {
  readonly label: Identifier
}

/** `measure OVER w`: a measure of a window's row pattern. */
export interface WindowOperation extends Node<'WindowOperation'> {
  readonly name: Identifier
  readonly window: Window
}

export interface LambdaExpression extends Node<'LambdaExpression'> {
  readonly parameters: readonly Identifier[]
  readonly body: Expression
}

export interface IfExpression extends Node<'IfExpression'> {
  readonly condition: Expression
  readonly trueValue: Expression
  readonly falseValue: Expression | undefined
}

export interface NullIfExpression extends Node<'NullIfExpression'> {
  readonly first: Expression
  readonly second: Expression
}

export interface CoalesceExpression extends Node<'CoalesceExpression'> {
  readonly operands: readonly Expression[]
}

export interface TryExpression extends Node<'TryExpression'> {
  readonly value: Expression
}

export interface Format extends Node<'Format'> {
  readonly arguments: readonly Expression[]
}

export interface SimpleCaseExpression extends Node<'SimpleCaseExpression'> {
  readonly operand: Expression
  readonly whenClauses: readonly WhenClause[]
  readonly defaultValue: Expression | undefined
}

export interface SearchedCaseExpression extends Node<'SearchedCaseExpression'> {
  readonly whenClauses: readonly WhenClause[]
  readonly defaultValue: Expression | undefined
}

export interface WhenClause extends Node<'WhenClause'> {
  readonly operand: Expression
  readonly result: Expression
}

/** CAST; TRY_CAST if `safe`. */
export interface Cast extends Node<'Cast'> {
  readonly expression: Expression
  readonly type: DataType
  readonly safe: boolean
}

export interface ArrayConstructor extends Node<'ArrayConstructor'> {
  readonly values: readonly Expression[]
}

/** `ROW(…)` or `(a, b)`. */
export interface Row extends Node<'Row'> {
  readonly items: readonly Expression[]
}

export interface SubscriptExpression extends Node<'SubscriptExpression'> {
  readonly base: Expression
  readonly index: Expression
}

/** `base.field`: a column of a relation or a field of a row; `qualifiedNameOf` in tree.ts returns `a.b.c` as names. */
export interface DereferenceExpression extends Node<'DereferenceExpression'> {
  readonly base: Expression
  readonly field: Identifier
}

export interface Trim extends Node<'Trim'> {
  readonly specification: 'LEADING' | 'TRAILING' | 'BOTH'
  readonly source: Expression
  readonly character: Expression | undefined
}

export const extractFields = [
  'YEAR',
  'QUARTER',
  'MONTH',
  'WEEK',
  'DAY',
  'DAY_OF_MONTH',
  'DAY_OF_WEEK',
  'DOW',
  'DAY_OF_YEAR',
  'DOY',
  'YEAR_OF_WEEK',
  'YOW',
  'HOUR',
  'MINUTE',
  'SECOND',
  'TIMEZONE_MINUTE',
  'TIMEZONE_HOUR',
] as const

export type ExtractField = (typeof extractFields)[number]

export interface Extract extends Node<'Extract'> {
  readonly field: ExtractField
  readonly expression: Expression
}

/** In Trino a FunctionCall of `normalize`. */
export interface Normalize extends Node<'Normalize'> {
  readonly value: Expression
  readonly form: 'NFC' | 'NFD' | 'NFKC' | 'NFKD'
}

export interface CurrentDate extends Node<'CurrentDate'> {}

export interface CurrentTime extends Node<'CurrentTime'> {
  readonly precision: number | undefined
}

export interface CurrentTimestamp extends Node<'CurrentTimestamp'> {
  readonly precision: number | undefined
}

export interface LocalTimeCall extends Node<'LocalTime'> {
  readonly precision: number | undefined
}

export interface LocalTimestampCall extends Node<'LocalTimestamp'> {
  readonly precision: number | undefined
}

export interface CurrentCatalog extends Node<'CurrentCatalog'> {}

export interface CurrentSchema extends Node<'CurrentSchema'> {}

export interface CurrentPath extends Node<'CurrentPath'> {}

export interface CurrentUser extends Node<'CurrentUser'> {}

/** `GROUPING(a, t.b)` */
export interface GroupingOperation extends Node<'GroupingOperation'> {
  readonly columns: readonly QualifiedName[]
}

// ---- Windows

/** `OVER w` or `OVER (…)`. */
export type Window = WindowReference | WindowSpecification

export interface WindowReference extends Node<'WindowReference'> {
  readonly name: Identifier
}

export interface WindowSpecification extends Node<'WindowSpecification'> {
  readonly existingWindowName: Identifier | undefined
  readonly partitionBy: readonly Expression[]
  readonly orderBy: OrderBy | undefined
  readonly frame: WindowFrame | undefined
}

export interface WindowDefinition extends Node<'WindowDefinition'> {
  readonly name: Identifier
  readonly window: WindowSpecification
}

export interface WindowFrame extends Node<'WindowFrame'> {
  readonly type: 'RANGE' | 'ROWS' | 'GROUPS'
  readonly start: FrameBound
  readonly end: FrameBound | undefined
  readonly measures: readonly MeasureDefinition[]
  readonly afterMatchSkipTo: SkipTo | undefined
  readonly patternSearchMode: 'INITIAL' | 'SEEK' | undefined
  readonly pattern: RowPattern | undefined
  readonly subsets: readonly SubsetDefinition[]
  readonly variableDefinitions: readonly VariableDefinition[]
}

export interface FrameBound extends Node<'FrameBound'> {
  readonly type: 'UNBOUNDED_PRECEDING' | 'PRECEDING' | 'CURRENT_ROW' | 'FOLLOWING' | 'UNBOUNDED_FOLLOWING'
  /** Only with PRECEDING and FOLLOWING. */
  readonly value: Expression | undefined
}
