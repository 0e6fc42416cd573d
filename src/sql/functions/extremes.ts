import { sql, type Sql } from '../../duckdb/text/sql.ts'
import { rowFieldOf, rowOf } from '../types/duckdb-representation.ts'
import { anonymousRow, array, BOOLEAN, isFloating, typeContains, type SqlType } from '../types/sql-type.ts'
import { comparisonKey, lessThan, needsComparisonKey } from './comparison.ts'
import { bindName } from './fill-template.ts'
import type { Names } from './rendering.ts'

export type Extreme = 'max' | 'min'

/** Whether `extremeKey` differs from the value itself. */
export function needsExtremeKey(type: SqlType, name: Extreme): boolean {
  return needsComparisonKey(type) || (name === 'max' && typeContains(type, isFloating))
}

/**
 * A key in whose order the extreme value is that of max, greatest, array_max … (or min …): NaN loses in both
 * directions, at any depth.
 */
export function extremeKey(type: SqlType, x: Sql, name: Extreme, names: Names): Sql {
  if (!needsExtremeKey(type, name)) return x
  // DuckDB treats NaN as the largest number, which is correct for minimums.
  const { type: seen, value } = name === 'max' ? withoutNaN(type, x, name, names) : { type, value: x }
  return comparisonKey(seen, value, names)
}

/** Replaces numbers by rows in which NaN sorts where it cannot win. */
function withoutNaN(
  type: SqlType,
  x: Sql,
  name: Extreme,
  names: Names,
): { readonly type: SqlType; readonly value: Sql } {
  if (!typeContains(type, isFloating)) return { type, value: x }
  switch (type.kind) {
    case 'real':
    case 'double': {
      const counts = name === 'max' ? sql`NOT isnan(${x})` : sql`isnan(${x})`
      const number = sql`CASE WHEN NOT isnan(${x}) THEN ${x} ELSE 0 END`
      return {
        type: anonymousRow([BOOLEAN, type]),
        value: sql`CASE WHEN ${x} IS NOT NULL THEN ${rowOf([counts, number])} END`,
      }
    }
    case 'array': {
      const item = names.fresh()
      const inner = withoutNaN(type.element, item, name, names)
      return { type: array(inner.type), value: sql`list_transform(${x}, lambda ${item}: ${inner.value})` }
    }
    case 'row': {
      const fields = type.fields.map((field, i) => withoutNaN(field.type, rowFieldOf(x, i), name, names))
      return {
        type: anonymousRow(fields.map((field) => field.type)),
        value: sql`CASE WHEN ${x} IS NOT NULL THEN ${rowOf(fields.map((field) => field.value))} END`,
      }
    }
    default:
      return { type, value: x }
  }
}

/**
 * The first of the two best values, after comparing it with the second one and with values that contain a NULL; a
 * comparison that is not allowed fails. All other values differ from it before a NULL is met.
 */
export function comparedExtreme(type: SqlType, best: Sql, unsure: Sql, names: Names): Sql {
  const [top, other] = [names.fresh(), names.fresh()]
  const first = sql`${top}[1]`
  const compared = sql`len(list_transform(list_filter(coalesce(${unsure}, []), lambda ${other}: ${other} IS DISTINCT FROM ${first}) || ${top}[2:], lambda ${other}: ${lessThan(type, first, other, false, names)}))`
  return bindName(top, best, sql`CASE WHEN ${compared} >= 0 THEN ${first} END`)
}

/**
 * The extreme of a list of arrays or rows, compared one after another; NULL for an empty list, and for a list with
 * NULLs.
 */
export function nestedExtreme(type: SqlType, list: Sql, name: Extreme, names: Names): Sql {
  const [best, next] = [names.fresh(), names.fresh()]
  const [a, b] = [withoutNaN(type, best, name, names), withoutNaN(type, next, name, names)]
  const better =
    name === 'max' ? lessThan(a.type, a.value, b.value, false, names) : lessThan(a.type, b.value, a.value, false, names)
  const found = sql`list_reduce(${list}, lambda ${best}, ${next}: CASE WHEN ${better} THEN ${next} ELSE ${best} END)`
  return sql`CASE WHEN len(${list}) > 0 AND list_position(${list}, NULL) IS NULL THEN ${found} END`
}

/** A sorted list of arrays or rows, after comparing neighbors; a comparison that is not allowed fails. */
export function checkedOrder(type: SqlType, sorted: Sql, names: Names): Sql {
  const at = names.fresh()
  const less = lessThan(type, sql`${sorted}[${at}]`, sql`${sorted}[${at} + 1]`, false, names)
  return sql`CASE WHEN len(list_transform(range(1, len(${sorted})), lambda ${at}: ${less})) >= 0 THEN ${sorted} END`
}
