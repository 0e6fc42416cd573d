import { structOf } from '../types/duckdb-representation.ts'
import { sql, type Sql } from '../../duckdb/text/sql.ts'
import { isFloating, VARCHAR, type MapType, type SqlType } from '../types/sql-type.ts'
import { canCast } from '../types/coercion.ts'
import { textOf, type CastContext } from './casts.ts'
import { comparisonKey, equals, hasKey, needsComparisonKey, valueAt } from './comparison.ts'
import type { RenderContext } from './rendering.ts'

/**
 * Maps made of entries `{'k': key, 'v': value}`. Keys of types that need one (`needsComparisonKey`) are distinguished
 * by their comparison key.
 */

type Naming = Pick<RenderContext, 'names'>

/** A map of entries. Fails if two entries have the same key, or if a key contains NULL. */
export function checkedMap(type: SqlType, entries: Sql, { names }: Naming): Sql {
  const [entry, list] = [names.fresh(), names.fresh()]
  const made = needsComparisonKey(type) ? sql`q_mk_keyed(${withKeys(type, list, { names })})` : sql`q_mk(${list})`
  if (!mayHoldNull(type)) return sql`list_transform([${entries}], lambda ${list}: ${made})[1]`
  const unknown = sql`list_filter(${list}, lambda ${entry}: ${entry}.k IS NOT NULL AND ${equals(type, sql`${entry}.k`, sql`${entry}.k`, names)} IS NULL)`
  return sql`list_transform([${entries}], lambda ${list}: CASE WHEN len(${unknown}) > 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: map key cannot be indeterminate') ELSE ${made} END)[1]`
}

/**
 * Whether only `q_groups` finds equal keys: for types that need a comparison key, and for numbers on which DuckDB's
 * hashes and equality disagree (NaN, -0.0).
 */
export function isGroupedByKey(type: SqlType): boolean {
  return needsComparisonKey(type) || isFloating(type)
}

/** Whether a key that is not NULL may contain NULL. */
export function mayHoldNull({ kind }: SqlType): boolean {
  return kind === 'array' || kind === 'row' || kind === 'map'
}

/** A map with the first entry of each key. */
export function firstOfEachKey(type: SqlType, entries: Sql, context: Naming): Sql {
  return sql`q_map_first_keyed(${withKeys(type, entries, context)})`
}

/** A map from each key to the list of its values. */
export function valuesOfEachKey(type: SqlType, entries: Sql, context: Naming): Sql {
  return sql`q_multimap_keyed(${withKeys(type, entries, context)})`
}

/** A map from each value of a list, except NULL, to the number of its occurrences. */
export function counted(type: SqlType, list: Sql, context: Naming): Sql {
  const [item, value] = [context.names.fresh(), context.names.fresh()]
  const known = sql`list_filter(${list}, lambda ${item}: ${item} IS NOT NULL)`
  const entries = sql`list_transform(${known}, lambda ${value}: ${structOf({ k: value, v: sql`0` })})`
  return sql`q_histogram_keyed(${withKeys(type, entries, context)})`
}

/** The entries of a map. */
export function entriesOf(map: Sql, { names }: Naming): Sql {
  const entry = names.fresh()
  return sql`list_transform(map_entries(${map}), lambda ${entry}: ${structOf({ k: sql`${entry}.key`, v: sql`${entry}.value` })})`
}

/** The entries, each with its comparison key. */
function withKeys(type: SqlType, entries: Sql, { names }: Naming): Sql {
  const entry = names.fresh()
  const key = comparisonKey(type, sql`${entry}.k`, names)
  return sql`list_transform(${entries}, lambda ${entry}: ${structOf({ q: key, k: sql`${entry}.k`, v: sql`${entry}.v` })})`
}

/** Renders `map[key]`; fails if the map has no such key. */
export function requiredValue(type: MapType, map: Sql, key: Sql, context: CastContext): Sql {
  const { names } = context
  const text = keyText(type.key, key, context)
  const missing =
    text === undefined
      ? sql`u_raise('INVALID_FUNCTION_ARGUMENT: Key not present in map')`
      : sql`u_raise('INVALID_FUNCTION_ARGUMENT: Key not present in map: ' || ${text})`
  return sql`CASE WHEN ${map} IS NULL OR ${key} IS NULL THEN NULL WHEN ${hasKey(type, map, key, names)} THEN ${valueAt(type, map, key, names)} ELSE ${missing} END`
}

function keyText(type: SqlType, key: Sql, context: CastContext): Sql | undefined {
  return canCast(type, VARCHAR) ? textOf(key, type, context) : undefined
}
