import type { Node, Identifier } from './ast-node.ts'

/** The type of a column, a cast or a parameter, as written. */
export type DataType = GenericDataType | RowDataType | IntervalDataType | DateTimeDataType

/** `varchar(10)`, `array(bigint)`, `map(varchar, bigint)`, `double precision` (named `double`) … */
export interface GenericDataType extends Node<'GenericDataType'> {
  readonly name: Identifier
  readonly arguments: readonly DataTypeParameter[]
}

export type DataTypeParameter = NumericParameter | TypeParameter

/** Digits without separators: `varchar(1_0)` has `10`. */
export interface NumericParameter extends Node<'NumericParameter'> {
  readonly value: string
}

export interface TypeParameter extends Node<'TypeParameter'> {
  readonly type: DataType
}

export interface RowDataType extends Node<'RowDataType'> {
  readonly fields: readonly RowDataTypeField[]
}

export interface RowDataTypeField extends Node<'RowDataTypeField'> {
  readonly name: Identifier | undefined
  readonly type: DataType
}

export type IntervalField = 'YEAR' | 'MONTH' | 'DAY' | 'HOUR' | 'MINUTE' | 'SECOND'

/** `interval year to month`. The analyzer accepts only YEAR TO MONTH and DAY TO SECOND, as Trino does. */
export interface IntervalDataType extends Node<'IntervalDataType'> {
  readonly from: IntervalField
  readonly to: IntervalField
}

export interface DateTimeDataType extends Node<'DateTimeDataType'> {
  readonly type: 'TIME' | 'TIMESTAMP'
  readonly withTimeZone: boolean
  readonly precision: DataTypeParameter | undefined
}
