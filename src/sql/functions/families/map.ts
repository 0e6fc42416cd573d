import { joined, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { rowOf, structOf, typedNull } from '../../types/duckdb-representation.ts'
import type { MapType } from '../../types/sql-type.ts'
import { PARTIAL, TOTAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import { valueAt, needsComparisonKey } from '../comparison.ts'
import { checkedMap, entriesOf, firstOfEachKey, mayHoldNull, isGroupedByKey, valuesOfEachKey } from '../map-keys.ts'
import type { RenderContext } from '../rendering.ts'

/** Joins maps from left to right: the last value of a key wins. */
function concatenated(context: RenderContext): Sql {
  const maps = context.args.map((_, i) => context.value(i))
  const known = joined(
    maps.map((map) => sql`${map} IS NOT NULL`),
    ' AND ',
  )
  const { key } = context.result as MapType
  if (maps.length === 1) return maps[0]!
  if (!needsComparisonKey(key)) return sql`CASE WHEN ${known} THEN map_concat(${joined(maps, ', ')}) END`
  const entries = maps.toReversed().map((map) => entriesOf(map, context))
  return sql`CASE WHEN ${known} THEN ${firstOfEachKey(key, sql`flatten([${joined(entries, ', ')}])`, context)} END`
}

function entries(context: RenderContext): Sql {
  const entry = context.names.fresh()
  return sql`list_transform(map_entries(${context.value(0)}), lambda ${entry}: ${rowOf([sql`${entry}.key`, sql`${entry}.value`])})`
}

function madeOfLists(context: RenderContext): Sql {
  const { key } = context.result as MapType
  if (!needsComparisonKey(key) && !mayHoldNull(key)) return context.fill`q_map($1, $2)`
  const pair = context.names.fresh()
  const entries = context.fill`list_transform(list_zip($1, $2), lambda ${pair}: ${structOf({ k: context.fill`${pair}[1]`, v: context.fill`${pair}[2]` })})`
  const different = sql`u_raise('INVALID_FUNCTION_ARGUMENT: Key and value arrays must be the same length')`
  return context.fill`CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN len($1) <> len($2) THEN ${different} ELSE ${checkedMap(key, entries, context)} END`
}

function madeOfRows(context: RenderContext): Sql {
  const { key } = context.result as MapType
  const entry = context.names.fresh()
  const entries = context.fill`list_transform(q_entries($1), lambda ${entry}: ${structOf({ k: context.fill`${entry}.f0`, v: context.fill`${entry}.f1` })})`
  return context.fill`CASE WHEN $1 IS NOT NULL THEN ${checkedMap(key, entries, context)} END`
}

export const mapFunctions: readonly FunctionDefinition[] = [
  scalar('cardinality(map(K,V))', 'bigint', 'CAST(cardinality($1) AS BIGINT)', TOTAL),
  scalar('map()', 'map(unknown,unknown)', 'CAST(MAP {} AS $R)', PARTIAL),
  scalar('map(array(K), array(V)) where K comparable', 'map(K,V)', madeOfLists, PARTIAL),
  scalar('map_keys(map(K,V))', 'array(K)', 'map_keys($1)', PARTIAL),
  scalar('map_values(map(K,V))', 'array(V)', 'map_values($1)', PARTIAL),
  scalar('map_entries(map(K,V))', 'array(row(K,V))', entries, PARTIAL),
  scalar(
    'element_at(map(K,V), K)',
    'V',
    (context) => {
      const type = context.types[0] as MapType
      if (type.key.kind === 'unknown') return typedNull(context.result)
      return valueAt(type, context.value(0), context.value(1), context.names)
    },
    PARTIAL,
  ),
  scalar('map_concat(map(K,V)...)', 'map(K,V)', concatenated, PARTIAL),
  scalar('map_from_entries(array(row(K,V))) where K comparable', 'map(K,V)', madeOfRows, PARTIAL),
  scalar(
    'multimap_from_entries(array(row(K,V))) where K comparable',
    'map(K,array(V))',
    (context) => {
      const { key } = context.result as MapType
      if (!isGroupedByKey(key)) return context.fill`q_multimap_from_entries($1)`
      const entry = context.names.fresh()
      const entries = context.fill`list_transform(q_entries($1), lambda ${entry}: ${structOf({ k: context.fill`${entry}.f0`, v: context.fill`${entry}.f1` })})`
      return context.fill`CASE WHEN $1 IS NOT NULL THEN ${valuesOfEachKey(key, entries, context)} END`
    },
    PARTIAL,
  ),
  scalar('cosine_similarity(map(varchar,double), map(varchar,double))', 'double', 'q_map_cosine($1, $2)', PARTIAL),
]
