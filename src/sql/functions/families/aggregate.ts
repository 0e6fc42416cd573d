import { EngineError } from '../../../shared/engine-error.ts'
import { code, integer, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { decimalType, duckdbType, structOf } from '../../types/duckdb-representation.ts'
import { decimal, type DecimalType, type MapType, type SqlType } from '../../types/sql-type.ts'
import { typeName } from '../../types/type-text.ts'
import { scaled, unscaled } from '../decimal-operators.ts'
import { bindName } from '../fill-template.ts'
import { aggregate, named, type FunctionDefinition } from '../function-definition.ts'
import { counted, entriesOf, firstOfEachKey, isGroupedByKey, valuesOfEachKey } from '../map-keys.ts'
import type { RenderContext } from '../rendering.ts'
import { checksum } from './aggregate-checksum.ts'
import { extreme, extremes, extremesBy, extremeBy } from './aggregate-extremes.ts'
import { argumentKey, groupParameter } from './aggregate-arguments.ts'

function sumOfDecimals(context: RenderContext): Sql {
  const { precision, scale } = context.types[0] as DecimalType
  const sum = context.fill`sum($D$1)$F`
  const type = decimalType(38, scale)
  if (precision < 38) return sql`CAST(${sum} AS ${type})`
  if (inHalves(context)) {
    const { high, low } = halves(context)
    return scaled(sql`q_sum38(${high}, ${low})`, decimal(38, scale))
  }
  // DuckDB does not check the range of sums with 38 digits.
  const nines = '9'.repeat(38 - scale) + (scale > 0 ? `.${'9'.repeat(scale)}` : '')
  const bound = (sign: '-' | ''): Sql => sql`CAST(${literal(sign + nines)} AS ${type})`
  return sql`CASE WHEN ${sum} NOT BETWEEN ${bound('-')} AND ${bound('')} THEN u_raise('NUMERIC_VALUE_OUT_OF_RANGE: Decimal overflow') ELSE ${sum} END`
}

/**
 * Whether a sum is computed in halves, because intermediate sums may exceed a HUGEINT. With fractions, halves are too
 * slow; they are used only if the scale is so large that two values overflow.
 */
function inHalves({ types, clauses }: RenderContext): boolean {
  const { precision, scale } = types[0] as DecimalType
  return precision === 38 && (scale === 0 || scale > 30) && clauses?.distinct !== true
}

/** Divides 38 digits into an upper and a lower half. */
const HALF = sql`CAST(10000000000000000000 AS HUGEINT)`

/** The sums of the upper and of the lower 19 digits. */
function halves(context: RenderContext): { readonly high: Sql; readonly low: Sql } {
  const digits38 = unscaled(context.value(0), context.types[0] as DecimalType)
  return {
    high: context.fill`sum(${digits38} // ${HALF})$F`,
    low: context.fill`sum(${digits38} % ${HALF})$F`,
  }
}

function averageOfDecimals(context: RenderContext): Sql {
  const type = context.types[0] as DecimalType
  const sum = unscaled(context.fill`sum($D$1)$F`, decimal(38, type.scale))
  const count = context.fill`count($D$1)$F`
  if (inHalves(context)) {
    const { high, low } = halves(context)
    return scaled(sql`CASE WHEN ${count} > 0 THEN q_avg38(${high}, ${low}, CAST(${count} AS HUGEINT)) END`, type)
  }
  return scaled(sql`q_davg(${sum}, CAST(${count} AS HUGEINT))`, type)
}

/** Sample statistics need two values. Any infinity or NaN makes the result NaN; DuckDB would fail. */
function spread(name: string, duckdb: string, sample: boolean): FunctionDefinition[] {
  const enough = sample ? ' AND count($D$1)$F > 1' : ''
  return [
    aggregate(
      `${name}(double)`,
      'double',
      `CASE WHEN bool_or(NOT isfinite($1))$F${enough} THEN CAST('NaN' AS DOUBLE) ELSE ${duckdb}($D$1)$F(isfinite($1))$E END`,
      { duplicates: 'engine' },
    ),
    aggregate(`${name}(bigint)`, 'double', `${duckdb}($D$1)$F`, { duplicates: 'engine' }),
  ]
}

function ofDoublesAndReals(name: string, rendering: string): FunctionDefinition[] {
  return [
    aggregate(`${name}(double, double)`, 'double', rendering),
    aggregate(`${name}(real, real)`, 'real', `q_f32(${rendering})`),
  ]
}

/** NULL instead of NaN. Pairs with an infinity or NaN also give NULL; DuckDB would fail. */
function ofFinitePairs(name: string): string {
  const undefinedPair = 'isnan($1 * 0 + $2 * 0)'
  const call = `${name}($1, $2)$F(NOT ${undefinedPair})$E`
  return `CASE WHEN coalesce(bool_or(${undefinedPair})$F, false) OR isnan(${call}) THEN NULL ELSE ${call} END`
}

/** An aggregate of at least `least` values; NaN if an infinity or NaN is among them, where DuckDB would fail. */
function ofFinite(type: string, least: number, calculated: (filter: string) => string): string {
  const nan = `WHEN bool_or(NOT isfinite($1))$F THEN CAST('NaN' AS DOUBLE)`
  return type === 'bigint'
    ? `CASE WHEN count($1)$F >= ${least} THEN ${calculated('$F')} END`
    : `CASE WHEN count($1)$F < ${least} THEN NULL ${nan} ELSE ${calculated('$F(isfinite($1))$E')} END`
}

/**
 * Checks that Trino's Java can hold the state as a long, a double, a boolean or a slice. @throws EngineError
 * NOT_SUPPORTED
 */
function verifyReducible(state: SqlType): void {
  const precision = 'precision' in state ? (state.precision ?? 0) : 0
  const most: Partial<Record<SqlType['kind'], number>> = {
    decimal: 18,
    timestamp: 6,
    'timestamp with time zone': 3,
    'time with time zone': 9,
    array: -1,
    map: -1,
    row: -1,
  }
  if (precision <= (most[state.kind] ?? precision)) return
  throw new EngineError('NOT_SUPPORTED', `State type not supported for reduce_agg: ${typeName(state)}`)
}

function reduceAgg(context: RenderContext): Sql {
  const { names } = context
  verifyReducible(context.types[1]!)
  const [state, next] = [names.fresh(), names.fresh()]
  const [elementType, stateType] = [duckdbType(context.types[0]!), duckdbType(context.types[1]!)]
  const items = context.fill`list(${structOf({ s: context.fill`CAST(NULL AS ${stateType})`, x: context.fill`CAST($1 AS ${elementType})` })})$F($1 IS NOT NULL)$E`
  const body = context.lambda(2).apply(sql`${state}.s`, sql`${next}.x`)
  const start = structOf({
    s: sql`CAST(${groupParameter(context, 1)} AS ${stateType})`,
    x: sql`CAST(NULL AS ${elementType})`,
  })
  return sql`(list_reduce(${items}, lambda ${state}, ${next}: ${structOf({ s: sql`CAST(${body} AS ${stateType})`, x: sql`${next}.x` })}, ${start})).s`
}

/** The number of values of a group that approx_percentile keeps: exact up to this number, a sample beyond. */
const SAMPLE = 10_000

/**
 * The value at a share of the sorted values; for few values it equals the result of Trino's digests. Beyond the sample
 * size, the values with the lowest random keys stay. This equals one random draw from all values, whichever thread saw
 * which. The share of the values below the result is off by √(p(1-p)/SAMPLE) at one standard deviation, half a percent
 * at most. With weights it is priority sampling (Duffield, Lund, Thorup, 2007): the keys are weight over random, and a
 * weight below the highest key left out counts as that key.
 */
function percentile(value: 'bigint' | 'double' | 'real'): FunctionDefinition[] {
  const size = integer(SAMPLE)
  const sample = (context: RenderContext): Sql => context.fill`arg_min($1, q_drawn(), ${size})$F($1 IS NOT NULL)$E`
  const weighted = (context: RenderContext): Sql =>
    context.fill`q_weighed_sample(max(q_weighed($1, CAST($2 AS DOUBLE)), ${integer(SAMPLE + 1)})$F($1 IS NOT NULL AND $2 > 0)$E, ${size})`
  const note = `exact for up to ${SAMPLE.toLocaleString('en')} values of a group; of more, at the rank of a random sample of so many`
  // Invalid values are detected over the group, with FILTER applied: an expression per row would also run on rows that
  // FILTER excludes.
  const of = (macro: Sql, values: (context: RenderContext) => Sql, share: number) => (context: RenderContext) => {
    const found = context.fill`${macro}(${values(context)}, ${groupParameter(context, share)})`
    const weighed =
      share === 1
        ? found
        : context.fill`q_percentile_of_weights(any_value($2)$F($1 IS NOT NULL AND NOT (isfinite($2) AND $2 >= 1))$E, ${found})`
    return value === 'bigint'
      ? weighed
      : context.fill`q_percentile_of_values(any_value($1)$F(NOT isfinite($1)${share === 1 ? code('') : context.fill` AND $2 IS NOT NULL`})$E, ${weighed})`
  }
  const [one, several] = [code('q_sample_pick'), code('q_sample_picks')]
  const [oneWeighed, severalWeighed] = [code('q_weighed_pick'), code('q_weighed_picks')]
  return [
    aggregate(`approx_percentile(${value}, double)`, value, of(one, sample, 1), { note }),
    aggregate(`approx_percentile(${value}, double, double)`, value, of(oneWeighed, weighted, 2), { note }),
    aggregate(`approx_percentile(${value}, double, double, double)`, value, of(oneWeighed, weighted, 2), { note }),
    aggregate(`approx_percentile(${value}, array(double))`, `array(${value})`, of(several, sample, 1), { note }),
    aggregate(
      `approx_percentile(${value}, double, array(double))`,
      `array(${value})`,
      of(severalWeighed, weighted, 2),
      { note },
    ),
  ]
}

function keysAndValues(context: RenderContext): Sql {
  return context.fill`list(${structOf({ k: context.fill`$1`, v: context.fill`$2` })}$O)$F($1 IS NOT NULL)$E`
}

const approximate = { note: 'exact, where Trino approximates' } as const

/**
 * The minimum number of places per level of `q_distinct_code`, as powers of two: for a standard error of 0.7 % and of
 * 0.3 %.
 */
const COARSEST = 13
const FINEST = 16

const countNote = {
  duplicates: 'harmless',
  note: "another approximation than Trino's, within its standard error: 0.2 % up to a million values, 0.7 % beyond; in windows exact",
} as const

/**
 * Beyond five million values, the standard error is 0.65 divided by the root of the places of the levels that count.
 */
function bitsFor(error: number): number {
  return Math.min(FINEST, Math.max(COARSEST, Math.ceil(2 * Math.log2(0.8 / error))))
}

/**
 * The number of distinct values. Their hashes become at most half a million codes, whatever their number, from which
 * the count is estimated (distinct-estimate.ts). In windows, each frame would carry its codes; the values themselves
 * are counted there.
 */
function distinctCount(context: RenderContext, leastBits: number): Sql {
  if (context.clauses?.over !== undefined) return context.fill`count(DISTINCT ${argumentKey(context, 0)})$F`
  const bits = integer(leastBits)
  const code = sql`q_distinct_code(hash(${argumentKey(context, 0)}), ${bits})`
  return context.fill`q_distinct_count(list(DISTINCT ${code})$F($1 IS NOT NULL)$E, ${bits})`
}

export const aggregateFunctions: readonly FunctionDefinition[] = [
  aggregate('count()', 'bigint', 'count(*)$F', { calledOnNull: true }),
  // With DISTINCT, a value that needs a comparison key is replaced by the key.
  aggregate('count(T)', 'bigint', 'count($D$1)$F', { duplicates: 'key' }),
  aggregate('count_if(boolean)', 'bigint', 'count(*)$F($1)$E'),
  // In windows, Trino does not check for overflow.
  aggregate(
    'sum(bigint)',
    'bigint',
    (context) =>
      context.clauses?.over === undefined
        ? context.fill`CAST(sum($D$1)$F AS BIGINT)`
        : context.fill`q_wrapped(sum($D$1)$F)`,
    { duplicates: 'engine' },
  ),
  aggregate('sum(double)', 'double', 'sum($D$1)$F', { duplicates: 'engine' }),
  aggregate('sum(real)', 'real', 'q_f32(sum($DCAST($1 AS DOUBLE))$F)', { duplicates: 'engine' }),
  aggregate('sum(decimal(p,s))', ({ numbers }) => decimal(38, numbers['s'] ?? 0), sumOfDecimals, {
    duplicates: 'engine',
  }),
  aggregate('sum(interval day to second)', 'interval day to second', 'CAST(sum($D$1)$F AS BIGINT)', {
    duplicates: 'engine',
  }),
  aggregate('sum(interval year to month)', 'interval year to month', 'CAST(sum($D$1)$F AS INTEGER)', {
    duplicates: 'engine',
  }),
  aggregate('avg(bigint)', 'double', 'avg($DCAST($1 AS DOUBLE))$F', { duplicates: 'engine' }),
  aggregate('avg(double)', 'double', 'avg($D$1)$F', { duplicates: 'engine' }),
  aggregate('avg(real)', 'real', 'q_f32(avg($DCAST($1 AS DOUBLE))$F)', { duplicates: 'engine' }),
  aggregate('avg(decimal(p,s))', 'decimal(p,s)', averageOfDecimals, { duplicates: 'engine' }),
  aggregate('avg(interval day to second)', 'interval day to second', 'CAST(floor(avg($D$1)$F + 0.5) AS BIGINT)', {
    duplicates: 'engine',
  }),
  aggregate('avg(interval year to month)', 'interval year to month', 'CAST(floor(avg($D$1)$F + 0.5) AS INTEGER)', {
    duplicates: 'engine',
  }),
  aggregate('min(T) where T orderable', 'T', (context) => extreme(context, 'min'), { duplicates: 'harmless' }),
  aggregate('max(T) where T orderable', 'T', (context) => extreme(context, 'max'), { duplicates: 'harmless' }),
  aggregate('min(E, bigint) where E orderable', 'array(E)', (context) => extremes(context, 'min')),
  aggregate('max(E, bigint) where E orderable', 'array(E)', (context) => extremes(context, 'max')),
  aggregate('min_by(V, K) where K orderable', 'V', (context) => extremeBy(context, 'min'), { duplicates: 'harmless' }),
  aggregate('max_by(V, K) where K orderable', 'V', (context) => extremeBy(context, 'max'), { duplicates: 'harmless' }),
  aggregate('min_by(V, K, bigint) where K orderable', 'array(V)', (context) => extremesBy(context, 'min')),
  aggregate('max_by(V, K, bigint) where K orderable', 'array(V)', (context) => extremesBy(context, 'max')),
  ...named(['any_value', 'arbitrary'], (name) =>
    aggregate(`${name}(T)`, 'T', 'any_value($1)$F', { duplicates: 'harmless' }),
  ),
  aggregate('array_agg(T)', 'array(T)', 'list($D$1$O)$F', {
    calledOnNull: true,
    orderSensitive: true,
    duplicates: 'engine',
  }),
  ...named(['bool_and', 'every'], (name) =>
    aggregate(`${name}(boolean)`, 'boolean', 'bool_and($1)$F', { duplicates: 'harmless' }),
  ),
  aggregate('bool_or(boolean)', 'boolean', 'bool_or($1)$F', { duplicates: 'harmless' }),
  aggregate('bitwise_and_agg(bigint)', 'bigint', 'bit_and($1)$F', { duplicates: 'harmless' }),
  aggregate('bitwise_or_agg(bigint)', 'bigint', 'bit_or($1)$F', { duplicates: 'harmless' }),
  aggregate('bitwise_xor_agg(bigint)', 'bigint', 'bit_xor($D$1)$F', { duplicates: 'engine' }),
  ...spread('stddev', 'stddev_samp', true),
  ...spread('stddev_samp', 'stddev_samp', true),
  ...spread('stddev_pop', 'stddev_pop', false),
  ...spread('variance', 'var_samp', true),
  ...spread('var_samp', 'var_samp', true),
  ...spread('var_pop', 'var_pop', false),
  ...named(['double', 'bigint'], (type) =>
    aggregate(
      `skewness(${type})`,
      'double',
      ofFinite(
        type,
        3,
        (filter) => `(count($1)$F - 2) / sqrt(CAST(count($1)$F AS DOUBLE) * (count($1)$F - 1)) * skewness($1)${filter}`,
      ),
    ),
  ),
  ...named(['double', 'bigint'], (type) =>
    aggregate(
      `kurtosis(${type})`,
      'double',
      ofFinite(type, 4, (filter) => `coalesce(kurtosis($1)${filter}, CAST('NaN' AS DOUBLE))`),
    ),
  ),
  ...named(['double', 'bigint'], (type) =>
    aggregate(`geometric_mean(${type})`, 'double', 'exp(avg(q_ln(CAST($1 AS DOUBLE)))$F)'),
  ),
  aggregate('geometric_mean(real)', 'real', 'q_f32(exp(avg(q_ln(CAST($1 AS DOUBLE)))$F))'),
  ...ofDoublesAndReals('corr', ofFinitePairs('corr')),
  ...ofDoublesAndReals('covar_pop', 'covar_pop($1, $2)$F'),
  ...ofDoublesAndReals('covar_samp', 'covar_samp($1, $2)$F'),
  ...ofDoublesAndReals('regr_slope', ofFinitePairs('regr_slope')),
  ...ofDoublesAndReals('regr_intercept', ofFinitePairs('regr_intercept')),
  aggregate('histogram(T) where T comparable', 'map(T,bigint)', (context) =>
    isGroupedByKey(context.types[0]!)
      ? counted(context.types[0]!, context.fill`list($1)$F($1 IS NOT NULL)$E`, context)
      : context.fill`CAST(histogram($1)$F AS $R)`,
  ),
  aggregate(
    'map_agg(K, V) where K comparable',
    'map(K,V)',
    (context) => {
      const order = context.clauses?.orderBy
      if (isGroupedByKey(context.types[0]!)) return firstOfEachKey(context.types[0]!, keysAndValues(context), context)
      const by = order === undefined ? argumentKey(context, 0) : sql`${argumentKey(context, 0)}, ${order}`
      return context.fill`q_map_first(list(${structOf({ k: context.fill`$1`, v: context.fill`$2` })} ORDER BY ${by})$F($1 IS NOT NULL)$E)`
    },
    { calledOnNull: true, orderSensitive: true },
  ),
  aggregate(
    'multimap_agg(K, V) where K comparable',
    'map(K,array(V))',
    (context) =>
      isGroupedByKey(context.types[0]!)
        ? valuesOfEachKey(context.types[0]!, keysAndValues(context), context)
        : sql`q_multimap(${keysAndValues(context)})`,
    { calledOnNull: true, orderSensitive: true },
  ),
  aggregate('map_union(map(K,V)) where K comparable', 'map(K,V)', (context) => {
    const maps = context.fill`list($1)$F($1 IS NOT NULL)$E`
    const { key } = context.result as MapType
    const map = context.names.fresh()
    const entries = sql`list_transform(${maps}, lambda ${map}: ${entriesOf(map, context)})`
    const union = isGroupedByKey(key)
      ? firstOfEachKey(key, sql`flatten(${entries})`, context)
      : sql`q_map_union(${maps})`
    const name = context.names.fresh()
    return bindName(name, union, sql`CASE WHEN cardinality(${name}) > 0 THEN ${name} END`)
  }),
  aggregate(
    'listagg(varchar, varchar, boolean, varchar, boolean)',
    'varchar',
    (context) => context.fill`q_listagg(string_agg($D$1, $2$O)$F, ${groupParameter(context, 2)})`,
    { orderSensitive: true, duplicates: 'engine' },
  ),
  aggregate('reduce_agg(T, S, function(S,T,S), function(S,S,S))', 'S', reduceAgg),
  aggregate(
    'approx_distinct(T) where T comparable',
    'bigint',
    (context) => distinctCount(context, COARSEST),
    countNote,
  ),
  aggregate(
    'approx_distinct(T, double) where T comparable',
    'bigint',
    (context) => {
      const error = groupParameter(context, 1)
      const finest = context.constant(1)
      const leastBits = typeof finest === 'number' ? bitsFor(finest) : FINEST
      return context.fill`CASE WHEN ${error} NOT BETWEEN 0.0040625 AND 0.26 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Max standard error must be in [0.0040625, 0.26]: ' || ${error}) ELSE ${distinctCount(context, leastBits)} END`
    },
    countNote,
  ),
  ...percentile('bigint'),
  ...percentile('double'),
  ...percentile('real'),
  ...named(['bigint', 'varchar'], (type) =>
    aggregate(
      `approx_most_frequent(bigint, ${type}, bigint)`,
      `map(${type},bigint)`,
      (context) => context.fill`CAST(q_most_frequent(histogram($2)$F, ${groupParameter(context, 0)}) AS $R)`,
      approximate,
    ),
  ),
  ...named(['double', 'real'], (type) =>
    aggregate(
      `numeric_histogram(bigint, ${type})`,
      `map(${type},${type})`,
      (context) =>
        context.fill`CAST(q_pairs_map(u_numeric_histogram(${groupParameter(context, 0)}, list(CAST($2 AS DOUBLE))$F($2 IS NOT NULL)$E)) AS $R)`,
    ),
  ),
  aggregate('checksum(T) where T comparable', 'varbinary', checksum, {
    calledOnNull: true,
    note: 'of arrays, maps, rows, times, long decimals and timestamps finer than microseconds or with time zone: equal inputs give equal values, but not those of Trino',
  }),
]
