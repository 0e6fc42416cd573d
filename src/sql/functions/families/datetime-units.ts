import { digits, joined, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { isFine, structOf } from '../../types/duckdb-representation.ts'
import type { SqlType } from '../../types/sql-type.ts'
import { bindName } from '../fill-template.ts'
import { PARTIAL, scalar, type FunctionDefinition } from '../function-definition.ts'
import { notSupportedPrecision } from '../precision-guard.ts'
import type { RenderContext } from '../rendering.ts'

const dateOnly = ['day', 'week', 'month', 'quarter', 'year'] as const
const timeOnly = ['millisecond', 'second', 'minute', 'hour'] as const

type Unit = (typeof dateOnly)[number] | (typeof timeOnly)[number]

/** The units that a type accepts, and its name in messages. */
function unitsOf(type: SqlType): { readonly units: readonly Unit[]; readonly name: string } {
  if (type.kind === 'date') return { units: dateOnly, name: 'DATE' }
  if (type.kind === 'time' || type.kind === 'time with time zone') return { units: timeOnly, name: 'TIME' }
  return { units: [...timeOnly, ...dateOnly], name: 'TIMESTAMP' }
}

/** A rendering for each unit: chosen while rendering if the unit is a literal, otherwise by a CASE. */
function byUnit(context: RenderContext, moment: SqlType, render: (unit: Unit) => Sql): Sql {
  const { units, name } = unitsOf(moment)
  const constant = context.constant(0)
  const known = joined(
    context.args.map((_, i) => sql`${context.value(i)} IS NOT NULL`),
    ' AND ',
  )
  if (typeof constant === 'string') {
    const unit = units.find((each) => each === constant.toLowerCase())
    if (unit !== undefined) return render(unit)
    const message = literal(`INVALID_FUNCTION_ARGUMENT: '${constant.toLowerCase()}' is not a valid ${name} field`)
    return context.fill`CAST(CASE WHEN ${known} THEN u_raise(${message}) END AS $R)`
  }
  const branches = units.map((unit) => sql`WHEN ${literal(unit)} THEN ${render(unit)}`)
  const message = literal(`' is not a valid ${name} field`)
  const other = context.fill`CASE WHEN ${known} THEN u_raise('INVALID_FUNCTION_ARGUMENT: '''||lower($1)||${message}) END`
  return context.fill`CASE lower($1) ${joined(branches, ' ')} ELSE ${other} END`
}

function guarded(type: SqlType): SqlType {
  if (isFine(type)) throw notSupportedPrecision(type)
  return type
}

const MICROS: Readonly<Record<(typeof timeOnly)[number], Sql>> = {
  millisecond: digits('1000'),
  second: digits('1000000'),
  minute: digits('60000000'),
  hour: digits('3600000000'),
}

const isShort = (unit: Unit): unit is (typeof timeOnly)[number] => (timeOnly as readonly string[]).includes(unit)

function truncated(context: RenderContext): Sql {
  const type = context.types[1]!
  return byUnit(context, type, (unit) => {
    switch (type.kind) {
      case 'date':
        return context.fill`CAST(date_trunc(${literal(unit)}, $2) AS DATE)`
      case 'time':
        guarded(type)
        return context.fill`q_trunc_time($2, ${MICROS[unit as 'hour']})`
      case 'time with time zone':
        guarded(type)
        return context.fill`CASE WHEN $2 IS NOT NULL THEN ${structOf({ t: context.fill`q_trunc_time($2.t, ${MICROS[unit as 'hour']})`, o: context.fill`$2.o` })} END`
      case 'timestamp':
        return isFine(type)
          ? context.fill`CASE WHEN $2 IS NOT NULL THEN ${structOf({ t: context.fill`CAST(date_trunc(${literal(unit)}, $2.t) AS TIMESTAMP)`, p: context.fill`CAST(0 AS INTEGER)` })} END`
          : context.fill`CAST(date_trunc(${literal(unit)}, $2) AS TIMESTAMP)`
      default: {
        guarded(type)
        const local = context.fill`q_local($2.t, $2.z)`
        const name = context.names.fresh()
        const instant = isShort(unit)
          ? bindName(name, local, context.fill`$2.t - (${name} - date_trunc(${literal(unit)}, ${name}))`)
          : context.fill`q_instant(CAST(date_trunc(${literal(unit)}, ${local}) AS TIMESTAMP), $2.z)`
        return context.fill`CASE WHEN $2 IS NOT NULL THEN ${structOf({ t: instant, z: context.fill`$2.z` })} END`
      }
    }
  })
}

const STEP: Readonly<Record<Unit, (amount: Sql) => Sql>> = {
  millisecond: (n) => sql`to_milliseconds(${n})`,
  second: (n) => sql`to_milliseconds(${n} * 1000)`,
  minute: (n) => sql`to_milliseconds(${n} * 60000)`,
  hour: (n) => sql`to_milliseconds(${n} * 3600000)`,
  day: (n) => sql`to_days(CAST(${n} AS INTEGER))`,
  week: (n) => sql`to_days(CAST(7 * ${n} AS INTEGER))`,
  month: (n) => sql`to_months(CAST(${n} AS INTEGER))`,
  quarter: (n) => sql`to_months(CAST(3 * ${n} AS INTEGER))`,
  year: (n) => sql`to_months(CAST(12 * ${n} AS INTEGER))`,
}

/** The number of units in a day, after which a time returns to itself. */
const IN_A_DAY: Readonly<Record<(typeof timeOnly)[number], Sql>> = {
  millisecond: digits('86400000'),
  second: digits('86400'),
  minute: digits('1440'),
  hour: digits('24'),
}

/** Limits of steps: beyond them no value of the type is reached, and Trino reports an error without trying. */
const MOST: Readonly<Record<Unit, Sql>> = {
  millisecond: digits('2147483647'),
  second: digits('2147483647'),
  minute: digits('2147483647'),
  hour: digits('2147483647'),
  day: digits('214000000'),
  week: digits('30600000'),
  month: digits('7030000'),
  quarter: digits('2350000'),
  year: digits('586000'),
}

function stepOf(context: RenderContext, type: SqlType, unit: Unit): Sql {
  if (type.kind === 'timestamp' || type.kind === 'timestamp with time zone') {
    return STEP[unit](context.fill`q_steps($2, ${MOST[unit]})`)
  }
  return STEP[unit](context.fill`($2 % ${IN_A_DAY[unit as 'hour']})`)
}

/** Days are added to the date itself, which has a wider range than the timestamps that adding months produces. */
function dateAdded(context: RenderContext, unit: Unit): Sql {
  switch (unit) {
    case 'day':
      return context.fill`($3 + q_date_steps($2, 2147483647))`
    case 'week':
      return context.fill`($3 + 7 * q_date_steps($2, 306783378))`
    default:
      return context.fill`CAST($3 + ${STEP[unit](context.fill`q_date_steps($2, ${MOST[unit]} * 20)`)} AS DATE)`
  }
}

function added(context: RenderContext): Sql {
  const type = context.types[2]!
  return byUnit(context, type, (unit) => {
    if (type.kind === 'date') return dateAdded(context, unit)
    const step = stepOf(context, type, unit)
    switch (type.kind) {
      case 'time':
        guarded(type)
        return context.fill`($3 + ${step})`
      case 'time with time zone':
        guarded(type)
        return context.fill`CASE WHEN $3 IS NOT NULL AND $2 IS NOT NULL THEN ${structOf({ t: context.fill`$3.t + ${step}`, o: context.fill`$3.o` })} END`
      case 'timestamp':
        return isFine(type)
          ? context.fill`CASE WHEN $3 IS NOT NULL AND $2 IS NOT NULL THEN ${structOf({ t: context.fill`$3.t + ${step}`, p: context.fill`$3.p` })} END`
          : context.fill`($3 + ${step})`
      default: {
        guarded(type)
        const local = context.fill`q_local($3.t, $3.z)`
        const instant = isShort(unit)
          ? context.fill`$3.t + ${step}`
          : unit === 'quarter'
            ? context.fill`q_instant(${local} + ${step}, $3.z)`
            : context.fill`q_moved($3.t, ${local} + ${step}, $3.z)`
        return context.fill`CASE WHEN $3 IS NOT NULL AND $2 IS NOT NULL THEN ${structOf({ t: instant, z: context.fill`$3.z` })} END`
      }
    }
  })
}

const MILLIS: Readonly<Record<'millisecond' | 'second' | 'minute' | 'hour' | 'day' | 'week', Sql>> = {
  millisecond: digits('1'),
  second: digits('1000'),
  minute: digits('60000'),
  hour: digits('3600000'),
  day: digits('86400000'),
  week: digits('604800000'),
}

const isFixed = (unit: Unit): unit is keyof typeof MILLIS => unit in MILLIS

/** Trino holds these types in 96 bits instead of 64. */
const isFinerThanMillis = (type: SqlType): boolean => type.kind === 'timestamp with time zone' && type.precision > 3

function difference(context: RenderContext): Sql {
  const type = context.types[1]!
  return byUnit(context, type, (unit) => {
    switch (type.kind) {
      case 'date':
        if (unit === 'day') return context.fill`CAST($3 - $2 AS BIGINT)`
        return unit === 'week'
          ? context.fill`CAST(($3 - $2) // 7 AS BIGINT)`
          : context.fill`date_sub(${literal(unit)}, $2, $3)`
      case 'time':
        guarded(type)
        return context.fill`(datediff('us', $2, $3) // ${MICROS[unit as 'hour']})`
      case 'time with time zone':
        guarded(type)
        return context.fill`((q_time_zone_key($3) - q_time_zone_key($2)) // ${MICROS[unit as 'hour']})`
      case 'timestamp': {
        const [a, b] = isFine(type) ? [context.fill`$2.t`, context.fill`$3.t`] : [context.fill`$2`, context.fill`$3`]
        if (isFixed(unit)) {
          return context.fill`((q_floordiv(epoch_us(${b}), 1000) - q_floordiv(epoch_us(${a}), 1000)) // ${MILLIS[unit]})`
        }
        return context.fill`date_sub(${literal(unit)}, date_trunc('ms', ${a}), date_trunc('ms', ${b}))`
      }
      default: {
        // The first value's zone decides where days begin, for both values; for Trino's finer type it is UTC.
        const [a, b] =
          isShort(unit) || isFinerThanMillis(type)
            ? [context.fill`$2.t`, context.fill`$3.t`]
            : [context.fill`q_local($2.t, $2.z)`, context.fill`q_local($3.t, $2.z)`]
        if (isFixed(unit)) {
          return context.fill`((q_floordiv(epoch_us(${b}), 1000) - q_floordiv(epoch_us(${a}), 1000)) // ${MILLIS[unit]})`
        }
        return context.fill`date_sub(${literal(unit)}, date_trunc('ms', ${a}), date_trunc('ms', ${b}))`
      }
    }
  })
}

const moments = ['date', 'time(p)', 'time(p) with time zone', 'timestamp(p)', 'timestamp(p) with time zone']

/** date_trunc, date_add, date_diff. Units may have any case; invalid units fail at run time. */
export const momentFunctions: readonly FunctionDefinition[] = moments.flatMap((moment) => [
  scalar(`date_trunc(varchar(x), ${moment})`, moment, truncated, PARTIAL),
  scalar(`date_add(varchar(x), bigint, ${moment})`, moment, added, PARTIAL),
  scalar(`date_diff(varchar(x), ${moment}, ${moment})`, 'bigint', difference, PARTIAL),
])
