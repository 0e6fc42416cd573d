import type { DecimalType } from '../types/sql-type.ts'
import type { AggregateExpr, Expr } from './tree.ts'

/** Digits of a decimal that DuckDB holds in 64 bits. */
const NARROW = 18

/** The number of integer digits that a computed factor like `1 - discount` is expected to need. */
const CALCULATED = 2

/** The size, in expressions, up to which a factor may be repeated. */
const SMALL = 6

/** A factor of a product, with the number of its digits that the narrow product uses. */
export interface Factor {
  readonly expr: Expr
  readonly type: DecimalType
  readonly digits: number
}

/**
 * The factors of a product of decimals whose type needs 128 bits, with digits for each so that their product fits 64
 * bits. Rows whose factors fit can be multiplied many times faster. Undefined if `expr` is not such a product.
 */
export function narrowFactors(expr: Expr): readonly Factor[] | undefined {
  if (expr.type.kind !== 'decimal' || expr.type.precision <= NARROW) return undefined
  const leaves = leavesOf(expr)
  if (leaves.length < 2) return undefined
  const typed: { readonly expr: Expr; readonly type: DecimalType }[] = []
  for (const leaf of leaves) {
    if (leaf.type.kind !== 'decimal' || leaf.type.precision > NARROW || !isSmall(leaf)) return undefined
    typed.push({ expr: leaf, type: leaf.type })
  }
  const calculated = (leaf: Expr): boolean => !isColumn(leaf)
  const wanted = typed.map(({ expr: leaf, type: { precision, scale } }) =>
    calculated(leaf) ? Math.min(precision, scale + CALCULATED) : 0,
  )
  const columns = typed.filter((each) => !calculated(each.expr)).length
  const left = NARROW - wanted.reduce((sum, digits) => sum + digits, 0)
  const share = columns === 0 ? 0 : Math.floor(left / columns)
  const factors = typed.map(({ expr: leaf, type }, i): Factor => ({
    expr: leaf,
    type,
    digits: calculated(leaf) ? wanted[i]! : Math.min(type.precision, share),
  }))
  const fits = left >= 0 && factors.every(({ type, digits }) => digits > type.scale)
  return fits ? factors : undefined
}

/** Whether an aggregate is rendered from the factors of its argument. */
export function sumsProduct(call: AggregateExpr): boolean {
  const [argument] = call.arguments
  return (
    call.function.name === 'sum' && !call.distinct && argument !== undefined && narrowFactors(argument) !== undefined
  )
}

function leavesOf(expr: Expr): readonly Expr[] {
  if (expr.kind !== 'operator' || expr.name !== '*') return [expr]
  const { left, right } = expr
  if (left.type.kind !== 'decimal' || right.type.kind !== 'decimal') return [expr]
  return [...leavesOf(left), ...leavesOf(right)]
}

/** Whether an expression is a column, possibly cast. */
function isColumn(expr: Expr): boolean {
  return expr.kind === 'column' || (expr.kind === 'cast' && isColumn(expr.value))
}

/** Whether an expression is a small sum or difference of columns and literals. */
function isSmall(expr: Expr): boolean {
  let size = 0
  const visit = (part: Expr): boolean => {
    size++
    switch (part.kind) {
      case 'column':
      case 'constant':
        return true
      case 'cast':
        return !part.safe && part.type.kind === 'decimal' && visit(part.value)
      case 'operator':
        return (part.name === '+' || part.name === '-') && visit(part.left) && visit(part.right)
      default:
        return false
    }
  }
  return visit(expr) && size <= SMALL
}
