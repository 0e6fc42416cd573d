import { EngineError, type ErrorLocation } from '../../shared/engine-error.ts'
import { canCast } from '../types/coercion.ts'
import {
  decimalText,
  duckdbType,
  isTypedNull,
  rowField,
  rowFieldOf,
  typedNull,
} from '../types/duckdb-representation.ts'
import { isInteger, sameType, type SqlType } from '../types/sql-type.ts'
import { typeName, typeText } from '../types/type-text.ts'
import { castToDateTime, dateTimeText } from './casts-datetime.ts'
import { castFromJson, castToJson } from './casts-json.ts'
import { bindHeavy } from './bind-heavy.ts'
import { bindName } from './fill-template.ts'
import { quote, type Names, type RenderSession } from './rendering.ts'

export interface CastContext {
  readonly session: RenderSession
  readonly names: Names
}

/** Throws TYPE_MISMATCH where Trino knows no such cast; functions that cast within themselves name another error. */
export function requireCast(
  from: SqlType,
  to: SqlType,
  location?: ErrorLocation,
  errorName: 'TYPE_MISMATCH' | 'OPERATOR_NOT_FOUND' = 'TYPE_MISMATCH',
): void {
  if (!canCast(from, to)) {
    throw new EngineError(errorName, `Cannot cast ${typeName(from)} to ${typeName(to)}`, { location })
  }
}

/**
 * `CAST(x AS to)`, also for coercions: both know the same conversions. Fails at run time with Trino's error where the
 * value does not survive it. The cast must exist (`requireCast`).
 */
export function renderCast(x: string, from: SqlType, to: SqlType, context: CastContext): string {
  if (sameType(from, to)) return x
  if (from.kind === 'unknown' || isTypedNull(x)) return typedNull(to)
  if (sameRepresentation(from, to)) return x
  return bindHeavy([x], context.names, ([operand]) => convert(operand!, from, to, context))
}

/** `TRY_CAST(x AS to)`: NULL where the conversion fails; what fails in `x` itself still fails. */
export function renderTryCast(x: string, from: SqlType, to: SqlType, context: CastContext): string {
  if (sameType(from, to) || from.kind === 'unknown' || isTypedNull(x) || sameRepresentation(from, to)) {
    return renderCast(x, from, to, context)
  }
  const limited = limitedText(x, from, to, context)
  if (limited !== undefined) return limited
  if (/^[\w."']+$/.test(x)) return `TRY(${convert(x, from, to, context)})`
  const name = context.names.fresh()
  return bindName(name, x, `TRY(${convert(name, from, to, context)})`)
}

/** Text longer than the type allows is an internal error of Trino's, which TRY_CAST does not catch. */
function limitedText(x: string, from: SqlType, to: SqlType, context: CastContext): string | undefined {
  if (to.kind !== 'varchar' || to.length === undefined) return undefined
  switch (from.kind) {
    case 'json':
      return limit(`TRY(u_json_text(${x}))`, to.length)
    case 'boolean':
    case 'interval day to second':
    case 'interval year to month':
    case 'time':
    case 'time with time zone':
    case 'timestamp':
    case 'timestamp with time zone':
      return renderCast(x, from, to, context)
    default:
      return undefined
  }
}

/** The conversion of INSERT: text that does not fit fails unless it loses blanks only. */
export function renderInsertCast(x: string, from: SqlType, to: SqlType, context: CastContext): string {
  if ((from.kind === 'varchar' || from.kind === 'char') && (to.kind === 'varchar' || to.kind === 'char')) {
    const limit = to.length
    if (limit !== undefined && (from.length === undefined || from.length > limit)) {
      const message = `INVALID_CAST_ARGUMENT: Cannot truncate non-space characters when casting from ${typeName(from)} to ${typeName(to)} on INSERT`
      const checked = `CASE WHEN length(rtrim(${x}, ' ')) > ${limit} THEN u_raise(${quote(message)}) ELSE ${x} END`
      return convert(checked, from, to, context)
    }
  }
  return renderCast(x, from, to, context)
}

/** Types that only the analyser tells apart. */
function sameRepresentation(from: SqlType, to: SqlType): boolean {
  switch (from.kind) {
    case 'varchar':
      return (
        (to.kind === 'varchar' && (to.length === undefined || (from.length ?? Infinity) <= to.length)) ||
        ['JoniRegExp', 'JsonPath', 'CodePoints', 'LikePattern'].includes(to.kind)
      )
    case 'char':
      return (
        (to.kind === 'varchar' && (to.length === undefined || from.length <= to.length)) ||
        ['JoniRegExp', 'JsonPath', 'CodePoints', 'LikePattern'].includes(to.kind)
      )
    case 'time':
    case 'timestamp':
    case 'time with time zone':
    case 'timestamp with time zone':
      return to.kind === from.kind && to.precision >= from.precision && to.precision > 6 === from.precision > 6
    case 'HyperLogLog':
    case 'P4HyperLogLog':
    case 'SetDigest':
      return to.kind === 'HyperLogLog' || to.kind === 'P4HyperLogLog'
    case 'array':
      return to.kind === 'array' && equivalent(from.element, to.element)
    case 'map':
      return to.kind === 'map' && equivalent(from.key, to.key) && equivalent(from.value, to.value)
    case 'row':
      return (
        to.kind === 'row' &&
        to.fields.length === from.fields.length &&
        from.fields.every((field, i) => equivalent(field.type, to.fields[i]!.type))
      )
    default:
      return false
  }
}

function equivalent(from: SqlType, to: SqlType): boolean {
  return sameType(from, to) || sameRepresentation(from, to)
}

function convert(x: string, from: SqlType, to: SqlType, context: CastContext): string {
  if (to.kind === 'json') return castToJson(x, from, context)
  if (from.kind === 'json') return castFromJson(x, to)
  switch (to.kind) {
    case 'boolean':
      return from.kind === 'varchar' ? `q_text_to_boolean(${x})` : `(${x} <> 0)`
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return castToInteger(x, from, to.kind)
    case 'double':
      if (from.kind === 'varchar') return `q_text_to_double(${x}, 'DOUBLE')`
      return from.kind === 'boolean' ? `CAST(CAST(${x} AS INTEGER) AS DOUBLE)` : `CAST(${x} AS DOUBLE)`
    case 'real':
      if (from.kind === 'varchar') return `q_f32(q_text_to_double(${x}, 'REAL'))`
      if (from.kind === 'double') return `q_f32(${x})`
      return from.kind === 'boolean' ? `CAST(CAST(${x} AS INTEGER) AS FLOAT)` : `CAST(${x} AS FLOAT)`
    case 'decimal':
      return castToDecimal(x, from, to)
    case 'varchar':
      return castToVarchar(x, from, to.length, context)
    case 'char':
      return `rpad(left(${x}, ${to.length}), ${to.length}, ' ')`
    case 'varbinary':
      return castToBinary(x, from)
    case 'date':
    case 'time':
    case 'time with time zone':
    case 'timestamp':
    case 'timestamp with time zone':
      return castToDateTime(x, from, to, context)
    case 'uuid':
      return from.kind === 'varbinary' ? `q_binary_to_uuid(${x})` : `q_text_to_uuid(${x})`
    case 'ipaddress':
      return from.kind === 'varbinary' ? `u_ip_from_binary(${x})` : `u_ip_parse(${x})`
    case 'HyperLogLog':
    case 'P4HyperLogLog':
    case 'SetDigest':
    case 'tdigest':
    case 'qdigest':
      return `CAST(CAST(decode(${x}) AS JSON) AS ${duckdbType(to)})`
    case 'array':
      return castArray(x, from, to.element, context)
    case 'map':
      return castMap(x, from, to, context)
    case 'row':
      return castRow(x, from, to, context)
    default:
      throw new EngineError('NOT_SUPPORTED', `CAST from ${typeName(from)} to ${typeName(to)} is not supported`)
  }
}

const integerRanges = {
  tinyint: ['-128', '127'],
  smallint: ['-32768', '32767'],
  integer: ['-2147483648', '2147483647'],
  bigint: ['-9223372036854775808', '9223372036854775807'],
} as const

const integerRanks = ['tinyint', 'smallint', 'integer', 'bigint']

function castToInteger(x: string, from: SqlType, to: keyof typeof integerRanges): string {
  const type = to.toUpperCase()
  const [low, high] = integerRanges[to]
  if (isInteger(from)) {
    if (integerRanks.indexOf(from.kind) <= integerRanks.indexOf(to)) return `CAST(${x} AS ${type})`
    return `CAST(q_in_range(${x}, ${low}, ${high}, '${to}') AS ${type})`
  }
  const javaName = to === 'integer' ? 'INT' : to.toUpperCase()
  switch (from.kind) {
    case 'boolean':
      return `CAST(${x} AS ${type})`
    case 'varchar':
      return `coalesce(CASE WHEN regexp_full_match(trim(${x}), '[+-]?[0-9]+') THEN TRY_CAST(trim(${x}) AS ${type}) END, q_cannot_cast(${x}, '${javaName}'))`
    case 'decimal':
      return `coalesce(TRY_CAST(${x} AS ${type}), q_cannot_cast(${to === 'bigint' ? x : `round(${x})`}, '${to.toUpperCase()}'))`
    case 'double':
    case 'real':
      if (to === 'bigint') return `q_${from.kind}_to_bigint(${x})`
      return `CAST(q_floating_to_integer(CAST(${x} AS DOUBLE), ${low}, ${high}, '${to}', '${from.kind}') AS ${type})`
    default:
      throw new Error(`No cast from ${from.kind} to ${to}`)
  }
}

function castToDecimal(x: string, from: SqlType, to: Extract<SqlType, { kind: 'decimal' }>): string {
  const type = duckdbType(to)
  const integral = to.precision - to.scale
  const shown = `DECIMAL(${to.precision}, ${to.scale})`
  switch (from.kind) {
    case 'boolean':
      return `CAST(CAST(${x} AS INTEGER) AS ${type})`
    case 'varchar':
      return `coalesce(CASE WHEN regexp_full_match(${x}, '[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?') THEN TRY_CAST(${x} AS ${type}) END, q_text_not_decimal(${x}, '${shown}'))`
    case 'decimal': {
      const own = from.precision - from.scale
      const safe = to.scale >= from.scale ? integral >= own : integral > own
      if (safe) return `CAST(${x} AS ${type})`
      return `coalesce(TRY_CAST(${x} AS ${type}), q_not_decimal(${x}, 'DECIMAL(${from.precision}, ${from.scale})', '${shown}'))`
    }
    case 'double':
    case 'real':
      return `coalesce(CASE WHEN isfinite(${x}) THEN TRY_CAST(CAST(${x} AS VARCHAR) AS ${type}) END, q_not_decimal(q_java_${from.kind}(${x}), '${from.kind.toUpperCase()}', '${shown}'))`
    default: {
      const digits = { tinyint: 3, smallint: 5, integer: 10, bigint: 19 }[from.kind as 'bigint']
      if (integral >= digits) return `CAST(${x} AS ${type})`
      return `coalesce(TRY_CAST(${x} AS ${type}), q_not_decimal(${x}, '${from.kind.toUpperCase()}', '${shown}'))`
    }
  }
}

/** The text of a value as CAST(x AS varchar) gives it. */
export function textOf(x: string, from: SqlType, context: CastContext): string {
  return castToVarchar(x, from, undefined, context)
}

function castToVarchar(x: string, from: SqlType, length: number | undefined, context: CastContext): string {
  switch (from.kind) {
    case 'varchar':
    case 'char':
      return length === undefined ? x : `left(${x}, ${length})`
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return fit(`CAST(${x} AS VARCHAR)`, length, `''`)
    case 'decimal':
      return fit(decimalText(x, from), length, `''`)
    case 'unknown':
      return 'CAST(NULL AS VARCHAR)'
    case 'double':
      return fit(`q_sci(${x})`, length, `q_java_double(${x})`)
    case 'real':
      return fit(`q_sci_real(${x})`, length, `q_java_real(${x})`)
    case 'date':
      return fit(`q_text_date(${x})`, length, `''`)
    case 'boolean':
      return limit(`CAST(${x} AS VARCHAR)`, length)
    case 'uuid':
      return `CAST(${x} AS VARCHAR)`
    case 'ipaddress':
      return `u_ip_text(${x})`
    case 'interval day to second':
      return limit(`q_text_interval_day(${x})`, length)
    case 'interval year to month':
      return limit(`q_text_interval_year(${x})`, length)
    case 'time':
    case 'time with time zone':
    case 'timestamp':
    case 'timestamp with time zone':
      return limit(dateTimeText(x, from), length)
    default:
      void context
      throw new EngineError('NOT_SUPPORTED', `CAST from ${typeName(from)} to varchar is not supported`)
  }
}

/** Numbers and dates that do not fit fail with the value; `java` is a second writing of it that messages show. */
function fit(text: string, length: number | undefined, java: string): string {
  return length === undefined ? text : `q_fit(${text}, ${length}, ${java})`
}

function limit(text: string, length: number | undefined): string {
  return length === undefined ? text : `q_limit(${text}, ${length})`
}

function castToBinary(x: string, from: SqlType): string {
  switch (from.kind) {
    case 'varchar':
    case 'char':
      return `encode(${x})`
    case 'uuid':
      return `unhex(replace(CAST(${x} AS VARCHAR), '-', ''))`
    case 'ipaddress':
      return x
    default:
      return `encode(CAST(to_json(${x}) AS VARCHAR))`
  }
}

function castArray(x: string, from: SqlType, element: SqlType, context: CastContext): string {
  if (from.kind !== 'array') throw new Error(`No cast from ${from.kind} to array`)
  if (isNativeWidening(from.element, element)) return `CAST(${x} AS ${duckdbType(element)}[])`
  const item = context.names.fresh()
  return `list_transform(${x}, lambda ${item}: ${renderCast(item, from.element, element, context)})`
}

/** What DuckDB converts inside lists as we would, without an error: no lambda needed. */
function isNativeWidening(from: SqlType, to: SqlType): boolean {
  if (from.kind === 'unknown') return true
  if (!isInteger(from)) return false
  return (isInteger(to) && integerRanks.indexOf(from.kind) <= integerRanks.indexOf(to.kind)) || to.kind === 'double'
}

function castMap(x: string, from: SqlType, to: Extract<SqlType, { kind: 'map' }>, context: CastContext): string {
  if (from.kind !== 'map') throw new Error(`No cast from ${from.kind} to map`)
  if (from.key.kind === 'unknown') return `CASE WHEN ${x} IS NOT NULL THEN CAST(MAP {} AS ${duckdbType(to)}) END`
  const entry = context.names.fresh()
  const key = renderCast(`${entry}.key`, from.key, to.key, context)
  const value = renderCast(`${entry}.value`, from.value, to.value, context)
  const entries = `list_transform(map_entries(${x}), lambda ${entry}: {'k': ${key}, 'v': ${value}})`
  const made = equivalent(from.key, to.key) ? `map_from_entries(${entries})` : `q_cast_map(${entries})`
  return `CASE WHEN ${x} IS NOT NULL THEN ${made} END`
}

function castRow(x: string, from: SqlType, to: Extract<SqlType, { kind: 'row' }>, context: CastContext): string {
  if (from.kind !== 'row') throw new Error(`No cast from ${from.kind} to ${typeText(to)}`)
  const fields = from.fields.map(
    (field, i) => `'${rowField(i)}': ${renderCast(rowFieldOf(x, i), field.type, to.fields[i]!.type, context)}`,
  )
  return `CASE WHEN ${x} IS NOT NULL THEN {${fields.join(', ')}} END`
}
