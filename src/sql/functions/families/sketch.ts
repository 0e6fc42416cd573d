import { integer, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { template, type Template } from '../../../duckdb/text/template.ts'
import { comparisonKey } from '../comparison.ts'
import { PARTIAL, aggregate, named, scalar, type FunctionDefinition } from '../function-definition.ts'
import type { RenderContext } from '../rendering.ts'

/** Up to this number of values in a group, a digest keeps them all. */
const DIGEST_EXACT = 10_000
/** The number of points of a digest of more values: a point is off by at most half of its weight. */
const DIGEST_POINTS = 2_000
/** The size of the sample from which points are taken, and the largest sample for a finer accuracy. */
const DIGEST_SAMPLE = 40_000
const LARGEST_SAMPLE = 990_000

const exact = DIGEST_EXACT.toLocaleString('en')
const own = 'the bytes of a stored sketch are not those of Trino'
const countNote = `another approximation than Trino's, of no larger standard error; ${own}`
const setNote = `another approximation than Trino's, within 1 % of the values of both sets; ${own}`
const note = `exact for up to ${exact} values, of more by a sample; ${own}`

const harmless = { duplicates: 'harmless', note: countNote } as const

/** The codes of values (`q_distinct_code`): at most about a million, whatever the number of values. */
function codes(context: RenderContext): Sql {
  const key = comparisonKey(context.types[0]!, context.value(0), context.names)
  return sql`q_distinct_code(hash(${key}), 16)`
}

/**
 * A set of distinct values: as codes, or HyperLogLog registers if there are many. @param bits the number of
 * registers, as a power of two
 */
function approximateSet(context: RenderContext, bits: Sql): Sql {
  return context.fill`q_sketch(list(DISTINCT ${codes(context)})$F($1 IS NOT NULL)$E, ${bits})`
}

/**
 * Digests keep a group's values with their weights. Beyond a few thousand values, they keep points at even distances of
 * rank. The points come from a random sample, weighted by priority if weights differ, as in approx_percentile. The
 * share of the values below a result is off by half the accuracy at two standard deviations.
 */
function digest(name: string, sketch: string, value: string): FunctionDefinition[] {
  const plain = template(`q_digest_of(arg_min($1, q_drawn(), ${DIGEST_SAMPLE})$F($1 IS NOT NULL)$E, count($1)$F)`)
  const fitted = (context: RenderContext, sorted: Sql | Template, points: Sql): Sql =>
    context.fill`q_digest_fit(${sorted}, ${integer(DIGEST_EXACT)}, ${points})`
  /** @param sample the number of sampled values, per row and per group */
  const weighed = (context: RenderContext, sample: { readonly row: Sql; readonly group: Sql }, points: Sql): Sql => {
    const weight = name === 'tdigest_agg' ? context.fill`$2` : context.fill`q_digest_weight($2)`
    const drawn = context.fill`max(q_weighed($1, ${weight}), ${sample.row} + 1)$F($1 IS NOT NULL AND $2 IS NOT NULL)$E`
    return fitted(context, sql`q_weighed_sample(${drawn}, ${sample.group})`, points)
  }
  const accurate = (context: RenderContext): Sql => {
    const group = context.fill`any_value($3)$F`
    const sample = (accuracy: Sql): Sql =>
      sql`CAST(least(${integer(LARGEST_SAMPLE)}, greatest(${integer(DIGEST_SAMPLE)}, coalesce(4 / (${accuracy} * ${accuracy}), 0))) AS BIGINT)`
    const points = sql`greatest(${integer(DIGEST_POINTS)}, least(100000, 20 / q_digest_accuracy(${group})))`
    return weighed(context, { row: sample(context.value(2)), group: sample(group) }, points)
  }
  // Invalid values and weights are detected over the group, with FILTER applied: an expression per row would also run
  // on rows that FILTER excludes.
  const checked = (context: RenderContext, found: Sql): Sql => {
    if (name !== 'tdigest_agg') return found
    const both =
      context.types.length > 1 ? context.fill`$1 IS NOT NULL AND $2 IS NOT NULL` : context.fill`$1 IS NOT NULL`
    const values = context.fill`q_digest_of_values(any_value($1)$F(${both} AND NOT isfinite($1))$E, ${found})`
    if (context.types.length === 1) return values
    return context.fill`q_percentile_of_weights(any_value($2)$F(${both} AND NOT (isfinite($2) AND $2 >= 1))$E, ${values})`
  }
  const usual = { row: integer(DIGEST_SAMPLE), group: integer(DIGEST_SAMPLE) }
  const points = integer(DIGEST_POINTS)
  return [
    aggregate(`${name}(${value})`, sketch, (context) => checked(context, fitted(context, plain, points)), { note }),
    aggregate(
      `${name}(${value}, ${name === 'tdigest_agg' ? 'double' : 'bigint'})`,
      sketch,
      (context) => checked(context, weighed(context, usual, points)),
      { note },
    ),
    ...(name === 'qdigest_agg' ? [aggregate(`${name}(${value}, bigint, double)`, sketch, accurate, { note })] : []),
  ]
}

function reading(sketch: string, value: string): FunctionDefinition[] {
  return [
    scalar(
      `value_at_quantile(${sketch}, double)`,
      value,
      'CASE WHEN $1 IS NOT NULL THEN q_digest_pick($1, $2) END',
      PARTIAL,
      { note },
    ),
    scalar(
      `values_at_quantiles(${sketch}, array(double))`,
      `array(${value})`,
      sketch === 'tdigest'
        ? 'q_tdigest_picks($1, $2)'
        : 'CASE WHEN $1 IS NOT NULL THEN list_transform($2, lambda q5: q_digest_pick($1, q5)) END',
      PARTIAL,
      { note },
    ),
  ]
}

const mergedDigests = `q_digest_fit(list_sort(flatten(list($1)$F($1 IS NOT NULL)$E)), ${DIGEST_EXACT}, ${DIGEST_POINTS})`

export const sketchFunctions: readonly FunctionDefinition[] = [
  ...named(['bigint', 'double', 'varchar(x)'], (type) =>
    aggregate(`approx_set(${type})`, 'HyperLogLog', (context) => approximateSet(context, integer(12)), harmless),
  ),
  ...named(['bigint', 'double', 'varchar(x)'], (type) =>
    aggregate(
      `approx_set(${type}, double)`,
      'HyperLogLog',
      (context) => approximateSet(context, context.fill`q_sketch_bits(any_value($2)$F)`),
      harmless,
    ),
  ),
  scalar(
    'empty_approx_set()',
    'HyperLogLog',
    "{'b': CAST(12 AS INTEGER), 'd': false, 'c': CAST([] AS INTEGER[])}",
    PARTIAL,
  ),
  scalar('cardinality(HyperLogLog)', 'bigint', 'q_sketch_count($1)', PARTIAL, { note: countNote }),
  scalar(
    'cardinality(SetDigest)',
    'bigint',
    'CASE WHEN $1 IS NOT NULL THEN q_distinct_count(map_keys($1), 16) END',
    PARTIAL,
    { note: setNote },
  ),
  aggregate(
    'make_set_digest(T)',
    'SetDigest',
    (context) => context.fill`CAST(histogram(${codes(context)})$F($1 IS NOT NULL)$E AS $R)`,
    { note: setNote },
  ),
  aggregate('merge(HyperLogLog)', 'HyperLogLog', 'q_sketch_merge(list($1)$F($1 IS NOT NULL)$E)', { note: countNote }),
  aggregate('merge_set_digest(SetDigest)', 'SetDigest', 'q_merge_counts(list($1)$F($1 IS NOT NULL)$E)', {
    note: setNote,
  }),
  aggregate('merge(tdigest)', 'tdigest', mergedDigests, { note }),
  aggregate('merge(qdigest(V))', 'qdigest(V)', mergedDigests, { note }),
  scalar(
    'intersection_cardinality(SetDigest, SetDigest)',
    'bigint',
    'CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN q_common_count($1, $2) END',
    PARTIAL,
    {
      note: setNote,
    },
  ),
  scalar(
    'jaccard_index(SetDigest, SetDigest)',
    'double',
    'CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN CAST(q_common_count($1, $2) AS DOUBLE) / q_distinct_count(list_distinct(list_concat(map_keys($1), map_keys($2))), 16) END',
    PARTIAL,
    { note: setNote },
  ),
  scalar(
    'hash_counts(SetDigest)',
    'map(bigint,smallint)',
    "map_from_entries(list_transform(map_entries($1), lambda q5: {'k': CAST(CAST(q5.key AS HUGEINT) - 9223372036854775808 AS BIGINT), 'v': CAST(q5.value AS SMALLINT)}))",
    PARTIAL,
    { note },
  ),
  ...digest('tdigest_agg', 'tdigest', 'double'),
  ...['bigint', 'double', 'real'].flatMap((type) => digest('qdigest_agg', `qdigest(${type})`, type)),
  ...reading('tdigest', 'double'),
  ...['bigint', 'double', 'real'].flatMap((type) => reading(`qdigest(${type})`, type)),
  ...['bigint', 'double', 'real'].map((type) =>
    scalar(`quantile_at_value(qdigest(${type}), ${type})`, 'double', 'q_quantile_at($1, $2)', PARTIAL, { note }),
  ),
]
