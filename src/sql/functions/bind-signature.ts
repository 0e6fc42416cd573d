import { canCoerce, coerceToKind, commonSuperType } from '../types/coercion.ts'
import {
  char,
  decimal,
  isComparable,
  isOrderable,
  sameType,
  UNKNOWN,
  varchar,
  type SqlType,
} from '../types/sql-type.ts'
import type { Bindings } from './function-definition.ts'
import type { Signature, SizedKind, TypePattern } from './signature.ts'

/**
 * An argument during overload resolution. The type of a lambda's body is computed once its parameter types are known.
 */
export type ArgumentType =
  | { readonly kind: 'value'; readonly type: SqlType }
  | {
      readonly kind: 'lambda'
      readonly parameterCount: number
      bodyType(parameters: readonly SqlType[]): SqlType
    }

export interface Bound extends Bindings {
  /** The type to which each argument must be coerced. */
  readonly argumentTypes: readonly SqlType[]
}

interface Working {
  readonly types: Record<string, SqlType>
  /** Sized types by their notation: `decimal(p,s)` at two positions is one type. */
  readonly sized: Record<string, SqlType>
}

/**
 * Binds the variables of a signature to the argument types of a call; undefined if they do not match. Without coercion,
 * every argument must already have its type.
 */
export function bindSignature(
  signature: Signature,
  args: readonly ArgumentType[],
  allowCoercion: boolean,
): Bound | undefined {
  const patterns = patternsFor(signature, args.length)
  if (patterns === undefined) return undefined
  const working: Working = { types: {}, sized: {} }
  for (const [i, pattern] of patterns.entries()) {
    const argument = args[i]!
    if ((pattern.kind === 'function') !== (argument.kind === 'lambda')) return undefined
    if (argument.kind === 'lambda') {
      if (pattern.kind !== 'function' || pattern.parameters.length !== argument.parameterCount) return undefined
    } else if (!bindPattern(pattern, argument.type, working, allowCoercion)) return undefined
  }
  if (!bindLambdas(patterns, args, working, allowCoercion)) return undefined
  for (const variable of signature.variables) working.types[variable] ??= UNKNOWN
  for (const [variable, ability] of Object.entries(signature.constraints)) {
    const type = working.types[variable]!
    if (!(ability === 'orderable' ? isOrderable(type) : isComparable(type))) return undefined
  }
  const argumentTypes = patterns.map((pattern, i) => {
    const argument = args[i]!
    return pattern.kind === 'any' && argument.kind === 'value' ? argument.type : applyPattern(pattern, working)
  })
  for (const [i, argument] of args.entries()) {
    const wanted = argumentTypes[i]!
    if (argument.kind === 'lambda') continue
    if (!allowCoercion ? !sameType(argument.type, wanted) : !coercible(argument.type, wanted)) return undefined
  }
  return { types: working.types, numbers: numbersOf(patterns, working), argumentTypes }
}

function patternsFor(signature: Signature, count: number): readonly TypePattern[] | undefined {
  const { parameters, variadic } = signature
  if (!variadic) return parameters.length === count ? parameters : undefined
  if (count < parameters.length - 1) return undefined
  const last = parameters.at(-1)!
  return Array.from({ length: count }, (_, i) => parameters[i] ?? last)
}

/**
 * Binds lambdas. A body may widen the variable that it returns, which changes parameter types, so this repeats until
 * nothing changes.
 */
function bindLambdas(
  patterns: readonly TypePattern[],
  args: readonly ArgumentType[],
  working: Working,
  allowCoercion: boolean,
): boolean {
  const lambdas = patterns.flatMap((pattern, i) => {
    const argument = args[i]!
    return pattern.kind === 'function' && argument.kind === 'lambda' ? [{ pattern, argument }] : []
  })
  for (let round = 0; lambdas.length > 0 && round < 5; round++) {
    const before = JSON.stringify(working)
    for (const { pattern, argument } of lambdas) {
      const body = argument.bodyType(pattern.parameters.map((parameter) => applyPattern(parameter, working)))
      if (!bindPattern(pattern.result, body, working, allowCoercion || isBound(pattern.result, working))) return false
    }
    if (JSON.stringify(working) === before) break
  }
  // A body's result is never coerced: the other arguments' types follow it, or the function does not match.
  return lambdas.every(({ pattern, argument }) => {
    const body = argument.bodyType(pattern.parameters.map((parameter) => applyPattern(parameter, working)))
    return body.kind === applyPattern(pattern.result, working).kind
  })
}

function isBound(pattern: TypePattern, working: Working): boolean {
  return pattern.kind !== 'variable' || pattern.name in working.types
}

function bindPattern(pattern: TypePattern, actual: SqlType, working: Working, allowCoercion: boolean): boolean {
  switch (pattern.kind) {
    case 'variable': {
      const bound = working.types[pattern.name]
      const next = bound === undefined ? actual : allowCoercion ? commonSuperType(bound, actual) : bound
      if (next === undefined || (!allowCoercion && !sameType(next, actual))) return false
      working.types[pattern.name] = next
      return true
    }
    case 'any':
      return true
    case 'plain':
      return allowCoercion ? coercible(actual, pattern.type) : sameType(actual, pattern.type)
    case 'sized':
      return bindSized(pattern, actual, working, allowCoercion)
    case 'array':
    case 'qdigest':
      if (actual.kind === 'unknown') return allowCoercion
      return actual.kind === pattern.kind && bindPattern(pattern.element, actual.element, working, allowCoercion)
    case 'map':
      if (actual.kind === 'unknown') return allowCoercion
      return (
        actual.kind === 'map' &&
        bindPattern(pattern.key, actual.key, working, allowCoercion) &&
        bindPattern(pattern.value, actual.value, working, allowCoercion)
      )
    case 'row':
      if (actual.kind === 'unknown') return allowCoercion
      return (
        actual.kind === 'row' &&
        actual.fields.length === pattern.fields.length &&
        pattern.fields.every((field, i) => bindPattern(field, actual.fields[i]!.type, working, allowCoercion))
      )
    case 'function':
      return false
  }
}

function bindSized(
  pattern: Extract<TypePattern, { kind: 'sized' }>,
  actual: SqlType,
  working: Working,
  allowCoercion: boolean,
): boolean {
  const key = sizedKey(pattern)
  if (pattern.parameters.every((parameter) => typeof parameter === 'number')) {
    const wanted = sizedType(pattern.base, pattern.parameters)
    working.sized[key] = wanted
    return allowCoercion ? coercible(actual, wanted) : sameType(actual, wanted)
  }
  let type: SqlType | undefined = actual
  if (actual.kind === 'unknown') {
    if (!allowCoercion) return false
    type = working.sized[key] ?? ofNull(pattern.base)
  } else if (actual.kind !== pattern.base) {
    type = allowCoercion ? coerceToKind(actual, smallest(pattern.base)) : undefined
  }
  if (type === undefined) return false
  const bound = working.sized[key]
  if (bound === undefined || bound === type) working.sized[key] = type
  else if (allowCoercion) {
    const common = commonSuperType(bound, type)
    if (common === undefined) return false
    working.sized[key] = common
  } else if (!sameType(bound, type)) return false
  return true
}

/** The type that NULL takes: date and time types have milliseconds. */
function ofNull(base: SizedKind): SqlType {
  const type = smallest(base)
  return 'precision' in type && type.kind !== 'decimal' ? { ...type, precision: 3 } : type
}

function sizedKey(pattern: Extract<TypePattern, { kind: 'sized' }>): string {
  return `${pattern.base}(${pattern.parameters.join(',')})`
}

function sizedType(base: SizedKind, parameters: readonly (number | undefined)[]): SqlType {
  const first = parameters[0]
  switch (base) {
    case 'decimal':
      return decimal(first ?? 1, parameters[1] ?? 0)
    case 'varchar':
      return varchar(first)
    case 'char':
      return char(first ?? 1)
    case 'time':
    case 'time with time zone':
      return { kind: base, precision: first ?? 0 }
    case 'timestamp':
    case 'timestamp with time zone':
      return { kind: base, precision: first ?? 0 }
  }
}

function smallest(base: SizedKind): SqlType {
  return sizedType(base, base === 'varchar' || base === 'char' ? [0] : base === 'decimal' ? [1, 0] : [0])
}

/** Whether an argument can be coerced; trim() also accepts a text as its set of characters. */
function coercible(from: SqlType, to: SqlType): boolean {
  return canCoerce(from, to) || (to.kind === 'CodePoints' && (from.kind === 'varchar' || from.kind === 'char'))
}

/** The type of a pattern after its variables are bound. */
export function applyPattern(
  pattern: TypePattern,
  bound: {
    types: Readonly<Record<string, SqlType>>
    sized?: Readonly<Record<string, SqlType>>
    numbers?: Bindings['numbers']
  },
): SqlType {
  switch (pattern.kind) {
    case 'variable':
      return bound.types[pattern.name] ?? UNKNOWN
    case 'any':
      return UNKNOWN
    case 'plain':
      return pattern.type
    case 'sized': {
      const known = bound.sized?.[sizedKey(pattern)]
      if (known !== undefined) return known
      return sizedType(
        pattern.base,
        pattern.parameters.map((parameter) => (typeof parameter === 'number' ? parameter : bound.numbers?.[parameter])),
      )
    }
    case 'array':
    case 'qdigest':
      return { kind: pattern.kind, element: applyPattern(pattern.element, bound) }
    case 'map':
      return { kind: 'map', key: applyPattern(pattern.key, bound), value: applyPattern(pattern.value, bound) }
    case 'row':
      return {
        kind: 'row',
        fields: pattern.fields.map((field) => ({ name: undefined, type: applyPattern(field, bound) })),
      }
    case 'function':
      return {
        kind: 'function',
        arguments: pattern.parameters.map((parameter) => applyPattern(parameter, bound)),
        result: applyPattern(pattern.result, bound),
      }
  }
}

/** The values of `x`, `p`, `s` … in all sized patterns. */
function numbersOf(patterns: readonly TypePattern[], working: Working): Record<string, number | undefined> {
  const numbers: Record<string, number | undefined> = {}
  const visit = (pattern: TypePattern): void => {
    if (pattern.kind === 'array' || pattern.kind === 'qdigest') return visit(pattern.element)
    if (pattern.kind === 'map') {
      visit(pattern.key)
      return visit(pattern.value)
    }
    if (pattern.kind !== 'sized') return
    const type = working.sized[sizedKey(pattern)]
    if (type === undefined) return
    const values =
      type.kind === 'decimal'
        ? [type.precision, type.scale]
        : 'length' in type
          ? [type.length]
          : 'precision' in type
            ? [type.precision]
            : []
    pattern.parameters.forEach((parameter, i) => {
      if (typeof parameter === 'string') numbers[parameter] = values[i]
    })
  }
  patterns.forEach(visit)
  return numbers
}
