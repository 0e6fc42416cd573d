import { EngineError, type ErrorLocation } from '../../shared/engine-error.ts'
import { code, formOf, integer, literal, sql, type Sql } from '../../duckdb/text/sql.ts'
import { canCast } from '../types/coercion.ts'
import {
  decimalText,
  decimalType,
  duckdbType,
  isTypedNull,
  readDecimal,
  rowFieldOf,
  rowOf,
  shortText,
  structOf,
  typedNull,
} from '../types/duckdb-representation.ts'
import { isInteger, sameType, VARCHAR, type DecimalType, type SqlType } from '../types/sql-type.ts'
import { typeName, typeText } from '../types/type-text.ts'
import { castToDateTime, dateTimeText } from './casts-datetime.ts'
import { castFromJson, castToJson } from './casts-json.ts'
import { bindHeavy } from './bind-heavy.ts'
import { comparisonKey } from './comparison.ts'
import { bindName } from './fill-template.ts'
import type { Names, RenderSession } from './rendering.ts'
import { tried } from './tried.ts'

export interface CastContext {
  readonly session: RenderSession
  readonly names: Names
}

/**
 * Checks that Trino has such a cast. @throws EngineError TYPE_MISMATCH, or `errorName` for functions that cast
 * internally
 */
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
 * Renders `CAST(x AS to)`, also for coercions, which use the same conversions. At run time, it fails with Trino's error
 * for a value that cannot be converted. The cast must exist (`requireCast`).
 */
export function renderCast(x: Sql, from: SqlType, to: SqlType, context: CastContext): Sql {
  if (sameType(from, to)) return x
  if (from.kind === 'unknown' || isTypedNull(x)) return typedNull(to)
  if (sameRepresentation(from, to)) return x
  return bindHeavy([x], context.names, ([operand]) => convert(operand!, from, to, context))
}

/** Renders `TRY_CAST(x AS to)`: NULL if the conversion fails. Errors inside `x` itself still fail. */
export function renderTryCast(x: Sql, from: SqlType, to: SqlType, context: CastContext): Sql {
  if (sameType(from, to) || from.kind === 'unknown' || isTypedNull(x) || sameRepresentation(from, to)) {
    return renderCast(x, from, to, context)
  }
  const limited = limitedText(x, from, to, context)
  if (limited !== undefined) return limited
  const inside = (operand: Sql): Sql => tried(reading(operand, from, to)?.read ?? convert(operand, from, to, context))
  if (isSimple(x)) return inside(x)
  const name = context.names.fresh()
  return bindName(name, x, inside(name))
}

/** Whether an expression is a column, a field or a literal: it needs no name of its own. */
function isSimple(x: Sql): boolean {
  return x.length <= LONGEST_SIMPLE && SIMPLE.test(formOf(x))
}

const LONGEST_SIMPLE = 160
const SIMPLE = /^(?:[\w.]+|'')$/

/** In Trino, text longer than the type allows is an internal error, which TRY_CAST does not catch. */
function limitedText(x: Sql, from: SqlType, to: SqlType, context: CastContext): Sql | undefined {
  if (to.kind !== 'varchar' || to.length === undefined) return undefined
  switch (from.kind) {
    case 'json':
      return limit(tried(sql`u_json_text(${x})`), to.length)
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

/** Renders the conversion of INSERT: text that is too long fails unless only blanks are lost. */
export function renderInsertCast(x: Sql, from: SqlType, to: SqlType, context: CastContext): Sql {
  if ((from.kind === 'varchar' || from.kind === 'char') && (to.kind === 'varchar' || to.kind === 'char')) {
    const limit = to.length
    if (limit !== undefined && (from.length === undefined || from.length > limit)) {
      const message = `INVALID_CAST_ARGUMENT: Cannot truncate non-space characters when casting from ${typeName(from)} to ${typeName(to)} on INSERT`
      const checked = sql`CASE WHEN length(rtrim(${x}, ' ')) > ${integer(limit)} THEN u_raise(${literal(message)}) ELSE ${x} END`
      return convert(checked, from, to, context)
    }
  }
  return renderCast(x, from, to, context)
}

/** Whether two types have the same values in DuckDB and differ only for the analyzer. */
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

function convert(x: Sql, from: SqlType, to: SqlType, context: CastContext): Sql {
  if (to.kind === 'json') return castToJson(x, from, context)
  if (from.kind === 'json') return castFromJson(x, to)
  switch (to.kind) {
    case 'boolean':
      return converted(x, from, to) ?? sql`(${x} <> 0)`
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return castToInteger(x, from, to.kind)
    case 'double':
      if (from.kind === 'varchar') return converted(x, from, to)!
      return from.kind === 'boolean' ? sql`CAST(CAST(${x} AS INTEGER) AS DOUBLE)` : sql`CAST(${x} AS DOUBLE)`
    case 'real':
      if (from.kind === 'varchar') return converted(x, from, to)!
      if (from.kind === 'double') return sql`q_f32(${x})`
      if (from.kind === 'decimal' && from.scale > 0 && from.precision <= 18) {
        // Trino divides the digits, as a real, by the power of ten.
        const power = `1${'0'.repeat(from.scale)}`
        const digits = sql`CAST(CAST(${x} AS ${decimalType(37, from.scale)}) * CAST(${literal(power)} AS ${decimalType(from.scale + 1, 0)}) AS BIGINT)`
        return sql`(CAST(${digits} AS FLOAT) / CAST(${literal(power)} AS FLOAT))`
      }
      return from.kind === 'boolean' ? sql`CAST(CAST(${x} AS INTEGER) AS FLOAT)` : sql`CAST(${x} AS FLOAT)`
    case 'decimal':
      return castToDecimal(x, from, to)
    case 'varchar':
      return castToVarchar(x, from, to.length, context)
    case 'char':
      return sql`rpad(left(${x}, ${integer(to.length)}), ${integer(to.length)}, ' ')`
    case 'varbinary':
      return castToBinary(x, from)
    case 'date':
    case 'time':
    case 'time with time zone':
    case 'timestamp':
    case 'timestamp with time zone':
      return castToDateTime(x, from, to, context)
    case 'uuid':
      return from.kind === 'varbinary' ? sql`q_binary_to_uuid(${x})` : sql`q_text_to_uuid(${x})`
    case 'ipaddress':
      return from.kind === 'varbinary' ? sql`u_ip_from_binary(${x})` : sql`u_ip_parse(${x})`
    case 'HyperLogLog':
    case 'P4HyperLogLog':
      return from.kind === 'SetDigest' ? sql`q_sketch(map_keys(${x}), 12)` : sql`q_sketch_read(decode(${x}))`
    case 'SetDigest':
    case 'tdigest':
    case 'qdigest':
      return sql`CAST(CAST(decode(${x}) AS JSON) AS ${duckdbType(to)})`
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
  tinyint: [-128n, 127n],
  smallint: [-32768n, 32767n],
  integer: [-2147483648n, 2147483647n],
  bigint: [-9223372036854775808n, 9223372036854775807n],
} as const

const integerRanks = ['tinyint', 'smallint', 'integer', 'bigint']

/** A conversion in two parts: the value or NULL, and the expression that raises the error in the latter case. */
interface Reading {
  readonly read: Sql
  readonly refused: Sql
}

/**
 * The conversions whose failures show as NULL. TRY_CAST uses only `read`: if one row of a chunk fails, DuckDB's TRY
 * evaluates each row separately, which takes a thousand times as long.
 */
function reading(x: Sql, from: SqlType, to: SqlType): Reading | undefined {
  switch (to.kind) {
    case 'boolean':
      return from.kind === 'varchar'
        ? { read: sql`q_read_boolean(${x})`, refused: cannotCast(x, 'BOOLEAN') }
        : undefined
    case 'double':
      return from.kind === 'varchar' ? { read: sql`q_read_double(${x})`, refused: cannotCast(x, 'DOUBLE') } : undefined
    case 'real':
      return from.kind === 'varchar'
        ? { read: sql`q_f32(q_read_double(${x}))`, refused: cannotCast(x, 'REAL') }
        : undefined
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return readingInteger(x, from, to.kind)
    case 'decimal':
      return readingDecimal(x, from, to)
    default:
      return undefined
  }
}

/** A conversion in two parts, combined into one expression. */
function converted(x: Sql, from: SqlType, to: SqlType): Sql | undefined {
  const known = reading(x, from, to)
  return known && sql`coalesce(${known.read}, ${known.refused})`
}

function cannotCast(x: Sql, shown: string): Sql {
  return sql`q_cannot_cast(${x}, ${literal(shown)})`
}

function readingInteger(x: Sql, from: SqlType, to: keyof typeof integerRanges): Reading | undefined {
  const type = duckdbType({ kind: to })
  switch (from.kind) {
    case 'varchar': {
      const read = (text: Sql): Sql =>
        sql`CASE WHEN regexp_full_match(${text}, '[+-]?[0-9]+') THEN TRY_CAST(${text} AS ${type}) END`
      // Most texts have no surrounding blanks.
      const both = sql`coalesce(${read(x)}, ${read(sql`q_number_text(${x})`)})`
      return { read: both, refused: cannotCast(x, to === 'integer' ? 'INT' : to.toUpperCase()) }
    }
    case 'decimal': {
      const shown = to === 'bigint' ? x : sql`round(${x})`
      return { read: sql`TRY_CAST(${x} AS ${type})`, refused: cannotCast(shown, to.toUpperCase()) }
    }
    default:
      return undefined
  }
}

function castToInteger(x: Sql, from: SqlType, to: keyof typeof integerRanges): Sql {
  const type = duckdbType({ kind: to })
  const [low, high] = integerRanges[to].map((bound) => integer(bound)) as [Sql, Sql]
  if (isInteger(from)) {
    if (integerRanks.indexOf(from.kind) <= integerRanks.indexOf(to)) return sql`CAST(${x} AS ${type})`
    return sql`CAST(q_in_range(${x}, ${low}, ${high}, ${literal(to)}) AS ${type})`
  }
  switch (from.kind) {
    case 'boolean':
      return sql`CAST(${x} AS ${type})`
    case 'double':
    case 'real':
      if (to === 'bigint') return sql`${code(`q_${from.kind}_to_bigint`)}(${x})`
      return sql`CAST(q_floating_to_integer(CAST(${x} AS DOUBLE), ${low}, ${high}, ${literal(to)}, ${literal(from.kind)}) AS ${type})`
    default: {
      const known = converted(x, from, { kind: to })
      if (known === undefined) throw new Error(`No cast from ${from.kind} to ${to}`)
      return known
    }
  }
}

function castToDecimal(x: Sql, from: SqlType, to: DecimalType): Sql {
  const type = duckdbType(to)
  if (from.kind === 'boolean') return sql`CAST(CAST(${x} AS INTEGER) AS ${type})`
  return converted(x, from, to) ?? sql`CAST(${x} AS ${type})`
}

/** Returns undefined if every value fits. */
function readingDecimal(x: Sql, from: SqlType, to: DecimalType): Reading | undefined {
  const type = duckdbType(to)
  const integral = to.precision - to.scale
  const shown = literal(`DECIMAL(${to.precision}, ${to.scale})`)
  switch (from.kind) {
    case 'varchar': {
      // Most texts have no exponent.
      const plain = sql`WHEN regexp_full_match(${x}, '[+-]?[0-9]+(\\.[0-9]+)?') THEN ${readDecimal(x, to, sql`strlen(${x}) <= ${integer(shortText(to))}`)}`
      const read = sql`CASE ${plain} WHEN regexp_full_match(${x}, '[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?') THEN TRY_CAST(q_without_exponent(lower(${x})) AS ${type}) END`
      return { read, refused: sql`q_text_not_decimal(${x}, ${shown})` }
    }
    case 'decimal': {
      const own = from.precision - from.scale
      const safe = to.scale >= from.scale ? integral >= own : integral > own
      if (safe) return undefined
      return readingNumber(x, type, `DECIMAL(${from.precision}, ${from.scale})`, shown)
    }
    case 'double':
    case 'real': {
      const text = from.kind === 'real' ? sql`q_real_decimal(${x})` : sql`q_without_exponent(q_digits(${x}))`
      const read = readDecimal(text, to, sql`abs(${x}) < ${integer(10n ** BigInt(Math.max(0, shortText(to) - 1)))}`)
      return {
        read: sql`CASE WHEN isfinite(${x}) THEN ${read} END`,
        refused: sql`q_not_decimal(${code(`q_java_${from.kind}`)}(${x}), ${literal(from.kind.toUpperCase())}, ${shown})`,
      }
    }
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint': {
      const digits = { tinyint: 3, smallint: 5, integer: 10, bigint: 19 }[from.kind]
      return integral >= digits ? undefined : readingNumber(x, type, from.kind.toUpperCase(), shown)
    }
    default:
      return undefined
  }
}

function readingNumber(x: Sql, type: Sql, from: string, to: Sql): Reading {
  return { read: sql`TRY_CAST(${x} AS ${type})`, refused: sql`q_not_decimal(${x}, ${literal(from)}, ${to})` }
}

/** The text of a value, as CAST(x AS varchar) renders it. */
export function textOf(x: Sql, from: SqlType, context: CastContext): Sql {
  return from.kind === 'json' ? castFromJson(x, VARCHAR) : castToVarchar(x, from, undefined, context)
}

function castToVarchar(x: Sql, from: SqlType, length: number | undefined, context: CastContext): Sql {
  switch (from.kind) {
    case 'varchar':
    case 'char':
      return length === undefined ? x : sql`left(${x}, ${integer(length)})`
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return fit(sql`CAST(${x} AS VARCHAR)`, 20, length, sql`''`)
    case 'decimal':
      return fit(decimalText(x, from), 41, length, sql`''`)
    case 'unknown':
      return typedNull(VARCHAR)
    case 'double':
      return fit(sql`q_sci(${x})`, 24, length, sql`q_java_double(${x})`)
    case 'real':
      return fit(sql`q_sci_real(${x})`, 24, length, sql`q_java_real(${x})`)
    case 'date':
      return fit(sql`q_text_date(${x})`, 15, length, sql`''`)
    case 'boolean':
      return limit(sql`CAST(${x} AS VARCHAR)`, length)
    case 'uuid':
      return sql`CAST(${x} AS VARCHAR)`
    case 'ipaddress':
      return sql`u_ip_text(${x})`
    case 'interval day to second':
      return limit(sql`q_text_interval_day(${x})`, length)
    case 'interval year to month':
      return limit(sql`q_text_interval_year(${x})`, length)
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

/**
 * Numbers and dates that do not fit fail with their value in the message; `java` is another form of the value that
 * messages show.
 */
function fit(text: Sql, longest: number, length: number | undefined, java: Sql): Sql {
  return length === undefined || length >= longest ? text : sql`q_fit(${text}, ${integer(length)}, ${java})`
}

function limit(text: Sql, length: number | undefined): Sql {
  return length === undefined ? text : sql`q_limit(${text}, ${integer(length)})`
}

function castToBinary(x: Sql, from: SqlType): Sql {
  switch (from.kind) {
    case 'varchar':
    case 'char':
      return sql`encode(${x})`
    case 'uuid':
      return sql`unhex(replace(CAST(${x} AS VARCHAR), '-', ''))`
    case 'ipaddress':
      return x
    default:
      return sql`encode(CAST(to_json(${x}) AS VARCHAR))`
  }
}

function castArray(x: Sql, from: SqlType, element: SqlType, context: CastContext): Sql {
  if (from.kind !== 'array') throw new Error(`No cast from ${from.kind} to array`)
  if (isNativeWidening(from.element, element)) return sql`CAST(${x} AS ${duckdbType(element)}[])`
  const item = context.names.fresh()
  return sql`list_transform(${x}, lambda ${item}: ${renderCast(item, from.element, element, context)})`
}

/** Whether DuckDB converts elements inside lists in the same way and without errors: no lambda needed. */
function isNativeWidening(from: SqlType, to: SqlType): boolean {
  if (from.kind === 'unknown') return true
  if (!isInteger(from)) return false
  return (isInteger(to) && integerRanks.indexOf(from.kind) <= integerRanks.indexOf(to.kind)) || to.kind === 'double'
}

function castMap(x: Sql, from: SqlType, to: Extract<SqlType, { kind: 'map' }>, context: CastContext): Sql {
  if (from.kind !== 'map') throw new Error(`No cast from ${from.kind} to map`)
  if (from.key.kind === 'unknown') return sql`CASE WHEN ${x} IS NOT NULL THEN CAST(MAP {} AS ${duckdbType(to)}) END`
  const entry = context.names.fresh()
  const key = renderCast(sql`${entry}.key`, from.key, to.key, context)
  const value = renderCast(sql`${entry}.value`, from.value, to.value, context)
  const entries = sql`list_transform(map_entries(${x}), lambda ${entry}: ${structOf({ k: key, v: value })})`
  if (equivalent(from.key, to.key)) return sql`CASE WHEN ${x} IS NOT NULL THEN map_from_entries(${entries}) END`
  const [list, item] = [context.names.fresh(), context.names.fresh()]
  const keys = sql`list_transform(${list}, lambda ${item}: ${comparisonKey(to.key, sql`${item}.k`, context.names)})`
  const made = bindName(list, entries, sql`q_cast_map(${list}, ${keys})`)
  return sql`CASE WHEN ${x} IS NOT NULL THEN ${made} END`
}

function castRow(x: Sql, from: SqlType, to: Extract<SqlType, { kind: 'row' }>, context: CastContext): Sql {
  if (from.kind !== 'row') throw new Error(`No cast from ${from.kind} to ${typeText(to)}`)
  const fields = from.fields.map((field, i) => renderCast(rowFieldOf(x, i), field.type, to.fields[i]!.type, context))
  return sql`CASE WHEN ${x} IS NOT NULL THEN ${rowOf(fields)} END`
}
