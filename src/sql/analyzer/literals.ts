import { unreachable } from '../../shared/unreachable.ts'
import type { GenericLiteral, IntervalLiteral, Literal } from '../syntax/ast.ts'
import type { IntervalField } from '../syntax/ast-types.ts'
import {
  BIGINT,
  BOOLEAN,
  char,
  DATE,
  decimal,
  DOUBLE,
  INTEGER,
  INTERVAL_DAY,
  INTERVAL_YEAR,
  MAX_DATETIME_PRECISION,
  MAX_DECIMAL_PRECISION,
  time,
  timestamp,
  timestampWithTimeZone,
  timeWithTimeZone,
  UNKNOWN,
  VARBINARY,
  varchar,
  type SqlType,
} from '../types/sql-type.ts'
import { resolveTypeName } from '../types/type-names.ts'
import { trimmed, trimmedNumber } from '../../duckdb/blanks.ts'
import { isAddress } from '../../duckdb/scripts/network.ts'
import { resolveFunction } from '../functions/resolve-function.ts'
import { castTo, constantOf } from './build.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import {
  requireZone,
  instantOf,
  parseDateLiteral,
  parseTimeLiteral,
  parseTimestampLiteral,
  PICOS_PER_MILLI,
  type ParsedTimestamp,
} from './datetime.ts'
import type { Expr } from './tree.ts'

const MAX_INTEGER = 2147483647n

export function analyzeLiteral(context: AnalysisContext, node: Literal): Expr {
  switch (node.kind) {
    case 'NullLiteral':
      return constantOf(UNKNOWN, null)
    case 'BooleanLiteral':
      return constantOf(BOOLEAN, node.value)
    case 'LongLiteral': {
      const value = BigInt(node.value)
      return constantOf(value <= MAX_INTEGER && value >= -MAX_INTEGER - 1n ? INTEGER : BIGINT, node.value)
    }
    case 'DecimalLiteral':
      return decimalLiteral(context, node, node.value)
    case 'DoubleLiteral':
      return constantOf(DOUBLE, node.value)
    case 'StringLiteral':
      return constantOf(varchar([...node.value].length), node.value)
    case 'BinaryLiteral':
      return constantOf(VARBINARY, node.hex)
    case 'GenericLiteral':
      return genericLiteral(context, node)
    case 'IntervalLiteral':
      return intervalLiteral(context, node)
    default:
      return unreachable(node)
  }
}

/** Parses a decimal literal. Leading zeros do not count: `00.5` is decimal(1,1). */
function decimalLiteral(context: AnalysisContext, node: Literal, written: string): Expr {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?$/.exec(trimmedNumber(written).replaceAll('_', ''))
  if (match === null || ((match[2] ?? '') === '' && (match[3] ?? '') === ''))
    throw invalid(context, node, written, 'DECIMAL')
  const sign = match[1] === '-' ? '-' : ''
  const integral = match[2]!.replace(/^0+/, '')
  const fraction = match[3] ?? ''
  const scale = fraction.length
  const precision = Math.max(integral.length + scale, 1)
  if (precision > MAX_DECIMAL_PRECISION) throw invalid(context, node, written, 'DECIMAL')
  return constantOf(
    decimal(precision, scale),
    `${sign}${integral === '' ? '0' : integral}${scale === 0 ? '' : `.${fraction}`}`,
  )
}

function invalid(context: AnalysisContext, node: Literal, text: string, type: string): Error {
  return errorAt(context, node, 'INVALID_LITERAL', `'${text}' is not a valid ${type} literal`)
}

function tooPrecise(context: AnalysisContext, node: Literal, type: string, digits: number): Error {
  return errorAt(
    context,
    node,
    'NUMERIC_VALUE_OUT_OF_RANGE',
    `${type} precision must be in range [0, ${MAX_DATETIME_PRECISION}]: ${digits}`,
  )
}

function genericLiteral(context: AnalysisContext, node: GenericLiteral): Expr {
  const name = node.type.toUpperCase()
  const { value } = node
  const orInvalid = (expr: Expr | undefined): Expr => {
    if (expr === undefined) throw invalid(context, node, value, name)
    return expr
  }
  switch (name) {
    case 'DECIMAL':
      return decimalLiteral(context, node, value)
    case 'DATE': {
      const day = parseDateLiteral(value)
      return orInvalid(
        day === undefined || day > MAX_INTEGER || day < -MAX_INTEGER - 1n ? undefined : constantOf(DATE, day),
      )
    }
    case 'TIME': {
      const digits = /\.(\d+)/.exec(value)?.[1]?.length ?? 0
      if (digits > MAX_DATETIME_PRECISION) throw tooPrecise(context, node, 'TIME', digits)
      return orInvalid(timeLiteral(value))
    }
    case 'TIMESTAMP': {
      let parsed: ParsedTimestamp | undefined
      try {
        parsed = parseTimestampLiteral(value)
      } catch {
        parsed = undefined
      }
      if (parsed !== undefined && parsed.precision > MAX_DATETIME_PRECISION) {
        throw tooPrecise(context, node, 'TIMESTAMP', parsed.precision)
      }
      if (parsed === undefined && hasFarOffset(value)) {
        throw errorAt(context, node, 'NOT_SUPPORTED', `Time zone not supported: ${value.slice(-6)}`)
      }
      return orInvalid(parsed && timestampLiteral(parsed))
    }
    case 'BOOLEAN': {
      const lower = value.toLowerCase()
      if (['true', 't', '1'].includes(lower)) return constantOf(BOOLEAN, true)
      return orInvalid(['false', 'f', '0'].includes(lower) ? constantOf(BOOLEAN, false) : undefined)
    }
    case 'JSON':
      try {
        JSON.parse(value)
      } catch {
        throw invalid(context, node, value, 'JSON')
      }
      return functionOf('json_parse', [constantOf(varchar(), value)])
    default:
      return typedLiteral(context, node)
  }
}

export function functionOf(name: string, args: readonly Expr[]): Expr {
  const resolved = resolveFunction(
    name,
    args.map((argument) => ({ kind: 'value', type: argument.type })),
    true,
  )
  return {
    kind: 'call',
    type: resolved.resultType,
    function: resolved,
    arguments: args.map((argument, i) => castTo(argument, resolved.argumentTypes[i]!)),
  }
}

const INTEGER_RANGES: Readonly<Record<string, bigint>> = {
  tinyint: 127n,
  smallint: 32767n,
  integer: MAX_INTEGER,
  bigint: 9223372036854775807n,
}

function typedLiteral(context: AnalysisContext, node: GenericLiteral): Expr {
  const { value } = node
  let type: SqlType
  try {
    type = resolveTypeName(node.type)
  } catch {
    throw errorAt(context, node, 'TYPE_NOT_FOUND', `Unknown resolvedType: ${node.type}`)
  }
  const failed = (): Error => invalid(context, node, value, node.type.toUpperCase())
  switch (type.kind) {
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint': {
      const text = trimmedNumber(value)
      if (!/^[+-]?\d+$/.test(text)) throw failed()
      const number = BigInt(text.replace(/^\+/, ''))
      const most = INTEGER_RANGES[type.kind]!
      if (number > most || number < -most - 1n) throw failed()
      return constantOf(type, String(number))
    }
    case 'real':
    case 'double': {
      const text = trimmedNumber(value)
      if (/^[+-]?(Infinity|NaN)$/.test(text)) return constantOf(type, text.replace('+', ''))
      if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dfDF]?$/.test(text)) throw failed()
      return constantOf(type, text.replace(/[dfDF]$/, ''))
    }
    case 'varchar':
      return constantOf(type, value)
    case 'uuid':
      if (!/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i.test(value)) throw failed()
      return constantOf(type, value.toLowerCase())
    case 'char':
      // Without an explicit length, the text's length applies.
      return castTo(
        constantOf(varchar([...value].length), value),
        /\(/.test(node.type) ? type : char([...value].length),
      )
    case 'ipaddress':
      if (!isAddress(value)) throw failed()
      return castTo(constantOf(varchar([...value].length), value), type)
    default:
      return castTo(constantOf(varchar([...value].length), value), type)
  }
}

function timeLiteral(text: string): Expr | undefined {
  const parsed = parseTimeLiteral(trimmed(text))
  if (parsed === undefined) return undefined
  if (parsed.offset === undefined) return constantOf(time(parsed.precision), parsed.picos)
  if (Math.abs(parsed.offset) > 14 * 60) return undefined
  const zone = trimmed(text).slice(-6)
  return { kind: 'constant', type: timeWithTimeZone(parsed.precision), value: parsed.picos, zone }
}

/** Whether an offset has more hours than Trino allows for a zone, though Java accepts it. */
function hasFarOffset(text: string): boolean {
  const [, hours, minutes] = /[+-](\d\d):(\d\d)$/.exec(text) ?? []
  const offset = Number(hours ?? 0) * 60 + Number(minutes ?? 0)
  return offset > 14 * 60 && offset <= 18 * 60
}

/** The limits of timestamps: in microseconds; with a zone in milliseconds, which share 64 bits with the zone. */
const MAX_MICROS = (1n << 63n) - 1n
const MAX_ZONED_MILLIS = (1n << 51n) - 1n

function isWithin(picos: bigint, unit: bigint, most: bigint): boolean {
  return picos <= most * unit && picos >= -(most + 1n) * unit
}

function timestampLiteral({ picos, precision, zone }: ParsedTimestamp): Expr | undefined {
  if (!isWithin(picos, 1_000_000n, MAX_MICROS)) return undefined
  if (zone === undefined) return constantOf(timestamp(precision), picos)
  const instant = instantOf(picos, zone)
  if (instant === undefined || !isWithin(instant, PICOS_PER_MILLI, MAX_ZONED_MILLIS)) return undefined
  return { kind: 'constant', type: timestampWithTimeZone(precision), value: instant, zone: requireZone(zone) }
}

// ---- Intervals

const MONTHS_PER_YEAR = 12n
const unitMillis: Readonly<Record<'DAY' | 'HOUR' | 'MINUTE' | 'SECOND', bigint>> = {
  DAY: 86_400_000n,
  HOUR: 3_600_000n,
  MINUTE: 60_000n,
  SECOND: 1_000n,
}
const dayFields = ['DAY', 'HOUR', 'MINUTE', 'SECOND'] as const
type DayField = (typeof dayFields)[number]

function isDayField(field: IntervalField): field is DayField {
  return (dayFields as readonly string[]).includes(field)
}

function intervalLiteral(context: AnalysisContext, node: IntervalLiteral): Expr {
  const { startField, endField = startField, value } = node
  const qualifier = node.endField === undefined ? startField : `${startField} TO ${node.endField}`
  const minus = node.sign === 'NEGATIVE'
  const bad = (): Error => errorAt(context, node, 'INVALID_LITERAL', `Invalid INTERVAL ${qualifier} value: ${value}`)
  if (startField === node.endField) {
    throw errorAt(context, node, 'INVALID_LITERAL', `Invalid interval qualifier: ${qualifier}`)
  }
  if (isDayField(startField) && isDayField(endField) && dayFields.indexOf(startField) <= dayFields.indexOf(endField)) {
    const millis = dayTime(value, startField, endField)
    if (millis === undefined) throw bad()
    return constantOf(INTERVAL_DAY, minus ? -millis : millis)
  }
  if (!isDayField(startField) && !isDayField(endField) && !(startField === 'MONTH' && endField === 'YEAR')) {
    const months = yearMonth(value, startField, endField)
    if (months === undefined) throw bad()
    return constantOf(INTERVAL_YEAR, minus ? -months : months)
  }
  throw errorAt(context, node, 'INVALID_LITERAL', `Invalid interval qualifier: ${qualifier}`)
}

function yearMonth(text: string, from: IntervalField, to: IntervalField): bigint | undefined {
  const read = fieldsOf(text, from === to ? [''] : ['', '-'], WHOLE)
  if (read === undefined) return undefined
  const [first, second = 0n] = read.fields as [bigint, bigint?]
  const months = from === 'YEAR' ? first * MONTHS_PER_YEAR + second : first
  if (months > MAX_INTEGER) return undefined
  return read.minus ? -months : months
}

/** Parses `1 02:03:04.567` from DAY to SECOND, or any run of these fields; trailing fields may be missing. */
function dayTime(text: string, from: DayField, to: DayField): bigint | undefined {
  const fields = dayFields.slice(dayFields.indexOf(from), dayFields.indexOf(to) + 1)
  const separators = fields.map((field) => (field === from ? '' : field === 'HOUR' ? ' ' : ':'))
  const read = fieldsOf(text, separators, to === 'SECOND' ? SECONDS : WHOLE)
  if (read === undefined) return undefined
  let millis = read.millis
  fields.forEach((field, i) => (millis += (read.fields[i] ?? 0n) * unitMillis[field]))
  return read.minus ? -millis : millis
}

const WHOLE = '(\\+?\\d{1,10})'
/** At most ten characters in total. */
const SECONDS = '(?=\\+?[\\d.]{1,10}$)(\\+?\\d+|(?=\\.\\d))(?:\\.(\\d*))?'

/**
 * Splits fields like Joda-Time's period parser: an empty field is zero, a separator may end the text, and numbers have
 * 32 bits.
 */
function fieldsOf(
  text: string,
  separators: readonly string[],
  last: string,
): { readonly minus: boolean; readonly fields: readonly bigint[]; readonly millis: bigint } | undefined {
  const pattern = separators.reduceRight((rest, separator, i) => {
    const field = `${i === separators.length - 1 ? last : WHOLE}${rest}`
    return i === 0 ? `(?:${field})?` : `(?:${separator}(?:${field})?)?`
  }, '')
  const minus = text.startsWith('-')
  const match = new RegExp(`^${pattern}$`).exec(minus ? text.slice(1) : text)
  if (match === null) return undefined
  const fields = match.slice(1, separators.length + 1).map((field = '') => BigInt(field))
  if (fields.some((field) => field > MAX_INTEGER)) return undefined
  return { minus, fields, millis: BigInt((match[separators.length + 1] ?? '').padEnd(3, '0').slice(0, 3)) }
}
