import { code, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { isFine, rowFieldOf, rowOf, structOf } from '../types/duckdb-representation.ts'
import { isFloating, typeContains, type MapType, type RowType, type SqlType } from '../types/sql-type.ts'
import { bindName } from './fill-template.ts'
import type { Names } from './rendering.ts'

/**
 * Equality and order of values with Trino's meaning, where DuckDB's own differs: NaN, instants with zones, NULL inside
 * arrays and rows, maps.
 */

/** Whether DuckDB's `=` is Trino's. */
function hasPlainEquality(type: SqlType): boolean {
  switch (type.kind) {
    case 'real':
    case 'double':
    case 'timestamp with time zone':
    case 'time with time zone':
    case 'array':
    case 'map':
    case 'row':
      return false
    default:
      return true
  }
}

/** Renders `a = b`: true, false or NULL. Both operands have the given type. */
export function equals(type: SqlType, a: Sql, b: Sql, names: Names): Sql {
  switch (type.kind) {
    case 'real':
    case 'double':
      return sql`q_feq(${a}, ${b})`
    case 'timestamp with time zone':
    case 'time with time zone':
      return sql`(${comparisonKey(type, a, names)} = ${comparisonKey(type, b, names)})`
    case 'array': {
      if (!needsElementwise(type.element)) return sql`q_aeq(${a}, ${b})`
      const pair = names.fresh()
      const pairs = sql`list_zip(${a}, ${b})`
      return sql`CASE WHEN ${a} IS NULL OR ${b} IS NULL THEN NULL WHEN len(${a}) <> len(${b}) THEN false ELSE q_all(list_transform(${pairs}, lambda ${pair}: ${equals(type.element, sql`${pair}[1]`, sql`${pair}[2]`, names)})) END`
    }
    case 'map': {
      // Both values are bound outside of the lambda: DuckDB finds no columns of an outer query inside lambdas.
      const [both, entry] = [names.fresh(), names.fresh()]
      const [other, key] = [sql`${both}.b`, sql`${entry}.key`]
      const same = equals(type.value, sql`${entry}.value`, valueAt(type, other, key, names), names)
      const found = sql`q_all(list_transform(map_entries(${both}.a), lambda ${entry}: CASE WHEN ${hasKey(type, other, key, names)} THEN ${same} ELSE false END))`
      return sql`list_transform([${structOf({ a, b })}], lambda ${both}: CASE WHEN ${both}.a IS NULL OR ${other} IS NULL THEN NULL WHEN cardinality(${both}.a) <> cardinality(${other}) THEN false ELSE ${found} END)[1]`
    }
    case 'row': {
      const fields = type.fields.map((field, i) => equals(field.type, rowFieldOf(a, i), rowFieldOf(b, i), names))
      return sql`CASE WHEN ${a} IS NULL OR ${b} IS NULL THEN NULL ELSE (${joined(fields, ' AND ')}) END`
    }
    default:
      return sql`(${a} = ${b})`
  }
}

/** Whether the map has a key that is not NULL. NaN equals nothing, so no map has it as a key. */
export function hasKey({ key: type }: MapType, map: Sql, key: Sql, names: Names): Sql {
  if (needsComparisonKey(type)) return sql`(${positionOfKey(type, map, key, names)} IS NOT NULL)`
  const found = sql`map_contains(${map}, ${key})`
  return isFloating(type) ? sql`(NOT isnan(${key}) AND ${found})` : found
}

/** The value of the key in the map; NULL if the map does not have the key. */
export function valueAt({ key: type }: MapType, map: Sql, key: Sql, names: Names): Sql {
  if (needsComparisonKey(type)) return sql`map_values(${map})[${positionOfKey(type, map, key, names)}]`
  const value = sql`${map}[${key}]`
  return isFloating(type) ? sql`CASE WHEN NOT isnan(${key}) THEN ${value} END` : value
}

function positionOfKey(type: SqlType, map: Sql, key: Sql, names: Names): Sql {
  const item = names.fresh()
  const keys = sql`list_transform(map_keys(${map}), lambda ${item}: ${comparisonKey(type, item, names)})`
  return sql`list_position(${keys}, ${comparisonKey(type, key, names)})`
}

export function notEquals(type: SqlType, a: Sql, b: Sql, names: Names): Sql {
  return hasPlainEquality(type) ? sql`(${a} <> ${b})` : sql`(NOT ${equals(type, a, b, names)})`
}

/** Renders `a IS DISTINCT FROM b`: NULL and NaN are ordinary values. */
export function isDistinct(type: SqlType, a: Sql, b: Sql, names: Names): Sql {
  return sql`(${comparisonKey(type, a, names)} IS DISTINCT FROM ${comparisonKey(type, b, names)})`
}

/** Renders `a < b`, or `a <= b` with `orEqual`. */
export function lessThan(type: SqlType, a: Sql, b: Sql, orEqual: boolean, names: Names): Sql {
  const operator = code(orEqual ? '<=' : '<')
  switch (type.kind) {
    case 'real':
    case 'double':
      return sql`${code(orEqual ? 'q_fle' : 'q_flt')}(${a}, ${b})`
    case 'array': {
      if (isNested(type.element)) return nestedArrayLessThan(type.element, a, b, orEqual, names)
      const [x, y] = [comparisonKey(type, a, names), comparisonKey(type, b, names)]
      return sql`q_acmp(${x}, ${y}, ${x} ${operator} ${y})`
    }
    case 'row':
      return rowLessThan(type, a, b, orEqual, names)
    default:
      return sql`(${orderKey(type, a, names)} ${operator} ${orderKey(type, b, names)})`
  }
}

/**
 * The comparison key, except for timestamps held as structs: DuckDB merges two comparisons of structs into a BETWEEN
 * that it cannot evaluate.
 */
function orderKey(type: SqlType, x: Sql, names: Names): Sql {
  const isStruct = isFine(type) && (type.kind === 'timestamp' || type.kind === 'timestamp with time zone')
  return isStruct ? sql`(CAST(epoch_us(${x}.t) AS HUGEINT) * 1000000 + ${x}.p)` : comparisonKey(type, x, names)
}

function rowLessThan(type: RowType, a: Sql, b: Sql, orEqual: boolean, names: Names): Sql {
  const raise = sql`u_fail('NOT_SUPPORTED: ROW comparison not supported for fields with null elements')`
  const branches = type.fields.map((field, i) => {
    const [x, y] = [rowFieldOf(a, i), rowFieldOf(b, i)]
    const unknown = sql`WHEN ${x} IS NULL OR ${y} IS NULL THEN ${raise}`
    // Inside rows, NaN is the largest number and equal to itself, as in DuckDB.
    const operator = code(orEqual ? '<=' : '<')
    const less = isFloating(field.type) ? sql`(${x} ${operator} ${y})` : lessThan(field.type, x, y, orEqual, names)
    if (i === type.fields.length - 1) return sql`${unknown} ELSE ${less}`
    const differ = isFloating(field.type) ? sql`(${x} <> ${y})` : notEquals(field.type, x, y, names)
    return sql`${unknown} WHEN ${differ} THEN ${less}`
  })
  return sql`CASE WHEN ${a} IS NULL OR ${b} IS NULL THEN NULL ${joined(branches, ' ')} END`
}

/**
 * Compares arrays of arrays or rows: the first pair of elements that differ or contain a NULL decides, by the rules of
 * its type.
 */
function nestedArrayLessThan(element: SqlType, a: Sql, b: Sql, orEqual: boolean, names: Names): Sql {
  const [both, pair, found] = [names.fresh(), names.fresh(), names.fresh()]
  const [x, y] = [sql`${both}.a`, sql`${both}.b`]
  const [left, right] = [sql`${pair}[1]`, sql`${pair}[2]`]
  const decisive = sql`${left} IS NULL OR ${right} IS NULL OR ${isDistinct(element, left, right, names)} OR ${holdsNull(element, left, names)}`
  const first = sql`list_filter(list_zip(${x}, ${y}, true), lambda ${pair}: ${decisive})[1]`
  const raise = sql`u_fail('NOT_SUPPORTED: ARRAY comparison not supported for arrays with null elements')`
  const less = lessThan(element, sql`${found}[1]`, sql`${found}[2]`, orEqual, names)
  const decided = sql`CASE WHEN ${found} IS NULL THEN len(${x}) ${code(orEqual ? '<=' : '<')} len(${y}) WHEN ${found}[1] IS NULL OR ${found}[2] IS NULL THEN ${raise} ELSE ${less} END`
  const compared = sql`CASE WHEN ${x} IS NULL OR ${y} IS NULL THEN NULL ELSE ${bindName(found, first, decided)} END`
  return bindName(both, structOf({ a, b }), compared)
}

/** Whether a type is an array or row: comparing two values fails when the comparison meets a NULL inside. */
export function isNested(type: SqlType): boolean {
  return type.kind === 'array' || type.kind === 'row'
}

/** Whether an array or row holds a NULL, at any depth. */
export function holdsNull(type: SqlType, x: Sql, names: Names): Sql {
  switch (type.kind) {
    case 'array': {
      if (!isNested(type.element)) return sql`(list_position(${x}, NULL) IS NOT NULL)`
      const item = names.fresh()
      return sql`q_any(list_transform(${x}, lambda ${item}: ${item} IS NULL OR ${holdsNull(type.element, item, names)}))`
    }
    case 'row': {
      const fields = type.fields.map(({ type: of }, i) => {
        const field = rowFieldOf(x, i)
        return isNested(of) ? sql`${field} IS NULL OR ${holdsNull(of, field, names)}` : sql`${field} IS NULL`
      })
      return sql`(${joined(fields, ' OR ')})`
    }
    default:
      return sql`false`
  }
}

/** Whether DuckDB's equality of the stored values differs from Trino's "same value": zones and maps, at any depth. */
export function needsComparisonKey(type: SqlType): boolean {
  return typeContains(
    type,
    (part) => part.kind === 'timestamp with time zone' || part.kind === 'time with time zone' || part.kind === 'map',
  )
}

/** Whether elements need a comparison of their own, one by one. */
function needsElementwise(type: SqlType): boolean {
  return (
    typeContains(
      type,
      (part) => part.kind === 'real' || part.kind === 'double' || part.kind === 'array' || part.kind === 'row',
    ) || needsComparisonKey(type)
  )
}

/**
 * An expression whose DuckDB equality, order and hash match the value's in Trino: for GROUP BY, DISTINCT, PARTITION BY,
 * joins and set operations. Returns the expression unchanged if no key is needed (`needsComparisonKey` is false).
 */
export function comparisonKey(type: SqlType, x: Sql, names: Names): Sql {
  if (!needsComparisonKey(type)) return x
  switch (type.kind) {
    case 'timestamp with time zone':
      return isFine(type)
        ? sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: sql`${x}.t`, p: sql`${x}.p` })} END`
        : sql`${x}.t`
    case 'time with time zone':
      return isFine(type) ? sql`q_time_zone_key_picos(${x})` : sql`q_time_zone_key(${x})`
    case 'array': {
      const item = names.fresh()
      return sql`list_transform(${x}, lambda ${item}: ${comparisonKey(type.element, item, names)})`
    }
    case 'map': {
      const entry = names.fresh()
      const parts = structOf({
        k: comparisonKey(type.key, sql`${entry}.key`, names),
        v: comparisonKey(type.value, sql`${entry}.value`, names),
      })
      return sql`list_sort(list_transform(map_entries(${x}), lambda ${entry}: ${parts}))`
    }
    case 'row': {
      const fields = type.fields.map((field, i) => comparisonKey(field.type, rowFieldOf(x, i), names))
      return sql`CASE WHEN ${x} IS NOT NULL THEN ${rowOf(fields)} END`
    }
    default:
      return x
  }
}

/**
 * The ORDER BY items for one sort key, each with its NULLS clause. By default Trino sorts NULLs last and NaN as the
 * largest number; DuckDB differs for NaN only if NULLs come first.
 */
export function sortItems(
  type: SqlType,
  x: Sql,
  ascending: boolean,
  nullsFirst: boolean,
  names: Names,
): readonly Sql[] {
  const direction = code(ascending ? 'ASC' : 'DESC')
  if ((type.kind === 'double' || type.kind === 'real') && nullsFirst) {
    return [
      sql`(${x} IS NULL) DESC`,
      sql`isnan(${x}) ${code(ascending ? 'DESC' : 'ASC')} NULLS FIRST`,
      sql`${x} ${direction} NULLS FIRST`,
    ]
  }
  return [sql`${comparisonKey(type, x, names)} ${direction} NULLS ${code(nullsFirst ? 'FIRST' : 'LAST')}`]
}
