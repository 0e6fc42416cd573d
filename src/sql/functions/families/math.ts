import { code, integer, joined, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { decimalType } from '../../types/duckdb-representation.ts'
import { decimal, type DecimalType } from '../../types/sql-type.ts'
import { decimalOperator } from '../decimal-operators.ts'
import { PARTIAL, TOTAL, named, scalar, type Bindings, type FunctionDefinition } from '../function-definition.ts'
import type { RenderContext } from '../rendering.ts'

const integers = ['tinyint', 'smallint', 'integer', 'bigint'] as const
const NAN = `CAST('NaN' AS DOUBLE)`

/** p - s + min(s, 1) digits: rounding may carry into one more digit. */
function rounded({ numbers }: Bindings): DecimalType {
  const [p, s] = [numbers['p'] ?? 1, numbers['s'] ?? 0]
  return decimal(Math.max(1, p - s + Math.min(s, 1)), 0)
}

function widened({ numbers }: Bindings): DecimalType {
  return decimal(Math.min(38, (numbers['p'] ?? 1) + 1), numbers['s'] ?? 0)
}

/**
 * round(x, n) and truncate(x, n) of decimals. DuckDB requires a literal n; a variable n gets a branch for each value
 * that makes a difference.
 */
/** Checks the range: DuckDB accepts one digit more than 38. */
function fitting(type: DecimalType, value: Sql): Sql {
  if (type.precision < 38) return value
  const most = type.scale === 0 ? '9'.repeat(38) : `${'9'.repeat(38 - type.scale)}.${'9'.repeat(type.scale)}`
  const bound = (sign: string): Sql => sql`CAST(${literal(sign + most)} AS ${decimalType(38, type.scale)})`
  return sql`CASE WHEN ${value} NOT BETWEEN ${bound('-')} AND ${bound('')} THEN u_raise('NUMERIC_VALUE_OUT_OF_RANGE: Decimal overflow') ELSE ${value} END`
}

function cutDecimal(name: 'round' | 'trunc'): (context: RenderContext) => Sql {
  return (context) => {
    const type = context.types[0] as DecimalType
    const whole = context.fill`CAST($1 AS $R)`
    const cut = (digits: number): Sql => {
      const text = fitting(type, context.fill`CAST(${code(name)}(${whole}, ${integer(digits)}) AS $R)`)
      // DuckDB returns zero if no digit remains, even for NULL.
      return digits <= type.scale - type.precision ? context.fill`CASE WHEN $1 IS NOT NULL THEN ${text} END` : text
    }
    const constant = context.constant(1)
    if (typeof constant === 'bigint' || typeof constant === 'number') {
      const digits = Number(constant)
      const least = type.scale - type.precision - 1
      return digits >= type.scale ? whole : cut(Math.max(digits, least))
    }
    const branches: Sql[] = []
    for (let digits = type.scale - 1; digits >= type.scale - type.precision - 1; digits--) {
      branches.push(sql`WHEN ${integer(digits)} THEN ${cut(digits)}`)
    }
    const beyond = context.fill`CASE WHEN $2 >= ${integer(type.scale)} THEN ${whole} WHEN $2 IS NOT NULL AND $1 IS NOT NULL THEN CAST(0 AS $R) END`
    return context.fill`CASE $2 ${joined(branches, ' ')} ELSE ${beyond} END`
  }
}

const perInteger = integers.flatMap((type) => [
  scalar(`abs(${type})`, type, 'abs($1)', TOTAL),
  scalar(`sign(${type})`, type, `CAST(sign($1) AS $R)`, PARTIAL),
  scalar(`floor(${type})`, type, '$1', PARTIAL),
  ...named(['ceil', 'ceiling'], (name) => scalar(`${name}(${type})`, type, '$1', PARTIAL)),
  scalar(`round(${type})`, type, '$1', PARTIAL),
  scalar(`round(${type}, integer)`, type, `q_iround_${type}($1, $2)`, PARTIAL),
  scalar(`mod(${type}, ${type})`, type, 'q_imodf($1, $2)', PARTIAL),
  scalar(`bitwise_left_shift(${type}, integer)`, type, `q_shl_${type}($1, q_shift($2))`, PARTIAL),
  scalar(`bitwise_right_shift(${type}, integer)`, type, `q_shr_${type}($1, q_shift($2))`, PARTIAL),
  scalar(`bitwise_right_shift_arithmetic(${type}, integer)`, type, `q_sar_${type}($1, q_shift($2))`, PARTIAL),
  ...named(['rand', 'random'], (name) =>
    scalar(`${name}(${type})`, type, 'CAST(floor(random() * q_random_bound($1)) AS $R)', PARTIAL, {
      deterministic: false,
    }),
  ),
  ...named(['rand', 'random'], (name) =>
    scalar(`${name}(${type}, ${type})`, type, 'CAST($1 + floor(random() * q_random_range($1, $2)) AS $R)', PARTIAL, {
      deterministic: false,
    }),
  ),
])

const perFloating = ['double', 'real'].flatMap((type) => [
  scalar(`abs(${type})`, type, 'abs($1)', TOTAL),
  scalar(`sign(${type})`, type, 'CAST(q_fsign($1) AS $R)', PARTIAL),
  scalar(`floor(${type})`, type, 'floor($1)', PARTIAL),
  ...named(['ceil', 'ceiling'], (name) => scalar(`${name}(${type})`, type, 'ceil($1)', PARTIAL)),
  scalar(`round(${type})`, type, '(round($1) + 0)', PARTIAL),
  scalar(
    `round(${type}, integer)`,
    type,
    type === 'double' ? 'q_fround($1, $2)' : 'CAST(q_fround(CAST($1 AS DOUBLE), $2) AS FLOAT)',
    PARTIAL,
  ),
  scalar(`truncate(${type})`, type, 'trunc($1)', PARTIAL),
  scalar(`mod(${type}, ${type})`, type, '($1 % $2)', PARTIAL),
  scalar(`is_nan(${type})`, 'boolean', 'isnan($1)', TOTAL),
])

const perDecimal = [
  scalar('abs(decimal(p,s))', 'decimal(p,s)', 'abs($1)', TOTAL),
  scalar('sign(decimal(p,s))', 'decimal(1,0)', 'CAST(sign($1) AS DECIMAL(1,0))', PARTIAL),
  scalar('floor(decimal(p,s))', rounded, 'CAST(floor($1) AS $R)', PARTIAL),
  ...named(['ceil', 'ceiling'], (name) => scalar(`${name}(decimal(p,s))`, rounded, 'CAST(ceil($1) AS $R)', PARTIAL)),
  scalar('round(decimal(p,s))', rounded, 'CAST(round($1) AS $R)', PARTIAL),
  scalar('round(decimal(p,s), integer)', widened, cutDecimal('round'), PARTIAL),
  scalar(
    'truncate(decimal(p,s))',
    ({ numbers }) => decimal(Math.max((numbers['p'] ?? 1) - (numbers['s'] ?? 0), 1), 0),
    'CAST(trunc($1) AS $R)',
    PARTIAL,
  ),
  scalar('truncate(decimal(p,s), integer)', 'decimal(p,s)', cutDecimal('trunc'), PARTIAL),
  scalar(
    'mod(decimal(p,s), decimal(u,v))',
    ({ numbers }) =>
      decimalOperator('%', decimal(numbers['p'] ?? 1, numbers['s'] ?? 0), decimal(numbers['u'] ?? 1, numbers['v'] ?? 0))
        .result,
    (context) =>
      decimalOperator('%', context.types[0] as DecimalType, context.types[1] as DecimalType).render(
        context.value(0),
        context.value(1),
        context,
      ),
    PARTIAL,
  ),
]

const outside = (condition: string, call: string): string => `CASE WHEN ${condition} THEN ${NAN} ELSE ${call} END`

export const mathFunctions: readonly FunctionDefinition[] = [
  ...perInteger,
  ...perFloating,
  ...perDecimal,
  ...named(['rand', 'random'], (name) => scalar(`${name}()`, 'double', 'random()', PARTIAL, { deterministic: false })),
  scalar('is_finite(double)', 'boolean', 'isfinite($1)', PARTIAL),
  scalar('is_infinite(double)', 'boolean', 'isinf($1)', PARTIAL),
  scalar('infinity()', 'double', `CAST('Infinity' AS DOUBLE)`, PARTIAL),
  scalar('nan()', 'double', NAN, PARTIAL),
  scalar('pi()', 'double', 'pi()', PARTIAL),
  scalar('e()', 'double', 'exp(CAST(1 AS DOUBLE))', PARTIAL),
  scalar('sqrt(double)', 'double', outside('$1 < 0', 'sqrt($1)'), PARTIAL),
  scalar('cbrt(double)', 'double', 'cbrt($1)', PARTIAL),
  scalar('exp(double)', 'double', 'exp($1)', PARTIAL),
  scalar('ln(double)', 'double', 'q_ln($1)', PARTIAL),
  scalar('log10(double)', 'double', 'q_log10($1)', PARTIAL),
  scalar('log2(double)', 'double', 'q_log2($1)', PARTIAL),
  scalar('log(double, double)', 'double', '(q_ln($2) / q_ln($1))', PARTIAL),
  ...named(['pow', 'power'], (name) => scalar(`${name}(double, double)`, 'double', 'q_pow($1, $2)', PARTIAL)),
  ...named(['sin', 'cos', 'tan'], (name) =>
    scalar(`${name}(double)`, 'double', outside('isinf($1)', `${name}($1)`), PARTIAL),
  ),
  ...named(['asin', 'acos'], (name) =>
    scalar(`${name}(double)`, 'double', outside('abs($1) > 1', `${name}($1)`), PARTIAL),
  ),
  ...named(['atan', 'sinh', 'cosh', 'tanh', 'degrees', 'radians'], (name) =>
    scalar(`${name}(double)`, 'double', `${name}($1)`, PARTIAL),
  ),
  scalar('atan2(double, double)', 'double', 'atan2($1, $2)', PARTIAL),
  scalar('width_bucket(double, double, double, bigint)', 'bigint', 'q_width_bucket($1, $2, $3, $4)', PARTIAL),
  scalar(
    'width_bucket(double, array(double))',
    'bigint',
    'q_width_bucket_a($1, list_transform($2, lambda q2: coalesce(q2, CAST(0 AS DOUBLE))))',
    PARTIAL,
  ),
  scalar('bit_count(bigint, bigint)', 'bigint', 'q_bitcount($1, $2)', PARTIAL),
  scalar('bitwise_and(bigint, bigint)', 'bigint', '($1 & $2)', PARTIAL),
  scalar('bitwise_or(bigint, bigint)', 'bigint', '($1 | $2)', PARTIAL),
  scalar('bitwise_xor(bigint, bigint)', 'bigint', 'xor($1, $2)', PARTIAL),
  scalar('bitwise_not(bigint)', 'bigint', '(~ $1)', PARTIAL),
  scalar('wilson_interval_lower(bigint, bigint, double)', 'double', 'q_wilson($1, $2, $3, -1)', PARTIAL),
  scalar('wilson_interval_upper(bigint, bigint, double)', 'double', 'q_wilson($1, $2, $3, 1)', PARTIAL),
  scalar('normal_cdf(double, double, double)', 'double', 'u_normal_cdf($1, $2, $3)', PARTIAL),
  scalar('inverse_normal_cdf(double, double, double)', 'double', 'u_inverse_normal_cdf($1, $2, $3)', PARTIAL),
  scalar('beta_cdf(double, double, double)', 'double', 'u_beta_cdf($1, $2, $3)', PARTIAL),
  scalar('inverse_beta_cdf(double, double, double)', 'double', 'u_inverse_beta_cdf($1, $2, $3)', PARTIAL),
  scalar(
    'great_circle_distance(double, double, double, double)',
    'double',
    'u_great_circle_distance($1, $2, $3, $4)',
    PARTIAL,
  ),
  scalar('t_cdf(double, double)', 'double', 'u_t_cdf($1, $2)', PARTIAL),
  scalar('t_pdf(double, double)', 'double', 'u_t_pdf($1, $2)', PARTIAL),
  scalar('to_base(bigint, bigint)', 'varchar(64)', 'q_to_base($1, $2)', PARTIAL),
  scalar('from_base(varchar(x), bigint)', 'bigint', 'u_from_base($1, $2)', PARTIAL),
]
