import type { ErrorName } from '../../shared/error-table.ts'
import { BOOLEAN } from '../types/sql-type.ts'
import { letIn } from './build.ts'
import { engineCall, textConstant } from './json-functions.ts'
import type { ColumnId, Expr } from './tree.ts'

/**
 * The value of a NOT NULL column: a row in which it is NULL fails the statement.
 * @param id a fresh id, under which a value is bound that must not be computed twice
 */
export function notNull(id: ColumnId, column: string, value: Expr, errorName: ErrorName): Expr {
  const message = `${errorName}: NULL value not allowed for NOT NULL column: ${column}`
  return letIn(id, value, (bound) => ({
    kind: 'case',
    type: bound.type,
    branches: [
      {
        when: { kind: 'isNull', type: BOOLEAN, value: bound },
        then: engineCall('u_raise', bound.type, [textConstant(message)]),
      },
    ],
    otherwise: bound,
  }))
}
