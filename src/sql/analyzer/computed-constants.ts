import { EngineError } from '../../shared/engine-error.ts'
import { isInteger, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { constantOf } from './build.ts'
import {
  floorDiv,
  localOf,
  parseDateLiteral,
  parseTimestampLiteral,
  PICOS_PER_DAY,
  PICOS_PER_MILLI,
  picosOfMillis,
  requireZone,
  roundPicos,
  instantFrom,
  type ParsedTimestamp,
} from './datetime.ts'
import type { CallExpr, ConstantExpr, Expr } from './tree.ts'

/** The session's zone, and the start of the statement: the value of `now()`. */
export interface SessionTimes {
  readonly timeZone: string
  readonly startTimeMillis: number
}

const MILLIS_PER_DAY = 86_400_000

/**
 * Computes a value that the analysis itself needs, without an engine: literals, casts between texts, integers, dates and
 * timestamps, `now()`, AT TIME ZONE, and moments plus or minus intervals.
 * @returns undefined for any other expression
 * @throws EngineError INVALID_CAST_ARGUMENT, without a position
 */
export function computeConstant(expr: Expr, times: SessionTimes): ConstantExpr | undefined {
  switch (expr.kind) {
    case 'constant':
      return expr
    case 'cast': {
      const value = computeConstant(expr.value, times)
      if (value === undefined) return undefined
      return value.value === null ? constantOf(expr.type, null) : castConstant(value, expr.type, times)
    }
    case 'negate': {
      const value = computeConstant(expr.value, times)
      return typeof value?.value === 'bigint' ? { ...value, value: -value.value } : undefined
    }
    case 'operator': {
      const [left, right] = [computeConstant(expr.left, times), computeConstant(expr.right, times)]
      if (left === undefined || right === undefined || (expr.name !== '+' && expr.name !== '-')) return undefined
      if (left.value === null || right.value === null) return constantOf(expr.type, null)
      if (isInterval(left.type)) return expr.name === '+' ? moved(right, left, 1n, expr.type) : undefined
      return moved(left, right, expr.name === '+' ? 1n : -1n, expr.type)
    }
    case 'call':
      return callConstant(expr, times)
    default:
      return undefined
  }
}

function callConstant(
  { function: { name }, arguments: args, type }: CallExpr,
  times: SessionTimes,
): ConstantExpr | undefined {
  if (name === 'now') {
    return { kind: 'constant', type, value: picosOfMillis(times.startTimeMillis), zone: requireZone(times.timeZone) }
  }
  if (name !== 'at_timezone') return undefined
  const [moment, zone] = args.map((argument) => computeConstant(argument, times))
  return moment && typeof zone?.value === 'string' ? { ...moment, zone: requireZone(zone.value) } : undefined
}

function isInterval({ kind }: SqlType): boolean {
  return kind === 'interval day to second' || kind === 'interval year to month'
}

/** A moment that an interval moves. */
function moved(moment: ConstantExpr, interval: ConstantExpr, sign: 1n | -1n, type: SqlType): ConstantExpr | undefined {
  if (typeof moment.value !== 'bigint' || typeof interval.value !== 'bigint') return undefined
  const amount = sign * interval.value
  const months = interval.type.kind === 'interval year to month'
  const { value, zone = 'UTC' } = moment
  switch (moment.type.kind) {
    case 'date': {
      if (months) return { ...moment, type, value: plusMonths(value, amount) }
      const days = amount / BigInt(MILLIS_PER_DAY)
      return amount % BigInt(MILLIS_PER_DAY) === 0n ? { ...moment, type, value: value + days } : undefined
    }
    case 'timestamp':
      return { ...moment, type, value: months ? localPlusMonths(value, amount) : value + amount * PICOS_PER_MILLI }
    case 'timestamp with time zone': {
      if (!months) return { ...moment, type, value: value + amount * PICOS_PER_MILLI }
      return { ...moment, type, value: instantFrom(localPlusMonths(localOf(value, zone), amount), zone) }
    }
    default:
      return undefined
  }
}

function localPlusMonths(picos: bigint, months: bigint): bigint {
  const day = floorDiv(picos, PICOS_PER_DAY)
  return plusMonths(day, months) * PICOS_PER_DAY + (picos - day * PICOS_PER_DAY)
}

/** The same day some months later, or the last day of that month. Both are days since 1970-01-01. */
function plusMonths(day: bigint, months: bigint): bigint {
  const from = new Date(Number(day) * MILLIS_PER_DAY)
  const to = new Date(from)
  to.setUTCMonth(from.getUTCMonth() + Number(months))
  // `Date` would count the missing days into the next month.
  if (to.getUTCDate() !== from.getUTCDate()) to.setUTCDate(0)
  if (Number.isNaN(to.getTime())) throw new EngineError('INVALID_ARGUMENTS', 'The date is out of range')
  return BigInt(Math.round(to.getTime() / MILLIS_PER_DAY))
}

function castConstant(from: ConstantExpr, type: SqlType, { timeZone }: SessionTimes): ConstantExpr | undefined {
  const isText = from.type.kind === 'varchar'
  switch (type.kind) {
    case 'varchar':
      return isText ? { ...from, type } : undefined
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      if (isInteger(from.type)) return { ...from, type }
      if (!isText) return undefined
      if (!/^[+-]?\d+$/.test(String(from.value))) throw badCast(from, type)
      return constantOf(type, String(BigInt(String(from.value))))
    case 'date': {
      const day = isText ? parsedDate(from, type) : dayOf(localPicos(from))
      return day === undefined ? undefined : constantOf(type, day)
    }
    case 'timestamp': {
      const local = isText ? parsedTimestamp(from, type).picos : localPicos(from)
      return local === undefined ? undefined : constantOf(type, roundPicos(local, type.precision))
    }
    case 'timestamp with time zone': {
      const moment = isText ? parsedTimestamp(from, type) : { picos: localPicos(from), zone: from.zone }
      if (moment.picos === undefined) return undefined
      const zone = moment.zone ?? requireZone(timeZone)
      // A moment with a zone is an instant already. Its local time may occur twice, when clocks are set back.
      const instant = from.type.kind === type.kind ? (from.value as bigint) : instantFrom(moment.picos, zone)
      return { kind: 'constant', type, value: roundPicos(instant, type.precision), zone }
    }
    default:
      return undefined
  }
}

/** The local time of a moment, picoseconds since 1970-01-01 00:00; undefined for a value that is no moment. */
export function localPicos({ type, value, zone = 'UTC' }: ConstantExpr): bigint | undefined {
  switch (type.kind) {
    case 'date':
      return (value as bigint) * PICOS_PER_DAY
    case 'timestamp':
      return value as bigint
    case 'timestamp with time zone':
      return localOf(value as bigint, zone)
    default:
      return undefined
  }
}

function dayOf(local: bigint | undefined): bigint | undefined {
  return local === undefined ? undefined : floorDiv(local, PICOS_PER_DAY)
}

function parsedDate(from: ConstantExpr, type: SqlType): bigint {
  const day = parseDateLiteral(String(from.value))
  if (day === undefined) throw badCast(from, type)
  return day
}

function parsedTimestamp(from: ConstantExpr, type: SqlType): ParsedTimestamp {
  const parsed = parseTimestampLiteral(String(from.value))
  if (parsed === undefined) throw badCast(from, type)
  return parsed
}

function badCast({ value }: ConstantExpr, type: SqlType): EngineError {
  return new EngineError('INVALID_CAST_ARGUMENT', `Value cannot be cast to ${typeName(type)}: ${String(value)}`)
}

/** A date or timestamp as a cast to varchar writes it. */
export function momentText(constant: ConstantExpr): string {
  const { type, zone } = constant
  const local = localPicos(constant) ?? 0n
  const day = floorDiv(local, PICOS_PER_DAY)
  const midnight = new Date(Number(day) * MILLIS_PER_DAY)
  // Years that JavaScript does not know.
  if (Number.isNaN(midnight.getTime())) return `day ${day}`
  const date = midnight.toISOString().replace(/T.*/, '')
  if (type.kind !== 'timestamp' && type.kind !== 'timestamp with time zone') return date
  const picos = local - day * PICOS_PER_DAY
  const time = new Date(Number(picos / PICOS_PER_MILLI)).toISOString().slice(11, 19)
  const fraction = String(picos % (1000n * PICOS_PER_MILLI)).padStart(12, '0').slice(0, type.precision) // prettier-ignore
  return `${date} ${time}${fraction && `.${fraction}`}${type.kind === 'timestamp' ? '' : ` ${zone ?? 'UTC'}`}`
}
