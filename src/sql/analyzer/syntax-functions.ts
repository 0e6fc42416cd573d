import type {
  Format,
  AtTimeZone,
  CurrentCatalog,
  CurrentDate,
  CurrentPath,
  CurrentSchema,
  CurrentTime,
  CurrentTimestamp,
  CurrentUser,
  Extract,
  ExtractField,
  LocalTimeCall,
  LocalTimestampCall,
  Trim,
} from '../syntax/ast.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { EngineError } from '../../shared/engine-error.ts'
import {
  DATE,
  MAX_DATETIME_PRECISION,
  time,
  timestamp,
  timestampWithTimeZone,
  timeWithTimeZone,
  VARCHAR,
  type SqlType,
} from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, constantOf } from './build.ts'
import { errorAt, locatedAt, type AnalysisContext, type ExpressionState } from './context.ts'
import { floorDiv, PICOS_PER_DAY, picosOfMillis, requireZone, roundPicos, zoneOffsetSeconds } from './datetime.ts'
import { functionOf } from './literals.ts'
import type { Expr } from './tree.ts'

// Special syntax in Trino that is computed by functions or from the session.

const trimNames = { LEADING: 'ltrim', TRAILING: 'rtrim', BOTH: 'trim' } as const

export function analyzeTrim(state: ExpressionState, node: Trim): Expr {
  const args = [state.analyze(node.source), ...(node.character === undefined ? [] : [state.analyze(node.character)])]
  return locatedAt(state.context, node, () => functionOf(trimNames[node.specification], args))
}

const extractNames: Readonly<Record<ExtractField, string>> = {
  YEAR: 'year',
  QUARTER: 'quarter',
  MONTH: 'month',
  WEEK: 'week',
  DAY: 'day',
  DAY_OF_MONTH: 'day',
  DAY_OF_WEEK: 'day_of_week',
  DOW: 'day_of_week',
  DAY_OF_YEAR: 'day_of_year',
  DOY: 'day_of_year',
  YEAR_OF_WEEK: 'year_of_week',
  YOW: 'year_of_week',
  HOUR: 'hour',
  MINUTE: 'minute',
  SECOND: 'second',
  TIMEZONE_MINUTE: 'timezone_minute',
  TIMEZONE_HOUR: 'timezone_hour',
}

const timeFields: readonly ExtractField[] = ['HOUR', 'MINUTE', 'SECOND']
const zoneFields: readonly ExtractField[] = ['TIMEZONE_HOUR', 'TIMEZONE_MINUTE']

function hasField({ kind }: SqlType, field: ExtractField): boolean {
  const ofTime = timeFields.includes(field)
  const ofZone = zoneFields.includes(field)
  switch (kind) {
    case 'unknown':
    case 'timestamp with time zone':
      return true
    case 'timestamp':
      return !ofZone
    case 'date':
      return !ofTime && !ofZone
    case 'time':
      return ofTime
    case 'time with time zone':
      return ofTime || ofZone
    case 'interval day to second':
      return ofTime || field === 'DAY'
    case 'interval year to month':
      return field === 'YEAR' || field === 'MONTH'
    default:
      return false
  }
}

export function analyzeExtract(state: ExpressionState, node: Extract): Expr {
  const value = state.analyze(node.expression)
  if (!hasField(value.type, node.field)) {
    throw errorAt(
      state.context,
      node.expression,
      'TYPE_MISMATCH',
      `Cannot extract ${node.field} from ${typeName(value.type)}`,
    )
  }
  return functionOf(extractNames[node.field], [value])
}

export function analyzeAtTimeZone(state: ExpressionState, node: AtTimeZone): Expr {
  const value = state.analyze(node.value)
  if (!['time', 'time with time zone', 'timestamp', 'timestamp with time zone'].includes(value.type.kind)) {
    throw errorAt(
      state.context,
      node.value,
      'TYPE_MISMATCH',
      `Type of value must be a time or timestamp with or without time zone (actual ${typeName(value.type)})`,
    )
  }
  const zone = zoneOf(state, node)
  const { type } = value
  const zoned =
    type.kind === 'timestamp'
      ? castTo(value, timestampWithTimeZone(type.precision))
      : type.kind === 'time'
        ? castTo(value, timeWithTimeZone(type.precision))
        : value
  return locatedAt(state.context, node, () => functionOf('at_timezone', [zoned, zone]))
}

const MINUTE_MILLIS = 60_000n
const MAX_OFFSET_MINUTES = 14 * 60

/** The zone as text; an interval is an offset. */
function zoneOf(state: ExpressionState, { timeZone }: AtTimeZone): Expr {
  const zone = state.analyze(timeZone)
  if (zone.kind !== 'constant' || zone.type.kind !== 'interval day to second') return zone
  if (zone.value === null) return castTo(zone, VARCHAR)
  if ((zone.value as bigint) % MINUTE_MILLIS !== 0n) {
    const message = 'Invalid time zone offset interval: interval contains seconds'
    throw new EngineError('INVALID_FUNCTION_ARGUMENT', message)
  }
  const minutes = Number((zone.value as bigint) / MINUTE_MILLIS)
  const total = Math.abs(minutes)
  if (total > MAX_OFFSET_MINUTES) {
    throw new EngineError('INVALID_FUNCTION_ARGUMENT', `Invalid offset minutes ${minutes}`)
  }
  return constantOf(VARCHAR, `${minutes < 0 ? '-' : '+'}${pad(Math.trunc(total / 60))}:${pad(total % 60)}`)
}

type SessionValue =
  | CurrentDate
  | CurrentTime
  | CurrentTimestamp
  | LocalTimeCall
  | LocalTimestampCall
  | CurrentCatalog
  | CurrentSchema
  | CurrentPath
  | CurrentUser

/** The time of the query in the session's zone and other session values; all calls in a query return the same. */
export function analyzeSessionValue(state: ExpressionState, node: SessionValue): Expr {
  const { context } = state
  const { session } = context
  const text = (value: string | undefined): Expr => constantOf(VARCHAR, value ?? null)
  switch (node.kind) {
    case 'CurrentCatalog':
      return text(session.catalog)
    case 'CurrentSchema':
      return text(session.schema)
    case 'CurrentPath':
      return text(session.path ?? '')
    case 'CurrentUser':
      return text(session.user)
    case 'CurrentDate':
      return constantOf(DATE, floorDiv(now(context).local, PICOS_PER_DAY))
    case 'CurrentTime': {
      const { local, offset } = now(context)
      const precision = precisionOf(context, node, 'TIME')
      const minutes = Math.trunc(Math.abs(offset) / 60)
      const zone = `${offset < 0 ? '-' : '+'}${pad(Math.trunc(minutes / 60))}:${pad(minutes % 60)}`
      return {
        kind: 'constant',
        type: timeWithTimeZone(precision),
        value: roundPicos(timeOfDay(local), precision),
        zone,
      }
    }
    case 'LocalTime': {
      const precision = precisionOf(context, node, 'TIME')
      return constantOf(time(precision), roundPicos(timeOfDay(now(context).local), precision))
    }
    case 'LocalTimestamp': {
      const precision = precisionOf(context, node, 'TIMESTAMP')
      return constantOf(timestamp(precision), roundPicos(now(context).local, precision))
    }
    case 'CurrentTimestamp': {
      const precision = precisionOf(context, node, 'TIMESTAMP')
      const { utc, zone } = now(context)
      return { kind: 'constant', type: timestampWithTimeZone(precision), value: roundPicos(utc, precision), zone }
    }
    default:
      return unreachable(node)
  }
}

const UNFORMATTED = new Set(['array', 'map', 'row', 'varbinary'])

/** Analyzes `format(text, value, …)`. */
export function analyzeFormat(state: ExpressionState, node: Format): Expr {
  const args = node.arguments.map(state.analyze)
  args.forEach(({ type }, i) => {
    if (i === 0 && type.kind !== 'varchar') {
      throw errorAt(
        state.context,
        node.arguments[0]!,
        'TYPE_MISMATCH',
        `Type of first argument to format() must be VARCHAR (actual: ${typeName(type)})`,
      )
    }
    if (i > 0 && UNFORMATTED.has(type.kind)) {
      throw errorAt(
        state.context,
        node.arguments[i]!,
        'NOT_SUPPORTED',
        `Type not supported for formatting: ${typeName(type)}`,
      )
    }
  })
  return locatedAt(state.context, node, () => functionOf('format', args))
}

function now(context: AnalysisContext): {
  readonly utc: bigint
  readonly local: bigint
  readonly offset: number
  readonly zone: string
} {
  const { startTimeMillis, timeZone } = context.session
  const zone = requireZone(timeZone)
  const offset = zoneOffsetSeconds(zone, startTimeMillis)
  const utc = picosOfMillis(startTimeMillis)
  return { utc, local: utc + BigInt(offset) * 1_000_000_000_000n, offset, zone }
}

function precisionOf(
  context: AnalysisContext,
  node: CurrentTime | CurrentTimestamp | LocalTimeCall | LocalTimestampCall,
  what: string,
): number {
  const precision = node.precision ?? 3
  if (precision > MAX_DATETIME_PRECISION) {
    throw errorAt(
      context,
      node,
      'NUMERIC_VALUE_OUT_OF_RANGE',
      `${what} precision must be in range [0, ${MAX_DATETIME_PRECISION}]: ${precision}`,
    )
  }
  return precision
}

function timeOfDay(picos: bigint): bigint {
  return picos - floorDiv(picos, PICOS_PER_DAY) * PICOS_PER_DAY
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}
