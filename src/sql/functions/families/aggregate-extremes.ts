import { code, integer, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { isFloating } from '../../types/sql-type.ts'
import { holdsNull, isNested } from '../comparison.ts'
import { checkedOrder, comparedExtreme, extremeKey, needsExtremeKey, type Extreme } from '../extremes.ts'
import { bindName } from '../fill-template.ts'
import type { RenderContext } from '../rendering.ts'
import { argumentKey, groupParameter } from './aggregate-arguments.ts'

function extremeOf(context: RenderContext, index: number, name: Extreme): Sql {
  return extremeKey(context.types[index]!, context.value(index), name, context.names)
}

export function extreme(context: RenderContext, name: 'min' | 'max'): Sql {
  const type = context.types[0]!
  // NaN counts only if there is no other number.
  if (isFloating(type)) return context.fill`coalesce(${code(name)}($1)$F(NOT isnan($1))$E, ${code(name)}($1)$F)`
  if (isNested(type)) return comparedBest(context, 0, name)
  if (needsExtremeKey(type, name)) return context.fill`${code(`arg_${name}`)}($1, ${extremeOf(context, 0, name)})$F`
  return context.fill`${code(name)}($1)$F`
}

/** The largest count of values that DuckDB keeps: it allocates the space in each group from its first row. */
const MOST_KEPT = 100

export function extremes(context: RenderContext, name: 'min' | 'max'): Sql {
  const [type, count] = [context.types[0]!, context.constant(1)]
  const isOrdered = !isFloating(type) && !isNested(type) && !needsExtremeKey(type, name)
  if (isOrdered && typeof count === 'number' && count > 0 && count <= MOST_KEPT) {
    return context.fill`${code(name)}($1, ${integer(count)})$F($1 IS NOT NULL)$E`
  }
  const order = code(name === 'min' ? 'ASC' : 'DESC')
  const sorted = context.fill`list($1 ORDER BY ${extremeOf(context, 0, name)} ${order})$F($1 IS NOT NULL)$E`
  return sql`list_slice(${checkedList(context, 0, sorted)}, 1, q_result_count(${groupParameter(context, 1)}, ${literal(name)}))`
}

export function extremeBy(context: RenderContext, name: 'min' | 'max'): Sql {
  const found = context.fill`${code(`arg_${name}_null`)}($1, ${isFloating(context.types[1]!) ? argumentKey(context, 1) : extremeOf(context, 1, name)})`
  // As in max and min, NaN counts only if there is no other number.
  if (isFloating(context.types[1]!)) {
    return context.fill`CASE WHEN count(*)$F(NOT isnan($2))$E > 0 THEN ${found}$F(NOT isnan($2))$E ELSE ${found}$F END`
  }
  if (isNested(context.types[1]!)) {
    return context.fill`CASE WHEN ${comparedBest(context, 1, name)} IS NOT NULL THEN ${found}$F END`
  }
  return context.fill`${found}$F`
}

/** The largest (smallest) of arrays or rows; fails if comparing them does. */
function comparedBest(context: RenderContext, index: number, name: Extreme): Sql {
  const [type, value] = [context.types[index]!, context.value(index)]
  if (context.clauses?.over !== undefined) {
    // DuckDB crashes on a lambda in the FILTER of a window.
    const order = code(name === 'min' ? 'ASC' : 'DESC')
    const sorted = context.fill`list(${value} ORDER BY ${extremeOf(context, index, name)} ${order})$F(${value} IS NOT NULL)$E`
    const item = context.names.fresh()
    const holding = sql`list_filter(${sorted}, lambda ${item}: ${holdsNull(type, item, context.names)})`
    return comparedExtreme(type, sql`list_slice(${sorted}, 1, 2)`, holding, context.names)
  }
  const best = context.fill`${code(`arg_${name}`)}(${value}, ${extremeOf(context, index, name)}, 2)$F`
  const unsure = context.fill`list(${value})$F(${holdsNull(type, value, context.names)})$E`
  return comparedExtreme(type, best, unsure, context.names)
}

export function extremesBy(context: RenderContext, name: 'min' | 'max'): Sql {
  const order = code(name === 'min' ? 'ASC' : 'DESC')
  const by = context.fill`ORDER BY ${extremeOf(context, 1, name)} ${order})$F($2 IS NOT NULL)$E`
  const found = sql`list_slice(${context.fill`list($1`} ${by}, 1, q_result_count(${groupParameter(context, 2)}, ${literal(`${name}_by`)}))`
  if (!isNested(context.types[1]!)) return found
  return sql`CASE WHEN len(${checkedList(context, 1, sql`${context.fill`list($2`} ${by}`)}) >= 0 THEN ${found} END`
}

/** A list sorted by the values of an argument; arrays and rows are compared with their neighbors. */
function checkedList(context: RenderContext, index: number, sorted: Sql): Sql {
  const type = context.types[index]!
  if (!isNested(type)) return sorted
  const name = context.names.fresh()
  return bindName(name, sorted, checkedOrder(type, name, context.names))
}
