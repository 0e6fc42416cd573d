import { code, integer, joined, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { template, type Template } from '../../../duckdb/text/template.ts'
import { isFine, rowOf, structOf } from '../../types/duckdb-representation.ts'
import { isFloating, VARCHAR, type ArrayType, type SqlType } from '../../types/sql-type.ts'
import { requireCast, textOf } from '../casts.ts'
import { comparisonKey, equals, isNested, needsComparisonKey } from '../comparison.ts'
import { checkedOrder, nestedExtreme, type Extreme } from '../extremes.ts'
import { bindName } from '../fill-template.ts'
import { GROWING, PARTIAL, TOTAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import { counted, isGroupedByKey } from '../map-keys.ts'
import { notSupportedPrecision } from '../precision-guard.ts'
import type { RenderContext } from '../rendering.ts'

function elementOf(context: RenderContext, index = 0): SqlType {
  return (context.types[index] as ArrayType).element
}

/** DuckDB treats NaN as the largest number; in Trino, NaN counts only if there is no other number. */
function arrayExtreme(name: Extreme): (context: RenderContext) => Sql {
  return (context) => {
    const element = elementOf(context)
    if (isFloating(element)) return context.fill`${code(`q_array_${name}_floating`)}($1)`
    if (isNested(element)) {
      const list = context.names.fresh()
      return bindName(list, context.value(0), nestedExtreme(element, list, name, context.names))
    }
    if (needsComparisonKey(element)) {
      const [item, at] = [context.names.fresh(), context.names.fresh()]
      // The first of equal values wins.
      const position = name === 'min' ? at : sql`-${at}`
      const keyed = structOf({ k: comparisonKey(element, item, context.names), i: position, v: item })
      const sorted = context.fill`list_sort(list_transform($1, lambda ${item}, ${at}: ${keyed}))`
      return context.fill`CASE WHEN list_position($1, NULL) IS NULL THEN ${sorted}[${integer(name === 'min' ? 1 : -1)}].v END`
    }
    return context.fill`CASE WHEN list_position($1, NULL) IS NULL THEN ${code(`list_${name}`)}($1) END`
  }
}

/** `array_join` accepts any element type with a cast to text. */
function arrayJoin(context: RenderContext): Sql {
  requireCast(elementOf(context), VARCHAR, undefined, 'OPERATOR_NOT_FOUND')
  const item = context.names.fresh()
  const text = textOf(item, elementOf(context), context)
  const texts = sql`list_transform(${context.value(0)}, lambda ${item}: ${text})`
  const separator = context.constant(1)
  if (context.args.length === 3) {
    return typeof separator === 'string'
      ? context.fill`q_array_join_by(${texts}, ${literal(separator)}, $3)`
      : sql`q_array_join3(${texts}, ${context.value(1)}, ${context.value(2)})`
  }
  // array_to_string also leaves out NULL; it returns NULL if no text remains.
  return typeof separator === 'string'
    ? context.fill`CASE WHEN $1 IS NOT NULL THEN coalesce(array_to_string(${texts}, ${literal(separator)}), '') END`
    : sql`q_array_join(${texts}, ${context.value(1)})`
}

/** Uses comparison keys where DuckDB's equality would distinguish equal elements. */
function withKeys(plain: Template, keyed: (context: RenderContext) => Sql): (context: RenderContext) => Sql {
  return (context) => (needsComparisonKey(elementOf(context)) ? keyed(context) : context.fill`${plain}`)
}

function firstOfEach(context: RenderContext, list = context.value(0)): Sql {
  return sql`CASE WHEN ${list} IS NOT NULL THEN q_at(${list}, q_firsts(${keysOf(context, list)})) END`
}

/** The comparison keys of a list's elements, in order. */
function keysOf(context: RenderContext, list: Sql): Sql {
  const item = context.names.fresh()
  return sql`list_transform(${list}, lambda ${item}: ${comparisonKey(elementOf(context), item, context.names)})`
}

/** The distinct elements of a list that another list contains, or does not contain. */
function kept(context: RenderContext, list: Sql, other: Sql, has: boolean): Sql {
  return sql`q_at(${list}, q_firsts_among(${keysOf(context, list)}, ${keysOf(context, other)}, ${code(has ? 'true' : 'false')}))`
}

function ofTwo(context: RenderContext, body: (a: Sql, b: Sql) => Sql): Sql {
  const [a, b] = [context.value(0), context.value(1)]
  return sql`CASE WHEN ${a} IS NOT NULL AND ${b} IS NOT NULL THEN ${body(a, b)} END`
}

const unitedByKeys = (context: RenderContext): Sql =>
  ofTwo(context, (a, b) => {
    const both = context.names.fresh()
    return bindName(both, sql`list_concat(${a}, ${b})`, firstOfEach(context, both))
  })

const sharedByKeys = (context: RenderContext): Sql =>
  ofTwo(
    context,
    (a, b) =>
      sql`CASE WHEN len(${a}) < len(${b}) THEN ${kept(context, b, a, true)} ELSE ${kept(context, a, b, true)} END`,
  )

const withoutByKeys = (context: RenderContext): Sql =>
  ofTwo(context, (a, b) => sql`CASE WHEN len(${b}) = 0 THEN ${a} ELSE ${kept(context, a, b, false)} END`)

const overlapByKeys = (context: RenderContext): Sql =>
  sql`q_overlap(${keysOf(context, context.value(0))}, ${keysOf(context, context.value(1))})`

const sequenceByKeys = (context: RenderContext): Sql =>
  sql`q_cseq(${keysOf(context, context.value(0))}, ${keysOf(context, context.value(1))})`

/** The position of the first element that equals the value. */
function position(context: RenderContext): Sql {
  const element = elementOf(context)
  const plain =
    !isFloating(element) && !needsComparisonKey(element) && element.kind !== 'row' && element.kind !== 'array'
  const [list, value] = [context.value(0), context.value(1)]
  const item = context.names.fresh()
  if (isNested(element)) return nestedPosition(context, item)
  const found = plain
    ? sql`list_position(${list}, ${value})`
    : sql`list_position(list_transform(${list}, lambda ${item}: ${equals(element, item, value, context.names)}), true)`
  return sql`CASE WHEN ${list} IS NOT NULL AND ${value} IS NOT NULL THEN CAST(coalesce(${found}, 0) AS BIGINT) END`
}

/** The first element that is equal, or whose comparison is indeterminate, decides. */
function nestedPosition(context: RenderContext, item: Sql): Sql {
  const [list, value] = [context.value(0), context.value(1)]
  const same = equals(elementOf(context), item, value, context.names)
  const [answers, at] = [context.names.fresh(), context.names.fresh()]
  const verdict = sql`CASE WHEN ${item} IS NULL THEN 0 WHEN ${same} THEN 1 WHEN NOT ${same} THEN 0 ELSE 2 END`
  const first = sql`list_filter(range(1, len(${answers}) + 1), lambda ${at}: ${answers}[${at}] > 0)[1]`
  const decided = sql`CASE WHEN ${answers}[${first}] = 2 THEN ${indeterminate('array_position')} ELSE CAST(coalesce(${first}, 0) AS BIGINT) END`
  const found = bindName(answers, sql`list_transform(${list}, lambda ${item}: ${verdict})`, decided)
  return sql`CASE WHEN ${list} IS NOT NULL AND ${value} IS NOT NULL THEN ${found} END`
}

function contains(context: RenderContext): Sql {
  const element = elementOf(context)
  if (!isFloating(element) && !needsComparisonKey(element) && element.kind !== 'row' && element.kind !== 'array') {
    return context.fill`q_contains($1, $2)`
  }
  const item = context.names.fresh()
  const same = equals(element, item, context.value(1), context.names)
  if (!isNested(element))
    return context.fill`CASE WHEN $2 IS NOT NULL THEN q_any(list_transform($1, lambda ${item}: ${same})) END`
  // The first element that is equal, or whose comparison is indeterminate, decides.
  const [answer, answers] = [context.names.fresh(), context.names.fresh()]
  const verdict = sql`CASE WHEN ${item} IS NULL THEN 0 WHEN ${same} THEN 1 WHEN NOT ${same} THEN 0 ELSE 2 END`
  const first = sql`list_filter(${answers}, lambda ${answer}: ${answer} > 0)[1]`
  const decided = sql`CASE WHEN ${answers} IS NULL THEN NULL WHEN ${first} = 1 THEN true WHEN ${first} = 2 THEN ${indeterminate('contains')} WHEN list_position(${context.value(0)}, NULL) IS NULL THEN false END`
  return sql`CASE WHEN ${context.value(1)} IS NOT NULL THEN ${bindName(answers, sql`list_transform(${context.value(0)}, lambda ${item}: ${verdict})`, decided)} END`
}

function indeterminate(name: string): Sql {
  const message = `NOT_SUPPORTED: ${name} does not support arrays with elements that are null or contain null`
  return sql`u_fail(${literal(message)})`
}

function removed(context: RenderContext): Sql {
  const item = context.names.fresh()
  const same = equals(elementOf(context), item, context.value(1), context.names)
  const unlike = isNested(elementOf(context))
    ? sql`CASE WHEN ${item} IS NULL THEN true ELSE NOT coalesce(${same}, ${indeterminate('array_remove')}) END`
    : sql`coalesce(NOT ${same}, true)`
  return context.fill`CASE WHEN $2 IS NOT NULL THEN list_filter($1, lambda ${item}: ${unlike}) END`
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

/** An item of `list_zip`. If the item is NULL by padding, `list_zip` leaves values of another item in its fields. */
export function paddedItem(item: Sql): Sql {
  return sql`CASE WHEN ${item} IS NOT NULL THEN ${item} END`
}

function zipped(context: RenderContext): Sql {
  const lists = context.args.map((_, i) => context.value(i))
  const item = context.names.fresh()
  const row = rowOf(lists.map((_, i) => paddedItem(sql`${item}[${integer(i + 1)}]`)))
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

function sorted(context: RenderContext, element: SqlType): Sql {
  if (!needsComparisonKey(element)) return context.fill`q_array_sort($1)`
  const [item, at, pair] = [context.names.fresh(), context.names.fresh(), context.names.fresh()]
  // Equal values keep their order.
  const keyed = structOf({ n: sql`${item} IS NULL`, k: comparisonKey(element, item, context.names), i: at, v: item })
  return sql`list_transform(list_sort(list_transform(${context.value(0)}, lambda ${item}, ${at}: ${keyed})), lambda ${pair}: ${pair}.v)`
}

const wrongAnswer = sql`u_raise('INVALID_FUNCTION_ARGUMENT: Lambda comparator must return either -1, 0, or 1')`

/**
 * array_sort with a comparator. A merge sort would need calls back and forth, so each element's rank is computed by
 * comparing all pairs.
 */
function sortedBy(context: RenderContext): Sql {
  const { names } = context
  const [item, index, other, at, ranked] = [names.fresh(), names.fresh(), names.fresh(), names.fresh(), names.fresh()]
  const compare = context.lambda(1)
  const list = context.value(0)
  const answer = names.fresh()
  const before = bindName(
    answer,
    compare.apply(other, item),
    sql`CASE WHEN coalesce(${answer} NOT IN (-1, 0, 1), true) THEN ${wrongAnswer} ELSE ${answer} < 0 OR (${answer} = 0 AND ${at} < ${index}) END`,
  )
  const rank = sql`len(list_filter(list_transform(${list}, lambda ${other}, ${at}: CASE WHEN ${at} = ${index} THEN false ELSE ${before} END), lambda ${ranked}: ${ranked}))`
  const pair = names.fresh()
  return sql`list_transform(list_sort(list_transform(${list}, lambda ${item}, ${index}: ${structOf({ r: rank, v: item })})), lambda ${pair}: ${pair}.v)`
}

/** A sequence of timestamps up to microsecond precision. */
function steps(of: Template): (context: RenderContext) => Sql {
  return (context) => {
    if (isFine(context.types[0]!)) throw notSupportedPrecision(context.types[0]!)
    return context.fill`${of}`
  }
}

function histogram(context: RenderContext): Sql {
  const element = elementOf(context)
  if (!isGroupedByKey(element)) return context.fill`q_ahist($1)`
  return context.fill`CASE WHEN $1 IS NOT NULL THEN ${counted(element, context.value(0), context)} END`
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
      if (!isNested(element)) return sorted(context, element)
      const list = context.names.fresh()
      return bindName(list, sorted(context, element), checkedOrder(element, list, context.names))
    },
    GROWING,
  ),
  scalar('array_sort(array(T), function(T,T,integer))', 'array(T)', sortedBy, GROWING),
  scalar(
    'array_union(array(E), array(E)) where E comparable',
    'array(E)',
    withKeys(template('CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE q_array_union($1, $2) END'), unitedByKeys),
    PARTIAL,
  ),
  scalar(
    'array_intersect(array(E), array(E)) where E comparable',
    'array(E)',
    withKeys(template('q_array_intersect($1, $2)'), sharedByKeys),
    PARTIAL,
  ),
  scalar(
    'array_except(array(E), array(E)) where E comparable',
    'array(E)',
    withKeys(template('q_array_except($1, $2)'), withoutByKeys),
    PARTIAL,
  ),
  scalar(
    'arrays_overlap(array(E), array(E)) where E comparable',
    'boolean',
    withKeys(template('q_overlap($1, $2)'), overlapByKeys),
    PARTIAL,
  ),
  scalar('array_remove(array(E), E) where E comparable', 'array(E)', removed, PARTIAL),
  scalar('array_position(array(T), T) where T comparable', 'bigint', position, PARTIAL),
  scalar('contains(array(T), T) where T comparable', 'boolean', contains, PARTIAL),
  scalar('array_max(array(T)) where T orderable', 'T', arrayExtreme('max'), PARTIAL),
  scalar('array_min(array(T)) where T orderable', 'T', arrayExtreme('min'), PARTIAL),
  scalar('array_join(array(E), varchar)', 'varchar', arrayJoin, PARTIAL),
  scalar('array_join(array(E), varchar, varchar)', 'varchar', arrayJoin, PARTIAL),
  scalar('array_histogram(array(T)) where T comparable', 'map(T,bigint)', histogram, PARTIAL),
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
  scalar(
    'contains_sequence(array(T), array(T)) where T comparable',
    'boolean',
    withKeys(template('q_cseq($1, $2)'), sequenceByKeys),
    PARTIAL,
  ),
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
    steps(template('q_sequence_millis($1, $2, $3)')),
    GROWING,
  ),
  scalar(
    'sequence(timestamp(p), timestamp(p), interval year to month)',
    'array(timestamp(p))',
    steps(template('q_sequence_months($1, $2, $3)')),
    GROWING,
  ),
]
