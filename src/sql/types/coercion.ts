import { tick } from '../../shared/cpu-budget.ts'
import {
  anonymousRow,
  array,
  char,
  decimal,
  isCharacter,
  isNumeric,
  map,
  MAX_CHAR_LENGTH,
  MAX_DECIMAL_PRECISION,
  row,
  sameType,
  timestamp,
  timestampWithTimeZone,
  timeWithTimeZone,
  varchar,
  type DecimalType,
  type SqlType,
} from './sql-type.ts'

/** Whether a value of `from` is accepted where `to` is expected, without an explicit cast. */
export function canCoerce(from: SqlType, to: SqlType): boolean {
  const common = commonSuperType(from, to)
  return common !== undefined && sameType(common, to)
}

/** Same as `canCoerce`, but ignores field names: for arguments and values of declared functions. */
export function canCoerceUnnamed(from: SqlType, to: SqlType): boolean {
  return canCoerce(withoutFieldNames(from), withoutFieldNames(to))
}

/** The common type of two types in CASE, COALESCE, IN, BETWEEN, UNION, VALUES, ARRAY[…]; undefined if there is none. */
export function commonSuperType(a: SqlType, b: SqlType): SqlType | undefined {
  tick()
  if (sameType(a, b)) return a
  if (a.kind === 'unknown') return b
  if (b.kind === 'unknown') return a
  if (a.kind === b.kind) return commonOfSameKind(a, b)
  const left = coerceToKind(a, b)
  if (left !== undefined) return commonSuperType(left, b)
  const right = coerceToKind(b, a)
  return right === undefined ? undefined : commonSuperType(a, right)
}

/** The common type of several types; undefined if two of them have none, and for an empty list. */
export function commonSuperTypeOf(types: readonly SqlType[]): SqlType | undefined {
  const [first, ...rest] = types
  return rest.reduce<SqlType | undefined>(
    (common, type) => (common === undefined ? undefined : commonSuperType(common, type)),
    first,
  )
}

/** The decimal that holds every value of an integer type. */
export function decimalOfInteger(type: SqlType): DecimalType {
  const digits = { tinyint: 3, smallint: 5, integer: 10, bigint: 19 } as const
  return decimal(digits[type.kind as keyof typeof digits], 0)
}

function commonOfSameKind(a: SqlType, b: SqlType): SqlType | undefined {
  switch (a.kind) {
    case 'decimal': {
      if (b.kind !== 'decimal') return undefined
      const scale = Math.max(a.scale, b.scale)
      const integral = Math.max(a.precision - a.scale, b.precision - b.scale)
      return decimal(Math.min(MAX_DECIMAL_PRECISION, integral + scale), scale)
    }
    case 'varchar':
      if (b.kind !== 'varchar') return undefined
      return a.length === undefined || b.length === undefined ? varchar() : varchar(Math.max(a.length, b.length))
    case 'char':
      return b.kind === 'char' ? char(Math.max(a.length, b.length)) : undefined
    case 'time':
    case 'time with time zone':
      return b.kind === a.kind ? { kind: a.kind, precision: Math.max(a.precision, b.precision) } : undefined
    case 'timestamp':
    case 'timestamp with time zone':
      return b.kind === a.kind ? { kind: a.kind, precision: Math.max(a.precision, b.precision) } : undefined
    case 'array': {
      if (b.kind !== 'array') return undefined
      const element = commonSuperType(a.element, b.element)
      return element && array(element)
    }
    case 'map': {
      if (b.kind !== 'map') return undefined
      const key = commonSuperType(a.key, b.key)
      const value = commonSuperType(a.value, b.value)
      return key && value && map(key, value)
    }
    case 'row': {
      if (b.kind !== 'row' || a.fields.length !== b.fields.length) return undefined
      const fields = []
      for (const [i, { name, type }] of a.fields.entries()) {
        const other = b.fields[i]!
        const common = commonSuperType(type, other.type)
        if (common === undefined) return undefined
        fields.push({ name: name === other.name ? name : undefined, type: common })
      }
      return row(fields)
    }
    default:
      return undefined
  }
}

/** The narrowest type of the kind of `to` that holds all values of `from`; undefined if Trino has no such coercion. */
export function coerceToKind(from: SqlType, to: SqlType): SqlType | undefined {
  switch (from.kind) {
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      if (to.kind === 'decimal') return decimalOfInteger(from)
      return numericRank(to) > numericRank(from) ? to : undefined
    case 'decimal':
      return to.kind === 'real' || to.kind === 'double' ? to : undefined
    case 'real':
      return to.kind === 'double' ? to : undefined
    case 'date':
      if (to.kind === 'timestamp') return timestamp(0)
      return to.kind === 'timestamp with time zone' ? timestampWithTimeZone(0) : undefined
    case 'time':
      return to.kind === 'time with time zone' ? timeWithTimeZone(from.precision) : undefined
    case 'timestamp':
      return to.kind === 'timestamp with time zone' ? timestampWithTimeZone(from.precision) : undefined
    case 'varchar':
      if (to.kind === 'char') return char(Math.min(from.length ?? MAX_CHAR_LENGTH, MAX_CHAR_LENGTH))
      return isPattern(to) ? to : undefined
    case 'char':
      return isPattern(to) ? to : undefined
    case 'P4HyperLogLog':
      return to.kind === 'HyperLogLog' ? to : undefined
    default:
      return undefined
  }
}

function numericRank(type: SqlType): number {
  return ['tinyint', 'smallint', 'integer', 'bigint', 'real', 'double'].indexOf(type.kind)
}

function isPattern(type: SqlType): boolean {
  return type.kind === 'JoniRegExp' || type.kind === 'JsonPath'
}

/** Whether CAST(from AS to) exists. A value that cannot be converted fails at run time. */
export function canCast(from: SqlType, to: SqlType): boolean {
  tick()
  if (sameType(from, to) || from.kind === 'unknown' || canCoerce(from, to)) return true
  if (from.kind === 'json') return castableFromJson(to)
  if (to.kind === 'json') return castableToJson(from)
  switch (from.kind) {
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'real':
    case 'double':
    case 'decimal':
      return to.kind === 'boolean' || isNumeric(to) || to.kind === 'varchar'
    case 'varchar':
      return castableFromVarchar(to)
    case 'char':
      return isCharacter(to)
    case 'varbinary':
      return ['uuid', 'ipaddress', 'HyperLogLog', 'tdigest', 'qdigest', 'SetDigest'].includes(to.kind)
    case 'uuid':
    case 'ipaddress':
      return (to.kind === 'varchar' && to.length === undefined) || to.kind === 'varbinary'
    case 'date':
      return to.kind === 'varchar' || to.kind === 'timestamp' || to.kind === 'timestamp with time zone'
    case 'time':
    case 'time with time zone':
      return ['varchar', 'time', 'time with time zone', 'timestamp', 'timestamp with time zone'].includes(to.kind)
    case 'timestamp':
    case 'timestamp with time zone':
      return ['varchar', 'date', 'time', 'time with time zone', 'timestamp', 'timestamp with time zone'].includes(
        to.kind,
      )
    case 'interval day to second':
    case 'interval year to month':
      return to.kind === 'varchar'
    case 'HyperLogLog':
      return to.kind === 'varbinary' || to.kind === 'P4HyperLogLog'
    case 'SetDigest':
      return to.kind === 'varbinary' || to.kind === 'HyperLogLog'
    case 'tdigest':
    case 'qdigest':
      return to.kind === 'varbinary'
    case 'array':
      return to.kind === 'array' && canCast(from.element, to.element)
    case 'map':
      return to.kind === 'map' && canCast(from.key, to.key) && canCast(from.value, to.value)
    case 'row':
      return (
        to.kind === 'row' &&
        to.fields.length === from.fields.length &&
        from.fields.every((field, i) => canCast(field.type, to.fields[i]!.type))
      )
    default:
      return false
  }
}

function castableFromVarchar(to: SqlType): boolean {
  return (
    to.kind === 'boolean' ||
    isNumeric(to) ||
    isCharacter(to) ||
    [
      'varbinary',
      'uuid',
      'ipaddress',
      'date',
      'time',
      'time with time zone',
      'timestamp',
      'timestamp with time zone',
    ].includes(to.kind)
  )
}

function castableToJson(from: SqlType): boolean {
  switch (from.kind) {
    case 'unknown':
    case 'boolean':
    case 'varchar':
    case 'json':
    case 'date':
    case 'timestamp':
      return true
    case 'array':
      return castableToJson(from.element)
    case 'map':
      return isJsonKey(from.key) && castableToJson(from.value)
    case 'row':
      return from.fields.every((field) => castableToJson(field.type))
    default:
      return isNumeric(from)
  }
}

function castableFromJson(to: SqlType): boolean {
  switch (to.kind) {
    case 'boolean':
    case 'varchar':
    case 'json':
      return true
    case 'array':
      return castableFromJson(to.element)
    case 'map':
      return isJsonKey(to.key) && castableFromJson(to.value)
    case 'row':
      return to.fields.every((field) => castableFromJson(field.type))
    default:
      return isNumeric(to)
  }
}

function isJsonKey(type: SqlType): boolean {
  return type.kind === 'boolean' || type.kind === 'varchar' || type.kind === 'unknown' || isNumeric(type)
}

/**
 * Whether INSERT accepts a value of `from` for a column of `to`. This is wider than coercion: any number for any
 * number, longer text for shorter, finer times for coarser. Text that does not fit fails at run time.
 */
export function canInsert(from: SqlType, to: SqlType): boolean {
  if (canCoerce(from, to)) return true
  if (isNumeric(from) && isNumeric(to)) return true
  if ((isCharacter(from) || isPattern(from)) && isCharacter(to)) return true
  if (from.kind === 'HyperLogLog' && to.kind === 'P4HyperLogLog') return true
  switch (from.kind) {
    case 'time':
    case 'time with time zone':
      return to.kind === 'time' || to.kind === 'time with time zone'
    case 'timestamp':
    case 'timestamp with time zone':
      return to.kind === 'date' || to.kind === 'timestamp' || to.kind === 'timestamp with time zone'
    case 'array':
      return to.kind === 'array' && canInsert(from.element, to.element)
    case 'map':
      return to.kind === 'map' && canInsert(from.key, to.key) && canInsert(from.value, to.value)
    case 'row':
      return to.kind === 'row' && canInsertAll(fieldTypes(from), fieldTypes(to))
    default:
      return false
  }
}

function fieldTypes({ fields }: Extract<SqlType, { kind: 'row' }>): SqlType[] {
  return fields.map(({ type }) => type)
}

/** Whether INSERT accepts values of these types, in their order, for columns of those types. */
export function canInsertAll(from: readonly SqlType[], to: readonly SqlType[]): boolean {
  return from.length === to.length && from.every((type, i) => canInsert(type, to[i]!))
}

/**
 * Whether a column may have the type. CREATE TABLE AS refuses a column of untyped NULLs instead of guessing its type.
 */
export function isStorable(type: SqlType): boolean {
  return type.kind !== 'unknown' && type.kind !== 'function'
}

/** The type without names of row fields. */
function withoutFieldNames(type: SqlType): SqlType {
  return type.kind === 'row' ? anonymousRow(fieldTypes(type)) : type
}
