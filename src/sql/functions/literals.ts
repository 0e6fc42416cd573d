import { EngineError, type ErrorLocation } from '../../shared/engine-error.ts'
import { duckdbType } from '../types/duckdb-representation.ts'
import {
  BIGINT,
  DATE,
  decimal,
  DOUBLE,
  INTEGER,
  time,
  timestamp,
  timestampWithTimeZone,
  timeWithTimeZone,
  varchar,
  type SqlType,
} from '../types/sql-type.ts'
import { parseDate, parseTime, parseTimestamp } from './datetime-text.ts'
import { quote, type Constant } from './rendering.ts'
import { zoneOfOffset } from './time-zones.ts'

/** A literal: its type and how it is held in DuckDB. */
export interface Literal {
  readonly type: SqlType
  readonly sql: string
  readonly constant?: Constant
}

/** `12`, `0x1F`, `1_000`: integer or bigint; text as written, without sign. */
export function integerLiteral(text: string, location?: ErrorLocation): Literal {
  const value = BigInt(text.replaceAll('_', '').replace(/^0+(?=\d)/, ''))
  if (value > 9223372036854775807n) {
    throw new EngineError('SYNTAX_ERROR', `Invalid numeric literal: ${text}`, { location })
  }
  const type = value <= 2147483647n ? INTEGER : BIGINT
  return { type, sql: `CAST(${value} AS ${duckdbType(type)})`, constant: value }
}

/** -9223372036854775808, which is no negated literal. */
export const SMALLEST_BIGINT: Literal = {
  type: BIGINT,
  sql: `CAST('-9223372036854775808' AS BIGINT)`,
  constant: -9223372036854775808n,
}

/** `1.50`, `.5`: its digits are its precision, leading zeros apart. Throws INVALID_LITERAL beyond 38 digits. */
export function decimalLiteral(text: string, location?: ErrorLocation): Literal {
  const written = text.trim().replaceAll('_', '')
  const match = /^([+-]?)(\d*)(?:\.(\d*))?$/.exec(written)
  if (match === null || (match[2] === '' && (match[3] ?? '') === '')) {
    throw new EngineError('INVALID_LITERAL', `'${text}' is not a valid DECIMAL literal`, { location })
  }
  const [, sign = '', whole = '', fraction = ''] = match
  const integral = whole.replace(/^0+/, '')
  const precision = Math.max(1, integral.length + fraction.length)
  if (precision > 38) {
    throw new EngineError('INVALID_LITERAL', `'${text}' is not a valid DECIMAL literal`, { location })
  }
  const type = decimal(precision, fraction.length)
  const value = `${sign === '-' ? '-' : ''}${integral || '0'}${fraction === '' ? '' : `.${fraction}`}`
  return { type, sql: `CAST('${value}' AS ${duckdbType(type)})`, constant: value }
}

export function doubleLiteral(text: string): Literal {
  const value = Number(text.replaceAll('_', ''))
  return { type: DOUBLE, sql: doubleSql(value), constant: value }
}

export function doubleSql(value: number): string {
  const text = Number.isFinite(value)
    ? Object.is(value, -0)
      ? '-0.0'
      : String(value)
    : value > 0
      ? 'Infinity'
      : value < 0
        ? '-Infinity'
        : 'NaN'
  return `CAST('${text}' AS DOUBLE)`
}

export function stringLiteral(text: string): Literal {
  const type = varchar([...text].length)
  return { type, sql: quote(text), constant: text }
}

export function booleanLiteral(value: boolean): Literal {
  return { type: { kind: 'boolean' }, sql: value ? 'true' : 'false', constant: value }
}

export function binaryLiteral(hex: string): Literal {
  return { type: { kind: 'varbinary' }, sql: hex === '' ? `CAST('' AS BLOB)` : `unhex('${hex}')` }
}

/** `DATE '…'`: throws INVALID_LITERAL. */
export function dateLiteral(text: string, location?: ErrorLocation): Literal {
  const days = parseDate(text)
  if (days === undefined) throw invalid(text, 'DATE', location)
  return { type: DATE, sql: dateSql(days) }
}

/** A date by its days since 1970-01-01. */
export function dateSql(days: number): string {
  return `(DATE '1970-01-01' + ${days})`
}

/** `TIME '…'`, with an offset a time with time zone; digits written are the precision. */
export function timeLiteral(text: string, location?: ErrorLocation): Literal {
  tooFine('TIME', /^\s*\d+:\d+:\d+\.(\d+)/.exec(text)?.[1], location)
  const parsed = parseTime(text)
  if (parsed === undefined) throw invalid(text, 'TIME', location)
  const { picos, precision, offset } = parsed
  const held = precision > 6 ? `CAST(${picos} AS BIGINT)` : `(TIME '00:00:00' + to_microseconds(${picos / 1_000_000n}))`
  if (offset === undefined) return { type: time(precision), sql: held }
  return { type: timeWithTimeZone(precision), sql: `{'t': ${held}, 'o': CAST(${offset} AS INTEGER)}` }
}

/** `TIMESTAMP '…'`, with a zone a timestamp with time zone. A local time that the zone skips is no literal. */
export function timestampLiteral(text: string, location?: ErrorLocation): Literal {
  tooFine('TIMESTAMP', /:\d+\.(\d+)/.exec(text)?.[1], location)
  const parsed = parseTimestamp(text)
  if (parsed === undefined) throw invalid(text, 'TIMESTAMP', location)
  const { micros, picos, precision, zone } = parsed
  const local = `make_timestamp(CAST(${micros} AS BIGINT))`
  const fraction = precision > 6 ? `, 'p': CAST(${picos} AS INTEGER)` : ''
  if (zone === undefined) {
    return { type: timestamp(precision), sql: precision > 6 ? `{'t': ${local}${fraction}}` : local }
  }
  const instant = zone === 'UTC' ? local : `q_instant(${local}, ${quote(zone)})`
  return {
    type: timestampWithTimeZone(precision),
    sql: `{'t': ${instant}${fraction}, 'z': ${quote(zone)}}`,
  }
}

function tooFine(name: string, fraction: string | undefined, location: ErrorLocation | undefined): void {
  if (fraction !== undefined && fraction.length > 12) {
    throw new EngineError(
      'NUMERIC_VALUE_OUT_OF_RANGE',
      `${name} precision must be in range [0, 12]: ${fraction.length}`,
      { location },
    )
  }
}

function invalid(text: string, name: string, location: ErrorLocation | undefined): EngineError {
  return new EngineError('INVALID_LITERAL', `'${text}' is not a valid ${name} literal`, { location })
}

/** The zone of `AT TIME ZONE INTERVAL …` and SET TIME ZONE with an interval: an offset in minutes. */
export function zoneOfInterval(millis: bigint): string {
  const minutes = Number(millis / 60_000n)
  if (Math.abs(minutes) > 14 * 60)
    throw new EngineError('INVALID_FUNCTION_ARGUMENT', `Invalid offset minutes ${minutes}`)
  return zoneOfOffset(minutes)
}
