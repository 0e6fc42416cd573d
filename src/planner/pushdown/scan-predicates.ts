import type { ScanPredicate } from '../../connectors/spi/scan-predicate.ts'
import { PICOS_PER_DAY } from '../../sql/analyzer/datetime.ts'
import { constantsOf } from '../../sql/analyzer/literal-arrays.ts'
import type { CompareExpr, Expr, ScanNode } from '../../sql/analyzer/tree.ts'
import type { SqlType } from '../../sql/types/sql-type.ts'
import { localIn, LONGEST_PATTERN, withoutWidening, type ConstantTimes } from './scan-terms.ts'

/** The most values in a list. A longer list is not sent: only the filter above the scan checks it. */
const MOST_VALUES = 10_000

/**
 * The conditions that predicates above a scan put on its partition columns; undefined if there are none.
 * @param terms conditions that hold for every used row
 */
export function partitionPredicate(
  scan: ScanNode,
  terms: readonly Expr[],
  times: ConstantTimes,
): ScanPredicate | undefined {
  const keys = new Map(
    scan.columns.filter(({ name }) => scan.partitionedBy?.includes(name)).map(({ id, name }) => [id, name]),
  )
  if (keys.size === 0) return undefined
  const columnOf = (expr: Expr): string | undefined => {
    const plain = withoutExactCasts(expr)
    return plain.kind === 'column' ? keys.get(plain.id) : undefined
  }
  const known = terms.map((term) => predicateOf(term, columnOf, times)).filter((one) => !isUnknown(one))
  return known.length === 0 ? undefined : { all: known }
}

/** The names of the columns in a predicate. */
export function columnsOfPredicate(predicate: ScanPredicate): ReadonlySet<string> {
  if ('all' in predicate) return new Set(predicate.all.flatMap((one) => [...columnsOfPredicate(one)]))
  if ('any' in predicate) return new Set(predicate.any.flatMap((one) => [...columnsOfPredicate(one)]))
  if ('not' in predicate) return columnsOfPredicate(predicate.not)
  return new Set('column' in predicate ? [predicate.column] : [])
}

type ColumnOf = (expr: Expr) => string | undefined

const UNKNOWN: ScanPredicate = { unknown: true }

function isUnknown(predicate: ScanPredicate): boolean {
  if ('all' in predicate) return predicate.all.every(isUnknown)
  if ('any' in predicate) return predicate.any.every(isUnknown)
  return 'not' in predicate ? isUnknown(predicate.not) : 'unknown' in predicate
}

function predicateOf(expr: Expr, columnOf: ColumnOf, times: ConstantTimes): ScanPredicate {
  const inside = (one: Expr): ScanPredicate => predicateOf(one, columnOf, times)
  switch (expr.kind) {
    case 'and':
      return { all: expr.terms.map(inside) }
    case 'or':
      return { any: expr.terms.map(inside) }
    case 'not':
      return { not: inside(expr.value) }
    case 'compare':
      return comparison(expr, columnOf, times)
    case 'between': {
      const { type, value, min, max } = expr
      return {
        all: [
          comparison({ kind: 'compare', type, operator: '>=', left: value, right: min }, columnOf, times),
          comparison({ kind: 'compare', type, operator: '<=', left: value, right: max }, columnOf, times),
        ],
      }
    }
    case 'inList':
      return among(expr.value, expr.values, columnOf, times)
    case 'inLiterals':
      if (expr.literals.literals.length > MOST_VALUES) return UNKNOWN
      return among(expr.value, constantsOf(expr.literals), columnOf, times)
    case 'isNull': {
      const column = columnOf(expr.value)
      return column === undefined ? UNKNOWN : { column, isNull: true }
    }
    case 'like': {
      const column = columnOf(expr.value)
      const pattern = valueText(expr.pattern, times)
      const escape = expr.escape && valueText(expr.escape, times)
      if (column === undefined || pattern === undefined || (expr.escape && escape === undefined)) return UNKNOWN
      if (pattern.length > LONGEST_PATTERN) return UNKNOWN
      return { column, like: { pattern, ...(escape !== undefined && { escape }) } }
    }
    default:
      return UNKNOWN
  }
}

function among(value: Expr, values: readonly Expr[], columnOf: ColumnOf, times: ConstantTimes): ScanPredicate {
  const column = columnOf(value)
  if (column === undefined || values.length > MOST_VALUES) return UNKNOWN
  const texts = values.map((one) => (comparable(value, one) ? valueText(one, times) : undefined))
  return texts.every((text) => text !== undefined) ? { column, in: texts } : UNKNOWN
}

const TURNED = { '<': '>', '<=': '>=', '>': '<', '>=': '<=', '=': '=', '<>': '<>' } as const

function comparison({ operator, left, right }: CompareExpr, columnOf: ColumnOf, times: ConstantTimes): ScanPredicate {
  if (operator === 'IS DISTINCT FROM' || operator === 'IS NOT DISTINCT FROM' || !comparable(left, right)) return UNKNOWN
  const turned = columnOf(left) === undefined
  const column = columnOf(turned ? right : left)
  const value = valueText(turned ? left : right, times)
  if (column === undefined || value === undefined) return UNKNOWN
  return { column, compare: turned ? TURNED[operator] : operator, value }
}

/**
 * Whether both sides have the same kind of type, so that values compare like their texts. They may differ in digits and
 * length.
 */
function comparable(left: Expr, right: Expr): boolean {
  return left.type.kind === right.type.kind
}

const INTEGERS: readonly SqlType['kind'][] = ['tinyint', 'smallint', 'integer', 'bigint']

/**
 * A constant as `ScanPredicate` represents it; undefined for NULL, other types, and values unknown before the statement
 * runs.
 */
function valueText(expr: Expr, times: ConstantTimes): string | undefined {
  const plain = withoutExactCasts(expr)
  switch (expr.type.kind) {
    case 'varchar':
      return plain.kind === 'constant' && plain.type.kind === 'varchar' && typeof plain.value === 'string'
        ? plain.value
        : undefined
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return plain.kind === 'constant' && INTEGERS.includes(plain.type.kind) && plain.value !== null
        ? String(plain.value)
        : undefined
    case 'date': {
      const picos = localIn(expr, times)
      return picos === undefined || picos % PICOS_PER_DAY !== 0n ? undefined : String(picos / PICOS_PER_DAY)
    }
    case 'timestamp':
      return localIn(expr, times)?.toString()
    default:
      return undefined
  }
}

/**
 * Removes casts that do not change the value: to a longer varchar, a wider integer, or more fractional digits of a
 * second.
 */
function withoutExactCasts(expr: Expr): Expr {
  const plain = withoutWidening(expr)
  if (plain.kind !== 'cast' || plain.safe) return plain
  const [to, from] = [plain.type, plain.value.type]
  if (to.kind === 'timestamp' && from.kind === 'timestamp')
    return to.precision >= from.precision ? withoutExactCasts(plain.value) : plain
  const [wider, narrower] = [INTEGERS.indexOf(to.kind), INTEGERS.indexOf(from.kind)]
  return narrower >= 0 && wider >= narrower ? withoutExactCasts(plain.value) : plain
}
