import type { TablePoint } from '../../connectors/spi/connector.ts'
import { EngineError } from '../../shared/engine-error.ts'
import type { QueryPeriod } from '../syntax/ast-query.ts'
import { isInteger, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { computeConstant, localPicos, momentText } from './computed-constants.ts'
import { errorAt, locatedAt, type AnalysisContext } from './context.ts'
import { instantFrom, PICOS_PER_MILLI, picosOfMillis, requireZone } from './datetime.ts'
import { analyzeExpression } from './expressions.ts'
import type { Scope } from './scope.ts'
import type { ConstantExpr } from './tree.ts'

const NO_COLUMNS: Scope = { fields: [], parent: undefined, boundary: true }

/**
 * The value after FOR VERSION AS OF or FOR TIMESTAMP AS OF; undefined for a parameter without a value.
 * Source: Trino 476, StatementAnalyzer.extractTableVersion and validateVersionPointer.
 */
export function analyzePeriod(context: AnalysisContext, period: QueryPeriod): ConstantExpr | undefined {
  try {
    return constantOf(context, period)
  } catch (error) {
    // `Date` and BigInt throw it for a moment that they cannot hold.
    if (!(error instanceof RangeError)) throw error
    throw errorAt(context, period, 'INVALID_ARGUMENTS', 'Pointer value is out of range')
  }
}

function constantOf(context: AnalysisContext, period: QueryPeriod): ConstantExpr | undefined {
  const { expr } = analyzeExpression(context, period.end, NO_COLUMNS)
  if (expr.kind === 'constant' && expr.parameter !== undefined && expr.value === null) return undefined
  const isTime = period.rangeType === 'TIMESTAMP'
  if (isTime && expr.type.kind !== 'unknown' && !isMoment(expr.type)) {
    const wanted = 'Temporal pointers must be of type Timestamp, Timestamp with Time Zone, or Date.'
    throw errorAt(context, period, 'TYPE_MISMATCH', `Type ${typeName(expr.type)} invalid. ${wanted}`)
  }
  const value = locatedAt(context, period.end, () => computeConstant(expr, context.session))
  if (value === undefined) {
    const message = 'The version of a table must be a constant: literals, casts, now() and intervals'
    throw errorAt(context, period.end, 'EXPRESSION_NOT_CONSTANT', message)
  }
  if (value.value === null) throw errorAt(context, period, 'INVALID_ARGUMENTS', 'Pointer value cannot be NULL')
  if (isTime && instantPicos(value, context) >= picosOfMillis(context.session.startTimeMillis)) {
    throw errorAt(context, period, 'INVALID_ARGUMENTS', `Pointer value '${momentText(value)}' is not in the past`)
  }
  return value
}

/**
 * The point in the history of a table that a value of `analyzePeriod` names.
 * @throws EngineError NOT_SUPPORTED, without a position, for a type that names no version
 */
export function pointOf(context: AnalysisContext, { rangeType }: QueryPeriod, value: ConstantExpr): TablePoint {
  if (rangeType === 'TIMESTAMP') return { kind: 'time', millis: Number(instantPicos(value, context) / PICOS_PER_MILLI) }
  if (isInteger(value.type)) return { kind: 'version', version: String(value.value) }
  if (value.type.kind === 'varchar') return { kind: 'reference', name: String(value.value) }
  throw new EngineError('NOT_SUPPORTED', `Unsupported type for table version: ${typeName(value.type)}`)
}

function isMoment({ kind }: SqlType): boolean {
  return kind === 'date' || kind === 'timestamp' || kind === 'timestamp with time zone'
}

/** The instant of a date or timestamp, picoseconds since 1970; one without zone is in the session's zone. */
function instantPicos(moment: ConstantExpr, { session }: AnalysisContext): bigint {
  if (moment.type.kind === 'timestamp with time zone') return moment.value as bigint
  return instantFrom(localPicos(moment)!, requireZone(session.timeZone))
}
