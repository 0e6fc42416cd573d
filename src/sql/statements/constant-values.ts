import type { Expression } from '../syntax/ast.ts'
import { DOUBLE, BOOLEAN, BIGINT, INTEGER, UNKNOWN, decimal, varchar, type SqlType } from '../types/sql-type.ts'

/** A literal's value as text, with the type Trino gives the literal. */
export interface ConstantValue {
  readonly type: SqlType
  /** Undefined for NULL. */
  readonly text: string | undefined
}

const MAX_INTEGER = 2147483647n

/** The value of a literal; undefined for any other expression. */
export function literalValue(node: Expression): ConstantValue | undefined {
  switch (node.kind) {
    case 'NullLiteral':
      return { type: UNKNOWN, text: undefined }
    case 'BooleanLiteral':
      return { type: BOOLEAN, text: String(node.value) }
    case 'StringLiteral':
      return { type: varchar([...node.value].length), text: node.value }
    case 'LongLiteral': {
      const value = BigInt(node.value)
      return { type: value > MAX_INTEGER || value < -MAX_INTEGER - 1n ? BIGINT : INTEGER, text: node.value }
    }
    case 'DoubleLiteral':
      return { type: DOUBLE, text: String(Number(node.value)) }
    case 'DecimalLiteral': {
      const [whole = '', fraction = ''] = node.value.replace('-', '').split('.')
      return {
        type: decimal(Math.max(1, whole.replace(/^0+/, '').length + fraction.length), fraction.length),
        text: node.value,
      }
    }
    case 'ArithmeticUnaryExpression': {
      const value = literalValue(node.value)
      if (value?.text === undefined || !/^[\d.]/.test(value.text)) return undefined
      return node.sign === '-' ? { ...value, text: `-${value.text}` } : value
    }
    default:
      return undefined
  }
}
