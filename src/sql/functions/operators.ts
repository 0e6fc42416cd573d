import type { ArithmeticOperator, ResolvedOperator } from './resolved-operator.ts'
import { EngineError, type ErrorLocation } from '../../shared/engine-error.ts'
import { canCoerce, commonSuperType, decimalOfInteger } from '../types/coercion.ts'
import { code, formOf, joined, sql, type Sql } from '../../duckdb/text/sql.ts'
import { duckdbType, isFine, isTypedNull, typedNull } from '../types/duckdb-representation.ts'
import {
  BIGINT,
  BOOLEAN,
  decimal,
  isComparable,
  isFloating,
  isInteger,
  isOrderable,
  type DecimalType,
  type MapType,
  type SqlType,
} from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { decimalOperator } from './decimal-operators.ts'
import { datetimeOperator } from './datetime-operators.ts'
import { besideMoment } from './operators-beside-null.ts'
import { bindHeavy, isHeavy } from './bind-heavy.ts'
import { equals, isDistinct, lessThan, needsComparisonKey, notEquals } from './comparison.ts'
import { requiredValue } from './map-keys.ts'
import type { Names } from './rendering.ts'

export type ComparisonKind = '=' | '<>' | '<' | '<=' | '>' | '>=' | 'IS DISTINCT FROM' | 'IS NOT DISTINCT FROM'

/** Resolves `left op right` by Trino's rules. @throws EngineError TYPE_MISMATCH if there is no such operator */
export function resolveArithmetic(
  operator: ArithmeticOperator,
  left: SqlType,
  right: SqlType,
  location?: ErrorLocation,
): ResolvedOperator {
  const found = arithmetic(operator, left, right)
  if (found !== undefined) {
    return {
      ...found,
      render: (a, b, context) =>
        isTypedNull(a) || isTypedNull(b)
          ? typedNull(found.result)
          : bindHeavy([a, b], context.names, ([x, y]) => found.render(x!, y!, context)),
    }
  }
  throw new EngineError('TYPE_MISMATCH', `Cannot apply operator: ${typeName(left)} ${operator} ${typeName(right)}`, {
    location,
  })
}

function arithmetic(operator: ArithmeticOperator, left: SqlType, right: SqlType): ResolvedOperator | undefined {
  const ofTime = datetimeOperator(operator, left, right)
  if (ofTime !== undefined) return ofTime
  if (left.kind === 'unknown' && right.kind === 'unknown') return numeric(operator, { kind: 'tinyint' })
  if (left.kind === 'unknown') {
    const taken = isNumber(right) ? beside(right) : besideMoment(operator, right, true)
    return taken && arithmetic(operator, taken, right)
  }
  if (right.kind === 'unknown') {
    const taken = isNumber(left) ? beside(left) : besideMoment(operator, left, false)
    return taken && arithmetic(operator, left, taken)
  }
  if (!isNumber(left) || !isNumber(right)) return undefined
  if (left.kind === 'decimal' || right.kind === 'decimal') {
    const [a, b] = [asDecimal(left), asDecimal(right)]
    if (a !== undefined && b !== undefined) return decimalOperator(operator, a, b)
  }
  const common = commonSuperType(left, right)
  return common === undefined ? undefined : numeric(operator, common)
}

/** The type that NULL takes next to a value of this type: for decimals the smallest. */
function beside(type: SqlType): SqlType {
  return type.kind === 'decimal' ? decimal(1, 0) : type
}

function isNumber(type: SqlType): boolean {
  return isInteger(type) || type.kind === 'decimal' || type.kind === 'real' || type.kind === 'double'
}

function asDecimal(type: SqlType): DecimalType | undefined {
  if (type.kind === 'decimal') return type
  return isInteger(type) ? decimalOfInteger(type) : undefined
}

function numeric(operator: ArithmeticOperator, type: SqlType): ResolvedOperator {
  const integer = isInteger(type)
  return {
    left: type,
    right: type,
    result: type,
    render: (left, right) => {
      if (integer && operator === '/') return sql`q_idiv(${left}, ${right})`
      if (integer && operator === '%') return sql`q_imod(${left}, ${right})`
      return sql`(${left} ${code(operator)} ${right})`
    },
  }
}

/** Resolves `-x`. @throws EngineError TYPE_MISMATCH */
export function resolveNegation(
  type: SqlType,
  location?: ErrorLocation,
): { readonly result: SqlType; render(x: Sql): Sql } {
  switch (type.kind) {
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      // A subtraction evaluates its operand once. The zero marks its overflow error as one of a negation.
      return { result: type, render: (x) => sql`(CAST(0 AS ${duckdbType(type)}) - ${x})` }
    case 'decimal':
    case 'real':
    case 'double':
    case 'interval day to second':
    case 'interval year to month':
      return { result: type, render: (x) => sql`(- ${x})` }
    case 'unknown':
      return { result: BIGINT, render: (x) => sql`CAST(${x} AS BIGINT)` }
    default:
      throw new EngineError('TYPE_MISMATCH', `Cannot negate ${typeName(type)}`, { location })
  }
}

/**
 * Resolves a comparison by Trino's rules. @throws EngineError TYPE_MISMATCH if the types have no common type or cannot
 * be compared
 */
export function resolveComparison(
  operator: ComparisonKind,
  left: SqlType,
  right: SqlType,
  location?: ErrorLocation,
): ResolvedOperator {
  const common = commonSuperType(left, right)
  const ordered = operator === '<' || operator === '<=' || operator === '>' || operator === '>='
  if (common === undefined || !(ordered ? isOrderable(common) : isComparable(common))) {
    throw new EngineError('TYPE_MISMATCH', `Cannot apply operator: ${typeName(left)} ${operator} ${typeName(right)}`, {
      location,
    })
  }
  return {
    left: common,
    right: common,
    result: BOOLEAN,
    render: (a, b, { names }) => renderComparison(operator, common, a, b, names),
  }
}

/** Renders a comparison of two expressions of one type. */
export function renderComparison(operator: ComparisonKind, type: SqlType, a: Sql, b: Sql, names: Names): Sql {
  const nullForNull = operator !== 'IS DISTINCT FROM' && operator !== 'IS NOT DISTINCT FROM'
  if (nullForNull && (isTypedNull(a) || isTypedNull(b))) return typedNull(BOOLEAN)
  return bindHeavy([a, b], names, ([x, y]) => compared(operator, type, x!, y!, names))
}

function compared(operator: ComparisonKind, type: SqlType, a: Sql, b: Sql, names: Names): Sql {
  switch (operator) {
    case '=':
      return equals(type, a, b, names)
    case '<>':
      return notEquals(type, a, b, names)
    case '<':
      return lessThan(type, a, b, false, names)
    case '<=':
      return lessThan(type, a, b, true, names)
    case '>':
      return lessThan(type, b, a, false, names)
    case '>=':
      return lessThan(type, b, a, true, names)
    case 'IS DISTINCT FROM':
      return isDistinct(type, a, b, names)
    case 'IS NOT DISTINCT FROM':
      return sql`(NOT ${isDistinct(type, a, b, names)})`
  }
}

/**
 * Resolves `base[index]` for arrays, maps and rows (with a constant index). @throws EngineError TYPE_MISMATCH or
 * INVALID_FUNCTION_ARGUMENT
 */
export function resolveSubscript(base: SqlType, index: SqlType, location?: ErrorLocation): ResolvedOperator {
  if (base.kind === 'array' && canCoerce(index, BIGINT)) {
    return { left: base, right: BIGINT, result: base.element, render: subscript('q_subscript') }
  }
  const key = base.kind === 'map' ? commonSuperType(base.key, index) : undefined
  if (base.kind === 'map' && key !== undefined && !canCoerce(index, base.key)) {
    return resolveSubscript({ ...base, key }, index, location)
  }
  if (base.kind === 'map' && key !== undefined) {
    const plain = !isFloating(base.key) && !needsComparisonKey(base.key)
    return { left: base, right: base.key, result: base.value, render: plain ? subscript('q_mget') : keyed(base) }
  }
  throw new EngineError('TYPE_MISMATCH', `Cannot use ${typeName(index)} for subscript of ${typeName(base)}`, {
    location,
  })
}

function subscript(macro: 'q_subscript' | 'q_mget'): ResolvedOperator['render'] {
  return (base, index, { names }) => bindHeavy([base, index], names, ([x, i]) => sql`${code(macro)}(${x!}, ${i!})`)
}

function keyed(type: MapType): ResolvedOperator['render'] {
  return (base, index, context) =>
    bindHeavy([base, index], context.names, ([map, key]) => requiredValue(type, map!, key!, context))
}

/** Renders BETWEEN as `x >= low AND x <= high` over one common type. */
export function renderBetween(type: SqlType, x: Sql, low: Sql, high: Sql, names: Names): Sql {
  switch (type.kind) {
    case 'real':
    case 'double':
    case 'array':
    case 'row':
    case 'timestamp':
    case 'timestamp with time zone':
    case 'time with time zone':
      if (type.kind === 'timestamp' && !isFine(type)) return sql`(${x} BETWEEN ${low} AND ${high})`
      return bindHeavy(
        [x, low, high],
        names,
        ([value, from, to]) =>
          sql`(${renderComparison('>=', type, value!, from!, names)} AND ${renderComparison('<=', type, value!, to!, names)})`,
      )
    default:
      return sql`(${x} BETWEEN ${low} AND ${high})`
  }
}

/** Renders `x IN (…)` over one common type; `items` has at least one element. */
export function renderIn(type: SqlType, x: Sql, items: readonly Sql[], names: Names): Sql {
  return isHeavy(x) || items.some(isHeavy)
    ? bindHeavy([x, ...items], names, ([value, ...others]) => memberOf(type, value!, others, names))
    : memberOf(type, x, items, names)
}

function memberOf(type: SqlType, x: Sql, items: readonly Sql[], names: Names): Sql {
  switch (type.kind) {
    case 'real':
    case 'double': {
      // NaN equals nothing: the result is false, or NULL if an item is NULL. Literals are never NULL.
      const doubtful = items
        .filter((item) => !formOf(item, 8).startsWith("CAST(''"))
        .map((item) => sql`${item} IS NULL`)
      const ofNaN =
        doubtful.length === 0 ? sql`false` : sql`CASE WHEN ${joined(doubtful, ' OR ')} THEN NULL ELSE false END`
      return sql`CASE WHEN isnan(${x}) THEN ${ofNaN} ELSE ${x} IN (${joined(items, ', ')}) END`
    }
    case 'timestamp with time zone':
    case 'time with time zone':
    case 'array':
    case 'map':
    case 'row':
      return sql`(${joined(
        items.map((item) => equals(type, x, item, names)),
        ' OR ',
      )})`
    default:
      return sql`(${x} IN (${joined(items, ', ')}))`
  }
}
