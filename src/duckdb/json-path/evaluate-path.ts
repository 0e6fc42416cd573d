import { trimmedNumber } from '../blanks.ts'
import { javaDouble } from '../scripts/double-text.ts'
import { isWholeNumber } from '../scripts/write-json.ts'
import { isArray, isContainer, isJsonNumber, isJsonObject, type JsonValue } from '../scripts/json-value.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { JsonPath, PathNode, PathPredicate, Subscript } from './json-path.ts'
import { Signal } from '../../shared/quipu-error.ts'

/** The path does not fit the document, in strict mode or by its types. */
export class PathEvaluationError extends Signal {
  constructor(message: string) {
    super(`path evaluation failed: ${message}`)
  }
}

interface Environment {
  readonly lax: boolean
  readonly context: JsonValue
  readonly variables: ReadonlyMap<string, JsonValue>
  readonly current?: JsonValue
  /** The last index of the array whose subscripts are calculated. */
  readonly last?: number
}

/** The items that a path finds. @throws PathEvaluationError */
export function evaluatePath(
  path: JsonPath,
  document: JsonValue,
  variables: ReadonlyMap<string, JsonValue>,
): readonly JsonValue[] {
  return evaluate(path.root, { lax: path.lax, context: document, variables })
}

function evaluate(node: PathNode, env: Environment): readonly JsonValue[] {
  switch (node.kind) {
    case 'context':
      return [env.context]
    case 'current':
      return [env.current ?? null]
    case 'null':
      return [null]
    case 'last':
      return [{ number: String(env.last ?? 0) }]
    case 'literal':
      return [node.value]
    case 'variable': {
      const value = env.variables.get(node.name)
      if (value === undefined) throw new PathEvaluationError(`no value passed for parameter ${node.name}`)
      return [value]
    }
    case 'member':
      return unwrapped(node.base, env).flatMap((item) => members(item, node.name, env))
    case 'descendant':
      return evaluate(node.base, env).flatMap((item) => descendants(item, node.name))
    case 'elements':
      return evaluate(node.base, env).flatMap((item) => elements(item, node.subscripts, env))
    case 'filter':
      return unwrapped(node.base, env).filter((item) => test(node.predicate, { ...env, current: item }) === true)
    case 'method': {
      const base =
        node.method === 'type' || node.method === 'size' ? evaluate(node.base, env) : unwrapped(node.base, env)
      return base.flatMap((item) => callMethod(node.method, item, env))
    }
    case 'unary':
      return unwrapped(node.base, env).map((item) => {
        if (node.sign === '+') return checkedNumber(item)
        const whole = wholeOf(item)
        return whole === undefined ? written(-numberOf(item)) : writtenWhole(-whole)
      })
    case 'binary': {
      const [left, right] = [single(node.left, env), single(node.right, env)]
      return [arithmetic(node.operator, left, right)]
    }
    default:
      return unreachable(node)
  }
}

/** The items of a node; in lax mode arrays are replaced by their elements. */
function unwrapped(node: PathNode, env: Environment): readonly JsonValue[] {
  const items = evaluate(node, env)
  return env.lax ? items.flatMap((item) => (isArray(item) ? item : [item])) : items
}

function single(node: PathNode, env: Environment): JsonValue {
  const items = unwrapped(node, env)
  if (items.length !== 1) {
    throw new PathEvaluationError('arithmetic binary expression requires singleton operands')
  }
  return items[0]!
}

function members(item: JsonValue, name: string | undefined, env: Environment): readonly JsonValue[] {
  if (!isJsonObject(item)) {
    if (env.lax) return []
    throw new PathEvaluationError(`invalid item type. Expected: OBJECT, actual: ${typeOf(item).toUpperCase()}`)
  }
  if (name === undefined) return [...item.members.values()]
  const found = item.members.get(name)
  if (found !== undefined) return [found]
  if (env.lax) return []
  throw new PathEvaluationError(`structural error: missing member '${name}' in JSON object`)
}

function descendants(item: JsonValue, name: string): readonly JsonValue[] {
  if (isJsonObject(item)) {
    const own = item.members.get(name)
    const below = [...item.members.values()].flatMap((each) => descendants(each, name))
    return own === undefined ? below : [own, ...below]
  }
  return isArray(item) ? item.flatMap((each) => descendants(each, name)) : []
}

function elements(
  item: JsonValue,
  subscripts: readonly Subscript[] | undefined,
  env: Environment,
): readonly JsonValue[] {
  if (!isArray(item) && !env.lax) {
    throw new PathEvaluationError(`invalid item type. Expected: ARRAY, actual: ${typeOf(item).toUpperCase()}`)
  }
  const list = isArray(item) ? item : [item]
  if (subscripts === undefined) return list
  const inner = { ...env, last: list.length - 1 }
  return subscripts.flatMap(({ from, to }) => {
    const first = indexOf(from, inner)
    const end = to === undefined ? first : indexOf(to, inner)
    if (!env.lax && (first < 0 || end >= list.length || first > end)) {
      throw new PathEvaluationError(
        `structural error: invalid array subscript for array of size ${list.length}: [${first}, ${end}]`,
      )
    }
    return list.slice(Math.max(first, 0), Math.max(end + 1, 0))
  })
}

function indexOf(node: PathNode, env: Environment): number {
  const index = numberOf(single(node, env))
  // Rounds half away from zero.
  return Math.sign(index) * Math.round(Math.abs(index))
}

function typeOf(item: JsonValue): string {
  if (item === null) return 'null'
  if (isArray(item)) return 'array'
  if (typeof item !== 'object') return typeof item
  return isJsonNumber(item) ? 'number' : 'object'
}

const MIN_BIGINT = -(2n ** 63n)
const MAX_BIGINT = 2n ** 63n - 1n

/** Whether the value is a whole number that is too large for Trino. Trino does not treat it as a number. */
export function isTooBig(number: string): boolean {
  return number.length > 18 && isWholeNumber(number) && !isBigint(BigInt(number))
}

function isBigint(value: bigint): boolean {
  return value >= MIN_BIGINT && value <= MAX_BIGINT
}

/** The bigint of a number without fraction and exponent; undefined for any other item. */
function wholeOf(item: JsonValue): bigint | undefined {
  if (!isJsonNumber(item) || !isWholeNumber(item.number)) return undefined
  const value = BigInt(item.number)
  if (!isBigint(value)) throw new PathEvaluationError(`value too big: ${item.number}`)
  return value
}

function numberOf(item: JsonValue): number {
  if (!isJsonNumber(item)) {
    throw new PathEvaluationError(`invalid item type. Expected: NUMBER, actual: ${typeOf(item).toUpperCase()}`)
  }
  return Number(wholeOf(item) ?? item.number)
}

function checkedNumber(item: JsonValue): JsonValue {
  numberOf(item)
  return item
}

/** The number that Java reads from a text; NaN for a text that is not a number. */
function doubleOf(text: string): number {
  return /^[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/.test(text) ? Number(text) : Number.NaN
}

/** A number with a point, so that it stays a double. */
function written(value: number): JsonValue {
  return { number: javaDouble(value) }
}

function writtenWhole(value: bigint): JsonValue {
  if (!isBigint(value)) throw new PathEvaluationError(`bigint overflow: ${value}`)
  return { number: String(value) }
}

/** The operators of a path, for doubles and for whole numbers. */
const operators = {
  '+': { doubles: (a: number, b: number) => a + b, wholes: (a: bigint, b: bigint) => a + b },
  '-': { doubles: (a: number, b: number) => a - b, wholes: (a: bigint, b: bigint) => a - b },
  '*': { doubles: (a: number, b: number) => a * b, wholes: (a: bigint, b: bigint) => a * b },
  '/': { doubles: (a: number, b: number) => a / b, wholes: (a: bigint, b: bigint) => a / b },
  '%': { doubles: (a: number, b: number) => a % b, wholes: (a: bigint, b: bigint) => a % b },
} as const

function arithmetic(operator: keyof typeof operators, left: JsonValue, right: JsonValue): JsonValue {
  const [a, b] = [wholeOf(left), wholeOf(right)]
  const { doubles, wholes } = operators[operator]
  if (a === undefined || b === undefined) return written(doubles(numberOf(left), numberOf(right)))
  if (b === 0n && (operator === '/' || operator === '%')) throw new PathEvaluationError('division by zero')
  return writtenWhole(wholes(a, b))
}

function callMethod(
  method: 'type' | 'size' | 'double' | 'ceiling' | 'floor' | 'abs' | 'keyvalue',
  item: JsonValue,
  env: Environment,
): readonly JsonValue[] {
  switch (method) {
    case 'type':
      return [typeOf(item)]
    case 'size':
      if (isArray(item)) return [{ number: String(item.length) }]
      if (env.lax) return [{ number: '1' }]
      throw new PathEvaluationError(`invalid item type. Expected: ARRAY, actual: ${typeOf(item).toUpperCase()}`)
    case 'double': {
      const value = typeof item === 'string' ? doubleOf(trimmedNumber(item)) : numberOf(item)
      if (Number.isNaN(value)) throw new PathEvaluationError(`invalid item: cannot convert to double`)
      return [written(value)]
    }
    case 'ceiling':
      return [wholeOf(item) === undefined ? written(Math.ceil(numberOf(item))) : item]
    case 'floor':
      return [wholeOf(item) === undefined ? written(Math.floor(numberOf(item))) : item]
    case 'abs': {
      const whole = wholeOf(item)
      // A double that is not below zero stays unchanged, also -0 and NaN.
      const double = whole === undefined ? numberOf(item) : 0
      if (whole === undefined) return [written(double < 0 ? -double : double)]
      return [writtenWhole(whole < 0n ? -whole : whole)]
    }
    case 'keyvalue': {
      if (!isJsonObject(item)) {
        throw new PathEvaluationError(`invalid item type. Expected: OBJECT, actual: ${typeOf(item).toUpperCase()}`)
      }
      return [...item.members].map(([name, value]) => ({
        members: new Map<string, JsonValue>([
          ['name', name],
          ['value', value],
          ['id', { number: '0' }],
        ]),
      }))
    }
    default:
      return unreachable(method)
  }
}

// ---- Predicates: true, false or undefined for unknown

function test(predicate: PathPredicate, env: Environment): boolean | undefined {
  switch (predicate.kind) {
    case 'and': {
      const left = test(predicate.left, env)
      if (left === false) return false
      const right = test(predicate.right, env)
      return right === false ? false : left === undefined ? undefined : right
    }
    case 'or': {
      const left = test(predicate.left, env)
      if (left === true) return true
      const right = test(predicate.right, env)
      return right === true ? true : left === undefined ? undefined : right
    }
    case 'not': {
      const inner = test(predicate.predicate, env)
      return inner === undefined ? undefined : !inner
    }
    case 'isUnknown':
      return test(predicate.predicate, env) === undefined
    case 'exists':
      return attempt(() => evaluate(predicate.path, env).length > 0)
    case 'compare':
      return attempt(() =>
        anyPair(predicate.operator, unwrapped(predicate.left, env), unwrapped(predicate.right, env), env.lax),
      )
    case 'startsWith':
      return attempt(() => {
        const [prefix] = evaluate(predicate.prefix, env)
        const items = unwrapped(predicate.path, env)
        if (typeof prefix !== 'string' || items.some((item) => typeof item !== 'string')) return undefined
        return items.some((item) => (item as string).startsWith(prefix))
      })
    default:
      return unreachable(predicate)
  }
}

function attempt(compute: () => boolean | undefined): boolean | undefined {
  try {
    return compute()
  } catch (error) {
    if (error instanceof PathEvaluationError) return undefined
    throw error
  }
}

/**
 * Whether any pair of values meets the comparison, in Trino's order. NULLs are compared first. Then the result is
 * unknown if an object or array is among the values. Then the pairs are compared in order; a pair that cannot be
 * compared ends the search in lax mode, and makes the result unknown in strict mode.
 */
function anyPair(
  operator: '==' | '<>' | '<' | '<=' | '>' | '>=',
  left: readonly JsonValue[],
  right: readonly JsonValue[],
  lax: boolean,
): boolean | undefined {
  const withNull = (items: readonly JsonValue[]): boolean => items.includes(null)
  const values = (items: readonly JsonValue[]): readonly NonNullable<JsonValue>[] =>
    items.filter((item) => item !== null)
  const [a, b] = [values(left), values(right)]
  const bothNull = withNull(left) && withNull(right) && holds(operator, 0)
  const oneNull = (withNull(left) && b.length > 0) || (withNull(right) && a.length > 0)
  if (bothNull || (oneNull && holds(operator, Number.NaN))) return true
  if (a.length > 0 && b.length > 0 && [...a, ...b].some(isContainer)) return undefined
  let found = false
  let unknown = false
  for (const one of a) {
    for (const other of b) {
      const order = compare(one, other)
      if (order !== undefined && holds(operator, order)) found = true
      unknown ||= order === undefined
      if (lax && (found || unknown)) return found ? true : undefined
    }
  }
  return unknown ? undefined : found
}

/** Negative, 0 or positive, for values that are not NULL; undefined for types that cannot be compared. */
function compare(a: NonNullable<JsonValue>, b: NonNullable<JsonValue>): number | undefined {
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  if (isJsonNumber(a) && isJsonNumber(b)) {
    const [left, right] = [wholeOf(a), wholeOf(b)]
    const both = left !== undefined && right !== undefined
    return both ? inOrder(left, right) : inOrder(numberOf(a), numberOf(b))
  }
  return undefined
}

function inOrder<T extends bigint | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : a === b ? 0 : Number.NaN
}

function holds(operator: '==' | '<>' | '<' | '<=' | '>' | '>=', order: number): boolean {
  switch (operator) {
    case '==':
      return order === 0
    case '<>':
      return order !== 0
    case '<':
      return order < 0
    case '<=':
      return order <= 0
    case '>':
      return order > 0
    case '>=':
      return order >= 0
    default:
      return unreachable(operator)
  }
}
