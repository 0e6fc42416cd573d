import { duckdbType } from '../../types/duckdb-representation.ts'
import type { FunctionType } from '../../types/sql-type.ts'
import { bindName } from '../fill-template.ts'
import { scalar, type FunctionDefinition } from '../function-definition.ts'
import type { RenderContext } from '../rendering.ts'

/** `list_transform(list, lambda v: body)`. */
function transformed(context: RenderContext, index = 1): string {
  const item = context.names.fresh()
  return `list_transform(${context.value(0)}, lambda ${item}: ${context.lambda(index).apply(item)})`
}

function filtered(context: RenderContext): string {
  const item = context.names.fresh()
  return `list_filter(${context.value(0)}, lambda ${item}: ${context.lambda(1).apply(item)})`
}

/**
 * A fold whose state may have another type than the elements: both travel in a struct, since DuckDB's reduce knows one
 * type. The start is a value of the list's type, so an empty list gives it back.
 */
function reduced(context: RenderContext): string {
  const { names } = context
  const [state, next, item, end] = [names.fresh(), names.fresh(), names.fresh(), names.fresh()]
  const stateType = duckdbType((context.types[2] as FunctionType).result)
  const list = context.value(0)
  const elementType = context.types[0]!.kind === 'array' ? duckdbType(context.types[0].element) : 'INTEGER'
  const carriers = `list_transform(${list}, lambda ${item}: {'s': CAST(NULL AS ${stateType}), 'x': CAST(${item} AS ${elementType})})`
  const step = `{'s': CAST(${context.lambda(2).apply(`${state}.s`, `${next}.x`)} AS ${stateType}), 'x': ${next}.x}`
  const start = `{'s': CAST(${context.value(1)} AS ${stateType}), 'x': CAST(NULL AS ${elementType})}`
  const folded = `list_reduce(${carriers}, lambda ${state}, ${next}: ${step}, ${start}).s`
  const result = bindName(end, folded, context.lambda(3).apply(end))
  return `CASE WHEN ${list} IS NOT NULL THEN ${result} END`
}

function zippedWith(context: RenderContext): string {
  const pair = context.names.fresh()
  const [a, b] = [context.value(0), context.value(1)]
  const body = context.lambda(2).apply(`${pair}[1]`, `${pair}[2]`)
  return `CASE WHEN ${a} IS NOT NULL AND ${b} IS NOT NULL THEN list_transform(list_zip(${a}, ${b}), lambda ${pair}: ${body}) END`
}

/** A map made anew from its entries; `part` gives the expressions of key and value. */
function overEntries(
  context: RenderContext,
  part: (entry: string) => { key: string; value: string },
  checked: boolean,
): string {
  const entry = context.names.fresh()
  const { key, value } = part(entry)
  const list = `list_transform(map_entries(${context.value(0)}), lambda ${entry}: {'k': ${key}, 'v': ${value}})`
  return `CASE WHEN ${context.value(0)} IS NOT NULL THEN ${checked ? 'q_mk' : 'map_from_entries'}(${list}) END`
}

function mapFiltered(context: RenderContext): string {
  const entry = context.names.fresh()
  const keep = context.lambda(1).apply(`${entry}.key`, `${entry}.value`)
  return `CASE WHEN ${context.value(0)} IS NOT NULL THEN map_from_entries(list_filter(map_entries(${context.value(0)}), lambda ${entry}: ${keep})) END`
}

function mapZippedWith(context: RenderContext): string {
  const key = context.names.fresh()
  const other = context.names.fresh()
  const [a, b] = [context.value(0), context.value(1)]
  const keys = `list_concat(map_keys(${a}), list_filter(map_keys(${b}), lambda ${other}: NOT map_contains(${a}, ${other})))`
  const value = context.lambda(2).apply(key, `${a}[${key}]`, `${b}[${key}]`)
  return `CASE WHEN ${a} IS NOT NULL AND ${b} IS NOT NULL THEN map_from_entries(list_transform(${keys}, lambda ${key}: {'k': ${key}, 'v': ${value}})) END`
}

export const lambdaFunctions: readonly FunctionDefinition[] = [
  scalar('transform(array(T), function(T,U))', 'array(U)', (context) => transformed(context)),
  scalar('filter(array(T), function(T,boolean))', 'array(T)', filtered),
  scalar('all_match(array(T), function(T,boolean))', 'boolean', (context) => `q_all(${transformed(context)})`),
  scalar('any_match(array(T), function(T,boolean))', 'boolean', (context) => `q_any(${transformed(context)})`),
  scalar('none_match(array(T), function(T,boolean))', 'boolean', (context) => `(NOT q_any(${transformed(context)}))`),
  scalar('reduce(array(T), S, function(S,T,S), function(S,R))', 'R', reduced, { calledOnNull: true }),
  scalar('zip_with(array(T), array(U), function(T,U,R))', 'array(R)', zippedWith),
  scalar('map_filter(map(K,V), function(K,V,boolean))', 'map(K,V)', mapFiltered),
  scalar('transform_keys(map(K1,V), function(K1,V,K2)) where K2 comparable', 'map(K2,V)', (context) =>
    overEntries(
      context,
      (entry) => ({ key: context.lambda(1).apply(`${entry}.key`, `${entry}.value`), value: `${entry}.value` }),
      true,
    ),
  ),
  scalar('transform_values(map(K,V1), function(K,V1,V2))', 'map(K,V2)', (context) =>
    overEntries(
      context,
      (entry) => ({ key: `${entry}.key`, value: context.lambda(1).apply(`${entry}.key`, `${entry}.value`) }),
      false,
    ),
  ),
  scalar('map_zip_with(map(K,V1), map(K,V2), function(K,V1,V2,V3))', 'map(K,V3)', mapZippedWith),
]
