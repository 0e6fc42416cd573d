import type { Expr, OperatorExpr } from './tree.ts'
import { isInteger, MAX_DECIMAL_PRECISION, sameType, type SqlType } from '../types/sql-type.ts'
import { someExpr } from './walk.ts'

/** Whether evaluating an expression may fail; true in case of doubt. */
export function canRaise(expr: Expr): boolean {
  return someExpr(expr, partCanRaise)
}

/** Whether an expression may fail for some rows only. Without columns it would fail for all rows. */
export function mayRaiseOfRow(expr: Expr): boolean {
  return someExpr(expr, (part) => partCanRaise(part) && someExpr(part, ({ kind }) => OF_ROW.has(kind)))
}

const OF_ROW: ReadonlySet<Expr['kind']> = new Set(['column', 'lambdaArgument', 'scalarSubquery'])

function partCanRaise(part: Expr): boolean {
  switch (part.kind) {
    case 'call':
      return part.function.kind !== 'scalar' || part.function.risk.mayRaise
    case 'engineCall':
    case 'scalarSubquery':
      return true
    case 'operator':
      return part.name === '[]' || !(WITHOUT_END.has(part.type.kind) || isExact(part))
    case 'negate':
      return !WITHOUT_END.has(part.type.kind) && part.type.kind !== 'decimal'
    case 'cast':
      return !part.safe && castCanRaise(part.value.type, part.type)
    case 'like':
      return part.escape !== undefined
    default:
      return false
  }
}

/** Whether a sum, difference or product of decimals has a type with enough digits for every result. */
function isExact({ name, type, left, right }: OperatorExpr): boolean {
  return (
    (name === '+' || name === '-' || name === '*') &&
    type.kind === 'decimal' &&
    type.precision < MAX_DECIMAL_PRECISION &&
    left.type.kind === 'decimal' &&
    right.type.kind === 'decimal'
  )
}

/** Types whose operations have a result for every pair of values. */
const WITHOUT_END: ReadonlySet<SqlType['kind']> = new Set(['double', 'real', 'varchar', 'char', 'varbinary'])

const INTEGERS = ['tinyint', 'smallint', 'integer', 'bigint']
const DIGITS = { tinyint: 3, smallint: 5, integer: 10, bigint: 19 } as const

/** False only for casts between plain types that succeed for every value. */
function castCanRaise(from: SqlType, to: SqlType): boolean {
  if (sameType(from, to) || from.kind === 'unknown') return false
  switch (to.kind) {
    case 'varchar':
      return !(from.kind === 'varchar' || from.kind === 'char' || (to.length === undefined && isPlain(from)))
    case 'smallint':
    case 'integer':
    case 'bigint':
      return !isInteger(from) || INTEGERS.indexOf(from.kind) > INTEGERS.indexOf(to.kind)
    case 'double':
      return !(isInteger(from) || from.kind === 'real' || from.kind === 'decimal')
    case 'decimal': {
      const integral = to.precision - to.scale
      if (from.kind === 'decimal') return to.scale < from.scale || integral < from.precision - from.scale
      return !isInteger(from) || integral < DIGITS[from.kind as keyof typeof DIGITS]
    }
    case 'date':
      return from.kind !== 'timestamp'
    case 'timestamp':
      return !(from.kind === 'date' || (from.kind === 'timestamp' && from.precision <= to.precision))
    default:
      return true
  }
}

function isPlain({ kind }: SqlType): boolean {
  return INTEGERS.includes(kind) || kind === 'boolean' || kind === 'decimal' || kind === 'date'
}
