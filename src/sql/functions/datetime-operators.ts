import { code, sql, type Sql } from '../../duckdb/text/sql.ts'
import { duckdbType, isFine, structOf } from '../types/duckdb-representation.ts'
import { canCoerce } from '../types/coercion.ts'
import { BIGINT, DATE, DOUBLE, INTERVAL_DAY, INTERVAL_YEAR, isInteger, type SqlType } from '../types/sql-type.ts'
import type { ArithmeticOperator, OperatorContext, ResolvedOperator } from './resolved-operator.ts'
import { notSupportedPrecision } from './precision-guard.ts'

type Render = (left: Sql, right: Sql, context: OperatorContext) => Sql

/** Arithmetic with dates, times and intervals; undefined if neither side is one, or if there is no such operator. */
export function datetimeOperator(
  operator: ArithmeticOperator,
  left: SqlType,
  right: SqlType,
): ResolvedOperator | undefined {
  const make = (result: SqlType, render: Render, a = left, b = right): ResolvedOperator => ({
    left: a,
    right: b,
    result,
    render,
  })
  if (isInterval(left) && isInterval(right)) {
    if (left.kind !== right.kind || (operator !== '+' && operator !== '-')) return undefined
    return make(left, (a, b) => sql`(${a} ${code(operator)} ${b})`)
  }
  if (isInterval(right) && operator === '*') {
    const product = scaledInterval(right, left, false)
    return (
      product && make(product.result, (a, b, context) => product.render(b, a, context), product.right, product.left)
    )
  }
  if (isInterval(left) && (operator === '*' || operator === '/')) return scaledInterval(left, right, operator === '/')
  if (operator === '-' && isMoment(left) && isMoment(right)) return difference(left, right)
  if (isInterval(right) && (operator === '+' || operator === '-')) {
    const sign = operator
    const moved = moveBy(left, right)
    return moved && make(moved.result, (a, b, context) => moved.render(a, sign === '+' ? b : sql`(-${b})`, context))
  }
  if (isInterval(left) && operator === '+') {
    const moved = moveBy(right, left)
    return moved && make(moved.result, (a, b, context) => moved.render(b, a, context))
  }
  return undefined
}

function isInterval(type: SqlType): boolean {
  return type.kind === 'interval day to second' || type.kind === 'interval year to month'
}

function isMoment(type: SqlType): boolean {
  return (
    type.kind === 'date' ||
    type.kind === 'timestamp' ||
    type.kind === 'timestamp with time zone' ||
    type.kind === 'time' ||
    type.kind === 'time with time zone'
  )
}

function scaledInterval(interval: SqlType, factor: SqlType, divide: boolean): ResolvedOperator | undefined {
  const whole = isInteger(factor)
  if (!whole && !canCoerce(factor, DOUBLE)) return undefined
  const duckdb = duckdbType(interval)
  if (whole && !divide) {
    return {
      left: interval,
      right: BIGINT,
      result: interval,
      render: (a, b) => sql`CAST(q_java_product(${a}, ${b}) AS ${duckdb})`,
    }
  }
  // Same as Java's cast to long: a value out of range becomes the largest or smallest number.
  const whole64 = (x: Sql): Sql =>
    interval.kind === INTERVAL_DAY.kind ? sql`q_java_long(${x})` : sql`CAST(trunc(${x}) AS ${duckdb})`
  const render: Render = divide
    ? (a, b) =>
        sql`CASE WHEN (${b} = 0 OR isnan(${b})) AND ${a} IS NOT NULL THEN u_raise('INVALID_FUNCTION_ARGUMENT: Cannot divide by double '||q_java_double(${b})) ELSE ${whole64(sql`${a} / ${b}`)} END`
    : (a, b) =>
        sql`CASE WHEN isnan(${b}) AND ${a} IS NOT NULL THEN u_raise('INVALID_FUNCTION_ARGUMENT: Cannot multiply by double NaN') ELSE ${whole64(sql`${a} * ${b}`)} END`
  return { left: interval, right: DOUBLE, result: interval, render }
}

function difference(left: SqlType, right: SqlType): ResolvedOperator | undefined {
  const result = INTERVAL_DAY
  const same = (type: SqlType, render: Render): ResolvedOperator => ({ left: type, right: type, result, render })
  if (left.kind === 'date' && right.kind === 'date') {
    return same(DATE, (a, b) => sql`(CAST(${a} - ${b} AS BIGINT) * 86400000)`)
  }
  const kinds = [left.kind, right.kind]
  const precision = Math.max(...[left, right].map((type) => ('precision' in type ? (type.precision ?? 0) : 0)))
  if (kinds.every((kind) => kind === 'time')) {
    guard({ kind: 'time', precision })
    return same({ kind: 'time', precision }, (a, b) => sql`q_floordiv(datediff('us', ${b}, ${a}) + 500, 1000)`)
  }
  if (kinds.every((kind) => kind === 'time' || kind === 'time with time zone')) {
    guard({ kind: 'time with time zone', precision })
    return same(
      { kind: 'time with time zone', precision },
      (a, b) => sql`q_floordiv(q_time_zone_key(${a}) - q_time_zone_key(${b}) + 500, 1000)`,
    )
  }
  if (kinds.some((kind) => kind === 'time' || kind === 'time with time zone')) return undefined
  if (kinds.includes('timestamp with time zone')) {
    return same(
      { kind: 'timestamp with time zone', precision },
      (a, b) => sql`q_floordiv(epoch_us(${a}.t) - epoch_us(${b}.t) + 500, 1000)`,
    )
  }
  const fine = precision > 6
  return same({ kind: 'timestamp', precision }, (a, b) =>
    fine
      ? sql`q_floordiv(epoch_us(${a}.t) - epoch_us(${b}.t) + 500, 1000)`
      : sql`q_floordiv(epoch_us(${a}) - epoch_us(${b}) + 500, 1000)`,
  )
}

function guard(type: SqlType): void {
  if (isFine(type)) throw notSupportedPrecision(type)
}

/** Moves a moment by an interval: `render(moment, interval)`. */
function moveBy(moment: SqlType, interval: SqlType): { result: SqlType; render: Render } | undefined {
  const months = interval.kind === INTERVAL_YEAR.kind
  switch (moment.kind) {
    case 'date':
      if (months) return { result: DATE, render: (d, i) => sql`CAST(${d} + to_months(CAST(${i} AS INTEGER)) AS DATE)` }
      return { result: DATE, render: (d, i) => sql`q_date_plus(${d}, ${i})` }
    case 'timestamp': {
      if (isFine(moment)) {
        const step = months ? (i: Sql) => sql`to_months(CAST(${i} AS INTEGER))` : (i: Sql) => sql`to_milliseconds(${i})`
        return {
          result: moment,
          render: (t, i) =>
            sql`CASE WHEN ${t} IS NOT NULL AND ${i} IS NOT NULL THEN ${structOf({ t: sql`${t}.t + ${step(i)}`, p: sql`${t}.p` })} END`,
        }
      }
      if (months) return { result: moment, render: (t, i) => sql`(${t} + to_months(CAST(${i} AS INTEGER)))` }
      return {
        result: { kind: 'timestamp', precision: Math.max(moment.precision, 3) },
        render: (t, i) => sql`(${t} + to_milliseconds(${i}))`,
      }
    }
    case 'timestamp with time zone': {
      guard(moment)
      if (months) {
        return {
          result: moment,
          render: (x, i) => {
            const local = sql`q_local(${x}.t, ${x}.z) + to_months(CAST(${i} AS INTEGER))`
            return sql`CASE WHEN ${x} IS NOT NULL AND ${i} IS NOT NULL THEN ${structOf({ t: sql`q_moved(${x}.t, ${local}, ${x}.z)`, z: sql`${x}.z` })} END`
          },
        }
      }
      return {
        result: { kind: 'timestamp with time zone', precision: Math.max(moment.precision, 3) },
        render: (x, i) =>
          sql`CASE WHEN ${x} IS NOT NULL AND ${i} IS NOT NULL THEN ${structOf({ t: sql`${x}.t + to_milliseconds(${i})`, z: sql`${x}.z` })} END`,
      }
    }
    case 'time':
      guard(moment)
      if (months) return undefined
      return {
        result: { kind: 'time', precision: Math.max(moment.precision, 3) },
        render: (t, i) => sql`(${t} + to_milliseconds(${i}))`,
      }
    case 'time with time zone':
      guard(moment)
      if (months) return undefined
      return {
        result: { kind: 'time with time zone', precision: Math.max(moment.precision, 3) },
        render: (x, i) =>
          sql`CASE WHEN ${x} IS NOT NULL AND ${i} IS NOT NULL THEN ${structOf({ t: sql`${x}.t + to_milliseconds(${i})`, o: sql`${x}.o` })} END`,
      }
    default:
      return undefined
  }
}
