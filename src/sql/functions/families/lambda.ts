import { sql, type Sql } from '../../../duckdb/text/sql.ts'
import { duckdbType, duckdbTypeText, structOf } from '../../types/duckdb-representation.ts'
import { INTEGER, type FunctionType, type MapType } from '../../types/sql-type.ts'
import { hasKey, valueAt } from '../comparison.ts'
import { bindName } from '../fill-template.ts'
import { PARTIAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import { checkedMap } from '../map-keys.ts'
import { paddedItem } from './array.ts'
import type { RenderContext } from '../rendering.ts'

/** Renders `list_transform(list, lambda v: body)`. */
function transformed(context: RenderContext, index = 1): Sql {
  const item = context.names.fresh()
  return sql`list_transform(${context.value(0)}, lambda ${item}: ${context.lambda(index).apply(item)})`
}

function filtered(context: RenderContext): Sql {
  const item = context.names.fresh()
  return sql`list_filter(${context.value(0)}, lambda ${item}: ${context.lambda(1).apply(item)})`
}

/**
 * A fold whose state may have another type than the elements. Both are fields of one struct, since DuckDB's reduce has
 * one type. The start value has the list's element type, so an empty list returns it.
 */
function reduced(context: RenderContext): Sql {
  const { names } = context
  const [state, next, item, end] = [names.fresh(), names.fresh(), names.fresh(), names.fresh()]
  const stateType = duckdbType((context.types[2] as FunctionType).result)
  const list = context.value(0)
  const elementType = context.types[0]!.kind === 'array' ? duckdbType(context.types[0].element) : duckdbType(INTEGER)
  const carriers = sql`list_transform(${list}, lambda ${item}: ${structOf({ s: sql`CAST(NULL AS ${stateType})`, x: sql`CAST(${item} AS ${elementType})` })})`
  const step = structOf({
    s: sql`CAST(${context.lambda(2).apply(sql`${state}.s`, sql`${next}.x`)} AS ${stateType})`,
    x: sql`${next}.x`,
  })
  const start = structOf({ s: sql`CAST(${context.value(1)} AS ${stateType})`, x: sql`CAST(NULL AS ${elementType})` })
  const folded = sql`list_reduce(${carriers}, lambda ${state}, ${next}: ${step}, ${start}).s`
  const result = bindName(end, folded, context.lambda(3).apply(end))
  return sql`CASE WHEN ${list} IS NOT NULL THEN ${result} END`
}

function zippedWith(context: RenderContext): Sql {
  const [pair, both] = [context.names.fresh(), context.names.fresh()]
  const [a, b] = [context.value(0), context.value(1)]
  const zipped = sql`list_zip(${a}, ${b})`
  const apply = context.lambda(2).apply
  const transformed = heldInParts(context)
    ? sql`list_transform(list_transform(${zipped}, lambda ${pair}: ${structOf({ x: paddedItem(sql`${pair}[1]`), y: paddedItem(sql`${pair}[2]`) })}), lambda ${both}: ${apply(sql`${both}.x`, sql`${both}.y`)})`
    : sql`list_transform(${zipped}, lambda ${pair}: ${apply(sql`${pair}[1]`, sql`${pair}[2]`)})`
  return sql`CASE WHEN ${a} IS NOT NULL AND ${b} IS NOT NULL THEN ${transformed} END`
}

/** Whether items of the two arrays may be DuckDB structs: rows, instants with zones. */
function heldInParts({ types }: RenderContext): boolean {
  return types.slice(0, 2).some((type) => type.kind === 'array' && duckdbTypeText(type.element).startsWith('STRUCT'))
}

/** Rebuilds a map from its entries. @param part returns the expressions of key and value */
function overEntries(context: RenderContext, part: (entry: Sql) => { key: Sql; value: Sql }, checked: boolean): Sql {
  const entry = context.names.fresh()
  const { key, value } = part(entry)
  const list = sql`list_transform(map_entries(${context.value(0)}), lambda ${entry}: ${structOf({ k: key, v: value })})`
  const made = checked ? checkedMap((context.result as MapType).key, list, context) : sql`map_from_entries(${list})`
  return sql`CASE WHEN ${context.value(0)} IS NOT NULL THEN ${made} END`
}

function mapFiltered(context: RenderContext): Sql {
  const entry = context.names.fresh()
  const keep = context.lambda(1).apply(sql`${entry}.key`, sql`${entry}.value`)
  return sql`CASE WHEN ${context.value(0)} IS NOT NULL THEN map_from_entries(list_filter(map_entries(${context.value(0)}), lambda ${entry}: ${keep})) END`
}

function mapZippedWith(context: RenderContext): Sql {
  const key = context.names.fresh()
  const other = context.names.fresh()
  const [a, b] = [context.value(0), context.value(1)]
  const [first, second] = [context.types[0] as MapType, context.types[1] as MapType]
  const { names } = context
  const keys = sql`list_concat(map_keys(${a}), list_filter(map_keys(${b}), lambda ${other}: NOT ${hasKey(first, a, other, names)}))`
  const value = context.lambda(2).apply(key, valueAt(first, a, key, names), valueAt(second, b, key, names))
  return sql`CASE WHEN ${a} IS NOT NULL AND ${b} IS NOT NULL THEN map_from_entries(list_transform(${keys}, lambda ${key}: ${structOf({ k: key, v: value })})) END`
}

export const lambdaFunctions: readonly FunctionDefinition[] = [
  scalar('transform(array(T), function(T,U))', 'array(U)', (context) => transformed(context), PARTIAL),
  scalar('filter(array(T), function(T,boolean))', 'array(T)', filtered, PARTIAL),
  scalar(
    'all_match(array(T), function(T,boolean))',
    'boolean',
    (context) => sql`q_all(${transformed(context)})`,
    PARTIAL,
  ),
  scalar(
    'any_match(array(T), function(T,boolean))',
    'boolean',
    (context) => sql`q_any(${transformed(context)})`,
    PARTIAL,
  ),
  scalar(
    'none_match(array(T), function(T,boolean))',
    'boolean',
    (context) => sql`(NOT q_any(${transformed(context)}))`,
    PARTIAL,
  ),
  scalar('reduce(array(T), S, function(S,T,S), function(S,R))', 'R', reduced, PARTIAL, { calledOnNull: true }),
  scalar('zip_with(array(T), array(U), function(T,U,R))', 'array(R)', zippedWith, PARTIAL),
  scalar('map_filter(map(K,V), function(K,V,boolean))', 'map(K,V)', mapFiltered, PARTIAL),
  scalar(
    'transform_keys(map(K1,V), function(K1,V,K2)) where K2 comparable',
    'map(K2,V)',
    (context) =>
      overEntries(
        context,
        (entry) => ({
          key: context.lambda(1).apply(sql`${entry}.key`, sql`${entry}.value`),
          value: sql`${entry}.value`,
        }),
        true,
      ),
    PARTIAL,
  ),
  scalar(
    'transform_values(map(K,V1), function(K,V1,V2))',
    'map(K,V2)',
    (context) =>
      overEntries(
        context,
        (entry) => ({ key: sql`${entry}.key`, value: context.lambda(1).apply(sql`${entry}.key`, sql`${entry}.value`) }),
        false,
      ),
    PARTIAL,
  ),
  scalar('map_zip_with(map(K,V1), map(K,V2), function(K,V1,V2,V3))', 'map(K,V3)', mapZippedWith, PARTIAL),
]
