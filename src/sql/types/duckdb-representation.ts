import { EngineError } from '../../shared/engine-error.ts'
import { MAX_NATIVE_PRECISION, type DecimalType, type SqlType } from './sql-type.ts'
import { typeName } from './type-text.ts'

/**
 * How a value of each type is held in DuckDB.
 *
 * | type | DuckDB |
 * | --- | --- |
 * | char(n) | VARCHAR, padded with blanks to n |
 * | json | VARCHAR: Trino's canonical text, so that equality is text equality |
 * | time(0..6), timestamp(0..6) | TIME, TIMESTAMP in microseconds; the precision is known to the analyser alone |
 * | time(7..12) | BIGINT: picoseconds of the day |
 * | timestamp(7..12) | STRUCT(t TIMESTAMP, p INTEGER): p is the picoseconds within the microsecond |
 * | time with time zone | STRUCT(t <as time, local>, o INTEGER): o is the offset in minutes |
 * | timestamp with time zone | STRUCT(t TIMESTAMP in UTC, z VARCHAR), finer than microseconds STRUCT(t, p, z) |
 * | interval day to second; year to month | BIGINT milliseconds; INTEGER months |
 * | row | STRUCT(f0 …, f1 …): by position, since DuckDB's names are case-insensitive, unique and cast by name |
 * | uuid; ipaddress | UUID; BLOB of 16 bytes |
 * | HyperLogLog, SetDigest | MAP(UBIGINT, BIGINT): hashes with their counts, exact |
 * | tdigest, qdigest(T) | STRUCT(v, w DOUBLE)[]: the values with their weights, exact |
 * | unknown | INTEGER, always NULL |
 */
export function duckdbType(type: SqlType): string {
  switch (type.kind) {
    case 'unknown':
      return 'INTEGER'
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'double':
    case 'date':
    case 'uuid':
      return type.kind.toUpperCase()
    case 'real':
      return 'FLOAT'
    case 'decimal':
      return `DECIMAL(${type.precision},${type.scale})`
    case 'char':
    case 'varchar':
    case 'json':
    case 'JsonPath':
    case 'json2016':
    case 'JoniRegExp':
    case 'LikePattern':
    case 'CodePoints':
      return 'VARCHAR'
    case 'varbinary':
    case 'ipaddress':
      return 'BLOB'
    case 'time':
      return isFine(type) ? 'BIGINT' : 'TIME'
    case 'time with time zone':
      return `STRUCT(t ${isFine(type) ? 'BIGINT' : 'TIME'}, o INTEGER)`
    case 'timestamp':
      return isFine(type) ? 'STRUCT(t TIMESTAMP, p INTEGER)' : 'TIMESTAMP'
    case 'timestamp with time zone':
      return isFine(type) ? 'STRUCT(t TIMESTAMP, p INTEGER, z VARCHAR)' : 'STRUCT(t TIMESTAMP, z VARCHAR)'
    case 'interval day to second':
      return 'BIGINT'
    case 'interval year to month':
    case 'color':
      return 'INTEGER'
    case 'array':
      return `${duckdbType(type.element)}[]`
    case 'map':
      return `MAP(${duckdbType(type.key)}, ${duckdbType(type.value)})`
    case 'row':
      return `STRUCT(${type.fields.map((field, i) => `${rowField(i)} ${duckdbType(field.type)}`).join(', ')})`
    case 'HyperLogLog':
    case 'P4HyperLogLog':
    case 'SetDigest':
      return 'MAP(UBIGINT, BIGINT)'
    case 'tdigest':
      return 'STRUCT(v DOUBLE, w DOUBLE)[]'
    case 'qdigest':
      return `STRUCT(v ${duckdbType(type.element)}, w DOUBLE)[]`
    case 'Geometry':
    case 'SphericalGeography':
    case 'BingTile':
    case 'function':
      throw new EngineError('NOT_SUPPORTED', `Values of type ${typeName(type)} are not supported`)
  }
}

/** The name of a row's field, counted from 0, in the struct that holds it. */
export function rowField(index: number): string {
  return `f${index}`
}

/** The field of a row held in an expression. */
export function rowFieldOf(expression: string, index: number): string {
  return `struct_extract(${expression}, '${rowField(index)}')`
}

/** Finer than microseconds: held as a struct or in picoseconds, which few renderings take. */
export function isFine(type: SqlType): boolean {
  switch (type.kind) {
    case 'time':
    case 'time with time zone':
    case 'timestamp':
    case 'timestamp with time zone':
      return type.precision > MAX_NATIVE_PRECISION
    default:
      return false
  }
}

/** NULL with its type. */
export function typedNull(type: SqlType): string {
  return `CAST(NULL AS ${duckdbType(type)})`
}

/**
 * Whether an expression is the NULL above. DuckDB folds a function of a NULL literal while it binds and forgets its type,
 * which then fits no overload: what is NULL for NULL is rendered as NULL of its own type instead.
 */
export function isTypedNull(sql: string): boolean {
  return /^CAST\(NULL AS [A-Z0-9_(), a-z[\]]+\)$/.test(sql) && balanced(sql)
}

/** The parenthesis after CAST is closed by the last character and by none before. */
function balanced(sql: string): boolean {
  let depth = 0
  for (let i = 4; i < sql.length; i++) {
    if (sql[i] === '(') depth++
    else if (sql[i] === ')' && --depth === 0) return i === sql.length - 1
  }
  return false
}

/** The text of a decimal: DuckDB leaves out the zero before the point where all digits are behind it. */
export function decimalText(x: string, type: DecimalType): string {
  return type.precision === type.scale ? `q_text_fraction(${x})` : `CAST(${x} AS VARCHAR)`
}
