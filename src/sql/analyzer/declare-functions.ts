import { PARTIAL } from '../functions/function-definition.ts'
import type { ResolvedFunction } from '../functions/resolve-function.ts'
import type { FunctionSpecification, RoutineCharacteristic } from '../syntax/ast-routines.ts'
import { BOOLEAN } from '../types/sql-type.ts'
import { constantOf } from './build.ts'
import { errorAt, newId, type AnalysisContext, type InlineFunction } from './context.ts'
import { sameTypes } from './inline-functions.ts'
import { declaredType } from './routine-checks.ts'
import { routineBody } from './routine-body.ts'
import { analyzeSteps, type Variable } from './routine-steps.ts'
import type { Expr, LambdaArgumentExpr, Routine } from './tree.ts'
import { childrenOfExpr, someExpr } from './walk.ts'

/** The limit of the size of a function. Calls of other functions are inlined, so functions can grow quickly. */
const MAX_SIZE = 20_000

/** Declares the functions of WITH FUNCTION; each may call the ones before it. @throws EngineError as Trino does */
export function declareFunctions(
  context: AnalysisContext,
  declarations: readonly FunctionSpecification[],
): AnalysisContext {
  const functions = new Map<string, readonly InlineFunction[]>(context.functions)
  const within: AnalysisContext = { ...context, functions }
  for (const declaration of declarations) {
    const declared = declare(within, declaration)
    const { name, argumentTypes } = declared.resolved
    const others = functions.get(name) ?? []
    const add = (inline: InlineFunction): void => {
      const kept = others.filter(({ resolved }) => !sameTypes(resolved.argumentTypes, argumentTypes))
      functions.set(name, [...kept, inline])
    }
    add(declared)
    const { routine, deterministic } = bodyOf(within, declared)
    const size = sizeOf(routine.body)
    if (size > MAX_SIZE) {
      throw errorAt(context, declaration, 'NOT_SUPPORTED', `Function is too large: ${name}`)
    }
    add({ ...declared, resolved: { ...declared.resolved, deterministic }, routine, size })
  }
  return within
}

function sizeOf(expr: Expr): number {
  const own = expr.kind === 'call' && expr.routine !== undefined ? sizeOf(expr.routine.body) : 1
  return childrenOfExpr(expr).reduce((total, child) => total + sizeOf(child), own)
}

function declare(context: AnalysisContext, node: FunctionSpecification): InlineFunction {
  const { parts } = node.name
  if (parts.length > 1) {
    const shown = parts.map((part) => part.value).join('.')
    throw errorAt(context, node, 'SYNTAX_ERROR', `Inline function names cannot be qualified: ${shown}`)
  }
  const name = parts[0]!.value
  if (/[@$]/.test(name)) throw errorAt(context, node, 'NOT_SUPPORTED', "Function name cannot contain '@' or '$'")
  verifyCharacteristics(context, node)
  const { statement } = node
  if (statement.kind === 'CompoundStatement' && statement.statements.at(-1)?.kind !== 'ReturnStatement') {
    throw errorAt(context, statement, 'MISSING_RETURN', 'Function must end in a RETURN statement')
  }
  const names = new Set<string>()
  for (const parameter of node.parameters) {
    if (parameter.name === undefined) {
      throw errorAt(context, parameter, 'INVALID_ARGUMENTS', 'Function parameters must have a name')
    }
    if (names.has(parameter.name.value)) {
      const message = `Duplicate function parameter name: ${parameter.name.value}`
      throw errorAt(context, parameter, 'INVALID_ARGUMENTS', message)
    }
    names.add(parameter.name.value)
  }
  const resultType = declaredType(context, node.returns, node.returns.type)
  const argumentTypes = node.parameters.map((parameter) => declaredType(context, parameter, parameter.type))
  const lower = name.toLowerCase()
  const resolved: ResolvedFunction = {
    name: lower,
    kind: 'scalar',
    risk: PARTIAL,
    argumentTypes,
    resultType,
    deterministic: true,
    calledOnNull: true,
    orderSensitive: false,
    render() {
      throw new Error(`Function ${lower} has no rendering of its own`)
    },
  }
  return { resolved, declaration: node, routine: undefined, size: 0 }
}

const clauses = {
  LanguageCharacteristic: 'language',
  DeterministicCharacteristic: 'deterministic',
  NullInputCharacteristic: 'null-call',
  SecurityCharacteristic: 'security',
  CommentCharacteristic: 'comment',
} as const satisfies Record<RoutineCharacteristic['kind'], string>

function verifyCharacteristics(context: AnalysisContext, node: FunctionSpecification): void {
  const seen = new Set<string>()
  for (const characteristic of node.characteristics) {
    const { kind } = characteristic
    if (seen.has(kind)) {
      throw errorAt(context, characteristic, 'SYNTAX_ERROR', `Multiple ${clauses[kind]} clauses specified`)
    }
    seen.add(kind)
  }
  for (const characteristic of node.characteristics) {
    if (characteristic.kind === 'LanguageCharacteristic' && characteristic.language.value.toLowerCase() !== 'sql') {
      const message = "Only functions using language 'SQL' may be defined using SQL"
      throw errorAt(context, node.statement, 'SYNTAX_ERROR', message)
    }
  }
  const { kind } = node.statement
  if (kind !== 'ReturnStatement' && kind !== 'CompoundStatement') {
    throw errorAt(context, node.statement, 'SYNTAX_ERROR', 'Function body must start with RETURN or BEGIN')
  }
  const security = node.characteristics.find((each) => each.kind === 'SecurityCharacteristic')
  if (security !== undefined) {
    throw errorAt(context, security, 'NOT_SUPPORTED', 'Security mode not supported for inline functions')
  }
}

function bodyOf(
  context: AnalysisContext,
  { declaration, resolved }: InlineFunction,
): { readonly routine: Routine; readonly deterministic: boolean } {
  const variables = declaration.parameters.map(({ name }, i): Variable => {
    const argument: LambdaArgumentExpr = {
      kind: 'lambdaArgument',
      type: resolved.argumentTypes[i]!,
      id: newId(context),
    }
    return { name: name!.value, argument }
  })
  const { steps, expressions } = analyzeSteps(context, declaration.statement, variables, resolved.resultType)
  const deterministic = !expressions.some((expr) =>
    someExpr(expr, (part) => part.kind === 'call' && !part.function.deterministic),
  )
  const declared = declaration.characteristics.find((each) => each.kind === 'DeterministicCharacteristic')
  if ((declared?.deterministic ?? true) !== deterministic) {
    const message = deterministic
      ? 'Deterministic function declared NOT DETERMINISTIC'
      : 'Non-deterministic function declared DETERMINISTIC'
    throw errorAt(context, declaration, 'INVALID_ARGUMENTS', message)
  }
  const parameters = variables.map(({ argument }) => argument)
  const body = routineBody(context, parameters, resolved.resultType, steps)
  const nullInput = declaration.characteristics.find((each) => each.kind === 'NullInputCharacteristic')
  return {
    deterministic,
    routine: { parameters, body: nullInput?.calledOnNull === false ? unlessNull(parameters, body) : body },
  }
}

/** Implements RETURNS NULL ON NULL INPUT. */
function unlessNull(parameters: readonly LambdaArgumentExpr[], body: Expr): Expr {
  if (parameters.length === 0) return body
  const terms = parameters.map((value): Expr => ({ kind: 'isNull', type: BOOLEAN, value }))
  return {
    kind: 'case',
    type: body.type,
    branches: [
      {
        when: terms.length === 1 ? terms[0]! : { kind: 'or', type: BOOLEAN, terms },
        then: constantOf(body.type, null),
      },
    ],
    otherwise: body,
  }
}
