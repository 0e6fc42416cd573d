import { EngineError } from '../../shared/engine-error.ts'
import type { ArgumentType } from '../functions/resolve-function.ts'
import { canCoerceUnnamed } from '../types/coercion.ts'
import { sameType, type SqlType } from '../types/sql-type.ts'
import { typeName, typeNames } from '../types/type-text.ts'
import { errorAt, type AnalysisContext, type InlineFunction } from './context.ts'

export function sameTypes(left: readonly SqlType[], right: readonly SqlType[]): boolean {
  return left.length === right.length && left.every((type, i) => sameType(type, right[i]!))
}

/**
 * The declared function that a call refers to; undefined if none with this name accepts its arguments and other
 * functions might.
 */
export function findInlineFunction(
  context: AnalysisContext,
  name: string,
  args: readonly ArgumentType[],
  isBuiltIn: boolean,
): InlineFunction | undefined {
  const candidates = context.functions?.get(name)
  if (candidates === undefined) return undefined
  const types = args.flatMap((argument) => (argument.kind === 'value' ? [argument.type] : []))
  const fitting = types.length < args.length ? [] : candidates.filter((each) => takes(each, types))
  const exact = fitting.find(({ resolved }) => sameTypes(resolved.argumentTypes, types))
  if (exact !== undefined) return usable(context, exact)
  const [best, ...others] = fitting.filter((one) => fitting.every((other) => takes(other, one.resolved.argumentTypes)))
  if (best !== undefined && others.length === 0) return usable(context, best)
  if (fitting.length > 0) {
    throw new EngineError(
      'AMBIGUOUS_FUNCTION_CALL',
      'Could not choose a best candidate operator. Explicit type casts must be added.',
    )
  }
  if (isBuiltIn) return undefined
  const given = args.map((argument) => (argument.kind === 'value' ? typeName(argument.type) : '<function>'))
  const expected = candidates.map(({ resolved }) => `${name}(${typeNames(resolved.argumentTypes)})`)
  throw new EngineError(
    'FUNCTION_NOT_FOUND',
    `Unexpected parameters (${given.join(', ')}) for function ${name}. Expected: ${expected.join(', ')}`,
  )
}

function takes({ resolved }: InlineFunction, types: readonly SqlType[]): boolean {
  const wanted = resolved.argumentTypes
  return wanted.length === types.length && types.every((type, i) => canCoerceUnnamed(type, wanted[i]!))
}

function usable(context: AnalysisContext, found: InlineFunction): InlineFunction {
  if (found.routine !== undefined) return found
  const { name, argumentTypes, resultType } = found.resolved
  const signature = `${name}(${argumentTypes.map(typeName).join(',')}):${typeName(resultType)}`
  throw errorAt(
    context,
    found.declaration,
    'NOT_SUPPORTED',
    `Recursive language functions are not supported: ${signature}`,
  )
}
