import { EngineError } from '../../shared/engine-error.ts'
import { INTERVAL_DAY, INTERVAL_YEAR, type SqlType } from '../types/sql-type.ts'
import type { ArithmeticOperator } from './resolved-operator.ts'

/**
 * The type that an untyped NULL takes next to a date, time or interval, so that the operator has Trino's result type.
 * @returns undefined if no overload in Trino accepts it
 */
export function besideMoment(operator: ArithmeticOperator, type: SqlType, nullIsLeft: boolean): SqlType | undefined {
  if (isInterval(type)) return operator === '-' ? type : undefined
  if (!isMoment(type)) return undefined
  if (operator === '+') return INTERVAL_DAY
  if (operator !== '-') return undefined
  return nullIsLeft ? type : INTERVAL_DAY
}

/**
 * Whether Trino's overloads for an untyped NULL have several results, of which Trino chooses none.
 * Source: Trino 476, tested for each operator with NULL on either side of each type.
 */
function isAmbiguous(operator: ArithmeticOperator, left: SqlType, right: SqlType): boolean {
  const nullIsLeft = left.kind === 'unknown'
  if (!nullIsLeft && right.kind !== 'unknown') return false
  const other = nullIsLeft ? right : left
  if (other.kind === 'unknown') return operator !== '%'
  switch (operator) {
    case '+':
      return isInterval(other) || (isTimestamp(other) && other.precision < 3)
    case '-':
      if (nullIsLeft) return isInterval(other)
      return isMoment(other) && other.kind !== 'date'
    case '*':
      return other.kind === 'bigint' || other.kind === 'double'
    case '/':
      return nullIsLeft && other.kind === 'double'
    case '%':
      return false
  }
}

/** @throws EngineError AMBIGUOUS_FUNCTION_CALL, which has no position in Trino */
export function verifyUnambiguous(operator: ArithmeticOperator, left: SqlType, right: SqlType): void {
  if (isAmbiguous(operator, left, right)) throw ambiguousOperator()
}

export function ambiguousOperator(): EngineError {
  return new EngineError(
    'AMBIGUOUS_FUNCTION_CALL',
    'Could not choose a best candidate operator. Explicit type casts must be added.',
  )
}

function isInterval(type: SqlType): boolean {
  return type.kind === INTERVAL_DAY.kind || type.kind === INTERVAL_YEAR.kind
}

function isTimestamp(type: SqlType): type is Extract<SqlType, { kind: 'timestamp' | 'timestamp with time zone' }> {
  return type.kind === 'timestamp' || type.kind === 'timestamp with time zone'
}

function isMoment(type: SqlType): boolean {
  return isTimestamp(type) || type.kind === 'date' || type.kind === 'time' || type.kind === 'time with time zone'
}
