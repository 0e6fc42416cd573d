import { EngineError } from '../../shared/engine-error.ts'
import { code, formOf, integer, joined, literal, plainName, sql, type Sql, toText } from '../../duckdb/text/sql.ts'
import { MAX_NATIVE_PRECISION, type DecimalType, type SqlType } from './sql-type.ts'
import { typeName } from './type-text.ts'

const INTEGER = code('INTEGER')
const BIGINT = code('BIGINT')
const FLOAT = code('FLOAT')
const VARCHAR = code('VARCHAR')
const BLOB = code('BLOB')
const TIME = code('TIME')
const TIMESTAMP = code('TIMESTAMP')
const TIME_WITH_ZONE = code('STRUCT(t TIME, o INTEGER)')
const FINE_TIME_WITH_ZONE = code('STRUCT(t BIGINT, o INTEGER)')
const FINE_TIMESTAMP = code('STRUCT(t TIMESTAMP, p INTEGER)')
const TIMESTAMP_WITH_ZONE = code('STRUCT(t TIMESTAMP, z VARCHAR)')
const FINE_TIMESTAMP_WITH_ZONE = code('STRUCT(t TIMESTAMP, p INTEGER, z VARCHAR)')
const SKETCH = code('STRUCT(b INTEGER, d BOOLEAN, c INTEGER[])')
const COUNTED_CODES = code('MAP(INTEGER, BIGINT)')
const WEIGHTED_DOUBLES = code('STRUCT(v DOUBLE, w DOUBLE)[]')

/** Types with the same name in DuckDB. */
const named = {
  boolean: code('BOOLEAN'),
  tinyint: code('TINYINT'),
  smallint: code('SMALLINT'),
  integer: INTEGER,
  bigint: BIGINT,
  double: code('DOUBLE'),
  date: code('DATE'),
  uuid: code('UUID'),
} as const

/**
 * The DuckDB representation of each type.
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
 * | HyperLogLog | STRUCT(b INTEGER, d BOOLEAN, c INTEGER[]): codes (`q_distinct_code`), or 2^b registers if d |
 * | SetDigest | MAP(INTEGER, BIGINT): codes of the values with their counts |
 * | tdigest, qdigest(T) | STRUCT(v, w DOUBLE)[]: values with their weights, sorted |
 * | unknown | INTEGER, always NULL |
 */
export function duckdbType(type: SqlType): Sql {
  switch (type.kind) {
    case 'unknown':
      return INTEGER
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'double':
    case 'date':
    case 'uuid':
      return named[type.kind]
    case 'real':
      return FLOAT
    case 'decimal':
      return decimalType(type.precision, type.scale)
    case 'char':
    case 'varchar':
    case 'json':
    case 'JsonPath':
    case 'json2016':
    case 'JoniRegExp':
    case 'LikePattern':
    case 'CodePoints':
      return VARCHAR
    case 'varbinary':
    case 'ipaddress':
      return BLOB
    case 'time':
      return isFine(type) ? BIGINT : TIME
    case 'time with time zone':
      return isFine(type) ? FINE_TIME_WITH_ZONE : TIME_WITH_ZONE
    case 'timestamp':
      return isFine(type) ? FINE_TIMESTAMP : TIMESTAMP
    case 'timestamp with time zone':
      return isFine(type) ? FINE_TIMESTAMP_WITH_ZONE : TIMESTAMP_WITH_ZONE
    case 'interval day to second':
      return BIGINT
    case 'interval year to month':
    case 'color':
      return INTEGER
    case 'array':
      return sql`${duckdbType(type.element)}[]`
    case 'map':
      return sql`MAP(${duckdbType(type.key)}, ${duckdbType(type.value)})`
    case 'row':
      return sql`STRUCT(${joined(
        type.fields.map((field, i) => sql`${rowField(i)} ${duckdbType(field.type)}`),
        ', ',
      )})`
    case 'HyperLogLog':
    case 'P4HyperLogLog':
      return SKETCH
    case 'SetDigest':
      return COUNTED_CODES
    case 'tdigest':
      return WEIGHTED_DOUBLES
    case 'qdigest':
      return sql`STRUCT(v ${duckdbType(type.element)}, w DOUBLE)[]`
    case 'Geometry':
    case 'SphericalGeography':
    case 'BingTile':
    case 'function':
      throw new EngineError('NOT_SUPPORTED', `Values of type ${typeName(type)} are not supported`)
  }
}

/** `duckdbType` as text, for callers that do not build SQL with it: connectors, and writers of tables. */
export function duckdbTypeText(type: SqlType): string {
  return toText(duckdbType(type))
}

export function decimalType(precision: number, scale: number): Sql {
  return sql`DECIMAL(${integer(precision)},${integer(scale)})`
}

/** The name of a row's field in its struct, counted from 0. */
function rowField(index: number): Sql {
  return plainName(`f${index}`)
}

/** A struct that holds a row of these values: `{'f0': …, 'f1': …}`. */
export function rowOf(values: readonly Sql[]): Sql {
  return structLiteral(values.map((value, i) => [`f${i}`, value]))
}

/** A struct with these fields: `{'t': …, 'z': …}`. All structs in rendered statements are made here or by `rowOf`. */
export function structOf(fields: Readonly<Record<string, Sql>>): Sql {
  return structLiteral(Object.entries(fields))
}

function structLiteral(fields: readonly (readonly [name: string, value: Sql])[]): Sql {
  return sql`{${joined(
    fields.map(([field, value]) => sql`${literal(field)}: ${unlessMacro(value)}`),
    ', ',
  )}}`
}

/**
 * Wraps a macro call in CASE, which the optimizer removes. Without it the struct field loses its name ("Need named
 * argument for struct pack") where DuckDB first binds a column inside a query and then retries in the outer query.
 */
function unlessMacro(value: Sql): Sql {
  return /^\(*[qtu]_/.test(formOf(value, MACRO_HEAD)) ? sql`CASE WHEN true THEN ${value} END` : value
}

/** The number of leading characters that suffice to recognize a macro call. */
const MACRO_HEAD = 40

/** The field of a row that an expression holds. */
export function rowFieldOf(expression: Sql, index: number): Sql {
  return sql`struct_extract(${expression}, ${literal(`f${index}`)})`
}

/** Whether a type is finer than microseconds: it is held as a struct or in picoseconds, which few renderings accept. */
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

const typedNulls = new WeakSet<Sql>()

/** NULL with its type. */
export function typedNull(type: SqlType): Sql {
  const made = sql`CAST(NULL AS ${duckdbType(type)})`
  typedNulls.add(made)
  return made
}

/**
 * Whether an expression is a NULL made by `typedNull`. DuckDB folds a function of a NULL literal while binding and
 * loses its type, so that no overload matches. A call that is NULL for NULL is therefore rendered as NULL of its own
 * type.
 */
export function isTypedNull(piece: Sql): boolean {
  return typedNulls.has(piece)
}

/** The text of a decimal. DuckDB omits the zero before the point if all digits are fractional. */
export function decimalText(x: Sql, type: DecimalType): Sql {
  return type.precision === type.scale ? sql`q_text_fraction(${x})` : sql`CAST(${x} AS VARCHAR)`
}

/** The text length up to which a number fits 18 digits, however it is rounded. */
export function shortText({ scale }: DecimalType): number {
  return 18 - scale
}

/** Reads a decimal from a text; NULL if it does not fit. DuckDB is a hundred times slower on more than 18 digits. */
export function readDecimal(text: Sql, to: DecimalType, isShort: Sql): Sql {
  const type = duckdbType(to)
  const read = sql`TRY_CAST(${text} AS ${type})`
  if (to.precision <= 18 || shortText(to) < 2) return read
  const short = duckdbType({ kind: 'decimal', precision: 18, scale: to.scale })
  return sql`CASE WHEN ${isShort} THEN CAST(TRY_CAST(${text} AS ${short}) AS ${type}) ELSE ${read} END`
}
