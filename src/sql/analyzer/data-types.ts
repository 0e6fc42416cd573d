import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { DataType, DataTypeParameter } from '../syntax/ast-types.ts'
import { DecimalOutOfRange, resolveTypeName, type TypeArgument } from '../types/type-names.ts'
import type { SqlType } from '../types/sql-type.ts'

/** The type of a type's syntax node. @throws EngineError TYPE_NOT_FOUND `Unknown type: …`, without a position */
export function typeOf(node: DataType): SqlType {
  switch (node.kind) {
    case 'GenericDataType':
      try {
        return resolveTypeName(node.name.value, node.arguments.map(argumentOf))
      } catch (error) {
        // Only decimals report the error in their parameters.
        if (error instanceof EngineError && !(error instanceof DecimalOutOfRange)) throw unknownType(node)
        throw error
      }
    case 'RowDataType':
      return {
        kind: 'row',
        fields: node.fields.map(({ name, type }) => ({
          name: name === undefined || name.quoted ? name?.value : name.value.toLowerCase(),
          type: typeOf(type),
        })),
      }
    case 'IntervalDataType':
      if (node.from === 'YEAR' && node.to === 'MONTH') return { kind: 'interval year to month' }
      if (node.from === 'DAY' && node.to === 'SECOND') return { kind: 'interval day to second' }
      throw unknownType(node)
    case 'DateTimeDataType': {
      if (node.precision?.kind === 'TypeParameter') {
        throw new EngineError(
          'GENERIC_INTERNAL_ERROR',
          `Parameter to datetime type must be either a number or a type variable: ${parameterText(node.precision)}`,
        )
      }
      const name = node.type.toLowerCase() + (node.withTimeZone ? ' with time zone' : '')
      try {
        return resolveTypeName(name, node.precision === undefined ? [] : [argumentOf(node.precision)])
      } catch (error) {
        if (error instanceof EngineError && error.errorName === 'NUMERIC_VALUE_OUT_OF_RANGE') throw unknownType(node)
        throw error
      }
    }
    default:
      return unreachable(node)
  }
}

function argumentOf(parameter: DataTypeParameter): TypeArgument {
  if (parameter.kind === 'NumericParameter') return { kind: 'number', value: Number(parameter.value) }
  return { kind: 'type', type: typeOf(parameter.type) }
}

function unknownType(node: DataType): EngineError {
  return new EngineError('TYPE_NOT_FOUND', `Unknown type: ${dataTypeText(node)}`)
}

/** A type as written, in Trino's formatting. */
export function dataTypeText(node: DataType): string {
  switch (node.kind) {
    case 'GenericDataType': {
      const args = node.arguments.map(parameterText)
      return args.length === 0 ? node.name.value : `${node.name.value}(${args.join(', ')})`
    }
    case 'RowDataType':
      return `row(${node.fields.map((field) => (field.name === undefined ? '' : `${field.name.value} `) + dataTypeText(field.type)).join(', ')})`
    case 'IntervalDataType':
      return `interval ${node.from.toLowerCase()} to ${node.to.toLowerCase()}`
    case 'DateTimeDataType':
      return `${node.type.toLowerCase()}${node.precision === undefined ? '' : `(${parameterText(node.precision)})`}${node.withTimeZone ? ' with time zone' : ''}`
    default:
      return unreachable(node)
  }
}

function parameterText(parameter: DataTypeParameter): string {
  return parameter.kind === 'NumericParameter' ? parameter.value : dataTypeText(parameter.type)
}
