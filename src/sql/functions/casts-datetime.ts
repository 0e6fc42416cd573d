import { isFine } from '../types/duckdb-representation.ts'
import type { SqlType, TimestampType, TimeType } from '../types/sql-type.ts'
import { notSupportedPrecision } from './precision-guard.ts'
import { quote, type RenderSession } from './rendering.ts'

interface Context {
  readonly session: RenderSession
}

/** Microseconds that one unit of the last digit of a precision has, for 0..6. */
function unit(precision: number): number {
  return 10 ** (6 - precision)
}

/** A cast to a date or time type; rules A, B, D of datetime-casts.md 2 for local times that a zone has twice or never. */
export function castToDateTime(x: string, from: SqlType, to: SqlType, { session }: Context): string {
  switch (to.kind) {
    case 'date':
      return castToDate(x, from)
    case 'time':
      return castToTime(x, from, to)
    case 'timestamp':
      return castToTimestamp(x, from, to, session)
    case 'time with time zone':
      return castToTimeWithZone(x, from, to, session)
    case 'timestamp with time zone':
      return castToTimestampWithZone(x, from, to, session)
    default:
      throw new Error(`Not a date or time type: ${to.kind}`)
  }
}

function castToDate(x: string, from: SqlType): string {
  switch (from.kind) {
    case 'varchar':
    case 'char':
      return `q_text_to_date(${x})`
    case 'timestamp':
      return isFine(from) ? `CAST(${x}.t AS DATE)` : `CAST(${x} AS DATE)`
    default:
      return `CAST(q_local(${x}.t, ${x}.z) AS DATE)`
  }
}

function castToTime(x: string, from: SqlType, to: TimeType): string {
  switch (from.kind) {
    case 'varchar':
      return isFine(to) ? `u_text_to_time_picos(${x}, ${to.precision})` : `q_text_to_time(${x}, ${to.precision})`
    case 'time':
      if (isFine(to))
        return isFine(from)
          ? `q_round_picos(${x}, ${12 - to.precision})`
          : `(datediff('us', TIME '00:00:00', ${x}) * 1000000)`
      if (isFine(from))
        return `q_time_of_micros(q_floordiv(${x} + ${500000 * unit(to.precision)}, ${1000000 * unit(to.precision)}) * ${unit(to.precision)})`
      return roundTime(x, from.precision, to.precision)
    case 'time with time zone':
      if (isFine(from) || isFine(to)) throw notSupportedPrecision(isFine(from) ? from : to)
      return roundTime(`${x}.t`, from.precision, to.precision)
    case 'timestamp':
      if (isFine(to)) throw notSupportedPrecision(to)
      return roundTime(`CAST(${isFine(from) ? microsOf(x, to) : x} AS TIME)`, from.precision, to.precision)
    case 'timestamp with time zone':
      if (isFine(to)) throw notSupportedPrecision(to)
      return roundTime(`CAST(q_local(${x}.t, ${x}.z) AS TIME)`, from.precision, to.precision)
    default:
      throw new Error(`No cast from ${from.kind} to time`)
  }
}

function roundTime(x: string, from: number, to: number): string {
  if (to >= Math.min(from, 6)) return x
  return `q_round_time(${x}, ${unit(to)})`
}

function roundTimestamp(x: string, from: number, to: number): string {
  if (to >= Math.min(from, 6)) return x
  return `q_round(${x}, ${unit(to)})`
}

function castToTimestamp(x: string, from: SqlType, to: TimestampType, session: RenderSession): string {
  switch (from.kind) {
    case 'varchar':
      return isFine(to)
        ? `q_text_to_timestamp_fine(${x}, ${to.precision})`
        : `q_text_to_timestamp(${x}, ${to.precision})`
    case 'date':
      return refine(`CAST(${x} AS TIMESTAMP)`, to)
    case 'timestamp':
      if (isFine(from) && isFine(to)) return `q_round_fine(${x}, ${to.precision})`
      if (isFine(from)) return roundTimestamp(microsOf(x, to), 6, to.precision)
      return isFine(to) ? refine(x, to) : roundTimestamp(x, from.precision, to.precision)
    case 'timestamp with time zone': {
      const local = `q_local(${x}.t, ${x}.z)`
      if (isFine(from)) {
        const whole = `{'t': ${local}, 'p': ${x}.p}`
        return isFine(to) ? `q_round_fine(${whole}, ${to.precision})` : roundTimestamp(local, 6, to.precision)
      }
      return isFine(to) ? refine(local, to) : roundTimestamp(local, from.precision, to.precision)
    }
    case 'time':
    case 'time with time zone': {
      const time = from.kind === 'time' ? x : `${x}.t`
      if (isFine(from)) throw notSupportedPrecision(from)
      const moment = `(DATE '${currentDate(session)}' + ${time})`
      return isFine(to) ? refine(moment, to) : roundTimestamp(moment, from.precision, to.precision)
    }
    default:
      throw new Error(`No cast from ${from.kind} to timestamp`)
  }
}

/** The microseconds of a finer timestamp, rounded where they are what is asked for. */
function microsOf(x: string, to: TimestampType | TimeType): string {
  return to.precision === 6 ? `(${x}.t + to_microseconds(CASE WHEN ${x}.p >= 500000 THEN 1 ELSE 0 END))` : `${x}.t`
}

/** A native timestamp as one finer than microseconds. */
function refine(x: string, to: TimestampType): string {
  return isFine(to) ? `CASE WHEN ${x} IS NOT NULL THEN {'t': ${x}, 'p': CAST(0 AS INTEGER)} END` : x
}

function castToTimeWithZone(x: string, from: SqlType, to: TimeType, session: RenderSession): string {
  const zone = quote(session.timeZone)
  if (isFine(to) || isFine(from)) throw notSupportedPrecision(isFine(to) ? to : from)
  switch (from.kind) {
    case 'varchar':
      return `q_text_to_time_zone(${x}, ${to.precision})`
    case 'time':
      return `CASE WHEN ${x} IS NOT NULL THEN {'t': ${roundTime(x, from.precision, to.precision)}, 'o': CAST(${offsetMillis(session) / 60_000} AS INTEGER)} END`
    case 'time with time zone':
      return `CASE WHEN ${x} IS NOT NULL THEN {'t': ${roundTime(`${x}.t`, from.precision, to.precision)}, 'o': ${x}.o} END`
    case 'timestamp':
      return `CASE WHEN ${x} IS NOT NULL THEN {'t': ${roundTime(`CAST(${x} AS TIME)`, from.precision, to.precision)}, 'o': CAST(q_offmin(q_joda(${x}, ${zone}), ${zone}) AS INTEGER)} END`
    case 'timestamp with time zone':
      return `CASE WHEN ${x} IS NOT NULL THEN {'t': ${roundTime(`CAST(q_local(${x}.t, ${x}.z) AS TIME)`, from.precision, to.precision)}, 'o': CAST(q_offmin(${x}.t, ${x}.z) AS INTEGER)} END`
    default:
      throw new Error(`No cast from ${from.kind} to time with time zone`)
  }
}

function castToTimestampWithZone(x: string, from: SqlType, to: TimestampType, session: RenderSession): string {
  const zone = quote(session.timeZone)
  const made = (instant: string, itsZone: string): string =>
    `CASE WHEN ${x} IS NOT NULL THEN {'t': ${instant}, ${isFine(to) ? `'p': CAST(0 AS INTEGER), ` : ''}'z': ${itsZone}} END`
  switch (from.kind) {
    case 'varchar':
      return isFine(to)
        ? `q_text_to_instant_fine(${x}, ${to.precision}, ${zone})`
        : `q_text_to_instant(${x}, ${to.precision}, ${zone})`
    case 'date':
      return made(`CAST(${x} AS TIMESTAMP) - q_off(CAST(${x} AS TIMESTAMP), ${zone})`, zone)
    case 'timestamp':
      if (isFine(from)) {
        if (!isFine(to)) return made(`q_joda(${roundTimestamp(microsOf(x, to), 6, to.precision)}, ${zone})`, zone)
        return `CASE WHEN ${x} IS NOT NULL THEN {'t': q_joda(${x}.t, ${zone}), 'p': ${x}.p, 'z': ${zone}} END`
      }
      return made(`q_joda(${roundTimestamp(x, from.precision, to.precision)}, ${zone})`, zone)
    case 'timestamp with time zone':
      if (isFine(from) && isFine(to)) {
        return `CASE WHEN ${x} IS NOT NULL THEN {'t': ${x}.t, 'p': q_round_fine({'t': ${x}.t, 'p': ${x}.p}, ${to.precision}).p, 'z': ${x}.z} END`
      }
      return made(roundTimestamp(`${x}.t`, from.precision, to.precision), `${x}.z`)
    case 'time':
    case 'time with time zone': {
      if (isFine(from) || isFine(to)) throw notSupportedPrecision(isFine(from) ? from : to)
      const date = `DATE '${currentDate(session)}'`
      if (from.kind === 'time') {
        return made(`q_joda(${roundTimestamp(`(${date} + ${x})`, from.precision, to.precision)}, ${zone})`, zone)
      }
      const moment = roundTimestamp(`(${date} + ${x}.t)`, from.precision, to.precision)
      return made(`${moment} - to_minutes(${x}.o)`, `q_offset_zone(${x}.o)`)
    }
    default:
      throw new Error(`No cast from ${from.kind} to timestamp with time zone`)
  }
}

/** The date of the query's start in the session's zone, `2026-01-31`. */
export function currentDate(session: RenderSession): string {
  return localText(session).slice(0, 10)
}

/** The query's start as a local time of the session's zone: `2026-01-31 10:00:00.123`. */
export function localText(session: RenderSession): string {
  return new Date(session.startTimeMillis + offsetMillis(session)).toISOString().replace('T', ' ').slice(0, 23)
}

/** The offset of the session's zone at the query's start. */
export function offsetMillis(session: RenderSession): number {
  const fixed = /^([+-])(\d\d):(\d\d)$/.exec(session.timeZone)
  if (fixed) return (fixed[1] === '-' ? -1 : 1) * (Number(fixed[2]) * 60 + Number(fixed[3])) * 60_000
  if (session.timeZone === 'UTC') return 0
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: session.timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(session.startTimeMillis)
  const get = (type: string): number => Number(parts.find((part) => part.type === type)?.value)
  const local = Date.UTC(get('year'), get('month') - 1, get('day'), get('hour'), get('minute'), get('second'))
  return local - Math.floor(session.startTimeMillis / 1000) * 1000
}

/** CAST(x AS varchar) of times and timestamps. */
export function dateTimeText(x: string, from: SqlType): string {
  switch (from.kind) {
    case 'time':
      return isFine(from) ? `q_text_time_picos(${x}, ${from.precision})` : `q_text_time(${x}, ${from.precision})`
    case 'time with time zone':
      return `${isFine(from) ? 'q_text_time_picos' : 'q_text_time'}(${x}.t, ${from.precision})||q_offset_text(${x}.o)`
    case 'timestamp':
      return isFine(from)
        ? `q_text_timestamp_fine(${x}, ${from.precision})`
        : `q_text_timestamp(${x}, ${from.precision})`
    case 'timestamp with time zone':
      return isFine(from)
        ? `q_text_timestamp_fine({'t': q_local(${x}.t, ${x}.z), 'p': ${x}.p}, ${from.precision})||' '||${x}.z`
        : `q_text_timestamp(q_local(${x}.t, ${x}.z), ${from.precision})||' '||${x}.z`
    default:
      throw new Error(`Not a time: ${from.kind}`)
  }
}
