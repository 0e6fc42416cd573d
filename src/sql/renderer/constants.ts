import { floorDiv } from '../analyzer/datetime.ts'
import type { Constant } from '../functions/rendering.ts'
import { duckdbType, isFine, structOf, typedNull } from '../types/duckdb-representation.ts'
import type { ConstantExpr } from '../analyzer/tree.ts'
import type { SqlType } from '../types/sql-type.ts'
import { digits, integer, literal, sql, type Sql } from '../../duckdb/text/sql.ts'

const PICOS_PER_MICRO = 1_000_000n
const MICROS_PER_DAY = 86_400_000_000n

/** A literal with exactly the type's DuckDB representation; DuckDB's own type inference is never used. */
export function renderConstant({ type, value, zone }: ConstantExpr): Sql {
  if (value === null) return typedNull(type)
  const cast = (written: Sql): Sql => sql`CAST(${written} AS ${duckdbType(type)})`
  const text = String(value)
  switch (type.kind) {
    case 'boolean':
      return value === true ? sql`true` : sql`false`
    case 'integer':
      // DuckDB reads small numbers as INTEGER, and would read the minus as an operator on a number that is too large.
      return cast(text === '-2147483648' ? literal(text) : digits(text))
    case 'tinyint':
    case 'smallint':
    case 'bigint':
      return cast(text.startsWith('-') ? literal(text) : digits(text))
    case 'real':
    case 'double':
    case 'decimal':
      return cast(literal(text))
    case 'varchar':
    case 'json':
    case 'JsonPath':
    case 'JoniRegExp':
    case 'LikePattern':
    case 'CodePoints':
      return literal(text)
    case 'char':
      return literal(padded(text, type.length))
    case 'varbinary':
      return sql`from_hex(${literal(text)})`
    case 'date':
      return dateLiteral(value as bigint)
    case 'time':
      if (isFine(type)) return cast(digits(text))
      return timeLiteral(value as bigint)
    case 'time with time zone': {
      const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(zone ?? '+00:00') ?? []
      const offset = integer((Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1))
      const local = isFine(type) ? sql`CAST(${digits(text)} AS BIGINT)` : timeLiteral(value as bigint)
      return structOf({ t: local, o: sql`CAST(${offset} AS INTEGER)` })
    }
    case 'timestamp':
      return isFine(type)
        ? sql`{${fineParts(value as bigint)}}`
        : timestampLiteral(floorDiv(value as bigint, PICOS_PER_MICRO))
    case 'timestamp with time zone': {
      const zoneText = literal(zone ?? 'UTC')
      return isFine(type)
        ? sql`{${fineParts(value as bigint)}, 'z': ${zoneText}}`
        : structOf({ t: timestampLiteral(floorDiv(value as bigint, PICOS_PER_MICRO)), z: zoneText })
    }
    case 'interval day to second':
    case 'interval year to month':
    case 'uuid':
      return cast(literal(text))
    default:
      throw new Error(`No literal of type ${type.kind}`)
  }
}

/** The text that a cast to the type reads as the value, for types with arrays of literals. */
export function literalText(type: SqlType, value: NonNullable<ConstantExpr['value']>): string {
  switch (type.kind) {
    case 'char':
      return padded(String(value), type.length)
    case 'date':
      return new Date(Number(value) * 86_400_000).toISOString().slice(0, 10)
    case 'time':
      return clock((value as bigint) / PICOS_PER_MICRO)
    case 'timestamp':
      return dayAndClock(floorDiv(value as bigint, PICOS_PER_MICRO))
    default:
      return String(value)
  }
}

function dayAndClock(micros: bigint): string {
  const days = floorDiv(micros, MICROS_PER_DAY)
  return `${new Date(Number(days) * 86_400_000).toISOString().slice(0, 10)} ${clock(micros - days * MICROS_PER_DAY)}`
}

/** The value in the form for renderings that inspect literals; undefined if they must treat it as an expression. */
export function renderedConstant({ type, value }: ConstantExpr): Constant | undefined {
  if (value === null || typeof value === 'boolean') return value
  switch (type.kind) {
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint': {
      const number = Number(value)
      return Number.isSafeInteger(number) ? number : BigInt(value)
    }
    case 'real':
    case 'double':
      return Number(value)
    default:
      return typeof value === 'bigint' ? value : value
  }
}

function padded(text: string, length: number): string {
  const missing = length - [...text].length
  return missing > 0 ? text + ' '.repeat(missing) : text
}

function dateLiteral(days: bigint): Sql {
  const date = new Date(Number(days) * 86_400_000)
  const year = date.getUTCFullYear()
  if (Number.isNaN(year) || year < 1 || year > 9999) {
    return sql`(DATE '1970-01-01' + CAST(${literal(String(days))} AS INTEGER))`
  }
  return sql`DATE ${literal(date.toISOString().slice(0, 10))}`
}

function timeLiteral(picos: bigint): Sql {
  return sql`TIME ${literal(clock(picos / PICOS_PER_MICRO))}`
}

function clock(micros: bigint): string {
  const seconds = micros / 1_000_000n
  const two = (part: bigint): string => String(part).padStart(2, '0')
  return `${two(seconds / 3600n)}:${two((seconds / 60n) % 60n)}:${two(seconds % 60n)}.${String(micros % 1_000_000n).padStart(6, '0')}`
}

function timestampLiteral(micros: bigint): Sql {
  const days = floorDiv(micros, MICROS_PER_DAY)
  const date = new Date(Number(days) * 86_400_000)
  const year = date.getUTCFullYear()
  if (Number.isNaN(year) || year < 1 || year > 9999) {
    return sql`make_timestamp(CAST(${literal(String(micros))} AS BIGINT))`
  }
  return sql`TIMESTAMP ${literal(dayAndClock(micros))}`
}

function fineParts(picos: bigint): Sql {
  const micros = floorDiv(picos, PICOS_PER_MICRO)
  return sql`'t': ${timestampLiteral(micros)}, 'p': CAST(${integer(picos - micros * PICOS_PER_MICRO)} AS INTEGER)`
}
