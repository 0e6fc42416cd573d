import { windowFunction, type FunctionDefinition, type WindowClauses } from '../function-definition.ts'
import { code, type Sql } from '../../../duckdb/text/sql.ts'
import type { RenderContext } from '../rendering.ts'

/**
 * lead and lag. ORDER BY, PARTITION BY and frame come with the call. An offset that is NULL or out of range fails as in
 * Trino.
 */
function offsetCall(name: 'lead' | 'lag'): (context: RenderContext) => Sql {
  return (context) => {
    const count = context.args.length
    if (count === 1) return context.fill`${code(name)}($1$N)$F`
    const offset = context.fill`CAST(q_window_offset($2) AS BIGINT)`
    return count === 2
      ? context.fill`${code(name)}($1, ${offset}$N)$F`
      : context.fill`${code(name)}($1, ${offset}, $3$N)$F`
  }
}

/** Functions of a row's position in its partition. */
const RANKING: WindowClauses = { frame: false, nullTreatment: false, order: 'optional' }
/** Functions that return a row of the frame. */
const OF_FRAME: WindowClauses = { frame: true, nullTreatment: true, order: 'optional' }
/** Functions that return a row at a distance from the current one. */
const OFFSET: WindowClauses = { frame: false, nullTreatment: true, order: 'required' }

export const windowFunctions: readonly FunctionDefinition[] = [
  windowFunction('row_number()', 'bigint', 'row_number()$F', RANKING),
  windowFunction('rank()', 'bigint', 'rank()$F', RANKING),
  windowFunction('dense_rank()', 'bigint', 'dense_rank()$F', RANKING),
  windowFunction('percent_rank()', 'double', 'percent_rank()$F', RANKING),
  windowFunction('cume_dist()', 'double', 'cume_dist()$F', RANKING),
  windowFunction('ntile(bigint)', 'bigint', 'ntile(q_window_buckets($1))$F', RANKING),
  windowFunction('first_value(T)', 'T', 'first_value($1$N)$F', OF_FRAME),
  windowFunction('last_value(T)', 'T', 'last_value($1$N)$F', OF_FRAME),
  windowFunction('nth_value(T, bigint)', 'T', 'nth_value($1, q_window_nth($2)$N)$F', OF_FRAME),
  windowFunction('lag(T)', 'T', offsetCall('lag'), OFFSET),
  windowFunction('lag(T, bigint)', 'T', offsetCall('lag'), OFFSET),
  windowFunction('lag(T, bigint, T)', 'T', offsetCall('lag'), OFFSET),
  windowFunction('lead(T)', 'T', offsetCall('lead'), OFFSET),
  windowFunction('lead(T, bigint)', 'T', offsetCall('lead'), OFFSET),
  windowFunction('lead(T, bigint, T)', 'T', offsetCall('lead'), OFFSET),
]
