import { tick } from '../../shared/cpu-budget.ts'

/**
 * Trino's types. `kind` is Trino's base name, as in `typeSignature.rawType`. `MAX_VARCHAR_LENGTH` and the like are
 * Trino's limits.
 */
export type SqlType =
  | SimpleType
  | DecimalType
  | CharType
  | VarcharType
  | TimeType
  | TimestampType
  | ArrayType
  | MapType
  | RowType
  | QuantileDigestType
  | FunctionType

export interface SimpleType {
  readonly kind: SimpleKind
}
export interface DecimalType {
  readonly kind: 'decimal'
  /** The total number of digits, 1..38. */
  readonly precision: number
  readonly scale: number
}
export interface CharType {
  readonly kind: 'char'
  /** 0..65536 code points; values are padded with blanks to this length. */
  readonly length: number
}
export interface VarcharType {
  readonly kind: 'varchar'
  /** The maximum number of code points; undefined for an unbounded varchar. */
  readonly length: number | undefined
}
export interface TimeType {
  readonly kind: 'time' | 'time with time zone'
  /** The number of fractional digits of a second, 0..12. */
  readonly precision: number
}
export interface TimestampType {
  readonly kind: 'timestamp' | 'timestamp with time zone'
  /** The number of fractional digits of a second, 0..12. */
  readonly precision: number
}
export interface ArrayType {
  readonly kind: 'array'
  readonly element: SqlType
}
export interface MapType {
  readonly kind: 'map'
  readonly key: SqlType
  readonly value: SqlType
}
export interface RowField {
  /** The name as written (the parser folds it to lower case unless quoted); undefined for an anonymous field. */
  readonly name: string | undefined
  readonly type: SqlType
}
export interface RowType {
  readonly kind: 'row'
  readonly fields: readonly RowField[]
}
export interface QuantileDigestType {
  readonly kind: 'qdigest'
  readonly element: SqlType
}
/** The type of a lambda: used only while a function call is resolved, never for a column. */
export interface FunctionType {
  readonly kind: 'function'
  readonly arguments: readonly SqlType[]
  readonly result: SqlType
}

export const simpleKinds = [
  'unknown',
  'boolean',
  'tinyint',
  'smallint',
  'integer',
  'bigint',
  'real',
  'double',
  'varbinary',
  'json',
  'date',
  'interval day to second',
  'interval year to month',
  'uuid',
  'ipaddress',
  'HyperLogLog',
  'P4HyperLogLog',
  'tdigest',
  'SetDigest',
  'color',
  'JsonPath',
  'json2016',
  'JoniRegExp',
  'LikePattern',
  'CodePoints',
  'Geometry',
  'SphericalGeography',
  'BingTile',
] as const

export type SimpleKind = (typeof simpleKinds)[number]

export const MAX_DECIMAL_PRECISION = 38
export const MAX_CHAR_LENGTH = 65536
/** The length that the wire format gives for an unbounded varchar; bounded lengths are smaller. */
export const UNBOUNDED_LENGTH = 2147483647
export const MAX_DATETIME_PRECISION = 12
/** The finest precision of DuckDB's TIME and TIMESTAMP; finer values are held as structs. */
export const MAX_NATIVE_PRECISION = 6

function simple(kind: SimpleKind): SimpleType {
  return Object.freeze({ kind })
}

export const UNKNOWN = simple('unknown')
export const BOOLEAN = simple('boolean')
export const INTEGER = simple('integer')
export const BIGINT = simple('bigint')
export const DOUBLE = simple('double')
export const VARBINARY = simple('varbinary')
export const JSON_TYPE = simple('json')
export const DATE = simple('date')
export const INTERVAL_DAY = simple('interval day to second')
export const INTERVAL_YEAR = simple('interval year to month')
export const VARCHAR: VarcharType = Object.freeze({ kind: 'varchar', length: undefined })

export function simpleType(kind: SimpleKind): SimpleType {
  return { kind }
}

export function decimal(precision: number, scale: number): DecimalType {
  return { kind: 'decimal', precision, scale }
}

export function char(length: number): CharType {
  return { kind: 'char', length }
}

export function varchar(length?: number): VarcharType {
  return length === undefined || length >= UNBOUNDED_LENGTH ? VARCHAR : { kind: 'varchar', length }
}

export function time(precision: number): TimeType {
  return { kind: 'time', precision }
}

export function timeWithTimeZone(precision: number): TimeType {
  return { kind: 'time with time zone', precision }
}

export function timestamp(precision: number): TimestampType {
  return { kind: 'timestamp', precision }
}

export function timestampWithTimeZone(precision: number): TimestampType {
  return { kind: 'timestamp with time zone', precision }
}

export function array(element: SqlType): ArrayType {
  return { kind: 'array', element }
}

export function map(key: SqlType, value: SqlType): MapType {
  return { kind: 'map', key, value }
}

export function row(fields: readonly RowField[]): RowType {
  return { kind: 'row', fields }
}

/** A row type whose fields have no names, as in `ROW(1, 'a')`. */
export function anonymousRow(types: readonly SqlType[]): RowType {
  return { kind: 'row', fields: types.map((type) => ({ name: undefined, type })) }
}

export function qdigest(element: SqlType): QuantileDigestType {
  return { kind: 'qdigest', element }
}

const parts = new WeakMap<SqlType, number>()

/** The number of types that a type consists of, including itself. A part that occurs several times is computed once. */
export function partsOfType(type: SqlType): number {
  if (!('element' in type || 'key' in type || 'fields' in type)) return 1
  const known = parts.get(type)
  if (known !== undefined) return known
  const within =
    type.kind === 'row'
      ? type.fields.map((field) => field.type)
      : type.kind === 'map'
        ? [type.key, type.value]
        : [type.element]
  const count = within.reduce((sum, part) => sum + partsOfType(part), 1)
  parts.set(type, count)
  return count
}

/** Whether two types are the same in every part, including names of row fields. */
export function sameType(a: SqlType, b: SqlType): boolean {
  tick()
  if (a === b) return true
  if (a.kind !== b.kind) return false
  switch (a.kind) {
    case 'decimal': {
      const other = b as DecimalType
      return a.precision === other.precision && a.scale === other.scale
    }
    case 'char':
    case 'varchar':
      return a.length === (b as CharType | VarcharType).length
    case 'time':
    case 'time with time zone':
    case 'timestamp':
    case 'timestamp with time zone':
      return a.precision === (b as TimeType | TimestampType).precision
    case 'array':
    case 'qdigest':
      return sameType(a.element, (b as ArrayType | QuantileDigestType).element)
    case 'map':
      return sameType(a.key, (b as MapType).key) && sameType(a.value, (b as MapType).value)
    case 'row': {
      const other = (b as RowType).fields
      return (
        a.fields.length === other.length &&
        a.fields.every((field, i) => field.name === other[i]!.name && sameType(field.type, other[i]!.type))
      )
    }
    case 'function': {
      const other = b as FunctionType
      return (
        a.arguments.length === other.arguments.length &&
        a.arguments.every((type, i) => sameType(type, other.arguments[i]!)) &&
        sameType(a.result, other.result)
      )
    }
    default:
      return true
  }
}

export function isInteger(type: SqlType): boolean {
  return type.kind === 'tinyint' || type.kind === 'smallint' || type.kind === 'integer' || type.kind === 'bigint'
}

export function isFloating(type: SqlType): boolean {
  return type.kind === 'real' || type.kind === 'double'
}

export function isNumeric(type: SqlType): boolean {
  return isInteger(type) || isFloating(type) || type.kind === 'decimal'
}

export function isCharacter(type: SqlType): type is CharType | VarcharType {
  return type.kind === 'char' || type.kind === 'varchar'
}

export function isDateTime(type: SqlType): boolean {
  return (
    type.kind === 'date' ||
    type.kind === 'time' ||
    type.kind === 'time with time zone' ||
    type.kind === 'timestamp' ||
    type.kind === 'timestamp with time zone'
  )
}

/** Whether `=`, DISTINCT, GROUP BY and join keys accept the type. */
export function isComparable(type: SqlType): boolean {
  tick()
  switch (type.kind) {
    case 'HyperLogLog':
    case 'P4HyperLogLog':
    case 'tdigest':
    case 'SetDigest':
    case 'qdigest':
    case 'JsonPath':
    case 'json2016':
    case 'JoniRegExp':
    case 'LikePattern':
    case 'CodePoints':
    case 'Geometry':
    case 'SphericalGeography':
    case 'BingTile':
    case 'function':
      return type.kind === 'BingTile'
    case 'array':
      return isComparable(type.element)
    case 'map':
      return isComparable(type.key) && isComparable(type.value)
    case 'row':
      return type.fields.every((field) => isComparable(field.type))
    default:
      return true
  }
}

/** Whether `<`, ORDER BY, min and max accept the type. */
export function isOrderable(type: SqlType): boolean {
  tick()
  switch (type.kind) {
    case 'map':
    case 'json':
    case 'color':
    case 'BingTile':
      return false
    case 'array':
      return isOrderable(type.element)
    case 'row':
      return type.fields.every((field) => isOrderable(field.type))
    default:
      return isComparable(type)
  }
}

/**
 * Whether the type or a part of it, at any depth, satisfies the test: for example, whether values may contain a zone or
 * a NaN.
 */
export function typeContains(type: SqlType, test: (part: SqlType) => boolean): boolean {
  tick()
  if (test(type)) return true
  switch (type.kind) {
    case 'array':
    case 'qdigest':
      return typeContains(type.element, test)
    case 'map':
      return typeContains(type.key, test) || typeContains(type.value, test)
    case 'row':
      return type.fields.some((field) => typeContains(field.type, test))
    default:
      return false
  }
}
