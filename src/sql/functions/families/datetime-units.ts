import { isFine } from '../../types/duckdb-representation.ts'
import type { SqlType } from '../../types/sql-type.ts'
import { scalar, type FunctionDefinition } from '../function-definition.ts'
import { notSupportedPrecision } from '../precision-guard.ts'
import { quote, type RenderContext } from '../rendering.ts'

const dateOnly = ['day', 'week', 'month', 'quarter', 'year'] as const
const timeOnly = ['millisecond', 'second', 'minute', 'hour'] as const

type Unit = (typeof dateOnly)[number] | (typeof timeOnly)[number]

/** The units a type takes, and its name in messages. */
function unitsOf(type: SqlType): { readonly units: readonly Unit[]; readonly name: string } {
  if (type.kind === 'date') return { units: dateOnly, name: 'DATE' }
  if (type.kind === 'time' || type.kind === 'time with time zone') return { units: timeOnly, name: 'TIME' }
  return { units: [...timeOnly, ...dateOnly], name: 'TIMESTAMP' }
}

/** A rendering for each unit: chosen now where the unit is a literal, in a CASE where it is a value. */
function byUnit(context: RenderContext, moment: SqlType, template: (unit: Unit) => string): string {
  const { units, name } = unitsOf(moment)
  const constant = context.constant(0)
  if (typeof constant === 'string') {
    const unit = units.find((each) => each === constant.toLowerCase())
    if (unit !== undefined) return context.fill(template(unit))
    const nulls = context.args.map((_, i) => `${context.value(i)} IS NOT NULL`).join(' AND ')
    const message = quote(`INVALID_FUNCTION_ARGUMENT: '${constant}' is not a valid ${name} field`)
    return context.fill(`CAST(CASE WHEN ${nulls} THEN u_raise(${message}) END AS $R)`)
  }
  const branches = units.map((unit) => `WHEN '${unit}' THEN ${template(unit)}`)
  const other = `CASE WHEN $1 IS NOT NULL THEN u_raise('INVALID_FUNCTION_ARGUMENT: '''||$1||''' is not a valid ${name} field') END`
  return context.fill(`CASE lower($1) ${branches.join(' ')} ELSE ${other} END`)
}

function guarded(type: SqlType): SqlType {
  if (isFine(type)) throw notSupportedPrecision(type)
  return type
}

const MICROS: Readonly<Record<(typeof timeOnly)[number], string>> = {
  millisecond: '1000',
  second: '1000000',
  minute: '60000000',
  hour: '3600000000',
}

const isShort = (unit: Unit): unit is (typeof timeOnly)[number] => (timeOnly as readonly string[]).includes(unit)

function truncated(context: RenderContext): string {
  const type = context.types[1]!
  return byUnit(context, type, (unit) => {
    switch (type.kind) {
      case 'date':
        return `CAST(date_trunc('${unit}', $2) AS DATE)`
      case 'time':
        guarded(type)
        return `q_trunc_time($2, ${MICROS[unit as 'hour']})`
      case 'time with time zone':
        guarded(type)
        return `CASE WHEN $2 IS NOT NULL THEN {'t': q_trunc_time($2.t, ${MICROS[unit as 'hour']}), 'o': $2.o} END`
      case 'timestamp':
        return isFine(type)
          ? `CASE WHEN $2 IS NOT NULL THEN {'t': CAST(date_trunc('${unit}', $2.t) AS TIMESTAMP), 'p': CAST(0 AS INTEGER)} END`
          : `CAST(date_trunc('${unit}', $2) AS TIMESTAMP)`
      default: {
        guarded(type)
        const local = `q_local($2.t, $2.z)`
        const instant = isShort(unit)
          ? `$2.t - (${local} - date_trunc('${unit}', ${local}))`
          : `q_instant(CAST(date_trunc('${unit}', ${local}) AS TIMESTAMP), $2.z)`
        return `CASE WHEN $2 IS NOT NULL THEN {'t': ${instant}, 'z': $2.z} END`
      }
    }
  })
}

const STEP: Readonly<Record<Unit, string>> = {
  millisecond: 'to_milliseconds($2)',
  second: 'to_milliseconds($2 * 1000)',
  minute: 'to_milliseconds($2 * 60000)',
  hour: 'to_milliseconds($2 * 3600000)',
  day: 'to_days(CAST($2 AS INTEGER))',
  week: 'to_days(CAST(7 * $2 AS INTEGER))',
  month: 'to_months(CAST($2 AS INTEGER))',
  quarter: 'to_months(CAST(3 * $2 AS INTEGER))',
  year: 'to_months(CAST(12 * $2 AS INTEGER))',
}

function added(context: RenderContext): string {
  const type = context.types[2]!
  return byUnit(context, type, (unit) => {
    switch (type.kind) {
      case 'date':
        return `CAST($3 + ${STEP[unit]} AS DATE)`
      case 'time':
        guarded(type)
        return `($3 + ${STEP[unit]})`
      case 'time with time zone':
        guarded(type)
        return `CASE WHEN $3 IS NOT NULL AND $2 IS NOT NULL THEN {'t': $3.t + ${STEP[unit]}, 'o': $3.o} END`
      case 'timestamp':
        return isFine(type)
          ? `CASE WHEN $3 IS NOT NULL AND $2 IS NOT NULL THEN {'t': $3.t + ${STEP[unit]}, 'p': $3.p} END`
          : `($3 + ${STEP[unit]})`
      default: {
        guarded(type)
        const local = `q_local($3.t, $3.z) + ${STEP[unit]}`
        const instant = isShort(unit)
          ? `$3.t + ${STEP[unit]}`
          : unit === 'quarter'
            ? `q_instant(${local}, $3.z)`
            : `q_moved($3.t, ${local}, $3.z)`
        return `CASE WHEN $3 IS NOT NULL AND $2 IS NOT NULL THEN {'t': ${instant}, 'z': $3.z} END`
      }
    }
  })
}

const MILLIS: Readonly<Record<'millisecond' | 'second' | 'minute' | 'hour' | 'day' | 'week', string>> = {
  millisecond: '1',
  second: '1000',
  minute: '60000',
  hour: '3600000',
  day: '86400000',
  week: '604800000',
}

const isFixed = (unit: Unit): unit is keyof typeof MILLIS => unit in MILLIS

function difference(context: RenderContext): string {
  const type = context.types[1]!
  return byUnit(context, type, (unit) => {
    switch (type.kind) {
      case 'date':
        if (unit === 'day') return 'CAST($3 - $2 AS BIGINT)'
        return unit === 'week' ? 'CAST(($3 - $2) // 7 AS BIGINT)' : `date_sub('${unit}', $2, $3)`
      case 'time':
        guarded(type)
        return `(datediff('us', $2, $3) // ${MICROS[unit as 'hour']})`
      case 'time with time zone':
        guarded(type)
        return `((q_time_zone_key($3) - q_time_zone_key($2)) // ${MICROS[unit as 'hour']})`
      case 'timestamp': {
        const [a, b] = isFine(type) ? ['$2.t', '$3.t'] : ['$2', '$3']
        if (isFixed(unit)) {
          return `((q_floordiv(epoch_us(${b}), 1000) - q_floordiv(epoch_us(${a}), 1000)) // ${MILLIS[unit]})`
        }
        return `date_sub('${unit}', date_trunc('ms', ${a}), date_trunc('ms', ${b}))`
      }
      default: {
        // The zone of the first value decides where days begin, for both.
        const [a, b] = isShort(unit) ? ['$2.t', '$3.t'] : ['q_local($2.t, $2.z)', 'q_local($3.t, $2.z)']
        if (isFixed(unit)) {
          return `((q_floordiv(epoch_us(${b}), 1000) - q_floordiv(epoch_us(${a}), 1000)) // ${MILLIS[unit]})`
        }
        return `date_sub('${unit}', date_trunc('ms', ${a}), date_trunc('ms', ${b}))`
      }
    }
  })
}

const moments = ['date', 'time(p)', 'time(p) with time zone', 'timestamp(p)', 'timestamp(p) with time zone']

/** date_trunc, date_add, date_diff: units in any case; bad ones fail when they run. */
export const momentFunctions: readonly FunctionDefinition[] = moments.flatMap((moment) => [
  scalar(`date_trunc(varchar(x), ${moment})`, moment, truncated),
  scalar(`date_add(varchar(x), bigint, ${moment})`, moment, added),
  scalar(`date_diff(varchar(x), ${moment}, ${moment})`, 'bigint', difference),
])
