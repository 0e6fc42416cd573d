import { EngineError } from '../../shared/engine-error.ts'
import { code, digits, integer, literal, sql, type Sql } from '../../duckdb/text/sql.ts'
import { decimalType } from '../types/duckdb-representation.ts'
import { decimal, MAX_DECIMAL_PRECISION, type DecimalType } from '../types/sql-type.ts'
import type { ArithmeticOperator, ResolvedOperator } from './resolved-operator.ts'

/** Decimal arithmetic: Trino's precision and scale, rounding half away from zero, exact to 38 digits (numbers.md 2). */
export function decimalOperator(operator: ArithmeticOperator, a: DecimalType, b: DecimalType): ResolvedOperator {
  const result = decimalResult(operator, a, b)
  return { left: a, right: b, result, render: (left, right) => renderDecimal(operator, [a, b, result], left, right) }
}

function decimalResult(operator: ArithmeticOperator, a: DecimalType, b: DecimalType): DecimalType {
  const [p1, s1, p2, s2] = [a.precision, a.scale, b.precision, b.scale]
  const scale = Math.max(s1, s2)
  switch (operator) {
    case '+':
    case '-':
      return decimal(Math.min(MAX_DECIMAL_PRECISION, sumDigits(a, b)), scale)
    case '*':
      if (s1 + s2 > MAX_DECIMAL_PRECISION) {
        throw new EngineError(
          'INVALID_FUNCTION_ARGUMENT',
          `DECIMAL scale must be in range [0, precision (${MAX_DECIMAL_PRECISION})]: ${s1 + s2}`,
        )
      }
      return decimal(Math.min(MAX_DECIMAL_PRECISION, p1 + p2), s1 + s2)
    case '/':
      return decimal(Math.min(MAX_DECIMAL_PRECISION, p1 + s2 + Math.max(0, s2 - s1)), scale)
    case '%':
      return decimal(Math.max(1, Math.min(p1 - s1, p2 - s2) + scale), scale)
  }
}

/** The digits of a sum or difference without the limit of 38. */
function sumDigits(a: DecimalType, b: DecimalType): number {
  return Math.max(a.precision - a.scale, b.precision - b.scale) + Math.max(a.scale, b.scale) + 1
}

/** The digits of a decimal that DuckDB holds in 64 bits. */
const NARROW_DIGITS = 18

/**
 * Whether DuckDB, applied to the uncast operands, gives a result with this many digits. Its result stays within the 64
 * bits of its operands, and within 38 digits. Casts that do not change the value still cost time.
 */
function isEngineType(resultDigits: number, a: DecimalType, b: DecimalType): boolean {
  if (resultDigits > MAX_DECIMAL_PRECISION) return false
  return resultDigits <= NARROW_DIGITS || Math.max(a.precision, b.precision) > NARROW_DIGITS
}

function renderDecimal(
  operator: ArithmeticOperator,
  [a, b, result]: readonly [DecimalType, DecimalType, DecimalType],
  left: Sql,
  right: Sql,
): Sql {
  const type = decimalType(result.precision, result.scale)
  switch (operator) {
    case '+':
    case '-':
      if (isEngineType(sumDigits(a, b), a, b)) return sql`CAST(${left} ${code(operator)} ${right} AS ${type})`
      return sql`CAST(CAST(${left} AS ${type}) ${code(operator)} CAST(${right} AS ${type}) AS ${type})`
    case '*':
      if (isEngineType(a.precision + b.precision, a, b)) return sql`CAST(${left} * ${right} AS ${type})`
      return sql`CAST(CAST(${left} AS ${decimalType(result.precision, a.scale)}) * ${right} AS ${type})`
    case '/':
      return division(a, b, result, left, right)
    case '%':
      return modulus(a, b, result, left, right)
  }
}

/**
 * round(unscaled(a) * 10^k / unscaled(b)) with k = rs - s1 + s2. Uses BIGINT arithmetic if everything fits 18 digits,
 * decided while rendering or by the magnitudes of a row; otherwise the exact wide form, which takes about a
 * microsecond.
 */
function division(a: DecimalType, b: DecimalType, result: DecimalType, left: Sql, right: Sql): Sql {
  const k = result.scale - a.scale + b.scale
  if (k >= MAX_DECIMAL_PRECISION) {
    const byZero = sql`WHEN ${left} IS NOT NULL AND ${right} = 0 THEN CAST(u_raise('DIVISION_BY_ZERO: Division by zero') AS ${decimalType(result.precision, result.scale)})`
    return sql`CASE ${byZero} WHEN ${left} IS NOT NULL AND ${right} IS NOT NULL THEN CAST(u_raise('NUMERIC_VALUE_OUT_OF_RANGE: Decimal overflow') AS ${decimalType(result.precision, result.scale)}) END`
  }
  const power = powerOf(k)
  const narrow = sql`q_ddiv64(${unscaled64(left, a)}, ${unscaled64(right, b)}, ${power})`
  if (a.precision + k <= 18 && a.precision + a.scale <= 18 && b.precision + b.scale <= 18) return scaled(narrow, result)
  const [dividend, divisor] = [unscaled(left, a), unscaled(right, b)]
  const wide =
    a.precision + k < MAX_DECIMAL_PRECISION
      ? sql`q_ddiv(${dividend}, ${divisor}, ${power})`
      : sql`q_ddivw(${dividend}, ${divisor}, ${integer(k)}, ${power}, ${powerOf(MAX_DECIMAL_PRECISION - k)})`
  const f1 = Math.min(a.precision, 18 - Math.max(k, a.scale))
  const f2 = Math.min(b.precision, 18 - b.scale)
  if (f1 - a.scale <= 0 || f2 - b.scale <= 0) return scaled(wide, result)
  const small = { kind: 'decimal', precision: f1, scale: a.scale } as const
  const smallRight = { kind: 'decimal', precision: f2, scale: b.scale } as const
  const fits = sql`abs(${left}) < ${powerOf(f1 - a.scale)} AND abs(${right}) < ${powerOf(f2 - b.scale)}`
  const fast = sql`q_ddiv64(${unscaled64(sql`CAST(${left} AS ${decimalType(f1, a.scale)})`, small)}, ${unscaled64(sql`CAST(${right} AS ${decimalType(f2, b.scale)})`, smallRight)}, ${power})`
  return sql`CASE WHEN ${fits} THEN ${scaled(fast, result)} ELSE ${scaled(wide, result)} END`
}

function modulus(a: DecimalType, b: DecimalType, result: DecimalType, left: Sql, right: Sql): Sql {
  const integral = Math.max(a.precision - a.scale, b.precision - b.scale)
  const type = decimalType(result.precision, result.scale)
  if (integral + result.scale <= MAX_DECIMAL_PRECISION) {
    const common = decimalType(integral + result.scale, result.scale)
    return sql`CAST(q_dmod(CAST(${left} AS ${common}), CAST(${right} AS ${common})) AS ${type})`
  }
  return scaled(
    sql`q_dmodw(${unscaled(left, a)}, ${unscaled(right, b)}, ${integer(result.scale - a.scale)}, ${integer(result.scale - b.scale)})`,
    result,
  )
}

/** The unscaled value as HUGEINT. */
export function unscaled(x: Sql, { precision, scale }: DecimalType): Sql {
  if (precision + scale > MAX_DECIMAL_PRECISION) return sql`q_unscaled(${x}, ${integer(scale)})`
  // DuckDB keeps the product of two narrow decimals in 64 bits even if it does not fit.
  const isNarrow = precision <= NARROW_DIGITS && precision + scale > NARROW_DIGITS
  const factor = isNarrow ? sql`CAST(${x} AS ${decimalType(precision + scale, scale)})` : x
  return sql`CAST(${factor} * CAST(${powerOf(scale)} AS ${decimalType(scale + 1, 0)}) AS HUGEINT)`
}

function unscaled64(x: Sql, { scale }: DecimalType): Sql {
  return sql`CAST(${x} * CAST(${powerOf(scale)} AS ${decimalType(scale + 1, 0)}) AS BIGINT)`
}

/** The decimal whose unscaled value is the integer `u`. */
export function scaled(u: Sql, { precision, scale }: DecimalType): Sql {
  const unit = literal(scale === 0 ? '1' : `0.${'0'.repeat(scale - 1)}1`)
  const unitType = scale === 0 ? decimalType(1, 0) : decimalType(scale, scale)
  return sql`CAST(CAST(${u} AS DECIMAL(38,0)) * CAST(${unit} AS ${unitType}) AS ${decimalType(precision, scale)})`
}

function powerOf(exponent: number): Sql {
  return digits(`1${'0'.repeat(Math.max(0, exponent))}`)
}
