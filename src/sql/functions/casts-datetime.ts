import { code, integer, literal, sql, type Sql } from '../../duckdb/text/sql.ts'
import { isFine, structOf } from '../types/duckdb-representation.ts'
import type { SqlType, TimestampType, TimeType } from '../types/sql-type.ts'
import { notSupportedPrecision } from './precision-guard.ts'
import type { RenderSession } from './rendering.ts'

interface Context {
  readonly session: RenderSession
}

/** Microseconds in one unit of the last digit of a precision, for 0..6. */
function unit(precision: number): number {
  return 10 ** (6 - precision)
}

/**
 * A cast to a date or time type. Rules A, B, D of datetime-casts.md 2 apply to local times that occur twice or never in
 * a zone.
 */
export function castToDateTime(x: Sql, from: SqlType, to: SqlType, { session }: Context): Sql {
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

function castToDate(x: Sql, from: SqlType): Sql {
  switch (from.kind) {
    case 'varchar':
    case 'char':
      return sql`q_text_to_date(${x})`
    case 'timestamp':
      return isFine(from) ? sql`CAST(${x}.t AS DATE)` : sql`CAST(${x} AS DATE)`
    default:
      return sql`CAST(q_local(${x}.t, ${x}.z) AS DATE)`
  }
}

function castToTime(x: Sql, from: SqlType, to: TimeType): Sql {
  switch (from.kind) {
    case 'varchar':
      return isFine(to)
        ? sql`u_text_to_time_picos(${x}, ${integer(to.precision)})`
        : sql`q_text_to_time(${x}, ${integer(to.precision)})`
    case 'time':
      if (isFine(to))
        return isFine(from)
          ? sql`q_round_picos(${x}, ${integer(12 - to.precision)})`
          : sql`(datediff('us', TIME '00:00:00', ${x}) * 1000000)`
      if (isFine(from))
        return sql`q_time_of_micros(q_floordiv(${x} + ${integer(500000 * unit(to.precision))}, ${integer(1000000 * unit(to.precision))}) * ${integer(unit(to.precision))})`
      return roundTime(x, from.precision, to.precision)
    case 'time with time zone':
      if (isFine(from) || isFine(to)) throw notSupportedPrecision(isFine(from) ? from : to)
      return roundTime(sql`${x}.t`, from.precision, to.precision)
    case 'timestamp':
      if (isFine(to)) throw notSupportedPrecision(to)
      return roundTime(sql`CAST(${isFine(from) ? microsOf(x, to) : x} AS TIME)`, from.precision, to.precision)
    case 'timestamp with time zone':
      if (isFine(to)) throw notSupportedPrecision(to)
      return roundTime(
        sql`CAST(q_local(${isFine(from) ? microsOf(x, to) : sql`${x}.t`}, ${x}.z) AS TIME)`,
        from.precision,
        to.precision,
      )
    default:
      throw new Error(`No cast from ${from.kind} to time`)
  }
}

function roundTime(x: Sql, from: number, to: number): Sql {
  if (to >= Math.min(from, 6)) return x
  return sql`q_round_time(${x}, ${integer(unit(to))})`
}

function roundTimestamp(x: Sql, from: number, to: number): Sql {
  if (to >= Math.min(from, 6)) return x
  return sql`q_round(${x}, ${integer(unit(to))})`
}

function castToTimestamp(x: Sql, from: SqlType, to: TimestampType, session: RenderSession): Sql {
  switch (from.kind) {
    case 'varchar':
      return isFine(to)
        ? sql`q_text_to_timestamp_fine(${x}, ${integer(to.precision)})`
        : sql`q_text_to_timestamp(${x}, ${integer(to.precision)})`
    case 'date':
      return refine(sql`CAST(${x} AS TIMESTAMP)`, to)
    case 'timestamp':
      if (isFine(from) && isFine(to)) return sql`q_round_fine(${x}, ${integer(to.precision)})`
      if (isFine(from)) return roundTimestamp(microsOf(x, to), 6, to.precision)
      return isFine(to) ? refine(x, to) : roundTimestamp(x, from.precision, to.precision)
    case 'timestamp with time zone': {
      const local = (instant: Sql): Sql => sql`q_local(${instant}, ${x}.z)`
      if (isFine(from) && isFine(to)) {
        const whole = structOf({ t: local(sql`${x}.t`), p: sql`${x}.p` })
        return sql`CASE WHEN ${x} IS NOT NULL THEN q_round_fine(${whole}, ${integer(to.precision)}) END`
      }
      if (isFine(from)) return roundTimestamp(local(microsOf(x, to)), 6, to.precision)
      return isFine(to)
        ? refine(local(sql`${x}.t`), to)
        : roundTimestamp(local(sql`${x}.t`), from.precision, to.precision)
    }
    case 'time':
    case 'time with time zone': {
      const time = from.kind === 'time' ? x : sql`${x}.t`
      if (isFine(from)) throw notSupportedPrecision(from)
      const moment = sql`(DATE ${literal(currentDate(session))} + ${time})`
      return isFine(to) ? refine(moment, to) : roundTimestamp(moment, from.precision, to.precision)
    }
    default:
      throw new Error(`No cast from ${from.kind} to timestamp`)
  }
}

/**
 * The microseconds of a finer timestamp (of the instant, if it has a zone), rounded if the target precision is
 * microseconds.
 */
function microsOf(x: Sql, to: TimestampType | TimeType): Sql {
  return to.precision === 6
    ? sql`(${x}.t + to_microseconds(CASE WHEN ${x}.p >= 500000 THEN 1 ELSE 0 END))`
    : sql`${x}.t`
}

/** Converts a native timestamp to one finer than microseconds. */
function refine(x: Sql, to: TimestampType): Sql {
  return isFine(to) ? sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: x, p: sql`CAST(0 AS INTEGER)` })} END` : x
}

function castToTimeWithZone(x: Sql, from: SqlType, to: TimeType, session: RenderSession): Sql {
  const zone = literal(session.timeZone)
  const offset = integer(offsetMillis(session) / 60_000)
  if (isFine(to) || isFine(from)) throw notSupportedPrecision(isFine(to) ? to : from)
  switch (from.kind) {
    case 'varchar':
      return sql`q_text_to_time_zone(${x}, ${integer(to.precision)}, ${offset})`
    case 'time':
      return sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: roundTime(x, from.precision, to.precision), o: sql`CAST(${offset} AS INTEGER)` })} END`
    case 'time with time zone':
      return sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: roundTime(sql`${x}.t`, from.precision, to.precision), o: sql`${x}.o` })} END`
    case 'timestamp':
      return sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: roundTime(sql`CAST(${x} AS TIME)`, from.precision, to.precision), o: sql`CAST(q_offmin(q_joda(${x}, ${zone}), ${zone}) AS INTEGER)` })} END`
    case 'timestamp with time zone':
      // As in Trino, the offset is that of the local time read as UTC: on days of a clock change it may differ from the
      // value's offset.
      return sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: roundTime(sql`CAST(q_local(${x}.t, ${x}.z) AS TIME)`, from.precision, to.precision), o: sql`CAST(q_offmin(q_local(${x}.t, ${x}.z), ${x}.z) AS INTEGER)` })} END`
    default:
      throw new Error(`No cast from ${from.kind} to time with time zone`)
  }
}

function castToTimestampWithZone(x: Sql, from: SqlType, to: TimestampType, session: RenderSession): Sql {
  const zone = literal(session.timeZone)
  const made = (instant: Sql, itsZone: Sql): Sql =>
    sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: instant, ...(isFine(to) ? { p: sql`CAST(0 AS INTEGER)` } : {}), z: itsZone })} END`
  const madeOf = (local: Sql, instant: Sql): Sql =>
    sql`CASE WHEN q_is_zonable(${local}, 'INVALID_CAST_ARGUMENT: Out of range for timestamp with time zone: ') THEN ${structOf({ t: instant, ...(isFine(to) ? { p: sql`CAST(0 AS INTEGER)` } : {}), z: zone })} END`
  switch (from.kind) {
    case 'varchar':
      return isFine(to)
        ? sql`q_text_to_instant_fine(${x}, ${integer(to.precision)}, ${zone})`
        : sql`q_text_to_instant(${x}, ${integer(to.precision)}, ${zone})`
    case 'date':
      return madeOf(
        sql`CAST(${x} AS TIMESTAMP)`,
        sql`CAST(${x} AS TIMESTAMP) - q_off(CAST(${x} AS TIMESTAMP), ${zone})`,
      )
    case 'timestamp':
      if (isFine(from)) {
        if (!isFine(to)) return made(sql`q_joda(${roundTimestamp(microsOf(x, to), 6, to.precision)}, ${zone})`, zone)
        const rounded = sql`q_round_fine(${x}, ${integer(to.precision)})`
        return sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: sql`q_joda(${rounded}.t, ${zone})`, p: sql`${rounded}.p`, z: zone })} END`
      }
      return madeOf(x, sql`q_joda(${roundTimestamp(x, from.precision, to.precision)}, ${zone})`)
    case 'timestamp with time zone':
      if (isFine(from) && isFine(to)) {
        const rounded = sql`q_round_fine(${structOf({ t: sql`${x}.t`, p: sql`${x}.p` })}, ${integer(to.precision)})`
        return sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: sql`${rounded}.t`, p: sql`${rounded}.p`, z: sql`${x}.z` })} END`
      }
      return made(
        roundTimestamp(isFine(from) ? microsOf(x, to) : sql`${x}.t`, from.precision, to.precision),
        sql`${x}.z`,
      )
    case 'time':
    case 'time with time zone': {
      if (isFine(from) || isFine(to)) throw notSupportedPrecision(isFine(from) ? from : to)
      const date = sql`DATE ${literal(currentDate(session))}`
      if (from.kind === 'time') {
        return made(sql`q_joda(${roundTimestamp(sql`(${date} + ${x})`, from.precision, to.precision)}, ${zone})`, zone)
      }
      // As in Trino, the session's date is the date in UTC.
      const utc = sql`CAST((${date} + ${x}.t) - to_minutes(${x}.o) AS TIME)`
      return made(roundTimestamp(sql`(${date} + ${utc})`, from.precision, to.precision), sql`q_offset_zone(${x}.o)`)
    }
    default:
      throw new Error(`No cast from ${from.kind} to timestamp with time zone`)
  }
}

/** The date of the query's start in the session's zone: `2026-01-31`. */
export function currentDate(session: RenderSession): string {
  return localText(session).slice(0, 10)
}

/** The query's start as local time in the session's zone: `2026-01-31 10:00:00.123`. */
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

/** Renders CAST(x AS varchar) of times and timestamps. */
export function dateTimeText(x: Sql, from: SqlType): Sql {
  switch (from.kind) {
    case 'time':
      return isFine(from)
        ? sql`q_text_time_picos(${x}, ${integer(from.precision)})`
        : sql`q_text_time(${x}, ${integer(from.precision)})`
    case 'time with time zone':
      return sql`${code(isFine(from) ? 'q_text_time_picos' : 'q_text_time')}(${x}.t, ${integer(from.precision)})||q_offset_text(${x}.o)`
    case 'timestamp':
      return isFine(from)
        ? sql`q_text_timestamp_fine(${x}, ${integer(from.precision)})`
        : sql`q_text_timestamp(${x}, ${integer(from.precision)})`
    case 'timestamp with time zone':
      return isFine(from)
        ? sql`q_text_timestamp_fine(${structOf({ t: sql`q_local(${x}.t, ${x}.z)`, p: sql`${x}.p` })}, ${integer(from.precision)})||' '||${x}.z`
        : sql`q_text_moment(q_local(${x}.t, ${x}.z), ${integer(from.precision)})||' '||${x}.z`
    default:
      throw new Error(`Not a time: ${from.kind}`)
  }
}
