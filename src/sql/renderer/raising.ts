import type { Expr } from '../analyzer/tree.ts'
import { isInteger } from '../types/sql-type.ts'
import { someExpr } from '../analyzer/walk.ts'

/** Whether its calculation may fail; a guess on the safe side. */
export function canRaise(expr: Expr): boolean {
  return someExpr(expr, (part) => {
    switch (part.kind) {
      case 'call':
        return part.function.kind !== 'scalar' || part.function.risk.mayRaise
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
