import { functionKind } from '../functions/resolve-function.ts'
import type { Expression, FunctionCall } from '../syntax/ast.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import { MAX_INTEGER, type Labels } from './pattern-labels.ts'

const logical = new Set(['first', 'last'])
const physical = new Set(['prev', 'next'])

function nameOf(node: AnyNode): string | undefined {
  if (node.kind === 'Listagg') return 'listagg'
  if (node.kind !== 'FunctionCall') return undefined
  return (node as FunctionCall).name.parts.at(-1)!.value.toLowerCase()
}

function isNavigation(name: string): boolean {
  return logical.has(name) || physical.has(name)
}

/** Refuses function calls in MEASURES and DEFINE that Trino refuses. @throws EngineError as Trino does */
export function verifyPatternCall(
  context: AnalysisContext,
  labels: Labels,
  node: FunctionCall,
  inDefinition: boolean,
): void {
  const name = nameOf(node)!
  const isAggregate = functionKind(name) === 'aggregate'
  const special = isNavigation(name) || name === 'classifier' || name === 'match_number'
  const mode = node.processingMode?.mode
  if (inDefinition && mode === 'FINAL') {
    throw errorAt(context, node, 'INVALID_PROCESSING_MODE', 'FINAL semantics is not supported in DEFINE clause')
  }
  if (special && !logical.has(name) && mode !== undefined) {
    const message = `${mode} semantics is not supported with ${name} pattern recognition function`
    throw errorAt(context, node, 'INVALID_PROCESSING_MODE', message)
  }
  if (!special && !isAggregate) {
    if (mode === undefined) return
    const message = `${mode} semantics is supported only for FIRST(), LAST() and aggregation functions. Actual: ${name}`
    throw errorAt(context, node, 'INVALID_PROCESSING_MODE', message)
  }
  const [argument] = node.arguments
  if (name === 'match_number' && argument !== undefined) {
    const message = 'MATCH_NUMBER pattern recognition function takes no arguments'
    throw errorAt(context, node, 'INVALID_FUNCTION_ARGUMENT', message)
  }
  if (name === 'classifier') verifyClassifier(context, node)
  const label = name === 'classifier' ? argument : argument?.kind === 'LabelDereference' ? argument.label : undefined
  if (label?.kind === 'Identifier' && !labels.names.has(labels.nameOf(label))) {
    const shown = name === 'classifier' ? label.value : labels.nameOf(label)
    const message = `${shown} is not a primary pattern variable or subset name`
    throw errorAt(context, label, 'INVALID_FUNCTION_ARGUMENT', message)
  }
  const clause = node.distinct
    ? 'DISTINCT'
    : node.filter !== undefined
      ? 'FILTER'
      : node.orderBy !== undefined
        ? 'ORDER BY'
        : undefined
  if (special) {
    if (clause !== undefined) {
      const message = `Cannot use ${clause} with ${name} pattern recognition function`
      throw errorAt(context, node, 'INVALID_PATTERN_RECOGNITION_FUNCTION', message)
    }
    if (!isNavigation(name)) return
  } else if (clause !== undefined) {
    const message = `Cannot use ${clause} with ${name} aggregate function in pattern recognition context`
    throw errorAt(context, node, 'NOT_SUPPORTED', message)
  }
  if (isNavigation(name)) verifyOffset(context, node, name)
  verifyNesting(context, name, node.arguments)
  verifyLabels(context, labels, node, name)
}

function verifyClassifier(context: AnalysisContext, node: FunctionCall): void {
  const [argument] = node.arguments
  if (node.arguments.length > 1) {
    const message = 'CLASSIFIER pattern recognition function takes no arguments or 1 argument'
    throw errorAt(context, node, 'INVALID_FUNCTION_ARGUMENT', message)
  }
  if (argument === undefined || argument.kind === 'Identifier') return
  const message = `CLASSIFIER function argument should be primary pattern variable or subset name. Actual: ${argument.kind}`
  throw errorAt(context, argument, 'TYPE_MISMATCH', message)
}

function verifyOffset(context: AnalysisContext, node: FunctionCall, name: string): void {
  if (node.arguments.length === 0 || node.arguments.length > 2) {
    const message = `${name} pattern recognition function requires 1 or 2 arguments`
    throw errorAt(context, node, 'INVALID_FUNCTION_ARGUMENT', message)
  }
  const [, offset] = node.arguments
  if (offset?.kind === 'LongLiteral' && Number(offset.value) > MAX_INTEGER) {
    const message = `The second argument of ${name} pattern recognition navigation function must not exceed ${MAX_INTEGER} (actual: ${offset.value})`
    throw errorAt(context, node, 'NUMERIC_VALUE_OUT_OF_RANGE', message)
  }
  if (offset === undefined || (offset.kind === 'LongLiteral' && !offset.value.startsWith('-'))) return
  const negative =
    offset.kind === 'LongLiteral'
      ? offset.value.slice(1)
      : offset.kind === 'ArithmeticUnaryExpression' && offset.sign === '-' && offset.value.kind === 'LongLiteral'
        ? offset.value.value
        : undefined
  const what = `${name} pattern recognition navigation function requires a`
  if (negative !== undefined) {
    const message = `${what} non-negative number as the second argument (actual: -${negative})`
    throw errorAt(context, node, 'NUMERIC_VALUE_OUT_OF_RANGE', message)
  }
  throw errorAt(context, node, 'INVALID_FUNCTION_ARGUMENT', `${what} number as the second argument`)
}

/** Checks nesting: PREV and NEXT may contain one FIRST or LAST, directly; no other nesting is allowed. */
function verifyNesting(context: AnalysisContext, outerName: string, args: readonly AnyNode[]): void {
  verifyNested(context, outerName, args)
  if (!physical.has(outerName)) return
  const found: AnyNode[] = []
  const visit = (part: AnyNode): void => {
    if (isNavigation(nameOf(part) ?? '')) found.push(part)
    childrenOf(part).forEach(visit)
  }
  args.slice(0, 1).forEach(visit)
  const [nested, another] = found
  if (another !== undefined) {
    const message = `Cannot nest multiple pattern navigation functions inside ${outerName} pattern navigation function`
    throw errorAt(context, another, 'INVALID_NAVIGATION_NESTING', message)
  }
  if (nested === undefined || nested === args[0]) return
  const message = 'Immediate nesting is required for pattern navigation functions'
  throw errorAt(context, nested, 'INVALID_NAVIGATION_NESTING', message)
}

function verifyNested(context: AnalysisContext, outerName: string, parts: readonly AnyNode[]): void {
  for (const part of parts) {
    const inner = nameOf(part)
    if (inner !== undefined && isNavigation(inner)) {
      const allowed = physical.has(outerName) && logical.has(inner)
      if (!allowed) {
        const message = isNavigation(outerName)
          ? `Cannot nest ${inner} pattern navigation function inside ${outerName} pattern navigation function`
          : `Cannot nest ${inner} pattern navigation function inside ${outerName} function`
        throw errorAt(context, part, 'INVALID_NAVIGATION_NESTING', message)
      }
    } else if (inner !== undefined && isNavigation(outerName) && functionKind(inner) === 'aggregate') {
      const message = `Cannot nest ${inner} aggregate function inside ${outerName} function`
      throw errorAt(context, part, 'NESTED_AGGREGATION', message)
    }
    verifyNested(context, outerName, childrenOf(part))
  }
}

/** Checks that all columns and classifiers inside refer to the same rows; a navigation needs at least one. */
function verifyLabels(context: AnalysisContext, labels: Labels, node: FunctionCall, name: string): void {
  const used = new Set<string>()
  const label = (expression: Expression | undefined): string | undefined => {
    if (expression?.kind !== 'Identifier') return undefined
    const shown = labels.nameOf(expression)
    return labels.names.has(shown) ? shown : undefined
  }
  const visit = (part: AnyNode): void => {
    if (nameOf(part) === 'classifier') {
      used.add(label((part as FunctionCall).arguments[0]) ?? '')
      return
    }
    if (part.kind === 'LabelDereference' || part.kind === 'LambdaExpression') {
      used.add('')
      return
    }
    if (part.kind === 'DereferenceExpression') {
      const { base } = part as Extract<Expression, { kind: 'DereferenceExpression' }>
      const of = label(base)
      if (of !== undefined) used.add(of)
      else if (base.kind === 'Identifier') used.add('')
      else visit(base)
      return
    }
    if (part.kind === 'Identifier') {
      used.add('')
      return
    }
    if (part.kind === 'FunctionCall') (part as FunctionCall).arguments.forEach(visit)
    else childrenOf(part).forEach(visit)
  }
  node.arguments.slice(0, isNavigation(name) ? 1 : undefined).forEach(visit)
  if (used.size > 1) {
    const message = `All labels and classifiers inside the call to '${name}' must match`
    throw errorAt(context, node, 'INVALID_ARGUMENTS', message)
  }
  if (used.size === 0 && isNavigation(name)) {
    const message = `Pattern navigation function '${name.toUpperCase()}' must contain at least one column reference or CLASSIFIER()`
    throw errorAt(context, node, 'INVALID_ARGUMENTS', message)
  }
}
