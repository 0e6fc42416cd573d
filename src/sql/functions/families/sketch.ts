import { PARTIAL, TOTAL, aggregate, named, scalar, type FunctionDefinition } from '../function-definition.ts'

/**
 * Sketches are held exactly: sets of hashes with their counts, sorted values with weights. What is read from them is
 * exact where Trino approximates; their bytes are our own.
 */
const note = 'exact, where Trino approximates; the bytes of a stored sketch are not those of Trino'
const hashes = (x: string): string => `CAST(histogram(hash(${x}))$F(${x} IS NOT NULL)$E AS MAP(UBIGINT, BIGINT))`

function digest(name: string, sketch: string, value: string): FunctionDefinition[] {
  const one = `list({'v': $1, 'w': CAST(1 AS DOUBLE)} ORDER BY $1)$F($1 IS NOT NULL)$E`
  const weighted = `list({'v': $1, 'w': CAST($2 AS DOUBLE)} ORDER BY $1)$F($1 IS NOT NULL)$E`
  const weight = name === 'tdigest_agg' ? 'double' : 'bigint'
  return [
    aggregate(`${name}(${value})`, sketch, one, { note }),
    aggregate(`${name}(${value}, ${weight})`, sketch, weighted, { note }),
    ...(name === 'qdigest_agg' ? [aggregate(`${name}(${value}, bigint, double)`, sketch, weighted, { note })] : []),
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

export const sketchFunctions: readonly FunctionDefinition[] = [
  ...named(['bigint', 'double', 'varchar(x)'], (type) =>
    aggregate(`approx_set(${type})`, 'HyperLogLog', hashes('$1'), { note }),
  ),
  ...named(['bigint', 'double', 'varchar(x)'], (type) =>
    aggregate(`approx_set(${type}, double)`, 'HyperLogLog', hashes('$1'), { note }),
  ),
  scalar('empty_approx_set()', 'HyperLogLog', 'CAST(MAP {} AS MAP(UBIGINT, BIGINT))', PARTIAL),
  scalar('cardinality(HyperLogLog)', 'bigint', 'CAST(cardinality($1) AS BIGINT)', TOTAL, { note }),
  scalar('cardinality(SetDigest)', 'bigint', 'CAST(cardinality($1) AS BIGINT)', TOTAL, { note }),
  aggregate('make_set_digest(T)', 'SetDigest', hashes('$1'), { note }),
  aggregate('merge(HyperLogLog)', 'HyperLogLog', 'q_merge_counts(list($1)$F($1 IS NOT NULL)$E)', { note }),
  aggregate('merge_set_digest(SetDigest)', 'SetDigest', 'q_merge_counts(list($1)$F($1 IS NOT NULL)$E)', { note }),
  aggregate('merge(tdigest)', 'tdigest', 'list_sort(flatten(list($1)$F($1 IS NOT NULL)$E))', { note }),
  aggregate('merge(qdigest(V))', 'qdigest(V)', 'list_sort(flatten(list($1)$F($1 IS NOT NULL)$E))', { note }),
  scalar(
    'intersection_cardinality(SetDigest, SetDigest)',
    'bigint',
    'CAST(len(list_intersect(map_keys($1), map_keys($2))) AS BIGINT)',
    PARTIAL,
    { note },
  ),
  scalar(
    'jaccard_index(SetDigest, SetDigest)',
    'double',
    'CAST(len(list_intersect(map_keys($1), map_keys($2))) AS DOUBLE) / len(list_distinct(list_concat(map_keys($1), map_keys($2))))',
    PARTIAL,
    { note },
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
