import { keptField, macro, type Macro } from './macro.ts'

const integerTypes = [
  { name: 'tinyint', bits: 8 },
  { name: 'smallint', bits: 16 },
  { name: 'integer', bits: 32 },
  { name: 'bigint', bits: 64 },
] as const

/** Rounding, negation and shifts of one integer type. HUGEINT holds the values that do not fit between two steps. */
function integerMacros({ name, bits }: (typeof integerTypes)[number]): readonly Macro[] {
  const type = name.toUpperCase()
  const sign = 2n ** BigInt(bits - 1)
  const huge = (value: bigint): string => `CAST(${value} AS HUGEINT)`
  const unsigned = `(CAST(a AS HUGEINT) & ${huge(2n * sign - 1n)})`
  const shifted = `(${unsigned} << CAST(n AS HUGEINT))`
  const rounded = 'round(CAST(a AS HUGEINT), n)'
  // The cast itself refuses a bigint that is out of range.
  const checked =
    bits === 64
      ? ''
      : `WHEN abs(${rounded}) > ${sign - 1n} THEN u_raise('NUMERIC_VALUE_OUT_OF_RANGE: Out of range for ${name}: ' || ${rounded})`
  return [
    macro(
      `q_iround_${name}(a, n)`,
      `
        CAST(CASE
          WHEN n >= 0 THEN a
          WHEN n < -18 THEN u_raise('NUMERIC_VALUE_OUT_OF_RANGE: numerical overflow: ' || a)
          ${checked}
          ELSE ${rounded}
        END AS ${type})
      `,
    ),
    macro(
      `q_neg_${name}(a)`,
      `
        CASE
          WHEN a = CAST(${-sign} AS ${type}) THEN
              u_raise('NUMERIC_VALUE_OUT_OF_RANGE: ${name} negation overflow: ${-sign}')
          ELSE -a
        END
      `,
    ),
    macro(
      `q_shl_${name}(a, n)`,
      `
        CASE
          WHEN n >= ${bits} THEN a - a
          ELSE CAST(CAST(${shifted} & ${huge(2n * sign - 1n)} AS HUGEINT) - CASE
            WHEN (${shifted} & ${huge(sign)}) <> 0 THEN ${huge(2n * sign)}
            ELSE 0
          END AS ${type})
        END
      `,
    ),
    macro(
      `q_shr_${name}(a, n)`,
      `
        CASE
          WHEN n >= ${bits} THEN a - a
          WHEN n = 0 THEN a
          ELSE CAST(${unsigned} >> CAST(n AS HUGEINT) AS ${type})
        END
      `,
    ),
    macro(
      `q_sar_${name}(a, n)`,
      `
        CASE
          WHEN n >= ${bits - 1} THEN CASE WHEN a < 0 THEN CAST(-1 AS ${type}) ELSE CAST(a*0 AS ${type}) END
          ELSE a >> CAST(n AS ${type})
        END
      `,
    ),
  ]
}

/** Java's logarithm: NaN below zero, minus infinity at zero. */
function logarithm(name: 'ln' | 'log10' | 'log2'): Macro {
  return macro(
    `q_${name}(a)`,
    `CASE WHEN a < 0 THEN CAST('NaN' AS DOUBLE) WHEN a = 0 THEN CAST('-Infinity' AS DOUBLE) ELSE ${name}(a) END`,
  )
}

/** The greater or lesser of two floating-point numbers, as Trino compares them; NaN only where both are. */
function extremum(name: 'greatest' | 'least', comparison: '>=' | '<='): Macro {
  return macro(
    `q_f${name}(a, b)`,
    `CASE WHEN a IS NULL OR b IS NULL THEN NULL WHEN isnan(a) THEN b WHEN isnan(b) OR a ${comparison} b THEN a ELSE b END`,
  )
}

/** Arithmetic with Trino's overflow, division and rounding rules. */
export const numericMacros: readonly Macro[] = [
  // DuckDB evaluates constants while it plans, and a call of JavaScript then takes a millisecond: so this depends on
  // the row.
  macro('q_by_zero(a, b)', `u_raise('DIVISION_BY_ZERO: Division by zero' || repeat('', CAST(a = b AS BIGINT)))`),
  macro('q_idiv(a, b)', `CASE WHEN b = 0 AND a IS NOT NULL THEN q_by_zero(a, b) ELSE a // b END`),
  macro(
    'q_imod(a, b)',
    `
      CASE
        WHEN b = 0 AND a IS NOT NULL THEN q_by_zero(a, b)
        WHEN b = -1 THEN a - a
        ELSE a % b
      END
    `,
  ),
  macro(
    'q_imodf(a, b)',
    `
      CASE
        WHEN b = 0 AND a IS NOT NULL THEN u_fail('GENERIC_INTERNAL_ERROR: / by zero')
        WHEN b = -1 THEN a - a
        ELSE a % b
      END
    `,
  ),
  // Java uses the low six bits of a negative distance.
  macro('q_shift(n)', 'CASE WHEN n < 0 THEN n & 63 ELSE n END'),
  ...integerTypes.flatMap(integerMacros),
  // The low 64 bits of a whole number.
  macro(
    'q_wrapped(n)',
    `
      CASE
        WHEN n BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST(n AS BIGINT)
        ELSE list_transform([((n % 18446744073709551616) + 18446744073709551616) % 18446744073709551616], lambda qw1:
            CAST(CASE WHEN qw1 > 9223372036854775807 THEN qw1 - 18446744073709551616 ELSE qw1 END AS BIGINT))[1]
      END
    `,
  ),
  // The product of two longs in Java.
  macro('q_java_product(a, b)', 'q_wrapped(CAST(a AS HUGEINT) * b)'),
  macro('q_unscaled(a, s)', `CAST(replace(CAST(a AS VARCHAR), '.', '') AS HUGEINT)`),
  macro('q_p10(k)', `CAST('1' || repeat('0', k) AS HUGEINT)`),
  // a * p / b for a remainder a < b <= 10^38 and p = 10^k, one bit of p at a time: doubled and added values fit into
  // 128 bits.
  macro(
    'q_dbits(p, k, x, zero)',
    `list_transform(range(4 * k, -1, -1), lambda qi: CASE WHEN (CAST(p AS HUGEINT) >> qi) % 2 = 1 THEN x ELSE zero END)`,
  ),
  macro(
    'q_dlong(a, b, k, p)',
    `
      list_transform([{'q': a // b, 'r': CAST(a % b AS UHUGEINT), 'b': CAST(b AS UHUGEINT)}], lambda qz:
          list_transform([list_reduce(q_dbits(p, k, {'q': qz.q, 'r': qz.r}, {'q': CAST(0 AS HUGEINT), 'r': CAST(0 AS
          UHUGEINT)}), lambda qs, qd: {'q': qs.q * 2 + qd.q + CAST((qs.r * 2 + qd.r) // qz.b AS HUGEINT), 'r': (qs.r * 2 +
          qd.r) % qz.b})], lambda qe: qe.q + CAST(qe.r >= qz.b - qe.r AS HUGEINT))[1])[1]
    `,
  ),
  macro(
    'q_hdiv(n, b)',
    `
      CASE
        WHEN n BETWEEN -9000000000000000000 AND 9000000000000000000 AND b BETWEEN -9000000000000000000 AND
            9000000000000000000 THEN CAST(CAST(n AS BIGINT) // CAST(b AS BIGINT) AS HUGEINT)
        ELSE n // b
      END
    `,
  ),
  // Quotients of unscaled decimals times p = 10^k, rounded.
  macro(
    'q_ddiv(a, b, p)',
    `
      CASE
        WHEN b = 0 AND a IS NOT NULL THEN q_by_zero(a, b)
        ELSE q_hdiv(a * p + sign(a) * (abs(b) >> 1), b)
      END
    `,
  ),
  // The struct holds the sum, so that its expression is planned and calculated only once. NULL without values.
  macro(
    'q_davg(s, n)',
    `
      list_transform([{'s': ${keptField('s')}, 'n': ${keptField('n')}}], lambda qv: q_hdiv(qv.s + sign(qv.s) * (qv.n >> 1), qv.n))[1]
    `,
  ),
  macro(
    'q_ddiv64(a, b, p)',
    `
      CASE
        WHEN b = 0 AND a IS NOT NULL THEN q_by_zero(a, b)
        ELSE (a * p + sign(a) * (abs(b) // 2)) // b
      END
    `,
  ),
  // A number less than l = 10^(38 - k) can be multiplied by p.
  macro(
    'q_ddivw(x, y, k, p, l)',
    `
      list_transform([{'a': abs(x), 'b': abs(y), 's': sign(x) * sign(y)}], lambda qw: qw.s * CASE
        WHEN qw.b = 0 AND qw.a IS NOT NULL THEN q_by_zero(qw.a, qw.b)
        WHEN qw.a < l THEN q_hdiv(qw.a * p + (qw.b >> 1), qw.b)
        WHEN qw.b < l THEN qw.a // qw.b * p + (qw.a % qw.b * p + (qw.b >> 1)) // qw.b
        ELSE q_dlong(qw.a, qw.b, k, p)
      END)[1]
    `,
  ),
  // Sums of 38 digits in two halves, in units of 10^19: intermediate sums may have more digits than a HUGEINT.
  macro(
    'q_halves(h, l)',
    `
      list_transform([{'h': h + l // 10000000000000000000, 'l': l % 10000000000000000000}], lambda qs1: CASE
        WHEN qs1.h > 0 AND qs1.l < 0 THEN {'h': qs1.h - 1, 'l': qs1.l + 10000000000000000000}
        WHEN qs1.h < 0 AND qs1.l > 0 THEN {'h': qs1.h + 1, 'l': qs1.l - 10000000000000000000}
        ELSE qs1
      END)[1]
    `,
  ),
  macro(
    'q_sum38(h, l)',
    `
      list_transform([q_halves(h, l)], lambda qs2: CASE
        WHEN abs(qs2.h) >= 10000000000000000000 THEN u_raise('NUMERIC_VALUE_OUT_OF_RANGE: Decimal overflow')
        ELSE qs2.h * 10000000000000000000 + qs2.l
      END)[1]
    `,
  ),
  macro(
    'q_avg38(h, l, n)',
    `
      list_transform([q_halves(h, l)], lambda qs3: (CASE WHEN qs3.h < 0 OR qs3.l < 0 THEN -1 ELSE 1 END) * (abs(qs3.h) //
          n * 10000000000000000000 + (abs(qs3.h) % n * 10000000000000000000 + abs(qs3.l) + n // 2) // n))[1]
    `,
  ),
  macro('q_dmod(a, b)', `CASE WHEN b = 0 AND a IS NOT NULL THEN q_by_zero(a, b) ELSE a % b END`),
  macro(
    'q_dlongm(a, b, k)',
    `
      CAST(list_reduce(q_dbits(q_p10(k), k, CAST(a % b AS UHUGEINT), CAST(0 AS UHUGEINT)), lambda qs, qd: (qs * 2 + qd) %
          CAST(b AS UHUGEINT)) AS HUGEINT)
    `,
  ),
  macro(
    'q_dmodw(a, b, k1, k2)',
    `
      CASE
        WHEN b = 0 AND a IS NOT NULL THEN q_by_zero(a, b)
        WHEN k2 > 0 AND abs(b) >= q_p10(38 - k2) THEN a
        WHEN k2 > 0 THEN a % (b * q_p10(k2))
        WHEN abs(a) < q_p10(38 - k1) THEN (a * q_p10(k1)) % b
        WHEN a < 0 THEN -q_dlongm(-a, abs(b), k1)
        ELSE q_dlongm(a, abs(b), k1)
      END
    `,
  ),
  macro('q_feq(a, b)', `CASE WHEN isnan(a) AND b IS NOT NULL THEN false ELSE a = b END`),
  macro('q_flt(a, b)', `CASE WHEN isnan(b) AND a IS NOT NULL THEN false ELSE a < b END`),
  macro(
    'q_fle(a, b)',
    `CASE WHEN (isnan(b) OR isnan(a)) AND b IS NOT NULL AND a IS NOT NULL THEN false ELSE a <= b END`,
  ),
  extremum('greatest', '>='),
  extremum('least', '<='),
  macro(
    'q_fround(x, n)',
    `
      CASE
        WHEN n IS NULL THEN NULL
        WHEN x = 0 AND n > -324 THEN abs(x)
        WHEN NOT isfinite(x) THEN x + 0 * n
        ELSE CASE
          WHEN isfinite(abs(x) * pow(10, n)) THEN CASE
            WHEN x < 0 THEN -(floor(-x * pow(10, n) + 0.5) / pow(10, n))
            ELSE floor(x * pow(10, n) + 0.5) / pow(10, n)
          END
          ELSE x
        END
      END
    `,
  ),
  macro('q_fsign(a)', `CASE WHEN isnan(a) OR a = 0 THEN a ELSE sign(a) END`),
  logarithm('ln'),
  logarithm('log10'),
  logarithm('log2'),
  macro(
    'q_pow(a, b)',
    `CASE WHEN abs(a) = 1 AND isinf(b) THEN CAST('NaN' AS DOUBLE) WHEN isnan(b) AND a IS NOT NULL THEN b ELSE pow(a, b) END`,
  ),
  macro(
    'q_width_bucket(x, lo, hi, n)',
    `
      CASE
        WHEN x IS NULL OR lo IS NULL OR hi IS NULL OR n IS NULL THEN NULL
        WHEN n <= 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: bucketCount must be greater than 0')
        WHEN isnan(x) THEN u_raise('INVALID_FUNCTION_ARGUMENT: operand must not be NaN')
        WHEN isnan(lo) OR isinf(lo) THEN u_raise('INVALID_FUNCTION_ARGUMENT: first bound must be finite')
        WHEN isnan(hi) OR isinf(hi) THEN u_raise('INVALID_FUNCTION_ARGUMENT: second bound must be finite')
        WHEN lo = hi THEN u_raise('INVALID_FUNCTION_ARGUMENT: bounds cannot equal each other')
        WHEN lo < hi AND x < lo THEN CAST(0 AS BIGINT)
        WHEN lo > hi AND x < hi THEN n + 1
        WHEN lo > hi AND x >= lo THEN CAST(0 AS BIGINT)
        WHEN x >= hi AND lo < hi THEN n + 1
        WHEN x = hi THEN n
        WHEN lo < hi THEN CAST(floor(n * (x - lo) / (hi - lo)) AS BIGINT) + 1
        ELSE CAST(floor(n * (lo - x) / (lo - hi)) AS BIGINT) + 1
      END
    `,
  ),
  macro(
    'q_width_bucket_a(x, a)',
    `
      CASE
        WHEN x IS NULL OR a IS NULL THEN NULL
        WHEN len(a) = 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: Bins cannot be an empty array')
        WHEN isnan(x) THEN u_raise('INVALID_FUNCTION_ARGUMENT: Operand cannot be NaN')
        WHEN len(list_filter(a, lambda q1: NOT isfinite(q1))) > 0 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Bin value must be finite, got ' || CASE
          WHEN isnan(list_filter(a, lambda q1: NOT isfinite(q1))[1]) THEN 'NaN'
          WHEN list_filter(a, lambda q1: NOT isfinite(q1))[1] > 0 THEN 'Infinity'
          ELSE '-Infinity'
        END)
        WHEN list_sort(a) <> a THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Bin values are not sorted in ascending order')
        ELSE CAST(len(list_filter(a, lambda q1: q1 <= x)) AS BIGINT)
      END
    `,
  ),
  macro(
    'q_f32(x)',
    `
      CASE
        WHEN abs(x) > 3.4028235677973366e38 AND isfinite(x) THEN CASE WHEN x > 0 THEN CAST('Infinity' AS FLOAT) ELSE
            CAST('-Infinity' AS FLOAT) END
        ELSE CAST(x AS FLOAT)
      END
    `,
  ),
  macro(
    'q_bitcount(v, b)',
    `
      CASE
        WHEN v IS NULL OR b IS NULL THEN NULL
        WHEN b = 64 THEN CAST(bit_count(v) AS BIGINT)
        WHEN b <= 1 OR b > 64 THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Bits specified in bit_count must be between 2 and 64, got ' || b)
        WHEN v > (CAST(1 AS HUGEINT) << CAST(b - 1 AS HUGEINT)) - 1 OR v < -(CAST(1 AS HUGEINT) << CAST(b - 1 AS
            HUGEINT)) THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: Number must be representable with the bits specified. ' || v ||
            ' cannot be represented with ' || b || ' bits')
        ELSE CAST(bit_count(CAST(CAST(v AS HUGEINT) & ((CAST(1 AS HUGEINT) << CAST(b AS HUGEINT)) - 1) AS HUGEINT))
            AS BIGINT)
      END
    `,
  ),
  macro(
    'q_wilson(s, n, z, d)',
    `
      CASE
        WHEN s < 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: number of successes must not be negative')
        WHEN n <= 0 THEN u_raise('INVALID_FUNCTION_ARGUMENT: number of trials must be positive')
        WHEN s > n THEN
            u_raise('INVALID_FUNCTION_ARGUMENT: number of successes must not be larger than number of trials')
        WHEN z < 0 OR isnan(z) THEN u_raise('INVALID_FUNCTION_ARGUMENT: z-score must not be negative')
        ELSE (CAST(s AS DOUBLE) / n + z * z / (2 * CAST(n AS DOUBLE)) + d * z * sqrt(CAST(s AS DOUBLE) / n * (1 - CAST(s AS DOUBLE)
            / n) / n + z * z / (4 * CAST(n AS DOUBLE) * n))) / (1 + z * z / n)
      END
    `,
  ),
]
