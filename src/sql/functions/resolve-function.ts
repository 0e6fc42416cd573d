import { EngineError } from '../../shared/engine-error.ts'
import type { Sql } from '../../duckdb/text/sql.ts'
import { isTypedNull, typedNull } from '../types/duckdb-representation.ts'
import { sameType, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { applyPattern, bindSignature, type ArgumentType, type Bound } from './bind-signature.ts'
import { render } from './fill-template.ts'
import type { FunctionDefinition, FunctionKind, KindFacts } from './function-definition.ts'
import { overloadsOf } from './function-table.ts'
import type { RenderCall } from './rendering.ts'
import { parseTypePattern, parseSignature, type Signature } from './signature.ts'

export type { ArgumentType } from './bind-signature.ts'

/** A call with a known overload and known types. */
export type ResolvedFunction = Resolved & KindFacts

interface Resolved {
  readonly name: string
  /**
   * The type to which each argument must be coerced. For a lambda it is a function type: its body must be coerced to
   * the type's result.
   */
  readonly argumentTypes: readonly SqlType[]
  readonly resultType: SqlType
  readonly deterministic: boolean
  readonly ofTime?: true
  readonly calledOnNull: boolean
  readonly orderSensitive: boolean
  /** Renders the call as a DuckDB expression; its arguments are already rendered and coerced. */
  render(call: RenderCall): Sql
}

interface Overload {
  readonly definition: FunctionDefinition
  readonly signature: Signature
}

interface Applicable extends Overload {
  readonly bound: Bound
}

const parsed = new Map<string, readonly Overload[]>()

function parsedOverloads(name: string): readonly Overload[] {
  let overloads = parsed.get(name)
  if (overloads === undefined) {
    overloads = overloadsOf(name).map((definition) => ({
      definition,
      signature: parseSignature(definition.signature),
    }))
    parsed.set(name, overloads)
  }
  return overloads
}

/** The kind of a function that statements may name (case-insensitive); undefined if there is none. */
export function functionKind(name: string): FunctionKind | undefined {
  return overloadsOf(name.toLowerCase()).find((definition) => definition.hidden !== true)?.kind
}

/**
 * Resolves overloads like Trino: first a call without coercion (overloads without type variables before those with),
 * then with coercions, choosing the most specific match.
 * @throws EngineError FUNCTION_NOT_FOUND or AMBIGUOUS_FUNCTION_CALL, without a position
 */
export function resolveFunction(name: string, args: readonly ArgumentType[], includeHidden = false): ResolvedFunction {
  const overloads = parsedOverloads(name.toLowerCase()).filter(
    ({ definition }) => includeHidden || definition.hidden !== true,
  )
  if (overloads.length === 0) {
    throw new EngineError('FUNCTION_NOT_FOUND', `Function '${name.toLowerCase()}' not registered`)
  }
  const chosen =
    choose(
      overloads.filter(({ signature }) => signature.variables.length === 0),
      args,
      false,
    ) ??
    choose(
      overloads.filter(({ signature }) => signature.variables.length > 0),
      args,
      false,
    ) ??
    choose(overloads, args, true)
  if (chosen === undefined) throw notFound(name, args, overloads)
  if (chosen === 'ambiguous') {
    throw new EngineError(
      'AMBIGUOUS_FUNCTION_CALL',
      `Could not choose a best candidate operator. Explicit type casts must be added.`,
    )
  }
  return resolved(chosen)
}

function choose(
  overloads: readonly Overload[],
  args: readonly ArgumentType[],
  allowCoercion: boolean,
): Applicable | 'ambiguous' | undefined {
  const applicable = overloads.flatMap((overload) => {
    const bound = bindSignature(overload.signature, args, allowCoercion)
    return bound === undefined ? [] : [{ bound, ...overload }]
  })
  if (applicable.length <= 1) return applicable[0]
  const best = mostSpecific(applicable)
  if (best.length === 1) return best[0]
  const unknowns = args.some((argument) => argument.kind === 'value' && argument.type.kind === 'unknown')
  if (unknowns) {
    const untouched = applicable.filter(({ bound }) => onlyUnknownsChange(bound, args))
    const left = untouched.length > 0 ? untouched : best
    if (left.length === 1) return left[0]
    const results = left.map((each) => resultType(each))
    if (results.every((type) => sameType(type, results[0]!))) {
      return left.toSorted((a, b) => (a.signature.text < b.signature.text ? -1 : 1))[0]
    }
  }
  return allowCoercion ? 'ambiguous' : best[0]
}

function mostSpecific(applicable: readonly Applicable[]): readonly Applicable[] {
  return applicable.filter(
    (one) => !applicable.some((other) => other !== one && isMoreSpecific(other, one) && !isMoreSpecific(one, other)),
  )
}

function isMoreSpecific(left: Applicable, right: Applicable): boolean {
  const args = left.bound.argumentTypes.map((type): ArgumentType => {
    if (type.kind !== 'function') return { kind: 'value', type }
    return { kind: 'lambda', parameterCount: type.arguments.length, bodyType: () => type.result }
  })
  return bindSignature(right.signature, args, true) !== undefined
}

function onlyUnknownsChange(bound: Bound, args: readonly ArgumentType[]): boolean {
  return args.every(
    (argument, i) =>
      argument.kind === 'lambda' ||
      argument.type.kind === 'unknown' ||
      sameType(argument.type, bound.argumentTypes[i]!),
  )
}

function resultType({ definition, bound }: Pick<Applicable, 'definition' | 'bound'>): SqlType {
  return typeof definition.result === 'function'
    ? definition.result(bound)
    : applyPattern(parseTypePattern(definition.result), bound)
}

/** Binds one definition to argument types, with coercions; undefined if they do not match. */
export function resolveDefinition(
  definition: FunctionDefinition,
  args: readonly ArgumentType[],
): ResolvedFunction | undefined {
  const signature = parseSignature(definition.signature)
  const bound = bindSignature(signature, args, true)
  return bound && resolved({ definition, signature, bound })
}

function resolved(chosen: Applicable): ResolvedFunction {
  const { definition, signature, bound } = chosen
  const result = resultType(chosen)
  return {
    name: signature.name,
    ...factsOf(definition),
    argumentTypes: bound.argumentTypes,
    resultType: result,
    deterministic: definition.deterministic,
    ...(definition.ofTime && { ofTime: true }),
    calledOnNull: definition.calledOnNull,
    orderSensitive: definition.orderSensitive,
    render(call) {
      const nullForNull = definition.kind === 'scalar' && !definition.calledOnNull
      if (nullForNull && call.args.some((argument) => argument.kind === 'value' && isTypedNull(argument.sql))) {
        return typedNull(result)
      }
      return render(definition.rendering, call, bound.argumentTypes, result, definition.kind === 'scalar')
    },
  }
}

function factsOf(definition: FunctionDefinition): KindFacts {
  switch (definition.kind) {
    case 'scalar':
      return { kind: definition.kind, risk: definition.risk }
    case 'aggregate':
      return { kind: definition.kind, duplicates: definition.duplicates }
    case 'window':
      return { kind: definition.kind, clauses: definition.clauses }
  }
}

function notFound(name: string, args: readonly ArgumentType[], overloads: readonly Overload[]): EngineError {
  const lower = name.toLowerCase()
  const given = args.map((argument) =>
    argument.kind === 'lambda' ? '<function>' : typeName(argument.type).replaceAll(', ', ','),
  )
  const expected = overloads.map(({ signature }) => describe(signature)).toSorted()
  return new EngineError(
    'FUNCTION_NOT_FOUND',
    `Unexpected parameters (${given.join(', ')}) for function ${lower}. Expected: ${expected.join(', ')}`,
  )
}

/** A signature as messages list it: `contains(array(T), T) T:comparable`. */
function describe(signature: Signature): string {
  const variables = signature.variables.map((variable) => {
    const ability = signature.constraints[variable]
    return ability === undefined ? variable : `${variable}:${ability}`
  })
  // Trino writes the type of a variadic parameter once.
  const text = signature.variadic
    ? `${signature.name}(${uniqueLast(signature.text.slice(signature.text.indexOf('(') + 1, -1))})`
    : signature.text
  return variables.length === 0 ? text : `${text} ${variables.join(', ')}`
}

function uniqueLast(parameters: string): string {
  const plain = parameters.replace('...', '')
  const [first, second] = plain.split(', ')
  return first === second ? first! : plain
}
