import { joined, sql, type Sql } from '../../text/sql.ts'
import { rowOf, typedNull } from '../../types/duckdb-representation.ts'
import type { MapType } from '../../types/sql-type.ts'
import { PARTIAL, TOTAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import type { RenderContext } from '../rendering.ts'

/** The maps joined from left to right: the last value of a key wins. */
function concatenated(context: RenderContext): Sql {
  const maps = context.args.map((_, i) => context.value(i))
  const known = joined(
    maps.map((map) => sql`${map} IS NOT NULL`),
    ' AND ',
  )
  return sql`CASE WHEN ${known} THEN ${maps.length === 1 ? maps[0]! : sql`map_concat(${joined(maps, ', ')})`} END`
}

function entries(context: RenderContext): Sql {
  const entry = context.names.fresh()
  return sql`list_transform(map_entries(${context.value(0)}), lambda ${entry}: ${rowOf([sql`${entry}.key`, sql`${entry}.value`])})`
}

export const mapFunctions: readonly FunctionDefinition[] = [
  scalar('cardinality(map(K,V))', 'bigint', 'CAST(cardinality($1) AS BIGINT)', TOTAL),
  scalar('map()', 'map(unknown,unknown)', 'CAST(MAP {} AS $R)', PARTIAL),
  scalar('map(array(K), array(V)) where K comparable', 'map(K,V)', 'q_map($1, $2)', PARTIAL),
  scalar('map_keys(map(K,V))', 'array(K)', 'map_keys($1)', PARTIAL),
  scalar('map_values(map(K,V))', 'array(V)', 'map_values($1)', PARTIAL),
  scalar('map_entries(map(K,V))', 'array(row(K,V))', entries, PARTIAL),
  scalar(
    'element_at(map(K,V), K)',
    'V',
    (context) =>
      (context.types[0] as MapType).key.kind === 'unknown' ? typedNull(context.result) : context.fill`$1[$2]`,
    PARTIAL,
  ),
  scalar('map_concat(map(K,V)...)', 'map(K,V)', concatenated, PARTIAL),
  scalar('map_from_entries(array(row(K,V))) where K comparable', 'map(K,V)', 'q_mfe($1)', PARTIAL),
  scalar(
    'multimap_from_entries(array(row(K,V))) where K comparable',
    'map(K,array(V))',
    'q_multimap_from_entries($1)',
    PARTIAL,
  ),
  scalar('cosine_similarity(map(varchar,double), map(varchar,double))', 'double', 'q_map_cosine($1, $2)', PARTIAL),
]
