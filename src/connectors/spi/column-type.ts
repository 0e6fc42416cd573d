import { quoteName } from './duckdb-text.ts'
import type { DuckDbType } from './duckdb-type-text.ts'

export interface ColumnType {
  /** Trino's type text. */
  readonly type: string
  /**
   * Makes a DuckDB expression that converts a value into the form that holds the type; absent when no conversion is
   * needed.
   */
  readonly convert?: (expression: string) => string
  /** Why its values cannot be read: a statement that reads the column fails. */
  readonly unreadable?: string
}

/** The SQL type of a file's column. A type without a counterpart in Trino becomes an `unreadable` one. */
export function columnType(source: DuckDbType): ColumnType {
  switch (source.kind) {
    case 'plain':
      return plainTypes[source.name] ?? unreadable(source.name)
    case 'decimal':
      return { type: `decimal(${source.precision}, ${source.scale})` }
    case 'other':
      return otherTypes[source.name] ?? unreadable(source.name)
    case 'list': {
      const element = columnType(source.element)
      const { convert } = element
      // The parameter has a name that no column has: DuckDB would read `e.x` as a field of a column `e`, if there is
      // one.
      return {
        type: `array(${element.type})`,
        ...unreadablePart(element),
        ...(convert && { convert: (x: string) => `list_transform(${x}, lambda "$e": ${convert('"$e"')})` }),
      }
    }
    case 'map': {
      const key = columnType(source.key)
      const value = columnType(source.value)
      const convertible = key.convert ?? value.convert
      return {
        type: `map(${key.type}, ${value.type})`,
        ...unreadablePart(key, value),
        ...(convertible && {
          convert: (x: string) =>
            `map_from_entries(list_transform(map_entries(${x}), lambda "$e": struct_pack(key := ${apply(key, '"$e".key')}, value := ${apply(value, '"$e".value')})))`,
        }),
      }
    }
    case 'struct': {
      const fields = source.fields.map(({ name, type }) => ({ name, type: columnType(type) }))
      // Rows are held by position (f0, f1 …): DuckDB's own field names are case-insensitive, and it casts them by name.
      return {
        type: `row(${fields.map(({ name, type }) => `${quoteName(name.toLowerCase())} ${type.type}`).join(', ')})`,
        ...unreadablePart(...fields.map(({ type }) => type)),
        convert: (x) => {
          const packed = fields.map(({ name, type }, i) => `f${i} := ${apply(type, `(${x}).${quoteName(name)}`)}`)
          return `CASE WHEN ${x} IS NOT NULL THEN struct_pack(${packed.join(', ')}) END`
        },
      }
    }
  }
}

/** A type that is shown as varchar; no value is ever read. */
function unreadable(duckdbType: string): ColumnType {
  return { type: 'varchar', unreadable: `Trino has no type for ${duckdbType}` }
}

function unreadablePart(...parts: readonly ColumnType[]): Pick<ColumnType, 'unreadable'> {
  const reason = parts.find((part) => part.unreadable !== undefined)?.unreadable
  return reason === undefined ? {} : { unreadable: reason }
}

function apply({ convert }: ColumnType, expression: string): string {
  return convert ? convert(expression) : expression
}

function castTo(type: string, duckdbType: string): ColumnType {
  return { type, convert: (x) => `CAST(${x} AS ${duckdbType})` }
}

const otherTypes: Readonly<Record<string, ColumnType | undefined>> = {
  ENUM: castTo('varchar', 'VARCHAR'),
  GEOMETRY: wellKnownBinary(),
}

/** Geometry as well-known binary, as Trino reads such columns. */
function wellKnownBinary(): ColumnType {
  return { type: 'varbinary', convert: (x) => `ST_AsWKB(${x})` }
}

const plainTypes: Readonly<Record<string, ColumnType | undefined>> = {
  BOOLEAN: { type: 'boolean' },
  TINYINT: { type: 'tinyint' },
  SMALLINT: { type: 'smallint' },
  INTEGER: { type: 'integer' },
  BIGINT: { type: 'bigint' },
  // Unsigned integers become the next wider type that holds them all.
  UTINYINT: castTo('smallint', 'SMALLINT'),
  USMALLINT: castTo('integer', 'INTEGER'),
  UINTEGER: castTo('bigint', 'BIGINT'),
  UBIGINT: castTo('decimal(20, 0)', 'DECIMAL(20,0)'),
  HUGEINT: castTo('decimal(38, 0)', 'DECIMAL(38,0)'),
  UHUGEINT: castTo('decimal(38, 0)', 'DECIMAL(38,0)'),
  FLOAT: { type: 'real' },
  DOUBLE: { type: 'double' },
  VARCHAR: { type: 'varchar' },
  JSON: { type: 'json', convert: (x) => `CAST(json(${x}) AS VARCHAR)` },
  VARIANT: { type: 'json', convert: (x) => `CAST(json(CAST(${x} AS JSON)) AS VARCHAR)` },
  GEOMETRY: wellKnownBinary(),
  BLOB: { type: 'varbinary' },
  UUID: { type: 'uuid' },
  DATE: { type: 'date' },
  TIME: { type: 'time(6)' },
  // From Parquet, where such times are UTC: the offset is always zero.
  'TIME WITH TIME ZONE': castTo('time(6)', 'TIME'),
  // Picoseconds of the day.
  TIME_NS: { type: 'time(9)', convert: (x) => `epoch_ns(${x}) * 1000` },
  TIMESTAMP: { type: 'timestamp(6)' },
  TIMESTAMP_S: castTo('timestamp(0)', 'TIMESTAMP'),
  TIMESTAMP_MS: castTo('timestamp(3)', 'TIMESTAMP'),
  TIMESTAMP_NS: {
    type: 'timestamp(9)',
    // Floored, not truncated: before 1970 the remaining nanoseconds are counted from the microsecond below.
    convert: (x) => {
      const rest = `(((epoch_ns(${x}) % 1000) + 1000) % 1000)`
      return `CASE WHEN ${x} IS NOT NULL THEN struct_pack(t := make_timestamp((epoch_ns(${x}) - ${rest}) // 1000), p := CAST(${rest} * 1000 AS INTEGER)) END`
    },
  },
  'TIMESTAMP WITH TIME ZONE': {
    type: 'timestamp(6) with time zone',
    convert: (x) => `CASE WHEN ${x} IS NOT NULL THEN struct_pack(t := timezone('UTC', ${x}), z := 'UTC') END`,
  },
}
