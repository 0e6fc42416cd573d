import { code, integer, joined, sql, type Sql } from '../../text/sql.ts'
import { template, type Template } from '../../text/template.ts'
import { rowOf } from '../../types/duckdb-representation.ts'
import { isFloating, VARCHAR, type ArrayType, type SqlType } from '../../types/sql-type.ts'
import { requireCast, textOf } from '../casts.ts'
import { comparisonKey, equals, needsKey } from '../comparison.ts'
import { GROWING, PARTIAL, TOTAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import type { RenderContext } from '../rendering.ts'

function elementOf(context: RenderContext, index = 0): SqlType {
  return (context.types[index] as ArrayType).element
}

/** DuckDB's NaN is the largest number, Trino's counts only where there is nothing else. */
function arrayExtreme(name: 'max' | 'min'): (context: RenderContext) => Sql {
  return (context) => {
    const element = elementOf(context)
    if (isFloating(element)) return context.fill`${code(`q_array_${name}_floating`)}($1)`
    if (needsKey(element)) {
      const item = context.names.fresh()
      const sorted = context.fill`list_sort(list_transform($1, lambda ${item}: {'k': ${comparisonKey(element, item, context.names)}, 'v': ${item}}))`
      return context.fill`CASE WHEN list_position($1, NULL) IS NULL THEN ${sorted}[${integer(name === 'min' ? 1 : -1)}].v END`
    }
    return context.fill`CASE WHEN list_position($1, NULL) IS NULL THEN ${code(`list_${name}`)}($1) END`
  }
}

/** `array_join` takes any element that has a text. */
function arrayJoin(context: RenderContext): Sql {
  requireCast(elementOf(context), VARCHAR, undefined, 'OPERATOR_NOT_FOUND')
  const item = context.names.fresh()
  const text = textOf(item, elementOf(context), context)
  const texts = sql`list_transform(${context.value(0)}, lambda ${item}: ${text})`
  return context.args.length === 2
    ? sql`q_array_join(${texts}, ${context.value(1)})`
    : sql`q_array_join3(${texts}, ${context.value(1)}, ${context.value(2)})`
}

/** Equality of elements where DuckDB's own would tell equal ones apart. */
function withKeys(plain: Template, keyed: (context: RenderContext) => Sql): (context: RenderContext) => Sql {
  return (context) => (needsKey(elementOf(context)) ? keyed(context) : context.fill`${plain}`)
}

function firstOfEach(context: RenderContext): Sql {
  const [item, index, other] = [context.names.fresh(), context.names.fresh(), context.names.fresh()]
  const element = elementOf(context)
  const keys = context.fill`list_transform($1, lambda ${other}: ${comparisonKey(element, other, context.names)})`
  return context.fill`list_filter($1, lambda ${item}, ${index}: list_position(${keys}, ${comparisonKey(element, item, context.names)}) = ${index})`
}

function contains(context: RenderContext): Sql {
  const element = elementOf(context)
  if (!isFloating(element) && !needsKey(element) && element.kind !== 'row' && element.kind !== 'array') {
    return context.fill`q_contains($1, $2)`
  }
  const item = context.names.fresh()
  const same = equals(element, item, context.value(1), context.names)
  return sql`q_any(list_transform(${context.value(0)}, lambda ${item}: ${same}))`
}

function removed(context: RenderContext): Sql {
  const item = context.names.fresh()
  const same = equals(elementOf(context), item, context.value(1), context.names)
  return context.fill`CASE WHEN $2 IS NOT NULL THEN list_filter($1, lambda ${item}: coalesce(NOT ${same}, true)) END`
}

function concatenated(context: RenderContext): Sql {
  const parts = context.args.map((_, i) => context.value(i))
  const known = joined(
    parts.map((part) => sql`${part} IS NOT NULL`),
    ' AND ',
  )
  const all = parts.reduce((left, right) => sql`list_concat(${left}, ${right})`)
  return sql`CASE WHEN ${known} THEN ${all} END`
}

function zipped(context: RenderContext): Sql {
  const lists = context.args.map((_, i) => context.value(i))
  const item = context.names.fresh()
  const row = rowOf(lists.map((_, i) => sql`${item}[${integer(i + 1)}]`))
  const known = joined(
    lists.map((list) => sql`${list} IS NOT NULL`),
    ' AND ',
  )
  return sql`CASE WHEN ${known} THEN list_transform(list_zip(${joined(lists, ', ')}), lambda ${item}: ${row}) END`
}

const zips = [2, 3, 4, 5].map((count) => {
  const variables = Array.from({ length: count }, (_, i) => `T${i + 1}`)
  return scalar(
    `zip(${variables.map((variable) => `array(${variable})`).join(', ')})`,
    `array(row(${variables.join(',')}))`,
    zipped,
    PARTIAL,
  )
})

/** The comparator of array_sort: merge sort needs calls back and forth, so a rank is computed by comparing all pairs. */
function sortedBy(context: RenderContext): Sql {
  const { names } = context
  const [item, index, other, at, ranked] = [names.fresh(), names.fresh(), names.fresh(), names.fresh(), names.fresh()]
  const compare = context.lambda(1)
  const list = context.value(0)
  const before = sql`coalesce(${compare.apply(other, item)}, 0)`
  const rank = sql`len(list_filter(list_transform(${list}, lambda ${other}, ${at}: ${at} <> ${index} AND (${before} < 0 OR (${before} = 0 AND ${at} < ${index}))), lambda ${ranked}: ${ranked}))`
  const sorted = names.fresh()
  return sql`list_transform(list_sort(list_transform(${list}, lambda ${item}, ${index}: {'r': ${rank}, 'v': ${item}})), lambda ${sorted}: ${sorted}.v)`
}

export const arrayFunctions: readonly FunctionDefinition[] = [
  scalar('cardinality(array(E))', 'bigint', 'CAST(len($1) AS BIGINT)', TOTAL),
  scalar(
    'array_distinct(array(E)) where E comparable',
    'array(E)',
    withKeys(template('q_array_distinct($1)'), firstOfEach),
    PARTIAL,
  ),
  scalar(
    'array_sort(array(E)) where E orderable',
    'array(E)',
    (context) => {
      const element = elementOf(context)
      if (!needsKey(element)) return context.fill`q_array_sort($1)`
      const item = context.names.fresh()
      const pair = context.names.fresh()
      const keyed = sql`{'n': ${item} IS NULL, 'k': ${comparisonKey(element, item, context.names)}, 'v': ${item}}`
      return sql`list_transform(list_sort(list_transform(${context.value(0)}, lambda ${item}: ${keyed})), lambda ${pair}: ${pair}.v)`
    },
    GROWING,
  ),
  scalar('array_sort(array(T), function(T,T,integer))', 'array(T)', sortedBy, GROWING),
  scalar(
    'array_union(array(E), array(E)) where E comparable',
    'array(E)',
    'CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE q_array_union($1, $2) END',
    PARTIAL,
  ),
  scalar('array_intersect(array(E), array(E)) where E comparable', 'array(E)', 'q_array_intersect($1, $2)', PARTIAL),
  scalar('array_except(array(E), array(E)) where E comparable', 'array(E)', 'q_array_except($1, $2)', PARTIAL),
  scalar('arrays_overlap(array(E), array(E)) where E comparable', 'boolean', 'q_overlap($1, $2)', PARTIAL),
  scalar('array_remove(array(E), E) where E comparable', 'array(E)', removed, PARTIAL),
  scalar(
    'array_position(array(T), T) where T comparable',
    'bigint',
    'CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN CAST(coalesce(list_position($1, $2), 0) AS BIGINT) END',
    PARTIAL,
  ),
  scalar('contains(array(T), T) where T comparable', 'boolean', contains, TOTAL),
  scalar('array_max(array(T)) where T orderable', 'T', arrayExtreme('max'), PARTIAL),
  scalar('array_min(array(T)) where T orderable', 'T', arrayExtreme('min'), PARTIAL),
  scalar('array_join(array(E), varchar)', 'varchar', arrayJoin, PARTIAL),
  scalar('array_join(array(E), varchar, varchar)', 'varchar', arrayJoin, PARTIAL),
  scalar('array_histogram(array(T)) where T comparable', 'map(T,bigint)', 'q_ahist($1)', PARTIAL),
  scalar('reverse(array(E))', 'array(E)', 'list_reverse($1)', PARTIAL),
  scalar('flatten(array(array(E)))', 'array(E)', 'flatten($1)', GROWING),
  scalar('concat(array(E)...)', 'array(E)', concatenated, GROWING),
  scalar(
    'concat(array(E), E)',
    'array(E)',
    'CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN list_append($1, $2) END',
    GROWING,
  ),
  scalar(
    'concat(E, array(E))',
    'array(E)',
    'CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN list_prepend($1, $2) END',
    GROWING,
  ),
  scalar(
    'element_at(array(E), bigint)',
    'E',
    `CASE WHEN $2 = 0 AND $1 IS NOT NULL THEN u_raise('INVALID_FUNCTION_ARGUMENT: SQL array indices start at 1') ELSE $1[$2] END`,
    PARTIAL,
  ),
  scalar('slice(array(E), bigint, bigint)', 'array(E)', 'q_slice($1, $2, $3)', PARTIAL),
  scalar('trim_array(array(E), bigint)', 'array(E)', 'q_trim_array($1, $2)', PARTIAL),
  scalar('repeat(T, bigint)', 'array(T)', 'q_repeat($1, $2)', GROWING, { calledOnNull: true }),
  scalar(
    'shuffle(array(E))',
    'array(E)',
    `list_transform(list_sort(list_transform($1, lambda q1: {'r': random(), 'v': q1})), lambda q2: q2.v)`,
    PARTIAL,
    { deterministic: false },
  ),
  scalar('ngrams(array(T), integer)', 'array(array(T))', 'q_ngrams($1, $2)', GROWING),
  scalar('combinations(array(T), integer)', 'array(array(T))', 'q_comb($1, $2)', GROWING),
  scalar('contains_sequence(array(T), array(T)) where T comparable', 'boolean', 'q_cseq($1, $2)', PARTIAL),
  scalar('dot_product(array(double), array(double))', 'double', 'q_dot($1, $2)', PARTIAL),
  scalar('euclidean_distance(array(double), array(double))', 'double', 'q_euc($1, $2)', PARTIAL),
  scalar('cosine_similarity(array(double), array(double))', 'double', 'q_cos($1, $2)', PARTIAL),
  scalar('cosine_distance(array(double), array(double))', 'double', '(1 - q_cos($1, $2))', PARTIAL),
  ...zips,
  scalar(
    'sequence(bigint, bigint)',
    'array(bigint)',
    'q_sequence($1, $2, CASE WHEN $1 <= $2 THEN CAST(1 AS BIGINT) ELSE CAST(-1 AS BIGINT) END)',
    GROWING,
  ),
  scalar('sequence(bigint, bigint, bigint)', 'array(bigint)', 'q_sequence($1, $2, $3)', GROWING),
  scalar(
    'sequence(date, date)',
    'array(date)',
    'q_sequence_days($1, $2, CASE WHEN $2 >= $1 THEN CAST(86400000 AS BIGINT) ELSE CAST(-86400000 AS BIGINT) END)',
    GROWING,
  ),
  scalar('sequence(date, date, interval day to second)', 'array(date)', 'q_sequence_days($1, $2, $3)', GROWING),
  scalar(
    'sequence(date, date, interval year to month)',
    'array(date)',
    'list_transform(q_sequence_months(CAST($1 AS TIMESTAMP), CAST($2 AS TIMESTAMP), $3), lambda q9: CAST(q9 AS DATE))',
    GROWING,
  ),
  scalar(
    'sequence(timestamp(p), timestamp(p), interval day to second)',
    'array(timestamp(p))',
    'q_sequence_millis($1, $2, $3)',
    GROWING,
  ),
  scalar(
    'sequence(timestamp(p), timestamp(p), interval year to month)',
    'array(timestamp(p))',
    'q_sequence_months($1, $2, $3)',
    GROWING,
  ),
]
