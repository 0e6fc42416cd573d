import { quote, type Constant } from '../functions/rendering.ts'
import { duckdbType, isFine, typedNull } from '../types/duckdb-representation.ts'
import type { ConstantExpr } from '../analyzer/tree.ts'

const PICOS_PER_MICRO = 1_000_000n
const MICROS_PER_DAY = 86_400_000_000n

/** A literal of exactly the type's DuckDB representation: DuckDB's own inference is never relied on. */
export function renderConstant({ type, value, zone }: ConstantExpr): string {
  if (value === null) return typedNull(type)
  const cast = (text: string): string => `CAST(${text} AS ${duckdbType(type)})`
  switch (type.kind) {
    case 'boolean':
      return value === true ? 'true' : 'false'
    case 'integer':
      // DuckDB reads small numbers as INTEGER, and takes a bare minus as an operator on a larger one.
      return String(value) === '-2147483648' ? cast(`'${String(value)}'`) : cast(String(value))
    case 'tinyint':
    case 'smallint':
    case 'bigint':
      return cast(`${String(value).startsWith('-') ? `'${String(value)}'` : String(value)}`)
    case 'real':
    case 'double':
      return cast(`'${String(value)}'`)
    case 'decimal':
      return cast(`'${String(value)}'`)
    case 'varchar':
    case 'json':
    case 'JsonPath':
    case 'JoniRegExp':
    case 'LikePattern':
    case 'CodePoints':
      return quote(String(value))
    case 'char':
      return quote(padded(String(value), type.length))
    case 'varbinary':
      return `from_hex('${String(value)}')`
    case 'date':
      return dateLiteral(value as bigint)
    case 'time':
      if (isFine(type)) return cast(String(value))
      return timeLiteral(value as bigint)
    case 'time with time zone': {
      const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(zone ?? '+00:00') ?? []
      const offset = (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1)
      const local = isFine(type) ? `CAST(${String(value)} AS BIGINT)` : timeLiteral(value as bigint)
      return `{'t': ${local}, 'o': CAST(${offset} AS INTEGER)}`
    }
    case 'timestamp':
      return isFine(type)
        ? `{${fineParts(value as bigint)}}`
        : timestampLiteral(floorDiv(value as bigint, PICOS_PER_MICRO))
    case 'timestamp with time zone': {
      const zoneText = quote(zone ?? 'UTC')
      return isFine(type)
        ? `{${fineParts(value as bigint)}, 'z': ${zoneText}}`
        : `{'t': ${timestampLiteral(floorDiv(value as bigint, PICOS_PER_MICRO))}, 'z': ${zoneText}}`
    }
    case 'interval day to second':
    case 'interval year to month':
      return cast(`'${String(value)}'`)
    case 'uuid':
      return cast(quote(String(value)))
    default:
      throw new Error(`No literal of type ${type.kind}`)
  }
}

/** The value as renderings that look at literals take it; undefined for an expression. */
export function constantValue({ type, value }: ConstantExpr): Constant | undefined {
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

function dateLiteral(days: bigint): string {
  const date = new Date(Number(days) * 86_400_000)
  const year = date.getUTCFullYear()
  if (Number.isNaN(year) || year < 1 || year > 9999) return `(DATE '1970-01-01' + CAST('${days}' AS INTEGER))`
  return `DATE '${date.toISOString().slice(0, 10)}'`
}

function timeLiteral(picos: bigint): string {
  return `TIME '${clock(picos / PICOS_PER_MICRO)}'`
}

function clock(micros: bigint): string {
  const seconds = micros / 1_000_000n
  const two = (part: bigint): string => String(part).padStart(2, '0')
  return `${two(seconds / 3600n)}:${two((seconds / 60n) % 60n)}:${two(seconds % 60n)}.${String(micros % 1_000_000n).padStart(6, '0')}`
}

function timestampLiteral(micros: bigint): string {
  const days = floorDiv(micros, MICROS_PER_DAY)
  const date = new Date(Number(days) * 86_400_000)
  const year = date.getUTCFullYear()
  if (Number.isNaN(year) || year < 1 || year > 9999) return `make_timestamp(CAST('${micros}' AS BIGINT))`
  return `TIMESTAMP '${date.toISOString().slice(0, 10)} ${clock(micros - days * MICROS_PER_DAY)}'`
}

function fineParts(picos: bigint): string {
  const micros = floorDiv(picos, PICOS_PER_MICRO)
  return `'t': ${timestampLiteral(micros)}, 'p': CAST(${picos - micros * PICOS_PER_MICRO} AS INTEGER)`
}

function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b
  return a % b !== 0n && a < 0n ? quotient - 1n : quotient
}
