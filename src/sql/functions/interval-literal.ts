import { EngineError, type ErrorLocation } from '../../shared/engine-error.ts'
import { INTERVAL_DAY, INTERVAL_YEAR } from '../types/sql-type.ts'
import type { Literal } from './literals.ts'

export type IntervalField = 'YEAR' | 'MONTH' | 'DAY' | 'HOUR' | 'MINUTE' | 'SECOND'

const MILLIS: Readonly<Record<string, bigint>> = {
  DAY: 86_400_000n,
  HOUR: 3_600_000n,
  MINUTE: 60_000n,
  SECOND: 1000n,
}
const order: readonly IntervalField[] = ['YEAR', 'MONTH', 'DAY', 'HOUR', 'MINUTE', 'SECOND']
const MAX_FIELD = 2147483647n

/** `INTERVAL '1 02:03:04.5' DAY TO SECOND`: held in milliseconds, or months. Throws INVALID_LITERAL. */
export function intervalLiteral(
  text: string,
  negative: boolean,
  start: IntervalField,
  end: IntervalField | undefined,
  location?: ErrorLocation,
): Literal {
  const months = start === 'YEAR' || start === 'MONTH'
  const value = months ? monthsOf(text.trim(), start, end) : millisOf(text.trim(), start, end)
  if (value === undefined) {
    throw new EngineError('INVALID_LITERAL', `'${text}' is not a valid INTERVAL literal`, { location })
  }
  const signed = negative ? -value : value
  return {
    type: months ? INTERVAL_YEAR : INTERVAL_DAY,
    sql: `CAST(${signed} AS ${months ? 'INTEGER' : 'BIGINT'})`,
    constant: signed,
  }
}

function monthsOf(text: string, start: IntervalField, end: IntervalField | undefined): bigint | undefined {
  const match = /^([+-]?)(\d+)(?:-(\d+))?$/.exec(text)
  if (match === null || (match[3] !== undefined && end !== 'MONTH')) return undefined
  const first = BigInt(match[2]!)
  if (first > MAX_FIELD) return undefined
  const total = start === 'YEAR' ? first * 12n + BigInt(match[3] ?? 0) : first
  return match[1] === '-' ? -total : total
}

function millisOf(text: string, start: IntervalField, end: IntervalField | undefined): bigint | undefined {
  const from = order.indexOf(start)
  const to = order.indexOf(end ?? start)
  const match = /^([+-]?)(\d+)(?:(?:(?<=^[+-]?\d+) |:)(\d+))?(?::(\d+))?(?::(\d+))?(?:\.(\d*))?$/.exec(text)
  if (match === null || to < from) return undefined
  const parts = match.slice(2, 6).filter((part) => part !== undefined)
  if (parts.length > to - from + 1) return undefined
  // A day is followed by a blank, everything else by a colon.
  if (start === 'DAY' && parts.length > 1 && !/^[+-]?\d+ /.test(text)) return undefined
  if (start !== 'DAY' && text.includes(' ')) return undefined
  const fraction = match[6]
  if (fraction !== undefined && order[from + parts.length - 1] !== 'SECOND') return undefined
  let total = 0n
  for (const [i, part] of parts.entries()) {
    const amount = BigInt(part)
    if (amount > MAX_FIELD) return undefined
    total += amount * MILLIS[order[from + i]!]!
  }
  if (fraction !== undefined) total += BigInt(fraction.padEnd(3, '0').slice(0, 3))
  return match[1] === '-' ? -total : total
}
