import { EngineError } from '../../shared/engine-error.ts'
import { code, integer, joined, plainName, sql, type Sql } from '../../duckdb/text/sql.ts'
import { decimalText, rowFieldOf, structOf } from './duckdb-representation.ts'
import type { SqlType } from './sql-type.ts'
import type { WireOptions } from './type-signature.ts'
import { typeName } from './type-text.ts'

/** The fractional digits for clients without PARAMETRIC_DATETIME. */
const BARE_DIGITS = 3

/**
 * The expression for a column inside `json_array(…)`, which gives values in the protocol's format. `column` is
 * evaluated more than once, so it should be cheap: pass a column. Uses macros of engine-setup.ts.
 */
export function wireEncoding(column: Sql, type: SqlType, options: Pick<WireOptions, 'parametricDatetime'>): Sql {
  return encode(column, type, { digits: options.parametricDatetime ? undefined : BARE_DIGITS, depth: 0 })
}

interface Context {
  /** The number of fractional digits of a second; undefined for the type's own precision. */
  readonly digits: number | undefined
  /** The number of enclosing lambdas: it makes their parameter names unique, so that none shadows another. */
  readonly depth: number
}

/** Whether json_array writes values of the type in the protocol's format. */
function isPlain(type: SqlType): boolean {
  switch (type.kind) {
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'varchar':
    case 'char':
    case 'json':
    case 'JsonPath':
    case 'json2016':
    case 'JoniRegExp':
    case 'LikePattern':
    case 'uuid':
      return true
    case 'array':
      return isPlain(type.element)
    default:
      return false
  }
}

function encode(x: Sql, type: SqlType, context: Context): Sql {
  if (isPlain(type)) return x
  switch (type.kind) {
    case 'double':
    case 'real':
      return sql`${code(`q_wire_${type.kind}`)}(${x})`
    case 'array': {
      const item = plainName(`w${context.depth}`)
      return sql`list_transform(${x}, lambda ${item}: ${encode(item, type.element, deeper(context))})`
    }
    case 'row':
      return sql`CASE WHEN ${x} IS NOT NULL THEN json_array(${joined(
        type.fields.map((field, i) => encode(rowFieldOf(x, i), field.type, context)),
        ', ',
      )}) END`
    case 'map': {
      const entry = plainName(`w${context.depth}`)
      const key = plainText(sql`${entry}.key`, type.key, deeper(context))
      const value = encode(sql`${entry}.value`, type.value, deeper(context))
      return sql`to_json(map_from_entries(list_transform(map_entries(${x}), lambda ${entry}: ${structOf({ key, value })})))`
    }
    case 'unknown':
      return sql`NULL`
    case 'HyperLogLog':
    case 'P4HyperLogLog':
    case 'SetDigest':
    case 'tdigest':
    case 'qdigest':
      return sql`to_base64(encode(CAST(to_json(${x}) AS VARCHAR)))`
    default:
      return plainText(x, type, context)
  }
}

/** The text of a value as an object key: the result of Java's toString for the decoded value. */
function plainText(x: Sql, type: SqlType, context: Context): Sql {
  switch (type.kind) {
    case 'varchar':
    case 'char':
    case 'json':
      return x
    case 'real':
      return sql`q_java_real(${x})`
    case 'double':
      return sql`q_java_double(${x})`
    case 'decimal':
      return decimalText(x, type)
    case 'varbinary':
      return sql`to_base64(${x})`
    case 'date':
      return sql`q_wire_date(${x})`
    case 'time':
      return type.precision > 6
        ? sql`q_text_time_picos(${x}, ${digits(type, context)})`
        : sql`q_text_time(${x}, ${digits(type, context)})`
    case 'time with time zone':
      return type.precision > 6
        ? sql`q_text_time_picos(${x}.t, ${digits(type, context)})||q_offset_text(${x}.o)`
        : sql`q_text_time(${x}.t, ${digits(type, context)})||q_offset_text(${x}.o)`
    case 'timestamp':
      return type.precision > 6
        ? sql`q_text_timestamp_fine(${x}, ${digits(type, context)})`
        : sql`q_text_timestamp(${x}, ${digits(type, context)})`
    case 'timestamp with time zone':
      return type.precision > 6
        ? sql`q_text_timestamp_fine(${structOf({ t: sql`q_local(${x}.t, ${x}.z)`, p: sql`${x}.p` })}, ${digits(type, context)})||' '||${x}.z`
        : sql`q_text_timestamp(q_local(${x}.t, ${x}.z), ${digits(type, context)})||' '||${x}.z`
    case 'interval day to second':
      return sql`q_text_interval_day(${x})`
    case 'interval year to month':
      return sql`q_text_interval_year(${x})`
    case 'ipaddress':
      return sql`u_ip_text(${x})`
    case 'color':
      return sql`q_color_text(${x})`
    case 'array': {
      const item = plainName(`w${context.depth}`)
      return sql`'['||array_to_string(list_transform(${x}, lambda ${item}: coalesce(${plainText(item, type.element, deeper(context))}, 'null')), ', ')||']'`
    }
    case 'row':
      return sql`'['||${joined(
        type.fields.map((field, i) => sql`coalesce(${plainText(rowFieldOf(x, i), field.type, context)}, 'null')`),
        `||', '||`,
      )}||']'`
    case 'map': {
      const entry = plainName(`w${context.depth}`)
      const key = plainText(sql`${entry}.key`, type.key, deeper(context))
      const value = sql`coalesce(${plainText(sql`${entry}.value`, type.value, deeper(context))}, 'null')`
      return sql`'{'||array_to_string(list_transform(map_entries(${x}), lambda ${entry}: ${key}||'='||${value}), ', ')||'}'`
    }
    case 'function':
    case 'Geometry':
    case 'SphericalGeography':
    case 'BingTile':
      throw new EngineError('NOT_SUPPORTED', `Values of type ${typeName(type)} are not supported`)
    default:
      return sql`CAST(${x} AS VARCHAR)`
  }
}

function digits(type: { readonly precision: number }, context: Context): Sql {
  return integer(context.digits ?? type.precision)
}

function deeper(context: Context): Context {
  return { ...context, depth: context.depth + 1 }
}
