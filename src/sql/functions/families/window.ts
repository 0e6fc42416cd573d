import { windowFunction, type FunctionDefinition } from '../function-definition.ts'
import { code, type Sql } from '../../text/sql.ts'
import type { RenderContext } from '../rendering.ts'

/** The ORDER BY, PARTITION BY and frame come with the call; what is NULL or out of range raises as in Trino. */
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

export const windowFunctions: readonly FunctionDefinition[] = [
  windowFunction('row_number()', 'bigint', 'row_number()$F'),
  windowFunction('rank()', 'bigint', 'rank()$F'),
  windowFunction('dense_rank()', 'bigint', 'dense_rank()$F'),
  windowFunction('percent_rank()', 'double', 'percent_rank()$F'),
  windowFunction('cume_dist()', 'double', 'cume_dist()$F'),
  windowFunction('ntile(bigint)', 'bigint', 'ntile(q_window_buckets($1))$F'),
  windowFunction('first_value(T)', 'T', 'first_value($1$N)$F'),
  windowFunction('last_value(T)', 'T', 'last_value($1$N)$F'),
  windowFunction('nth_value(T, bigint)', 'T', 'nth_value($1, q_window_nth($2)$N)$F'),
  windowFunction('lag(T)', 'T', offsetCall('lag')),
  windowFunction('lag(T, bigint)', 'T', offsetCall('lag')),
  windowFunction('lag(T, bigint, T)', 'T', offsetCall('lag')),
  windowFunction('lead(T)', 'T', offsetCall('lead')),
  windowFunction('lead(T, bigint)', 'T', offsetCall('lead')),
  windowFunction('lead(T, bigint, T)', 'T', offsetCall('lead')),
]
