import { BOOLEAN, array, isInteger, MAX_NATIVE_PRECISION, type SqlType } from '../types/sql-type.ts'
import { constantOf } from './build.ts'
import { PICOS_PER_DAY } from './datetime.ts'
import type { CastExpr, ConstantExpr, Expr, InListExpr, InLiteralsExpr, LiteralsExpr } from './tree.ts'

/**
 * Lists of at least this many constants become one array. Shorter lists cost little and stay in the text as written.
 */
export const LONG_LIST = 500

/**
 * Combines constants of one type into an array; undefined for a short list, or if an item is not a constant of a
 * supported type.
 */
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

/** The same as a list of expressions, for positions that do not allow a query. */
export function asInList({ value, literals }: InLiteralsExpr): InListExpr {
  return { kind: 'inList', type: BOOLEAN, value, values: constantsOf(literals) }
}

const HALF_CHARACTER = /\p{Surrogate}/u

/** Whether constants of the type have a text that a cast reads back as the same value. */
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
      // JSON cannot represent a lone surrogate so that it is read back.
      return HALF_CHARACTER.test(String(value)) ? undefined : value
    case 'date':
      return typeof value === 'bigint' && isCommonDay(value) ? value : undefined
    case 'timestamp':
      return typeof value === 'bigint' && isCommonDay(value / PICOS_PER_DAY) ? value : undefined
    default:
      return value
  }
}

/** Whether a day is in the years 2 to 9998: the text of other days is not read back as written. */
function isCommonDay(day: bigint): boolean {
  return day > -718_000n && day < 2_932_000n
}

/** Evaluates the coercion of a constant to the list's common type, if the result is obvious. */
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
      // Both numbers are exact: a reader of the text gets the same quotient.
      return from.kind === 'decimal' && from.precision <= 15 ? constantOf(type, held) : undefined
    case 'timestamp':
      if (typeof held !== 'bigint') return undefined
      if (from.kind === 'date') return constantOf(type, held * PICOS_PER_DAY)
      return from.kind === 'timestamp' && from.precision <= type.precision ? constantOf(type, held) : undefined
    default:
      return undefined
  }
}

/** Whether all digits of the number fit the type. */
function widensDecimal(text: string, { precision, scale }: Extract<SqlType, { kind: 'decimal' }>): boolean {
  const [integral = '', fraction = ''] = text.replace(/^[+-]?0*/, '').split('.')
  return fraction.length <= scale && integral.length <= precision - scale
}
