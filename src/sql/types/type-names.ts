import { EngineError } from '../../shared/engine-error.ts'
import {
  array,
  char,
  decimal,
  map,
  MAX_CHAR_LENGTH,
  MAX_DATETIME_PRECISION,
  MAX_DECIMAL_PRECISION,
  qdigest,
  row,
  simpleKinds,
  simpleType,
  time,
  timestamp,
  timestampWithTimeZone,
  timeWithTimeZone,
  varchar,
  type SimpleKind,
  type SqlType,
} from './sql-type.ts'

/** An argument of a type name: `10` in varchar(10), a type in array(bigint), a named type in row(a bigint). */
export type TypeArgument =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'type'; readonly type: SqlType; readonly name?: string | undefined }

const aliases: Readonly<Record<string, SimpleKind | 'decimal'>> = {
  int: 'integer',
  'double precision': 'double',
  dec: 'decimal',
  numeric: 'decimal',
}

const simpleByName = new Map(simpleKinds.map((kind) => [kind.toLowerCase(), kind]))

/**
 * The type for a name and arguments in a statement. The name may have any case and may be `timestamp with time zone`,
 * `double precision`, `interval day to second`. Errors are Trino's, without a position: TYPE_NOT_FOUND for unknown
 * names, INVALID_FUNCTION_ARGUMENT and NUMERIC_VALUE_OUT_OF_RANGE for invalid arguments.
 */
export function resolveTypeName(written: string, args: readonly TypeArgument[] = []): SqlType {
  const lower = written.toLowerCase()
  const name = aliases[lower] ?? lower
  switch (name) {
    case 'decimal':
      return decimalOf(numbers(written, args, 2))
    case 'varchar': {
      const [length] = numbers(written, args, 1)
      return varchar(length)
    }
    case 'char': {
      const length = numbers(written, args, 1)[0] ?? 1
      if (length > MAX_CHAR_LENGTH) {
        throw new EngineError(
          'INVALID_FUNCTION_ARGUMENT',
          `CHAR length must be in range [0, ${MAX_CHAR_LENGTH}], got ${length}`,
        )
      }
      return char(length)
    }
    case 'time':
      return time(datetimePrecision('TIME', numbers(written, args, 1)[0]))
    case 'time with time zone':
      return timeWithTimeZone(datetimePrecision('TIME', numbers(written, args, 1)[0]))
    case 'timestamp':
    case 'timestamp without time zone':
      return timestamp(datetimePrecision('TIMESTAMP', numbers(written, args, 1)[0]))
    case 'timestamp with time zone':
      return timestampWithTimeZone(datetimePrecision('TIMESTAMP', numbers(written, args, 1)[0]))
    case 'time without time zone':
      return time(datetimePrecision('TIME', numbers(written, args, 1)[0]))
    case 'array':
    case 'qdigest': {
      const [element] = types(written, args, 1)
      return name === 'array' ? array(element!) : qdigest(element!)
    }
    case 'map': {
      const [key, value] = types(written, args, 2)
      return map(key!, value!)
    }
    case 'row':
      if (args.length === 0 || args.some((argument) => argument.kind !== 'type')) throw unknownType(written)
      return row(args.flatMap((each) => (each.kind === 'type' ? [{ name: each.name, type: each.type }] : [])))
    default: {
      const kind = simpleByName.get(name)
      if (kind === undefined || args.length > 0) throw unknownType(written)
      return simpleType(kind)
    }
  }
}

/** An invalid decimal type. Trino reports the reason for decimals; other invalid types are only reported as unknown. */
export class DecimalOutOfRange extends EngineError {}

function decimalOf([precision = MAX_DECIMAL_PRECISION, scale = 0]: readonly number[]): SqlType {
  if (precision < 1 || precision > MAX_DECIMAL_PRECISION) {
    throw new DecimalOutOfRange(
      'INVALID_FUNCTION_ARGUMENT',
      `DECIMAL precision must be in range [1, ${MAX_DECIMAL_PRECISION}]: ${precision}`,
    )
  }
  if (scale > precision) {
    throw new DecimalOutOfRange(
      'INVALID_FUNCTION_ARGUMENT',
      `DECIMAL scale must be in range [0, precision (${precision})]: ${scale}`,
    )
  }
  return decimal(precision, scale)
}

function datetimePrecision(name: string, precision = 3): number {
  if (precision > MAX_DATETIME_PRECISION) {
    throw new EngineError(
      'NUMERIC_VALUE_OUT_OF_RANGE',
      `${name} precision must be in range [0, ${MAX_DATETIME_PRECISION}]: ${precision}`,
    )
  }
  return precision
}

function numbers(name: string, args: readonly TypeArgument[], most: number): readonly number[] {
  if (args.length > most) throw unknownType(name)
  return args.map((argument) => {
    if (argument.kind !== 'number') throw unknownType(name)
    return argument.value
  })
}

function types(name: string, args: readonly TypeArgument[], count: number): readonly SqlType[] {
  if (args.length !== count) throw unknownType(name)
  return args.map((argument) => {
    if (argument.kind !== 'type') throw unknownType(name)
    return argument.type
  })
}

function unknownType(name: string): EngineError {
  return new EngineError('TYPE_NOT_FOUND', `Unknown type: ${name}`)
}

/**
 * Reads a type's text in either of Trino's notations (`typeText`, `typeName`), as catalogs, stored views and the
 * coercion table use them. Types in statements are parsed by the grammar instead.
 */
export function parseTypeText(text: string): SqlType {
  const reader = { tokens: text.match(/"(?:[^"]|"")*"|[A-Za-z_][\w]*|\d+|[(),<>]/g) ?? [], at: 0 }
  const type = readType(reader)
  if (reader.at !== reader.tokens.length) throw unknownType(text)
  return type
}

interface Reader {
  readonly tokens: readonly string[]
  at: number
}

const words = /^[A-Za-z_]/

function readType(reader: Reader): SqlType {
  let name = reader.tokens[reader.at++] ?? ''
  if (!words.test(name)) throw unknownType(reader.tokens.join(' '))
  if (name.toLowerCase() === 'interval' || (name.toLowerCase() === 'double' && peek(reader) === 'precision')) {
    while (words.test(peek(reader))) name += ` ${reader.tokens[reader.at++]}`
  }
  const args = peek(reader) === '(' || peek(reader) === '<' ? readArguments(reader, name.toLowerCase() === 'row') : []
  if (/^time(stamp)?$/i.test(name) && /^with(out)?$/i.test(peek(reader))) {
    for (let i = 0; i < 3; i++) name += ` ${reader.tokens[reader.at++]}`
  }
  return resolveTypeName(name, args)
}

function readArguments(reader: Reader, named: boolean): TypeArgument[] {
  reader.at++
  const args: TypeArgument[] = []
  for (;;) {
    args.push(readArgument(reader, named))
    const next = reader.tokens[reader.at++]
    if (next === ')' || next === '>') return args
    if (next !== ',') throw unknownType(reader.tokens.join(' '))
  }
}

function readArgument(reader: Reader, named: boolean): TypeArgument {
  const token = peek(reader)
  if (/^\d/.test(token)) {
    reader.at++
    return { kind: 'number', value: Number(token) }
  }
  if (named && fieldIsNamed(reader)) {
    reader.at++
    const name = token.startsWith('"') ? token.slice(1, -1).replaceAll('""', '"') : token
    return { kind: 'type', type: readType(reader), name }
  }
  return { kind: 'type', type: readType(reader) }
}

/** Whether a field has a name: a second word follows the first, and the two do not form a type of several words. */
function fieldIsNamed(reader: Reader): boolean {
  const [first, second = ''] = reader.tokens.slice(reader.at)
  if (first?.startsWith('"')) return true
  if (!words.test(second)) return false
  const pair = `${first} ${second}`.toLowerCase()
  return !/^(interval (day|year)|double precision|time(stamp)? with(out)?)$/.test(pair)
}

function peek(reader: Reader): string {
  return reader.tokens[reader.at] ?? ''
}
