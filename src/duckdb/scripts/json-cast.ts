import { trimmedNumber } from '../blanks.ts'
import { sqlDouble } from './double-text.ts'
import { JsonReader } from './json-reader.ts'
import { writeJson } from './write-json.ts'
import { isArray, isContainer, isJsonNumber, isJsonObject, type JsonValue } from './json-value.ts'
import { invalidCast, SqlFailure } from './scalar-function.ts'

/** A type as casts-json.ts describes it: a name, or a list that begins with a name. */
type Descriptor = string | readonly [string, ...unknown[]]

/** CAST(json AS varchar): the content of text, numbers as SQL writes them; containers have no text. */
export function jsonText(text: string): string | null {
  const value = JsonReader.parse(text)
  return scalarText(value, () => invalidCast(`Cannot cast '${text}' to varchar`))
}

function scalarText(value: JsonValue, failure: () => SqlFailure): string | null {
  if (value === null) return null
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (isContainer(value)) throw failure()
  const { number } = value as { readonly number: string }
  return /^-?\d+$/.test(number) ? number : sqlDouble(Number(number))
}

const descriptors = new Map<string, Descriptor>()

/** The value as JSON from which DuckDB reads the held form of the type; NULL for JSON null. */
export function castJson(text: string, type: string): string | null {
  let descriptor = descriptors.get(type)
  if (descriptor === undefined) {
    descriptor = JSON.parse(type) as Descriptor
    descriptors.set(type, descriptor)
  }
  const value = JsonReader.parse(text)
  const result = convert(value, descriptor, text)
  return result === 'null' ? null : result
}

const integerLimits: Readonly<Record<string, bigint>> = {
  tinyint: 128n,
  smallint: 32768n,
  integer: 2147483648n,
  bigint: 9223372036854775808n,
}

/** JSON text of the converted value. */
function convert(value: JsonValue, type: Descriptor, document: string): string {
  const [kind, ...parameters] = typeof type === 'string' ? [type] : type
  if (kind === 'json')
    return value === null && parameters.length === 0 ? '"null"' : JSON.stringify(writeJson(value, true))
  if (value === null) return 'null'
  switch (kind) {
    case 'boolean':
      return toBoolean(value, document)
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return toInteger(value, kind, document)
    case 'real':
    case 'double':
      return toDouble(value, kind, document)
    case 'decimal':
      return toDecimal(value, document, parameters as [number, number])
    case 'varchar': {
      const text = scalarText(value, () => invalidCast(`Cannot cast '${document}' to varchar`))!
      const length = parameters[0] as number | undefined
      return JSON.stringify(length === undefined ? text : [...text].slice(0, length).join(''))
    }
    case 'array': {
      if (!isArray(value))
        throw invalidCast(
          `Cannot cast to ${parameters[1] as string}. Expected a json array, but got ${shown(value)}\n${document}`,
        )
      return `[${value.map((item) => convert(item, parameters[0] as Descriptor, document)).join(',')}]`
    }
    case 'map':
      return toMap(value, parameters as [Descriptor, Descriptor, string], document)
    case 'row':
      return toRow(value, parameters as [readonly (readonly [string, Descriptor])[], string], document)
    default:
      throw invalidCast(`Cannot cast '${document}' to ${kind}`)
  }
}

function shown(value: JsonValue): string {
  if (isArray(value)) return '['
  if (isJsonObject(value)) return '{'
  return isJsonNumber(value) ? value.number : String(value)
}

function numberOf(value: JsonValue): string | undefined {
  return isJsonNumber(value) ? value.number : undefined
}

function isBeyondBigint(number: string): boolean {
  const { bigint } = integerLimits
  return /^-?\d{19,}$/.test(number) && (BigInt(number) >= bigint! || BigInt(number) < -bigint!)
}

function toBoolean(value: JsonValue, document: string): string {
  if (typeof value === 'boolean') return String(value)
  const number = numberOf(value)
  // A whole number beyond bigint is refused; any other number is read as a double.
  if (number !== undefined && !isBeyondBigint(number)) return String(Number(number) !== 0)
  if (typeof value === 'string' && /^(?:true|t|1)$/i.test(value)) return 'true'
  if (typeof value === 'string' && /^(?:false|f|0)$/i.test(value)) return 'false'
  throw invalidCast(`Cannot cast '${document}' to boolean`)
}

function toInteger(value: JsonValue, kind: string, document: string): string {
  const limit = integerLimits[kind]!
  const failure = (): SqlFailure => invalidCast(`Cannot cast '${document}' to ${kind}`)
  let result: bigint
  const number = numberOf(value)
  if (typeof value === 'boolean') result = value ? 1n : 0n
  else if (typeof value === 'string') {
    const text = trimmedNumber(value)
    if (!/^[+-]?\d+$/.test(text)) {
      throw invalidCast(`Cannot cast '${value}' to ${kind === 'integer' ? 'INT' : kind.toUpperCase()}`)
    }
    result = BigInt(text.replace(/^\+/, ''))
  } else if (number === undefined) throw failure()
  else if (/^-?\d+$/.test(number)) result = BigInt(number)
  else {
    const double = Number(number)
    if (!Number.isFinite(double)) throw failure()
    result = BigInt(Math.trunc(Math.abs(double) + 0.5)) * (double < 0 ? -1n : 1n)
  }
  if (result >= limit || result < -limit) throw failure()
  return String(result)
}

function toDouble(value: JsonValue, kind: string, document: string): string {
  if (typeof value === 'boolean') return value ? '1.0' : '0.0'
  const text = numberOf(value) ?? (typeof value === 'string' ? trimmedNumber(value) : undefined)
  if (text === undefined || !/^[+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/.test(text)) {
    throw invalidCast(
      typeof value === 'string'
        ? `Cannot cast '${value}' to ${kind.toUpperCase()}`
        : `Cannot cast '${document}' to ${kind}`,
    )
  }
  const double = kind === 'real' ? Math.fround(Number(text)) : Number(text)
  if (Object.is(double, -0)) return '-0.0'
  return Number.isFinite(double) ? String(double) : JSON.stringify(String(double))
}

/** The text of a decimal, which DuckDB rounds; values with too many digits are refused here. */
function toDecimal(value: JsonValue, document: string, [precision, scale]: [number, number]): string {
  const failure = (): SqlFailure => invalidCast(`Cannot cast '${document}' to DECIMAL(${precision},${scale})`)
  if (typeof value === 'boolean') return value ? '"1"' : '"0"'
  const text = numberOf(value) ?? (typeof value === 'string' ? trimmedNumber(value) : undefined)
  if (text === undefined || !/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) throw failure()
  if (Math.abs(Number(text)) >= 10 ** (precision - scale)) throw failure()
  return JSON.stringify(text)
}

function toMap(value: JsonValue, [key, item, name]: [Descriptor, Descriptor, string], document: string): string {
  if (!isJsonObject(value)) {
    throw invalidCast(`Cannot cast to ${name}. Expected a json object, but got ${shown(value)}\n${document}`)
  }
  const duplicate = (): SqlFailure =>
    invalidCast(`Cannot cast to ${name}. Duplicate map keys are not allowed\n${document}`)
  if (value.repeated !== undefined) throw duplicate()
  const names = new Set<string>()
  const members = [...value.members].map(([member, inner]) => {
    const converted = convert(member, key, document)
    const text = converted.startsWith('"') ? converted : JSON.stringify(converted)
    if (names.has(text)) throw duplicate()
    names.add(text)
    return `${text}:${convert(inner, item, document)}`
  })
  return `{${members.join(',')}}`
}

/**
 * Rows are made from arrays by position, and from objects by name. Names of members are compared in lower case, names
 * of fields as they are; missing fields are NULL.
 */
function toRow(
  value: JsonValue,
  [fields, name]: [readonly (readonly [string, Descriptor])[], string],
  document: string,
): string {
  let items: readonly (JsonValue | undefined)[]
  if (isArray(value)) {
    if (value.length !== fields.length) {
      throw invalidCast(
        `Cannot cast to ${name}. Expected ${fields.length} fields, but got ${value.length}\n${document}`,
      )
    }
    items = value
  } else if (isJsonObject(value)) {
    const names = namesOf(fields, `Cannot cast to ${name}. `, document)
    const known = new Set(names)
    const byName = new Map<string, JsonValue>()
    const duplicate = (member: string): SqlFailure =>
      invalidCast(`Cannot cast to ${name}. Duplicate field: ${member}\n${document}`)
    const repeated = value.repeated?.find((member) => known.has(member.toLowerCase()))
    if (repeated !== undefined) throw duplicate(repeated)
    for (const [member, inner] of value.members) {
      const field = member.toLowerCase()
      if (!known.has(field)) continue
      if (byName.has(field)) throw duplicate(member)
      byName.set(field, inner)
    }
    items = names.map((field, i) => (names.lastIndexOf(field) === i ? byName.get(field) : undefined))
  } else {
    throw invalidCast(`Cannot cast to ${name}. Expected a json array or object, but got ${shown(value)}\n${document}`)
  }
  return `{${fields.map(([, type], i) => `"f${i}":${optional(items[i], type, document)}`).join(',')}}`
}

function namesOf(
  fields: readonly (readonly [string, Descriptor])[],
  cast: string,
  document: string,
): readonly string[] {
  const names = fields.map(([field]) => field)
  if (names[0] === '') {
    throw invalidCast(
      `${cast}Cannot cast a JSON object to anonymous row type. Input must be a JSON array.\n${document}`,
    )
  }
  if (names.includes(''))
    throw new SqlFailure('GENERIC_INTERNAL_ERROR', 'java.util.NoSuchElementException: No value present')
  return names
}

/** A missing field is NULL, even for type json. */
function optional(value: JsonValue | undefined, type: Descriptor, document: string): string {
  return value === undefined ? 'null' : convert(value, type, document)
}
