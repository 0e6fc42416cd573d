import type { Expression, StringLiteral } from './ast.ts'
import type { Identifier, Node } from './ast-node.ts'
import type { DataType } from './ast-types.ts'

export type JsonFormat = 'JSON' | 'UTF8' | 'UTF16' | 'UTF32'

/** `expression, 'lax $.a' AS name PASSING x AS y`; `inputFormat` only if FORMAT is written. */
export interface JsonPathInvocation extends Node<'JsonPathInvocation'> {
  readonly inputExpression: Expression
  readonly inputFormat: JsonFormat | undefined
  readonly jsonPath: StringLiteral
  readonly pathName: Identifier | undefined
  readonly pathParameters: readonly JsonPathParameter[]
}

export interface JsonPathParameter extends Node<'JsonPathParameter'> {
  readonly name: Identifier
  readonly parameter: Expression
  readonly format: JsonFormat | undefined
}

export interface JsonExists extends Node<'JsonExists'> {
  readonly pathInvocation: JsonPathInvocation
  /** The default is FALSE. */
  readonly errorBehavior: 'TRUE' | 'FALSE' | 'UNKNOWN' | 'ERROR' | undefined
}

export type JsonValueBehavior =
  | { readonly behavior: 'ERROR' | 'NULL' }
  | { readonly behavior: 'DEFAULT'; readonly value: Expression }

/** The default of both behaviors is NULL. */
export interface JsonValueCall extends Node<'JsonValue'> {
  readonly pathInvocation: JsonPathInvocation
  readonly returnedType: DataType | undefined
  readonly emptyBehavior: JsonValueBehavior | undefined
  readonly errorBehavior: JsonValueBehavior | undefined
}

export type JsonQueryBehavior = 'ERROR' | 'NULL' | 'EMPTY ARRAY' | 'EMPTY OBJECT'

/** The wrapper and quotes clauses of a query; the defaults are WITHOUT and KEEP. */
export interface JsonQueryOptions {
  readonly wrapperBehavior: 'WITHOUT' | 'CONDITIONAL' | 'UNCONDITIONAL' | undefined
  readonly quotesBehavior: 'KEEP' | 'OMIT' | undefined
  readonly emptyBehavior: JsonQueryBehavior | undefined
  readonly errorBehavior: JsonQueryBehavior | undefined
}

export interface JsonQuery extends Node<'JsonQuery'>, JsonQueryOptions {
  readonly pathInvocation: JsonPathInvocation
  readonly returnedType: DataType | undefined
  readonly outputFormat: JsonFormat | undefined
}

export interface JsonObject extends Node<'JsonObject'> {
  readonly members: readonly JsonObjectMember[]
  /** `ABSENT ON NULL`; the default is NULL ON NULL, so false. */
  readonly absentOnNull: boolean
  readonly uniqueKeys: boolean
  readonly returnedType: DataType | undefined
  readonly outputFormat: JsonFormat | undefined
}

export interface JsonObjectMember extends Node<'JsonObjectMember'> {
  readonly key: Expression
  readonly value: Expression
  readonly format: JsonFormat | undefined
}

export interface JsonArray extends Node<'JsonArray'> {
  readonly elements: readonly JsonArrayElement[]
  /** The default is ABSENT ON NULL, so true. */
  readonly absentOnNull: boolean
  readonly returnedType: DataType | undefined
  readonly outputFormat: JsonFormat | undefined
}

export interface JsonArrayElement extends Node<'JsonArrayElement'> {
  readonly value: Expression
  readonly format: JsonFormat | undefined
}

export interface JsonTable extends Node<'JsonTable'> {
  readonly pathInvocation: JsonPathInvocation
  readonly columns: readonly JsonTableColumn[]
  readonly plan: JsonTableSpecificPlan | JsonTableDefaultPlan | undefined
  readonly errorBehavior: 'ERROR' | 'EMPTY' | undefined
}

export type JsonTableColumn =
  | JsonTableOrdinalityColumn
  | JsonTableValueColumn
  | JsonTableQueryColumn
  | JsonTableNestedColumns

export interface JsonTableOrdinalityColumn extends Node<'JsonTableOrdinalityColumn'> {
  readonly name: Identifier
}

export interface JsonTableValueColumn extends Node<'JsonTableValueColumn'> {
  readonly name: Identifier
  readonly type: DataType
  readonly jsonPath: StringLiteral | undefined
  readonly emptyBehavior: JsonValueBehavior | undefined
  readonly errorBehavior: JsonValueBehavior | undefined
}

export interface JsonTableQueryColumn extends Node<'JsonTableQueryColumn'>, JsonQueryOptions {
  readonly name: Identifier
  readonly type: DataType
  readonly format: JsonFormat
  readonly jsonPath: StringLiteral | undefined
}

export interface JsonTableNestedColumns extends Node<'JsonTableNestedColumns'> {
  readonly jsonPath: StringLiteral
  readonly pathName: Identifier | undefined
  readonly columns: readonly JsonTableColumn[]
}

export type JsonTableSpecificPlan = JsonTablePlanLeaf | JsonTablePlanParentChild | JsonTablePlanSiblings

export interface JsonTablePlanLeaf extends Node<'JsonTablePlanLeaf'> {
  readonly name: Identifier
}

export interface JsonTablePlanParentChild extends Node<'JsonTablePlanParentChild'> {
  readonly type: 'OUTER' | 'INNER'
  readonly parent: JsonTablePlanLeaf
  readonly child: JsonTableSpecificPlan
}

export interface JsonTablePlanSiblings extends Node<'JsonTablePlanSiblings'> {
  readonly type: 'UNION' | 'CROSS'
  readonly siblings: readonly JsonTableSpecificPlan[]
}

export interface JsonTableDefaultPlan extends Node<'JsonTableDefaultPlan'> {
  readonly parentChild: 'OUTER' | 'INNER'
  readonly siblings: 'UNION' | 'CROSS'
}
