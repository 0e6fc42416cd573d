import type { Expression } from '../syntax/ast.ts'
import type { TableFunctionInvocation } from '../syntax/ast-query.ts'
import { BIGINT } from '../types/sql-type.ts'
import { canCoerce } from '../types/coercion.ts'
import { typeName } from '../types/type-text.ts'
import { constant } from './build.ts'
import { errorAt, newId, type AnalysisContext } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import type { Field, Scope } from './scope.ts'
import type { RelationNode } from './tree.ts'

const parameters = ['START', 'STOP', 'STEP'] as const

/** `TABLE(sequence(start => 0, stop, step => 1))`: the one table function there is. */
export function analyzeTableFunction(
  context: AnalysisContext,
  node: TableFunctionInvocation,
  scope: Scope,
): { readonly node: RelationNode; readonly fields: readonly Field[] } {
  const name = node.name.parts.map((part) => part.value.toLowerCase()).join('.')
  if (name !== 'sequence' && name !== 'system.builtin.sequence') {
    throw errorAt(context, node.name, 'FUNCTION_NOT_FOUND', `Table function '${name}' not registered`)
  }
  if (node.arguments.length > parameters.length) {
    throw errorAt(
      context,
      node.arguments[0]!,
      'INVALID_ARGUMENTS',
      `Too many arguments. Expected at most ${parameters.length} arguments, got ${node.arguments.length} arguments`,
    )
  }
  const given = new Map<string, Expression>()
  node.arguments.forEach((argument, i) => {
    const key = argument.name === undefined ? parameters[i]! : argument.name.value.toUpperCase()
    if (given.has(key)) {
      throw errorAt(context, argument, 'INVALID_FUNCTION_ARGUMENT', `Duplicate argument name: ${key}`)
    }
    if (!(parameters as readonly string[]).includes(key)) {
      throw errorAt(context, argument, 'INVALID_FUNCTION_ARGUMENT', `Unexpected argument name: ${key}`)
    }
    const { value } = argument
    if (value.kind === 'TableFunctionTableArgument' || value.kind === 'TableFunctionDescriptorArgument') {
      throw errorAt(
        context,
        argument,
        'INVALID_FUNCTION_ARGUMENT',
        `Invalid argument ${key}. Expected expression, got ${value.kind === 'TableFunctionTableArgument' ? 'table' : 'descriptor'}`,
      )
    }
    given.set(key, value)
  })
  const number = (key: string, otherwise: bigint | undefined): bigint => {
    const expression = given.get(key)
    if (expression === undefined) {
      if (otherwise === undefined) {
        throw errorAt(context, node.arguments[0] ?? node, 'MISSING_ARGUMENT', `Missing argument: ${key}`)
      }
      return otherwise
    }
    const { expr } = analyzeExpression(context, expression, { ...scope, fields: [] })
    if (!canCoerce(expr.type, BIGINT)) {
      throw errorAt(
        context,
        expression,
        'TYPE_MISMATCH',
        `Expected value of type bigint for argument ${key}, got ${typeName(expr.type)}`,
      )
    }
    const value = constant(expr)
    if (value === undefined) {
      throw errorAt(context, expression, 'EXPRESSION_NOT_CONSTANT', `Argument ${key} must be a constant`)
    }
    if (value === null) {
      throw errorAt(context, expression, 'INVALID_FUNCTION_ARGUMENT', `Invalid argument ${key}: null`)
    }
    return BigInt(String(value))
  }
  const start = number('START', 0n)
  const stop = number('STOP', undefined)
  const step = number('STEP', 1n)
  if (step === 0n || (step > 0n && stop < start) || (step < 0n && stop > start)) {
    throw errorAt(
      context,
      node,
      'INVALID_FUNCTION_ARGUMENT',
      step < 0n
        ? 'Step must be positive for sequence [start, stop] with start <= stop'
        : step === 0n
          ? 'Step must be nonzero'
          : 'Step must be negative for sequence [start, stop] with start > stop',
    )
  }
  const id = newId(context)
  return {
    node: { kind: 'sequence', id, start, stop, step },
    fields: [{ name: 'sequential_number', relation: undefined, type: BIGINT, column: id }],
  }
}
