import { tick } from '../../shared/cpu-budget.ts'
import { UNBOUNDED_LENGTH, type SqlType } from './sql-type.ts'

/**
 * The notation of a type: as in `columns[].type` of an answer; as in messages, typeof() and DESCRIBE; or as in a
 * statement.
 */
type Style = 'wire' | 'display' | 'statement'

const PLAIN_IDENTIFIER = /^[a-zA-Z_][a-zA-Z0-9_]*$/

/** The text of `columns[].type`: `decimal(5, 2)` with a blank, intervals in upper case. */
export function typeText(type: SqlType): string {
  return write(type, 'wire')
}

/** The text for clients without the capability PARAMETRIC_DATETIME: times and timestamps have no precision. */
export function bareDatetimeTypeText(type: SqlType): string {
  return write(bareDatetimes(type), 'wire')
}

/** The text of typeof(), DESCRIBE, information_schema and error messages: `decimal(5,2)`, in lower case. */
export function typeName(type: SqlType): string {
  return write(type, 'display')
}

/** A list of types as error messages have it. */
export function typeNames(types: readonly SqlType[]): string {
  return types.map(typeName).join(', ')
}

/** The text of SHOW CREATE TABLE, in Trino's statement formatting: `decimal(5, 2)`, `ROW(x integer)`. */
export function typeInStatement(type: SqlType): string {
  return write(type, 'statement')
}

function write(type: SqlType, style: Style): string {
  tick()
  switch (type.kind) {
    case 'decimal':
      return style === 'display'
        ? `decimal(${type.precision},${type.scale})`
        : `decimal(${type.precision}, ${type.scale})`
    case 'char':
      return `char(${type.length})`
    case 'varchar':
      return type.length === undefined ? 'varchar' : `varchar(${type.length})`
    case 'time':
    case 'timestamp':
      return Number.isNaN(type.precision) ? type.kind : `${type.kind}(${type.precision})`
    case 'time with time zone':
      return Number.isNaN(type.precision) ? type.kind : `time(${type.precision}) with time zone`
    case 'timestamp with time zone':
      return Number.isNaN(type.precision) ? type.kind : `timestamp(${type.precision}) with time zone`
    case 'interval day to second':
    case 'interval year to month':
      return style === 'display' ? type.kind : type.kind.toUpperCase()
    case 'array':
      return `array(${write(type.element, style)})`
    case 'qdigest':
      return `qdigest(${write(type.element, style)})`
    case 'map':
      return `map(${write(type.key, style)}, ${write(type.value, style)})`
    case 'row': {
      const fields = type.fields.map(({ name, type: field }) =>
        name === undefined
          ? write(field, style)
          : `${style === 'display' ? name : fieldName(name)} ${write(field, style)}`,
      )
      return `${style === 'statement' ? 'ROW' : 'row'}(${fields.join(', ')})`
    }
    case 'function':
      return `function(${[...type.arguments, type.result].map((part) => write(part, style)).join(',')})`
    default:
      return type.kind
  }
}

function fieldName(name: string): string {
  return PLAIN_IDENTIFIER.test(name) ? name : `"${name.replaceAll('"', '""')}"`
}

/** The type with NaN as the precision of its times, which the writer leaves out. */
function bareDatetimes(type: SqlType): SqlType {
  switch (type.kind) {
    case 'time':
    case 'time with time zone':
      return { kind: type.kind, precision: Number.NaN }
    case 'timestamp':
    case 'timestamp with time zone':
      return { kind: type.kind, precision: Number.NaN }
    case 'array':
      return { kind: 'array', element: bareDatetimes(type.element) }
    case 'map':
      return { kind: 'map', key: bareDatetimes(type.key), value: bareDatetimes(type.value) }
    case 'row':
      return { kind: 'row', fields: type.fields.map(({ name, type: field }) => ({ name, type: bareDatetimes(field) })) }
    default:
      return type
  }
}

/** The length as a LONG argument of the signature: an unbounded varchar has the largest. */
export function varcharLength(length: number | undefined): number {
  return length ?? UNBOUNDED_LENGTH
}
