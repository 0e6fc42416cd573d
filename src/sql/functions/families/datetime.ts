import { code, integer, joined, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { isFine, isTypedNull, structOf, typedNull } from '../../types/duckdb-representation.ts'
import { varchar, type SqlType } from '../../types/sql-type.ts'
import { currentDate, dateTimeText, localText, offsetMillis } from '../casts-datetime.ts'
import { compiledFormat, JODA_FORMAT, MYSQL_FORMAT, type FormatStyle } from '../datetime-format.ts'
import { fixedFormat, plainTeradataAsJoda, type ParseStyle } from '../../../duckdb/datetime-shapes.ts'
import { bindName } from '../fill-template.ts'
import { PARTIAL, TOTAL, named, scalar, type CallRisk, type FunctionDefinition } from '../function-definition.ts'
import { notSupportedPrecision } from '../precision-guard.ts'
import type { RenderContext } from '../rendering.ts'
import { canonicalZone } from '../../../duckdb/time-zones.ts'
import { momentFunctions } from './datetime-units.ts'

/** Functions for a field of a date or time: `part` over a native DATE, TIMESTAMP or TIME. */
function field(
  names: readonly string[],
  part: (x: Sql) => Sql,
  kinds: readonly ('date' | 'timestamp' | 'time')[],
  risk: CallRisk,
): FunctionDefinition[] {
  return names.flatMap((name) =>
    kinds.flatMap((kind) => {
      const bigint = (x: Sql): Sql => sql`CAST(${part(x)} AS BIGINT)`
      if (kind === 'date') return [scalar(`${name}(date)`, 'bigint', (context) => bigint(context.value(0)), risk)]
      return [
        scalar(`${name}(${kind}(p))`, 'bigint', (context) => bigint(nativeOf(context)), risk),
        scalar(
          `${name}(${kind}(p) with time zone)`,
          'bigint',
          (context) => bigint(kind === 'time' ? nativeOf(context) : context.fill`q_local($1.t, $1.z)`),
          risk,
        ),
      ]
    }),
  )
}

/**
 * The first argument as TIMESTAMP or (local) TIME, whatever its precision: fields down to milliseconds ignore finer
 * digits.
 */
function nativeOf(context: RenderContext): Sql {
  const type = context.types[0]!
  if (!isFine(type)) return type.kind === 'time with time zone' ? context.fill`$1.t` : context.value(0)
  switch (type.kind) {
    case 'time':
      return context.fill`q_time_of_micros($1 // 1000000)`
    case 'time with time zone':
      return context.fill`q_time_of_micros($1.t // 1000000)`
    default:
      return context.fill`$1.t`
  }
}

const dated = ['date', 'timestamp'] as const
const timed = ['timestamp', 'time'] as const

const fields = [
  ...field(['year'], (x) => sql`year(${x})`, dated, TOTAL),
  ...field(['quarter'], (x) => sql`quarter(${x})`, dated, PARTIAL),
  ...field(['month'], (x) => sql`month(${x})`, dated, TOTAL),
  ...field(['week', 'week_of_year'], (x) => sql`week(${x})`, dated, PARTIAL),
  ...field(['year_of_week', 'yow'], (x) => sql`isoyear(${x})`, dated, PARTIAL),
  ...field(['day', 'day_of_month'], (x) => sql`day(${x})`, dated, TOTAL),
  ...field(['day_of_week', 'dow'], (x) => sql`isodow(${x})`, dated, PARTIAL),
  ...field(['day_of_year', 'doy'], (x) => sql`dayofyear(${x})`, dated, PARTIAL),
  ...field(['hour'], (x) => sql`hour(${x})`, timed, PARTIAL),
  ...field(['minute'], (x) => sql`minute(${x})`, timed, PARTIAL),
  ...field(['second'], (x) => sql`second(${x})`, timed, PARTIAL),
  ...field(['millisecond'], (x) => sql`millisecond(${x}) % 1000`, timed, PARTIAL),
]

const intervalFields = [
  scalar('year(interval year to month)', 'bigint', 'CAST($1 // 12 AS BIGINT)', TOTAL),
  scalar('month(interval year to month)', 'bigint', 'CAST($1 % 12 AS BIGINT)', TOTAL),
  ...named(['day', 'day_of_month'], (name) =>
    scalar(`${name}(interval day to second)`, 'bigint', '($1 // 86400000)', TOTAL),
  ),
  scalar('hour(interval day to second)', 'bigint', '($1 // 3600000 % 24)', PARTIAL),
  scalar('minute(interval day to second)', 'bigint', '($1 // 60000 % 60)', PARTIAL),
  scalar('second(interval day to second)', 'bigint', '($1 // 1000 % 60)', PARTIAL),
  scalar('millisecond(interval day to second)', 'bigint', '($1 % 1000)', PARTIAL),
  scalar('to_milliseconds(interval day to second)', 'bigint', '$1', PARTIAL),
]

/** A zone argument as Trino's id. A literal is checked while rendering, other values at run time. */
function zoneArgument(context: RenderContext, index: number, read: 'u_zone' | 'u_supported_zone' = 'u_zone'): Sql {
  const constant = context.constant(index)
  const zone = typeof constant === 'string' ? canonicalZone(constant) : undefined
  return zone === undefined ? sql`${code(read)}(${context.value(index)})` : literal(zone)
}

function zoned(context: RenderContext, instant: Sql, zone: Sql): Sql {
  const known = joined(
    context.args.map((_, i) => sql`${context.value(i)} IS NOT NULL`),
    ' AND ',
  )
  return sql`CASE WHEN ${known} THEN ${structOf({ t: instant, z: zone })} END`
}

function atTimezone(context: RenderContext): Sql {
  return atZone(context, zoneArgument(context, 1))
}

function atZone(context: RenderContext, zone: Sql): Sql {
  const x = context.value(0)
  if (isFine(context.types[0]!)) {
    return sql`CASE WHEN ${x} IS NOT NULL AND ${context.value(1)} IS NOT NULL THEN ${structOf({ t: sql`${x}.t`, p: sql`${x}.p`, z: zone })} END`
  }
  return zoned(context, sql`${x}.t`, zone)
}

/**
 * Raises the error for an invalid zone. As an argument of one of Quipu's functions, the zone would fail while DuckDB
 * binds that function, even under TRY.
 */
function notAZone(context: RenderContext, text: string): Sql {
  const message = `INVALID_FUNCTION_ARGUMENT: '${text}' is not a valid time zone`
  return context.fill`CAST(CASE WHEN $1 IS NOT NULL THEN u_raise(${literal(message)}) END AS $R)`
}

function withTimezone(context: RenderContext): Sql {
  const type = context.types[0]!
  const x = context.value(0)
  const constant = context.constant(1)
  if (typeof constant === 'string' && canonicalZone(constant) === undefined) return notAZone(context, constant)
  const zone = zoneArgument(context, 1)
  if (isFine(type))
    return sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf({ t: sql`q_joda(${x}.t, ${zone})`, p: sql`${x}.p`, z: zone })} END`
  return zoned(context, sql`q_joda(${x}, ${zone})`, zone)
}

/** `AT TIME ZONE` of a time: uses the offset that the zone has at the query's start. */
function timeAtTimezone(context: RenderContext): Sql {
  if (isFine(context.types[0]!)) throw notSupportedPrecision(context.types[0]!)
  const constant = context.constant(1)
  const zone = typeof constant === 'string' ? canonicalZone(constant) : undefined
  if (typeof constant === 'string' && zone === undefined) return notAZone(context, constant)
  const offset =
    zone === undefined
      ? sql`q_offmin(make_timestamp(CAST(${integer(context.session.startTimeMillis * 1000)} AS BIGINT)), ${zoneArgument(context, 1)})`
      : integer(offsetMillis({ ...context.session, timeZone: zone }) / 60_000)
  return context.fill`CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN ${structOf({ t: context.fill`q_time_of_micros((q_time_zone_key($1) + CAST(${offset} AS BIGINT) * 60000000 + 86400000000) % 86400000000)`, o: context.fill`CAST(${offset} AS INTEGER)` })} END`
}

/** The query's start as an instant. */
function start(context: RenderContext): Sql {
  return sql`make_timestamp(CAST(${integer(context.session.startTimeMillis * 1000)} AS BIGINT))`
}

const now = (context: RenderContext): Sql => structOf({ t: start(context), z: literal(context.session.timeZone) })

const currentValues = [
  scalar('now()', 'timestamp(3) with time zone', now, PARTIAL, { ofTime: true }),
  scalar('current_timestamp()', 'timestamp(3) with time zone', now, PARTIAL, { hidden: true, ofTime: true }),
  scalar(
    'localtimestamp()',
    'timestamp(3)',
    (context) => sql`TIMESTAMP ${literal(localText(context.session))}`,
    PARTIAL,
    {
      hidden: true,
      ofTime: true,
    },
  ),
  scalar('current_date()', 'date', (context) => sql`DATE ${literal(currentDate(context.session))}`, PARTIAL, {
    ofTime: true,
  }),
  scalar('localtime()', 'time(3)', (context) => sql`TIME ${literal(localText(context.session).slice(11))}`, PARTIAL, {
    hidden: true,
    ofTime: true,
  }),
  scalar(
    'current_time()',
    'time(3) with time zone',
    (context) =>
      structOf({
        t: sql`TIME ${literal(localText(context.session).slice(11))}`,
        o: sql`CAST(${integer(offsetMillis(context.session) / 60_000)} AS INTEGER)`,
      }),
    PARTIAL,
    { hidden: true, ofTime: true },
  ),
  scalar('current_timezone()', 'varchar', (context) => literal(context.session.timeZone), PARTIAL),
]

/** Trino divides milliseconds and finer digits separately, and adds the results. */
function unixTime(context: RenderContext): Sql {
  const type = context.types[0]!
  if (isMilliseconds(type)) return context.fill`(epoch_us($1.t) / 1e6)`
  const finer = isFine(type) ? context.fill` + $1.p` : sql``
  return context.fill`(q_floordiv(epoch_us($1.t), 1000) / 1e3 + ((epoch_us($1.t) % 1000 + 1000) % 1000 * 1000000${finer}) / 1e12)`
}

function fromUnixTime(context: RenderContext, zone: Sql): Sql {
  return zoned(context, sql`q_from_unixtime(${context.value(0)})`, zone)
}

function iso(context: RenderContext): Sql {
  const type = context.types[0]!
  if (type.kind === 'date') return context.fill`q_text_date($1)`
  if (type.kind === 'timestamp') return sql`replace(${dateTimeText(context.value(0), type)}, ' ', 'T')`
  if (isFine(type)) throw notSupportedPrecision(type)
  const precision = 'precision' in type ? (type.precision ?? 3) : 3
  return context.fill`replace(q_text_moment(q_local($1.t, $1.z), ${integer(precision)}), ' ', 'T')||q_iso_offset($1)`
}

/** A constant format is compiled to native functions; any other format goes to a JavaScript function. */
function formatted(style: FormatStyle): (context: RenderContext) => Sql {
  return (context) => {
    const type = context.types[0]!
    const isZoned = type.kind === 'timestamp with time zone'
    const held = isFine(type) || isZoned ? context.fill`$1.t` : context.value(0)
    const local = isZoned ? context.fill`q_local($1.t, $1.z)` : held
    const constant = context.constant(1)
    const compiled = typeof constant === 'string' ? compiledFormat(style, constant, isZoned) : undefined
    if (compiled === undefined) {
      const zone = isZoned ? context.fill`$1.z` : sql`''`
      const offset = isZoned ? context.fill`q_offmin($1.t, $1.z)` : sql`CAST(0 AS BIGINT)`
      return context.fill`${code(`u_${style}`)}(epoch_us(q_round(${local}, 1000)), ${zone}, ${offset}, $2)`
    }
    if ('error' in compiled) {
      return context.fill`CAST(CASE WHEN $1 IS NOT NULL THEN u_raise(${literal(compiled.error)}) END AS VARCHAR)`
    }
    const isRound = isMilliseconds(type)
    // There is nothing to round and no zone to print.
    if (!isZoned && isRound) return compiled.print({ local: held, zoned: undefined })
    const name = context.names.fresh()
    const zone = context.names.fresh()
    const zoned = isZoned ? { zone: sql`${zone}.z`, offset: sql`q_offmin(${zone}.t, ${zone}.z)` } : undefined
    const bound = bindName(name, isRound ? local : sql`q_round(${local}, 1000)`, compiled.print({ local: name, zoned }))
    return compiled.usesZone ? bindName(zone, context.value(0), bound) : bound
  }
}

/**
 * Parses a local time. DuckDB parses texts in the most likely shape of a constant format; `general` parses all others.
 */
function parsedBy(style: ParseStyle, context: RenderContext, general: Sql): Sql {
  const constant = context.constant(1)
  const found = typeof constant === 'string' ? fixedFormat(style, constant) : undefined
  if (found === undefined) return general
  const shaped = (shape: string): Sql => context.fill`q_shaped($1, ${literal(shape)}, ${literal(found.strptime)})`
  const [first, ...others] = found.shapes.map(shaped)
  if (others.length === 0) return sql`coalesce(${first!}, ${general})`
  return sql`coalesce(date_trunc('millisecond', coalesce(${joined([first!, ...others], ', ')})), ${general})`
}

function dateParsed(context: RenderContext): Sql {
  return parsedBy('mysql', context, context.fill`make_timestamp(u_date_parse($1, $2))`)
}

function datetimeParsed(context: RenderContext): Sql {
  const zone = literal(context.session.timeZone)
  const general = context.fill`q_parsed_datetime(u_parse_datetime($1, $2), ${zone})`
  const local = parsedBy('joda', context, typedNull({ kind: 'timestamp', precision: 3 }))
  if (isTypedNull(local)) return general
  const name = context.names.fresh()
  // All years of four digits are within the range that Trino can pack.
  const zonedAt = structOf({ t: sql`q_instant(${name}, ${zone})`, z: zone })
  return bindName(name, local, sql`CASE WHEN ${name} IS NOT NULL THEN ${zonedAt} ELSE ${general} END`)
}

/**
 * Compiles formats of words and punctuation that have the same meaning in Joda. Any other format goes to a function,
 * which may refuse it.
 */
function teradataFormatted(context: RenderContext): Sql {
  const constant = context.constant(1)
  const joda = typeof constant === 'string' ? plainTeradataAsJoda(constant) : undefined
  const compiled = joda === undefined ? undefined : compiledFormat(JODA_FORMAT, joda, true)
  const local = context.fill`q_local($1.t, $1.z)`
  if (compiled === undefined || 'error' in compiled) return context.fill`u_teradata_format(epoch_us(${local}), $2)`
  const name = context.names.fresh()
  // Same as in the function: digits finer than milliseconds are rounded down, also before 1970.
  const moment = isMilliseconds(context.types[0]!) ? local : sql`make_timestamp(epoch_us(${local}) // 1000 * 1000)`
  return bindName(name, moment, compiled.print({ local: name, zoned: undefined }))
}

function isMilliseconds(type: SqlType): boolean {
  return 'precision' in type && (type.precision ?? 3) <= 3
}

function teradataParsed(context: RenderContext): Sql {
  return parsedBy('teradata', context, context.fill`make_timestamp(u_teradata_parse($1, $2))`)
}

const parsing = [
  scalar('date_parse(varchar(x), varchar(y))', 'timestamp(3)', dateParsed, PARTIAL),
  scalar('parse_datetime(varchar(x), varchar(y))', 'timestamp(3) with time zone', datetimeParsed, PARTIAL),
  scalar('to_date(varchar, varchar)', 'date', (context) => sql`CAST(${teradataParsed(context)} AS DATE)`, PARTIAL),
  scalar('to_timestamp(varchar, varchar)', 'timestamp(3)', teradataParsed, PARTIAL),
  scalar('from_iso8601_date(varchar(x))', 'date', 'q_iso_date($1)', PARTIAL),
  scalar(
    'from_iso8601_timestamp(varchar(x))',
    'timestamp(3) with time zone',
    (context) => context.fill`q_iso_instant($1, ${literal(context.session.timeZone)})`,
    PARTIAL,
  ),
  scalar(
    'from_iso8601_timestamp_nanos(varchar(x))',
    'timestamp(9) with time zone',
    (context) => context.fill`q_iso_instant_fine($1, ${literal(context.session.timeZone)})`,
    PARTIAL,
  ),
  scalar('date(varchar(x))', 'date', 'q_text_to_date($1)', PARTIAL),
  scalar('date(timestamp(p))', 'date', (context) => context.fill`CAST(${nativeOf(context)} AS DATE)`, PARTIAL),
  scalar('date(timestamp(p) with time zone)', 'date', 'CAST(q_local($1.t, $1.z) AS DATE)', PARTIAL),
  scalar('parse_duration(varchar(x))', 'interval day to second', 'q_parse_duration($1)', PARTIAL),
  scalar('human_readable_seconds(double)', 'varchar', 't_hrs($1)', PARTIAL),
]

export const datetimeFunctions: readonly FunctionDefinition[] = [
  ...fields,
  ...intervalFields,
  ...currentValues,
  ...momentFunctions,
  scalar('last_day_of_month(date)', 'date', 'last_day($1)', PARTIAL),
  scalar('last_day_of_month(timestamp(p))', 'date', (context) => context.fill`last_day(${nativeOf(context)})`, PARTIAL),
  scalar('last_day_of_month(timestamp(p) with time zone)', 'date', 'last_day(q_local($1.t, $1.z))', PARTIAL),
  scalar('at_timezone(timestamp(p) with time zone, varchar(x))', 'timestamp(p) with time zone', atTimezone, PARTIAL),
  scalar('at_timezone(time(p) with time zone, varchar(x))', 'time(p) with time zone', timeAtTimezone, PARTIAL, {
    hidden: true,
  }),
  scalar(
    'at_timezone(timestamp(p) with time zone, interval day to second)',
    'timestamp(p) with time zone',
    (context) => atZone(context, context.fill`q_offset_zone(q_zone_offset($2))`),
    PARTIAL,
    { hidden: 'unlisted' },
  ),
  scalar('with_timezone(timestamp(p), varchar(x))', 'timestamp(p) with time zone', withTimezone, PARTIAL),
  scalar('timezone(timestamp(p) with time zone)', 'varchar', '$1.z', PARTIAL),
  scalar('timezone(time(p) with time zone)', 'varchar', 'q_offset_text($1.o)', PARTIAL),
  scalar('timezone_hour(timestamp(p) with time zone)', 'bigint', 'CAST(q_offmin($1.t, $1.z) // 60 AS BIGINT)', PARTIAL),
  scalar(
    'timezone_minute(timestamp(p) with time zone)',
    'bigint',
    'CAST(q_offmin($1.t, $1.z) % 60 AS BIGINT)',
    PARTIAL,
  ),
  scalar('timezone_hour(time(p) with time zone)', 'bigint', 'CAST($1.o // 60 AS BIGINT)', PARTIAL),
  scalar('timezone_minute(time(p) with time zone)', 'bigint', 'CAST($1.o % 60 AS BIGINT)', PARTIAL),
  scalar('to_unixtime(timestamp(p) with time zone)', 'double', unixTime, PARTIAL),
  scalar(
    'from_unixtime(double)',
    'timestamp(3) with time zone',
    (context) => fromUnixTime(context, literal(context.session.timeZone)),
    PARTIAL,
  ),
  scalar(
    'from_unixtime(double, varchar(x))',
    'timestamp(3) with time zone',
    (context) => fromUnixTime(context, zoneArgument(context, 1, 'u_supported_zone')),
    PARTIAL,
  ),
  scalar(
    'from_unixtime(double, bigint, bigint)',
    'timestamp(3) with time zone',
    (context) => fromUnixTime(context, context.fill`q_offset_zone(q_offset_minutes($2 * 60 + $3))`),
    PARTIAL,
  ),
  scalar(
    'from_unixtime_nanos(bigint)',
    'timestamp(9) with time zone',
    (context) => context.fill`q_from_nanos(CAST($1 AS HUGEINT), ${literal(context.session.timeZone)})`,
    PARTIAL,
  ),
  scalar(
    'from_unixtime_nanos(decimal(p,s))',
    'timestamp(9) with time zone',
    (context) => context.fill`q_from_nanos(CAST($1 AS HUGEINT), ${literal(context.session.timeZone)})`,
    PARTIAL,
  ),
  scalar('to_iso8601(date)', 'varchar(16)', iso, PARTIAL),
  scalar('to_iso8601(timestamp(p))', ({ numbers }) => isoLength(numbers['p'] ?? 0, 22), iso, PARTIAL),
  scalar('to_iso8601(timestamp(p) with time zone)', ({ numbers }) => isoLength(numbers['p'] ?? 0, 28), iso, PARTIAL),
  scalar('date_format(timestamp(p), varchar(x))', 'varchar', formatted(MYSQL_FORMAT), PARTIAL),
  scalar('date_format(timestamp(p) with time zone, varchar(x))', 'varchar', formatted(MYSQL_FORMAT), PARTIAL),
  scalar('format_datetime(timestamp(p), varchar(x))', 'varchar', formatted(JODA_FORMAT), PARTIAL),
  scalar('format_datetime(timestamp(p) with time zone, varchar(x))', 'varchar', formatted(JODA_FORMAT), PARTIAL),
  scalar('to_char(timestamp(p) with time zone, varchar)', 'varchar', teradataFormatted, PARTIAL),
  ...parsing,
]

function isoLength(precision: number, whole: number): ReturnType<typeof varchar> {
  return varchar(precision === 0 ? whole : whole + 1 + precision)
}
