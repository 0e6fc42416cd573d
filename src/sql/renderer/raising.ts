import type { Expr } from '../analyzer/tree.ts'
import { isInteger } from '../types/sql-type.ts'
import { someExpr } from '../analyzer/walk.ts'

/** Functions that raise for no argument. */
const total = new Set([
  'length',
  'lower',
  'upper',
  'trim',
  'ltrim',
  'rtrim',
  'starts_with',
  'strpos',
  'year',
  'month',
  'day',
  'is_nan',
  'abs',
  'coalesce',
  'cardinality',
  'contains',
])

/** Whether its calculation may fail; a guess on the safe side. */
export function canRaise(expr: Expr): boolean {
  return someExpr(expr, (part) => {
    switch (part.kind) {
      case 'call':
        return part.routine !== undefined || !total.has(part.function.name)
      case 'engineCall':
        return true
      case 'operator':
        return (
          part.name === '[]' ||
          isInteger(part.type) ||
          part.type.kind === 'decimal' ||
          part.type.kind.startsWith('timestamp')
        )
      case 'cast':
        return true
      case 'like':
        return part.escape !== undefined
      case 'scalarSubquery':
        return true
      default:
        return false
    }
  })
}
