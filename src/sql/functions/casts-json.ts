import { code, integer, joined, literal, plainName, sql, type Sql } from '../../duckdb/text/sql.ts'
import {
  decimalText,
  duckdbType,
  duckdbTypeText,
  readDecimal,
  rowFieldOf,
  rowOf,
  shortText,
  structOf,
} from '../types/duckdb-representation.ts'
import { isInteger, type RowField, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { dateTimeText } from './casts-datetime.ts'
import type { Names } from './rendering.ts'

interface Context {
  readonly names: Names
}

/** Renders CAST(x AS json) as Trino's canonical text. */
export function castToJson(x: Sql, from: SqlType, context: Context): Sql {
  switch (from.kind) {
    case 'json':
      return x
    case 'varchar':
    case 'char':
      return sql`q_json_quote(${x})`
    case 'double':
    case 'real':
      return sql`${code(`q_json_${from.kind}`)}(${x})`
    case 'date':
      return sql`'"'||q_text_date(${x})||'"'`
    case 'timestamp':
      return sql`'"'||${dateTimeText(x, from)}||'"'`
    case 'array':
    case 'map':
    case 'row':
      return containerToJson(x, from, context)
    case 'decimal':
      return decimalText(x, from)
    default:
      return sql`CAST(${x} AS VARCHAR)`
  }
}

type Container = Extract<SqlType, { kind: 'array' | 'map' | 'row' }>

/** Uses DuckDB's writer if its text matches Trino's, otherwise renders part by part. */
function containerToJson(x: Sql, from: Container, context: Context): Sql {
  const general = partByPart(x, from, context)
  const named = from.kind === 'map' ? mapAsHeld(x, from) : namedAsWritten(x, from, context)
  if (named === undefined) return general
  const text = sql`CAST(to_json(${named}) AS VARCHAR)`
  if (holdsOnly(from, (type) => isInteger(type) || type.kind === 'boolean')) return text
  const sure = from.kind === 'map' ? [sql`q_keys_in_order(${x})`] : plainDoubles(x, from)
  const held = from.kind === 'map' ? from.value : from
  const isChecked = areDoublesFields(held)
  const alike = sql`${code(isChecked ? 'q_json_native' : 'q_json_native_numbers')}(${text})`
  if (sure.length === 0) return sql`coalesce(${alike}, ${general})`
  return sql`coalesce(CASE WHEN ${joined(sure, ' AND ')} THEN ${alike} END, ${general})`
}

/** Whether all doubles of a value are fields of rows, not elements of arrays. */
function areDoublesFields(type: SqlType): boolean {
  if (type.kind === 'row')
    return type.fields.every((field) => field.type.kind === 'double' || areDoublesFields(field.type))
  return holdsOnly(type, ({ kind }) => kind !== 'double')
}

/** Conditions that the doubles in a row's fields are numbers that DuckDB and Trino write alike. */
function plainDoubles(x: Sql, type: SqlType): readonly Sql[] {
  if (type.kind === 'double') return [sql`q_plain_double(${x})`]
  return type.kind === 'row' ? type.fields.flatMap((field, i) => plainDoubles(rowFieldOf(x, i), field.type)) : []
}

/** The value with named fields, if DuckDB writes the type's JSON mostly as Trino does; otherwise undefined. */
function namedAsWritten(x: Sql, type: SqlType, context: Context): Sql | undefined {
  switch (type.kind) {
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'double':
    case 'varchar':
      return x
    case 'array': {
      const item = context.names.fresh()
      const named = namedAsWritten(item, type.element, context)
      if (named === undefined || named === item) return named === item ? x : undefined
      return sql`list_transform(${x}, lambda ${item}: ${named})`
    }
    case 'row': {
      if (!haveOwnNames(type.fields)) return undefined
      const values: [string, Sql][] = []
      for (const [i, field] of type.fields.entries()) {
        const value = namedAsWritten(rowFieldOf(x, i), field.type, context)
        if (value === undefined) return undefined
        values.push([field.name!, value])
      }
      return sql`CASE WHEN ${x} IS NOT NULL THEN ${structOf(Object.fromEntries(values))} END`
    }
    default:
      return undefined
  }
}

function mapAsHeld(x: Sql, { key, value }: Extract<SqlType, { kind: 'map' }>): Sql | undefined {
  const isHeld = holdsOnly(value, (type) => isInteger(type) || ['boolean', 'double', 'varchar'].includes(type.kind))
  return key.kind === 'varchar' && isHeld ? x : undefined
}

/** Whether a predicate holds for a type, or for all types inside an array or row; false for maps. */
function holdsOnly(type: SqlType, holds: (type: SqlType) => boolean): boolean {
  switch (type.kind) {
    case 'array':
      return holdsOnly(type.element, holds)
    case 'row':
      return type.fields.every((field) => holdsOnly(field.type, holds))
    case 'map':
      return false
    default:
      return holds(type)
  }
}

function partByPart(x: Sql, from: Container, context: Context): Sql {
  switch (from.kind) {
    case 'array': {
      const item = context.names.fresh()
      return sql`'['||array_to_string(list_transform(${x}, lambda ${item}: coalesce(${castToJson(item, from.element, context)}, 'null')), ',')||']'`
    }
    case 'map': {
      const entry = context.names.fresh()
      const pair = context.names.fresh()
      const parts = structOf({
        k: keyText(sql`${entry}.key`, from.key),
        v: sql`coalesce(${castToJson(sql`${entry}.value`, from.value, context)}, 'null')`,
      })
      return sql`'{'||array_to_string(list_transform(list_sort(list_transform(map_entries(${x}), lambda ${entry}: ${parts})), lambda ${pair}: q_json_quote(${pair}.k)||':'||${pair}.v), ',')||'}'`
    }
    case 'row': {
      const fields = from.fields.map(
        ({ name, type }, i) =>
          sql`${literal(JSON.stringify(name ?? ''))}||':'||coalesce(${castToJson(rowFieldOf(x, i), type, context)}, 'null')`,
      )
      return sql`CASE WHEN ${x} IS NOT NULL THEN '{'||${joined(fields, `||','||`)}||'}' END`
    }
  }
}

function keyText(x: Sql, type: SqlType): Sql {
  return type.kind === 'double' || type.kind === 'real'
    ? sql`${code(`q_java_${type.kind}`)}(${x})`
    : sql`CAST(${x} AS VARCHAR)`
}

/**
 * Renders CAST(json AS to). In general, `u_json_cast` rewrites the value, type by type and with Trino's errors, into
 * JSON that DuckDB reads as the stored form. JSON in its usual form, which DuckDB reads as Trino does, takes a
 * shortcut.
 */
export function castFromJson(x: Sql, to: SqlType): Sql {
  const type = duckdbType(to)
  const general = sql`CAST(CAST(u_json_cast(${x}, ${literal(descriptor(to))}) AS JSON) AS ${type})`
  switch (to.kind) {
    case 'varchar':
      return to.length === undefined ? sql`q_json_text(${x})` : sql`q_limit(q_json_text(${x}), ${integer(to.length)})`
    case 'boolean':
      return sql`CASE ${x} WHEN 'true' THEN true WHEN 'false' THEN false ELSE ${general} END`
    default: {
      const parts = plainParts(x, to)
      // CASE instead of coalesce: under TRY, coalesce mixes up nested values.
      if (parts !== undefined) return sql`CASE WHEN ${parts.sure} THEN ${parts.value} ELSE ${general} END`
      const plain = plainWriting(to)
      if (plain === undefined) return general
      const once = to.kind === 'map' ? sql` AND q_json_once(${x})` : sql``
      return sql`CASE WHEN regexp_full_match(${x}, ${literal(plain)})${once} THEN ${heldOf(x, to)} ELSE ${general} END`
    }
  }
}

/** Elements or members of type json as written, and the condition under which this is correct. */
function plainParts(x: Sql, to: SqlType): { readonly sure: Sql; readonly value: Sql } | undefined {
  if (to.kind === 'array' && to.element.kind === 'json') {
    return { sure: sql`q_json_listed(${x})`, value: sql`q_json_items(${x})` }
  }
  const isMap =
    to.kind === 'map' && to.key.kind === 'varchar' && to.key.length === undefined && to.value.kind === 'json'
  if (!isMap) return undefined
  const members = sql`CAST(CAST(${x} AS JSON) AS MAP(VARCHAR, JSON))`
  return { sure: sql`q_json_mapped(${x}) AND q_json_once(${x})`, value: sql`CAST(${members} AS MAP(VARCHAR, VARCHAR))` }
}

/** Reads rows: DuckDB reads members by field names; the result is converted to fields `f0`, `f1` … */
function readRows(x: Sql, to: SqlType): Sql {
  const read = sql`json_transform(${x}, ${literal(JSON.stringify(structure(to)))})`
  return sql`list_transform([${read}], lambda qj0: ${renamed(plainName('qj0'), to, 1)})[1]`
}

type Structure = string | readonly Structure[] | { readonly [name: string]: Structure }

function structure(type: SqlType): Structure {
  switch (type.kind) {
    case 'row':
      return Object.fromEntries(type.fields.map(({ name, type: inner }) => [name!, structure(inner)]))
    case 'array':
      return [structure(type.element)]
    default:
      return duckdbTypeText(type)
  }
}

function renamed(x: Sql, type: SqlType, depth: number): Sql {
  if (type.kind === 'array' && hasRow(type)) {
    const item = plainName(`qj${depth}`)
    return sql`list_transform(${x}, lambda ${item}: ${renamed(item, type.element, depth + 1)})`
  }
  if (type.kind !== 'row') return x
  const held = type.fields.map(({ name, type: inner }) =>
    renamed(sql`struct_extract(${x}, ${literal(name!)})`, inner, depth),
  )
  return sql`CASE WHEN ${x} IS NOT NULL THEN ${rowOf(held)} END`
}

function hasRow(type: SqlType): boolean {
  return type.kind === 'row' || (type.kind === 'array' && hasRow(type.element))
}

/** Reads text in the usual form. */
function heldOf(x: Sql, to: SqlType): Sql {
  const type = duckdbType(to)
  switch (to.kind) {
    case 'row':
      return readRows(x, to)
    case 'array':
      return hasRow(to) ? readRows(x, to) : sql`CAST(CAST(${x} AS JSON) AS ${type})`
    case 'map':
      return sql`CAST(CAST(${x} AS JSON) AS ${type})`
    case 'decimal':
      return readDecimal(x, to, sql`strlen(${x}) <= ${integer(shortText(to))}`)
    case 'real':
      // Rounds twice, as Trino does.
      return sql`CAST(CAST(${x} AS DOUBLE) AS ${type})`
    default:
      return sql`CAST(${x} AS ${type})`
  }
}

/** Numbers of digits that always fit the type. */
const SAFE_DIGITS = { tinyint: 2, smallint: 4, integer: 9, bigint: 18 } as const

/** A pattern of canonical JSON that DuckDB reads as Trino does; undefined if there is none. */
function plainWriting(type: SqlType): string | undefined {
  switch (type.kind) {
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return `-?[0-9]{1,${SAFE_DIGITS[type.kind]}}`
    case 'double':
    case 'real':
      return String.raw`-?[0-9]{1,15}(?:\.[0-9]{1,17})?`
    case 'decimal': {
      // One digit less than the type allows: rounding may add a digit.
      const digits = type.precision - type.scale - 1
      return digits < 1 ? undefined : String.raw`-?[0-9]{1,${digits}}(?:\.[0-9]{1,17})?`
    }
    case 'boolean':
      return 'true|false'
    case 'varchar':
      return type.length === undefined ? String.raw`"[^"\\]*"` : undefined
    case 'array': {
      const items = listed(type.element)
      return items === undefined ? undefined : String.raw`\[${items}\]`
    }
    case 'map': {
      if (type.key.kind !== 'varchar' || type.key.length !== undefined || hasRow(type.value)) return undefined
      const items = listed(type.value, String.raw`"[^"\\]*":`)
      return items === undefined ? undefined : String.raw`\{${items}\}`
    }
    case 'row':
      return plainObject(type.fields)
    default:
      return undefined
  }
}

/** Field names that mean the same in DuckDB and Trino, and are valid unescaped in a pattern. */
const FIELD = /^[a-z_][a-z0-9_]*$/
/** The longest pattern, in characters. */
const LONGEST = 5000

function haveOwnNames(fields: readonly RowField[]): boolean {
  const names = fields.map(({ name = '' }) => name)
  return names.every((name) => FIELD.test(name)) && new Set(names).size === names.length
}

/**
 * A pattern for an object: members in order, each at most once, any of them missing. The text is valid JSON, so the
 * pattern does not check commas.
 */
function plainObject(fields: readonly RowField[]): string | undefined {
  if (!haveOwnNames(fields)) return undefined
  const members: string[] = []
  for (const { name = '', type } of fields.toSorted((a, b) => (a.name! < b.name! ? -1 : 1))) {
    const inner = type.kind === 'decimal' || type.kind === 'map' ? undefined : plainWriting(type)
    if (inner === undefined) return undefined
    members.push(`(?:"${name}":(?:${inner}|null),?)?`)
  }
  const pattern = String.raw`\{${members.join('')}\}`
  return pattern.length > LONGEST ? undefined : pattern
}

/** A pattern for any number of values separated by commas. */
function listed(item: SqlType, before = ''): string | undefined {
  // Inside JSON, DuckDB rounds a decimal through a double; a decimal by itself is read from its text.
  const plain = isScalar(item) && item.kind !== 'decimal' ? plainWriting(item) : undefined
  if (plain === undefined) return undefined
  const one = `${before}(?:${plain}|null)`
  return `(?:${one}(?:,${one})*)?`
}

function isScalar({ kind }: SqlType): boolean {
  return kind !== 'array' && kind !== 'map'
}

/** The type in the compact JSON that `u_json_cast` reads. */
function descriptor(type: SqlType): string {
  return JSON.stringify(describe(type))
}

type Descriptor = string | readonly unknown[]

function describe(type: SqlType): Descriptor {
  switch (type.kind) {
    case 'array':
      return ['array', describe(type.element), typeName(type)]
    case 'map':
      return ['map', describe(type.key), describe(type.value), typeName(type)]
    case 'row':
      return ['row', type.fields.map((field) => [field.name ?? '', describe(field.type)]), typeName(type)]
    case 'decimal':
      return ['decimal', type.precision, type.scale]
    case 'varchar':
      return type.length === undefined ? 'varchar' : ['varchar', type.length]
    default:
      return type.kind
  }
}
