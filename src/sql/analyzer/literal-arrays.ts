import { BOOLEAN, array, isInteger, MAX_NATIVE_PRECISION, type SqlType } from '../types/sql-type.ts'
import { constantOf } from './build.ts'
import { PICOS_PER_DAY } from './datetime.ts'
import type { CastExpr, ConstantExpr, Expr, InListExpr, InLiteralsExpr, LiteralsExpr } from './tree.ts'

/** Lists of at least so many constants become one array. Shorter ones cost nothing, and stay in the text as written. */
export const LONG_LIST = 500

/** Constants of one type as one array; undefined for a short list, and where an item is no constant of a type that arrays of literals have. */
export function literalsOf(element: SqlType, items: readonly Expr[]): LiteralsExpr | undefined {
  if (items.length < LONG_LIST || !hasLiterals(element)) return undefined
  const literals: ConstantExpr['value'][] = []
  for (const item of items) {
    const value = literalIn(item, element)
    if (value === undefined) return undefined
    literals.push(value)
  }
  return { kind: 'literals', type: array(element), literals }
}

/** The items of such an array as expressions. */
export function constantsOf({ type, literals }: LiteralsExpr): readonly ConstantExpr[] {
  return literals.map((value) => constantOf(type.element, value))
}

/** The same as a list of expressions, for where a query in its place is not allowed. */
export function asInList({ value, literals }: InLiteralsExpr): InListExpr {
  return { kind: 'inList', type: BOOLEAN, value, values: constantsOf(literals) }
}

const HALF_CHARACTER = /\p{Surrogate}/u

/** Types whose constants have a text that a cast reads as the value. */
function hasLiterals(type: SqlType): boolean {
  switch (type.kind) {
    case 'unknown':
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'real':
    case 'double':
    case 'decimal':
    case 'varchar':
    case 'char':
    case 'varbinary':
    case 'date':
    case 'uuid':
      return true
    case 'time':
    case 'timestamp':
      return type.precision <= MAX_NATIVE_PRECISION
    default:
      return false
  }
}

function literalIn(expr: Expr, type: SqlType): ConstantExpr['value'] | undefined {
  const constant = expr.kind === 'constant' ? expr : expr.kind === 'cast' ? folded(expr) : undefined
  if (constant === undefined || constant.zone !== undefined || constant.parameter !== undefined) return undefined
  const { value } = constant
  if (value === null) return null
  switch (type.kind) {
    case 'varchar':
    case 'char':
      // Halves of characters have no JSON that is read back.
      return HALF_CHARACTER.test(String(value)) ? undefined : value
    case 'date':
      return typeof value === 'bigint' && isCommonDay(value) ? value : undefined
    case 'timestamp':
      return typeof value === 'bigint' && isCommonDay(value / PICOS_PER_DAY) ? value : undefined
    default:
      return value
  }
}

/** Of the years 2 to 9998: the text of any other time is not read as it is written. */
function isCommonDay(day: bigint): boolean {
  return day > -718_000n && day < 2_932_000n
}

/** The coercions of a list to its common type, where the value of the result is plain to see. */
function folded({ value, type, safe, stored }: CastExpr): ConstantExpr | undefined {
  if (value.kind !== 'constant' || safe || stored || typeof value.value === 'boolean') return undefined
  const { type: from, value: held } = value
  if (held === null) return constantOf(type, null)
  switch (type.kind) {
    case 'decimal':
      return (isInteger(from) || from.kind === 'decimal') && widensDecimal(String(held), type)
        ? constantOf(type, held)
        : undefined
    case 'double':
      // Both are exact: the quotient is what a reader of the text comes to.
      return from.kind === 'decimal' && from.precision <= 15 ? constantOf(type, held) : undefined
    case 'timestamp':
      if (typeof held !== 'bigint') return undefined
      if (from.kind === 'date') return constantOf(type, held * PICOS_PER_DAY)
      return from.kind === 'timestamp' && from.precision <= type.precision ? constantOf(type, held) : undefined
    default:
      return undefined
  }
}

/** Whether all digits of the number have their place in the type. */
function widensDecimal(text: string, { precision, scale }: Extract<SqlType, { kind: 'decimal' }>): boolean {
  const [integral = '', fraction = ''] = text.replace(/^[+-]?0*/, '').split('.')
  return fraction.length <= scale && integral.length <= precision - scale
}
