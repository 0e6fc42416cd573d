import type { ScanTerm, ScanValues } from '../../connectors/spi/scan-question.ts'
import { isLikePattern } from '../../shared/like-pattern.ts'
import { instantOf, PICOS_PER_DAY, zoneOffsetSeconds } from '../../sql/analyzer/datetime.ts'
import { constantsOf } from '../../sql/analyzer/literal-arrays.ts'
import type { CompareExpr, ConstantExpr, Expr, Subquery } from '../../sql/analyzer/tree.ts'

/** The statement's time zone and start time, which give meaning to times without zone and to `now()`. */
export interface ConstantTimes {
  readonly zone: string
  readonly startTimeMillis: number
}

/** The surroundings of a predicate in a statement, including queries inside it. */
export interface Surroundings extends ConstantTimes {
  /** The possible values of the query's column, if a table can answer for them; the answer may contain more values. */
  readonly valuesOf: (query: Subquery) => ScanValues | undefined
}

/** The table's name of the column that an expression reads; undefined for all other expressions. */
type Source = (expr: Expr) => string | undefined

/** The most values in a list. A longer list would cost more to send than it saves. */
const MOST_VALUES = 1_000
/** Matching takes pattern length times text length, and a source may ignore a cancellation meanwhile; Postgres does. */
export const LONGEST_PATTERN = 256

interface Terms {
  readonly terms: readonly ScanTerm[]
  /** Whether the terms are equivalent to the predicate: each row that satisfies them satisfies it. */
  readonly whole: boolean
}

const NOTHING: Terms = { terms: [], whole: false }

/** The terms of a predicate that compare columns with constants. */
export function termsIn(predicate: Expr, source: Source, times: Surroundings): Terms {
  if (predicate.kind === 'and') {
    const all = predicate.terms.map((term) => termsIn(term, source, times))
    return { terms: all.flatMap(({ terms }) => terms), whole: all.every(({ whole }) => whole) }
  }
  const terms = termOf(predicate, source, times)
  if (terms) return { terms, whole: true }
  const among = amongIn(predicate, source, times)
  return among ? { terms: [among], whole: false } : NOTHING
}

/** A term of `x IN (SELECT …)` or `x = (SELECT …)`. */
function amongIn(predicate: Expr, source: Source, { valuesOf }: Surroundings): ScanTerm | undefined {
  const [value, query] =
    predicate.kind === 'inSubquery'
      ? [predicate.value, predicate.query]
      : predicate.kind !== 'compare' || predicate.operator !== '='
        ? []
        : predicate.right.kind === 'scalarSubquery'
          ? [predicate.left, predicate.right.query]
          : predicate.left.kind === 'scalarSubquery'
            ? [predicate.right, predicate.left.query]
            : []
  const column = value && source(value)
  const among = column !== undefined && query && valuesOf(query)
  return among ? { column, among } : undefined
}

function termOf(term: Expr, source: Source, times: ConstantTimes): readonly ScanTerm[] | undefined {
  switch (term.kind) {
    case 'compare':
      return comparison(term, source, times)
    case 'between': {
      const { value, min, max, type } = term
      const low = comparison({ kind: 'compare', type, operator: '>=', left: value, right: min }, source, times)
      const high = comparison({ kind: 'compare', type, operator: '<=', left: value, right: max }, source, times)
      return low && high && [...low, ...high]
    }
    case 'inList': {
      const column = source(term.value)
      if (column === undefined || term.values.length > MOST_VALUES) return undefined
      const values = term.values.map((value) => constantText(value, times))
      return values.every((value) => value !== undefined) ? [{ column, in: values }] : undefined
    }
    case 'inLiterals': {
      const column = source(term.value)
      if (column === undefined || term.literals.literals.length > MOST_VALUES) return undefined
      const values = constantsOf(term.literals).map((value) => constantText(value, times))
      return values.every((value) => value !== undefined) ? [{ column, in: values }] : undefined
    }
    case 'like': {
      const [column, like] = [source(term.value), constantText(term.pattern)]
      const escape = term.escape && constantText(term.escape)
      if (column === undefined || like === undefined || (term.escape && escape === undefined)) return undefined
      if (like.length > LONGEST_PATTERN) return undefined
      return isLikePattern({ pattern: like, escape }) ? [{ column, like, ...(escape && { escape }) }] : undefined
    }
    case 'isNull': {
      const column = source(term.value)
      return column === undefined ? undefined : [{ column, isNull: true }]
    }
    case 'not': {
      const column = term.value.kind === 'isNull' ? source(term.value.value) : undefined
      return column === undefined ? undefined : [{ column, isNull: false }]
    }
    default:
      return undefined
  }
}

const TURNED = { '<': '>', '<=': '>=', '>': '<', '>=': '<=', '=': '=', '<>': '<>' } as const

function comparison(
  { operator, left, right }: CompareExpr,
  source: Source,
  times: ConstantTimes,
): readonly ScanTerm[] | undefined {
  if (operator === 'IS DISTINCT FROM' || operator === 'IS NOT DISTINCT FROM') return undefined
  const day = ofDay(operator, left, right, source) ?? ofDay(TURNED[operator], right, left, source)
  if (day) return day
  const turned = source(left) === undefined
  const column = source(turned ? right : left)
  const value = constantText(turned ? left : right, times)
  if (column === undefined || value === undefined) return undefined
  const compare = turned ? TURNED[operator] : operator
  return compare === '=' ? [{ column, in: [value] }] : [{ column, compare, value }]
}

/** Converts `CAST(created AS date) >= DATE '…'` to terms on the time. */
function ofDay(
  operator: keyof typeof TURNED,
  left: Expr,
  right: Expr,
  source: Source,
): readonly ScanTerm[] | undefined {
  const time = dayOf(left)
  const column = time && source(time)
  const day = right.type.kind === 'date' ? localIn(right) : undefined
  if (column === undefined || day === undefined) return undefined
  const [begin, end] = [isoOf(day), isoOf(day + PICOS_PER_DAY)]
  if (begin === undefined || end === undefined) return undefined
  switch (operator) {
    case '=':
      return [
        { column, compare: '>=', value: begin },
        { column, compare: '<', value: end },
      ]
    case '<':
      return [{ column, compare: '<', value: begin }]
    case '<=':
      return [{ column, compare: '<', value: end }]
    case '>':
      return [{ column, compare: '>=', value: end }]
    case '>=':
      return [{ column, compare: '>=', value: begin }]
    case '<>':
      return undefined
  }
}

/** The time inside `CAST(x AS date)` or `date(x)`. */
export function dayOf(expr: Expr): Expr | undefined {
  const inner =
    expr.kind === 'cast' && !expr.safe && expr.type.kind === 'date'
      ? expr.value
      : expr.kind === 'call' && expr.function.name === 'date'
        ? expr.arguments[0]
        : undefined
  return inner?.type.kind === 'timestamp with time zone' ? inner : undefined
}

/** A constant in the form used in questions; undefined for NULL, and for values unknown before the statement runs. */
export function constantText(expr: Expr, times?: ConstantTimes): string | undefined {
  const { kind } = expr.type
  if (kind === 'timestamp with time zone') {
    const picos = times && instantIn(expr, times)
    return picos === undefined ? undefined : isoOf(picos)
  }
  const constant = withoutCasts(expr)
  if (!constant || constant.value === null) return undefined
  const text = String(constant.value)
  switch (kind) {
    case 'varchar':
      // A text that no database can store cannot be part of a question.
      return constant.type.kind === 'varchar' && !UNSTORABLE.test(text) ? text : undefined
    case 'bigint':
      return INTEGERS.has(constant.type.kind) ? text : undefined
    case 'double':
      return NUMBERS.has(constant.type.kind) && Number.isFinite(Number(text)) ? String(Number(text)) : undefined
    case 'boolean':
      return constant.type.kind === 'boolean' ? text : undefined
    default:
      return undefined
  }
}

/** U+0000, and lone surrogates. */
const UNSTORABLE = /\0|\p{Surrogate}/u
const INTEGERS = new Set(['tinyint', 'smallint', 'integer', 'bigint'])
const NUMBERS = new Set([...INTEGERS, 'decimal', 'double'])

function withoutCasts(expr: Expr): ConstantExpr | undefined {
  const plain = withoutWidening(expr)
  if (plain.kind === 'cast' && !plain.safe && (plain.type.kind === 'bigint' || plain.type.kind === 'double'))
    return withoutCasts(plain.value)
  return plain.kind === 'constant' ? plain : undefined
}

const PICOS_PER_MILLI = 1_000_000_000n

/** The instant, in picoseconds, of a constant, of `now()`, or of either plus or minus an interval. */
function instantIn(expr: Expr, times: ConstantTimes): bigint | undefined {
  if (expr.type.kind !== 'timestamp with time zone') {
    const local = localIn(expr)
    return local === undefined ? undefined : instantOf(local, times.zone)
  }
  switch (expr.kind) {
    case 'constant':
      return typeof expr.value === 'bigint' ? expr.value : undefined
    case 'cast':
      return expr.safe || cutsDigits(expr) ? undefined : instantIn(expr.value, times)
    case 'call':
      return expr.function.name === 'now' && expr.arguments.length === 0
        ? BigInt(Math.trunc(times.startTimeMillis)) * PICOS_PER_MILLI
        : undefined
    case 'operator':
      return shifted(expr, instantIn(expr.left, times))
    default:
      return undefined
  }
}

/**
 * Picoseconds since 1970-01-01 of a date or a time without zone. @param times absent if the current day does not matter
 */
export function localIn(expr: Expr, times?: ConstantTimes): bigint | undefined {
  const { kind } = expr.type
  if (kind !== 'date' && kind !== 'timestamp') return undefined
  switch (expr.kind) {
    case 'constant':
      if (typeof expr.value !== 'bigint') return undefined
      return kind === 'date' ? expr.value * PICOS_PER_DAY : expr.value
    case 'cast':
      return expr.safe || cutsDigits(expr) || kind === 'date' ? undefined : localIn(expr.value, times)
    case 'operator':
      return shifted(expr, localIn(expr.left, times))
    case 'call':
      return expr.function.name === 'current_date' && times ? today(times) : undefined
    default:
      return undefined
  }
}

function today({ zone, startTimeMillis }: ConstantTimes): bigint {
  const seconds = startTimeMillis / 1000 + zoneOffsetSeconds(zone, startTimeMillis)
  return BigInt(Math.floor(seconds / 86_400)) * PICOS_PER_DAY
}

function shifted({ name, right }: Extract<Expr, { kind: 'operator' }>, from: bigint | undefined): bigint | undefined {
  if (from === undefined || right.kind !== 'constant' || right.type.kind !== 'interval day to second') return undefined
  if (typeof right.value !== 'bigint') return undefined
  const shift = right.value * PICOS_PER_MILLI
  return name === '+' ? from + shift : name === '-' ? from - shift : undefined
}

function cutsDigits({ type, value }: Extract<Expr, { kind: 'cast' }>): boolean {
  const digits = (of: Expr['type']): number => ('precision' in of ? of.precision : 0)
  return digits(type) < digits(value.type)
}

/** Returns undefined for instants finer than milliseconds, or outside of years 1 to 9999. */
function isoOf(picos: bigint): string | undefined {
  if (picos % PICOS_PER_MILLI !== 0n) return undefined
  const millis = Number(picos / PICOS_PER_MILLI)
  return millis >= FIRST_MS && millis <= LAST_MS ? new Date(millis).toISOString() : undefined
}

const FIRST_MS = Date.parse('0001-01-01T00:00:00.000Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')

/** Removes casts that do not change the value: to a longer varchar, or to more fractional digits of a second. */
export function withoutWidening(expr: Expr): Expr {
  if (expr.kind !== 'cast' || expr.type.kind !== expr.value.type.kind) return expr
  const [to, from] = [expr.type, expr.value.type]
  if (to.kind === 'varchar' && from.kind === 'varchar')
    return to.length === undefined || (from.length !== undefined && from.length <= to.length)
      ? withoutWidening(expr.value)
      : expr
  if (to.kind === 'timestamp with time zone' && from.kind === 'timestamp with time zone')
    return to.precision >= from.precision ? withoutWidening(expr.value) : expr
  return expr
}
