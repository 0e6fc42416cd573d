import { SqlFailure } from './scalar-function.ts'

/**
 * A condition of DEFINE that uses rows matched before. SQL calculates the parts that depend on one row alone, for every
 * row, as a column of texts; this module only combines such values.
 */
export type ConditionCode =
  | { readonly is: 'value'; readonly column: number; readonly at: MatchedRow; readonly absent?: number }
  | { readonly is: 'classifier'; readonly at: MatchedRow }
  | { readonly is: 'match number' }
  | {
      readonly is: 'aggregate'
      readonly name: AggregateName
      readonly of: readonly number[] | null
      readonly columns: readonly number[]
      /** Scale of the result, if it is a decimal. */
      readonly scale?: number
    }
  | { readonly is: 'and' | 'or' | 'coalesce'; readonly terms: readonly ConditionCode[] }
  | {
      readonly is: 'not' | 'is null' | 'to double' | 'abs' | 'negate'
      readonly value: ConditionCode
      readonly scale?: number
    }
  | { readonly is: 'rescale'; readonly value: ConditionCode; readonly by: number }
  | {
      readonly is: 'compare'
      readonly operator: '=' | '<>' | '<' | '<=' | '>' | '>=' | 'IS DISTINCT FROM' | 'IS NOT DISTINCT FROM'
      readonly left: ConditionCode
      readonly right: ConditionCode
    }
  | {
      readonly is: 'arithmetic'
      readonly operator: '+' | '-' | '*' | '/' | '%'
      readonly left: ConditionCode
      readonly right: ConditionCode
      /** The limit of a result: bits of an integer, digits of a decimal; none for floating point. */
      readonly bits?: number
      readonly digits?: number
      readonly typeName: string
    }
  | {
      readonly is: 'case'
      readonly branches: readonly { readonly when: ConditionCode; readonly then: ConditionCode }[]
      readonly otherwise: ConditionCode | null
    }

/** The row of a value: the first or last row that is matched to the variables (null: to any), minus `skip`. */
export interface MatchedRow {
  readonly from: 'current' | 'first' | 'last'
  readonly variables: readonly number[] | null
  readonly skip: number
  /** Rows further on in the partition, for classifiers of neighbouring rows. */
  readonly move: number
}

export const aggregateNames = [
  'count', 'sum', 'avg', 'min', 'max', 'arbitrary', 'any_value', 'min_by', 'max_by', 'bool_and', 'bool_or', 'every', 'count_if',
] as const // prettier-ignore
export type AggregateName = (typeof aggregateNames)[number]

/** The types of a column's texts; decimals are read as whole numbers of their smallest unit. */
export type ColumnKind = 'integer' | 'decimal' | 'double' | 'text' | 'boolean'

type Value = bigint | number | string | boolean | null

/** The match so far; its last row is the row that is tested. */
export interface MatchSoFar {
  /** Index of the first row, from 0. */
  readonly start: number
  readonly variables: readonly number[]
  readonly matchNumber: number
}

export type Rows = readonly (readonly Value[])[]

export function readRows(text: string, kinds: readonly ColumnKind[]): Rows {
  const rows = JSON.parse(`[${text.slice(0, -1)}]`) as readonly (readonly (string | null)[])[]
  return rows.map((row) => row.map((value, i) => (value === null ? null : read(value, kinds[i]!))))
}

function read(text: string, kind: ColumnKind): Value {
  switch (kind) {
    case 'integer':
      return BigInt(text)
    case 'decimal':
      return BigInt(text.replace('.', ''))
    case 'double':
      return Number(text)
    case 'boolean':
      return text === 'true'
    case 'text':
      return text
  }
}

export function holds(code: ConditionCode, rows: Rows, names: readonly string[], match: MatchSoFar): boolean {
  const rowOf = ({ from, variables, skip, move }: MatchedRow): number | undefined => {
    const { start, variables: matched } = match
    if (from === 'current') return start + matched.length - 1 + move
    const step = from === 'first' ? 1 : -1
    let left = skip
    for (let i = from === 'first' ? 0 : matched.length - 1; i >= 0 && i < matched.length; i += step) {
      if (variables !== null && !variables.includes(matched[i]! % 32)) continue
      if (left-- === 0) return start + i + move
    }
    return undefined
  }
  const evaluate = (each: ConditionCode): Value => {
    switch (each.is) {
      case 'value': {
        const row = rowOf(each.at)
        if (row !== undefined) return rows[row]![each.column]!
        return each.absent === undefined ? null : rows[match.start]![each.absent]!
      }
      case 'classifier': {
        const row = rowOf(each.at)
        const variable = row === undefined ? undefined : match.variables[row - match.start]
        return variable === undefined ? null : names[variable % 32]!
      }
      case 'match number':
        return BigInt(match.matchNumber)
      case 'aggregate':
        return aggregated(each, rows, match)
      case 'and':
      case 'or': {
        const deciding = each.is === 'or'
        let unknown = false
        for (const term of each.terms) {
          const value = evaluate(term)
          if (value === deciding) return deciding
          unknown ||= value === null
        }
        return unknown ? null : !deciding
      }
      case 'coalesce':
        for (const term of each.terms) {
          const value = evaluate(term)
          if (value !== null) return value
        }
        return null
      case 'not': {
        const value = evaluate(each.value)
        return value === null ? null : value !== true
      }
      case 'is null':
        return evaluate(each.value) === null
      case 'to double': {
        const value = evaluate(each.value)
        return value === null ? null : Number(value) / 10 ** (each.scale ?? 0)
      }
      case 'abs': {
        const value = evaluate(each.value) as bigint | number | null
        return value !== null && value < 0 ? -value : value
      }
      case 'negate': {
        const value = evaluate(each.value) as bigint | number | null
        return value === null ? null : -value
      }
      case 'rescale': {
        const value = evaluate(each.value) as bigint | null
        return value === null ? null : value * 10n ** BigInt(each.by)
      }
      case 'compare':
        return compared(each.operator, evaluate(each.left), evaluate(each.right))
      case 'arithmetic':
        return calculated(each, evaluate(each.left), evaluate(each.right))
      case 'case': {
        const branch = each.branches.find(({ when }) => evaluate(when) === true)
        if (branch !== undefined) return evaluate(branch.then)
        return each.otherwise === null ? null : evaluate(each.otherwise)
      }
    }
  }
  return evaluate(code) === true
}

/** Compares texts by code point, as Trino orders their bytes. */
function order(left: Exclude<Value, null>, right: Exclude<Value, null>): number {
  if (typeof left === 'string' && typeof right === 'string')
    return Buffer.compare(Buffer.from(left), Buffer.from(right))
  return left < right ? -1 : left > right ? 1 : 0
}

function compared(operator: string, left: Value, right: Value): boolean | null {
  const distinct = operator === 'IS DISTINCT FROM'
  if (distinct || operator === 'IS NOT DISTINCT FROM') {
    const same = left === null || right === null ? left === right : left === right || (left !== left && right !== right)
    return same !== distinct
  }
  if (left === null || right === null) return null
  // No comparison with NaN is true, except `<>`.
  if (left !== left || right !== right) return operator === '<>'
  const sign = order(left, right)
  switch (operator) {
    case '=':
      return sign === 0
    case '<>':
      return sign !== 0
    case '<':
      return sign < 0
    case '<=':
      return sign <= 0
    case '>':
      return sign > 0
    default:
      return sign >= 0
  }
}

const words = { '+': 'addition', '-': 'subtraction', '*': 'multiplication', '/': 'division', '%': 'modulus' } as const

function calculated(code: Extract<ConditionCode, { is: 'arithmetic' }>, left: Value, right: Value): Value {
  if (left === null || right === null) return null
  if (typeof left === 'number' && typeof right === 'number') {
    switch (code.operator) {
      case '+':
        return left + right
      case '-':
        return left - right
      case '*':
        return left * right
      case '/':
        return left / right
      case '%':
        return left % right
    }
  }
  const [a, b] = [left as bigint, right as bigint]
  if ((code.operator === '/' || code.operator === '%') && b === 0n) {
    throw new SqlFailure('DIVISION_BY_ZERO', 'Division by zero')
  }
  const result =
    code.operator === '+' ? a + b : code.operator === '-' ? a - b : code.operator === '*' ? a * b : code.operator === '/' ? a / b : a % b // prettier-ignore
  const fits =
    code.bits === undefined
      ? code.digits === undefined || (result < 10n ** BigInt(code.digits) && -result < 10n ** BigInt(code.digits))
      : BigInt.asIntN(code.bits, result) === result
  if (fits) return result
  const message =
    code.bits === undefined
      ? 'Decimal overflow'
      : `${code.typeName} ${words[code.operator]} overflow: ${a} ${code.operator} ${b}`
  throw new SqlFailure('NUMERIC_VALUE_OUT_OF_RANGE', message)
}

function aggregated(code: Extract<ConditionCode, { is: 'aggregate' }>, rows: Rows, match: MatchSoFar): Value {
  const [column, by] = code.columns
  const items: (readonly Value[])[] = []
  match.variables.forEach((variable, i) => {
    if (code.of === null || code.of.includes(variable % 32)) items.push(rows[match.start + i]!)
  })
  if (column === undefined) return BigInt(items.length)
  const values = items.flatMap((item) => (item[column] === null ? [] : [item[column] as Exclude<Value, null>]))
  const sum = (): bigint | number =>
    values.reduce<bigint | number>(
      (total, value) => (typeof value === 'number' ? Number(total) + value : (total as bigint) + (value as bigint)),
      typeof values[0] === 'number' ? 0 : 0n,
    )
  switch (code.name) {
    case 'count':
      return BigInt(values.length)
    case 'count_if':
      return BigInt(values.filter((value) => value === true).length)
    case 'sum':
      return values.length === 0 ? null : sum()
    case 'avg': {
      if (values.length === 0) return null
      const total = sum()
      if (typeof total === 'bigint' && code.scale !== undefined) return halfUp(total, BigInt(values.length))
      return Number(total) / values.length
    }
    case 'min':
      return values.reduce<Value>((best, value) => (best === null || order(value, best) < 0 ? value : best), null)
    case 'max':
      return values.reduce<Value>((best, value) => (best === null || order(value, best) > 0 ? value : best), null)
    case 'arbitrary':
    case 'any_value':
      return values[0] ?? null
    case 'bool_and':
    case 'every':
      return values.length === 0 ? null : values.every((value) => value === true)
    case 'bool_or':
      return values.length === 0 ? null : values.includes(true)
    case 'min_by':
    case 'max_by': {
      let best: readonly Value[] | undefined
      for (const item of items) {
        const key = item[by!]
        if (key === null || key === undefined) continue
        const sign = best === undefined ? 1 : order(key, best[by!] as Exclude<Value, null>)
        if (best === undefined || (code.name === 'max_by' ? sign > 0 : sign < 0)) best = item
      }
      return best === undefined ? null : best[column]!
    }
  }
}

function halfUp(total: bigint, count: bigint): bigint {
  const magnitude = total < 0n ? -total : total
  const rounded = (2n * magnitude + count) / (2n * count)
  return total < 0n ? -rounded : rounded
}
