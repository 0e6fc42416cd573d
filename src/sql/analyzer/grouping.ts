import type { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { Expression } from '../syntax/ast.ts'
import type { GroupBy, GroupingElement, QuerySpecification } from '../syntax/ast-query.ts'
import { isComparable } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import type { Grouping } from './aggregation.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import { analyzeExpression, type AnalyzedExpression } from './expressions.ts'
import { verifyScalar, verifyWrittenScalar } from './expression-state.ts'
import type { Scope } from './scope.ts'
import type { Expr } from './tree.ts'
import { exprKey } from './walk.ts'

const MAX_GROUPING_SETS = 2048

/** An item of the select list, after `*` is expanded. */
export interface OutputItem {
  readonly node: Expression
  readonly analyzed: AnalyzedExpression
}

/** Returns the number of the key of an expression. @param ordinals whether an integer is the position of an output */
type KeyOf = (expression: Expression, ordinals?: boolean) => number

/** Analyzes GROUP BY: its keys, and the keys in each grouping set. */
export function analyzeGroupBy(
  context: AnalysisContext,
  spec: QuerySpecification,
  groupBy: GroupBy,
  scope: Scope,
  outputs: readonly OutputItem[],
): Grouping {
  const keys: Expr[] = []
  const indexes = new Map<string, number>()
  const keyOf: KeyOf = (expression, ordinals = true) => {
    const expr = groupKey(context, spec, { expression, ordinals }, scope, outputs)
    const text = exprKey(expr)
    let index = indexes.get(text)
    if (index === undefined) {
      index = keys.push(expr) - 1
      indexes.set(text, index)
    }
    return index
  }
  let count = 1
  let simple = true
  const alternatives = groupBy.elements.map((element) => {
    if (element.kind !== 'SimpleGroupBy' || element.columns.length !== 1) simple = false
    const sets = setsOf(context, element, keyOf, scope, outputs)
    count *= sets.length
    if (count > MAX_GROUPING_SETS) {
      const total = groupBy.elements.reduce((product, each) => product * numberOfSets(each), 1)
      throw errorAt(
        context,
        groupBy.elements[0]!,
        'TOO_MANY_GROUPING_SETS',
        `GROUP BY has ${total} grouping sets but can contain at most ${MAX_GROUPING_SETS}`,
      )
    }
    return sets
  })
  if (simple) return { keys, sets: undefined }
  let sets: readonly (readonly number[])[] = [[]]
  for (const choices of alternatives) {
    sets = sets.flatMap((set) => choices.map((choice) => [...new Set([...set, ...choice])]))
  }
  if (groupBy.distinct) sets = different(sets)
  if (sets.length === 1 && sets[0]!.length === keys.length) return { keys, sets: undefined }
  return { keys, sets }
}

/** The different sets of keys; order and repetition inside a set do not matter. */
function different(sets: readonly (readonly number[])[]): readonly (readonly number[])[] {
  return [...new Map(sets.map((set) => [[...new Set(set)].sort((a, b) => a - b).join(), set])).values()]
}

function numberOfSets(element: GroupingElement): number {
  if (element.kind !== 'GroupingSets') return 1
  if (element.type === 'CUBE') return 2 ** element.sets.length
  return element.type === 'ROLLUP' ? element.sets.length + 1 : element.sets.length
}

function setsOf(
  context: AnalysisContext,
  element: GroupingElement,
  keyOf: KeyOf,
  scope: Scope,
  outputs: readonly OutputItem[],
): readonly (readonly number[])[] {
  switch (element.kind) {
    case 'SimpleGroupBy':
      return [element.columns.map((column) => keyOf(column))]
    case 'GroupByAuto':
      return [
        outputs
          .filter(({ analyzed }) => analyzed.aggregates.length === 0 && analyzed.windows.length === 0)
          .map(({ node }) => keyOf(node, false)),
      ]
    case 'GroupingSets': {
      const noColumn = (expression: Expression): EngineError => {
        const message = `GROUP BY expression must be a column reference: ${context.print(expression)}`
        return errorAt(context, expression, 'INVALID_COLUMN_REFERENCE', message)
      }
      const columns = element.sets.map((set) =>
        set.map((expression) => {
          if (expression.kind !== 'Identifier' && expression.kind !== 'DereferenceExpression') {
            if (expression.kind !== 'LongLiteral') analyzeExpression(context, expression, scope)
            throw noColumn(expression)
          }
          if (analyzeExpression(context, expression, scope).expr.kind !== 'column') throw noColumn(expression)
          return keyOf(expression)
        }),
      )
      switch (element.type) {
        case 'EXPLICIT':
          return columns
        case 'ROLLUP':
          return Array.from({ length: columns.length + 1 }, (_, i) => columns.slice(0, columns.length - i).flat())
        case 'CUBE': {
          if (columns.length > 12) return Array.from({ length: MAX_GROUPING_SETS + 1 }, () => [])
          let sets: number[][] = [[]]
          for (const column of different(columns)) sets = sets.flatMap((set) => [[...set, ...column], set])
          return sets
        }
        default:
          return unreachable(element.type)
      }
    }
    default:
      return unreachable(element)
  }
}

function groupKey(
  context: AnalysisContext,
  spec: QuerySpecification,
  { expression, ordinals }: { readonly expression: Expression; readonly ordinals: boolean },
  scope: Scope,
  outputs: readonly OutputItem[],
): Expr {
  let expr: Expr
  if (ordinals && expression.kind === 'LongLiteral') {
    const ordinal = Number(expression.value)
    const output = outputs[ordinal - 1]
    if (output === undefined) {
      throw errorAt(
        context,
        expression,
        'INVALID_COLUMN_REFERENCE',
        `GROUP BY position ${expression.value} is not in select list`,
      )
    }
    verifyScalar(context, output.node, output.analyzed, 'GROUP BY clause')
    expr = output.analyzed.expr
  } else {
    verifyWrittenScalar(context, expression, 'GROUP BY clause')
    const selected = outputs.find(({ node }) => node === expression)
    const analyzed = selected?.analyzed ?? analyzeExpression(context, expression, scope)
    verifyScalar(context, expression, analyzed, 'GROUP BY clause')
    expr = analyzed.expr
  }
  if (!isComparable(expr.type)) {
    throw errorAt(
      context,
      spec,
      'TYPE_MISMATCH',
      `${typeName(expr.type)} is not comparable, and therefore cannot be used in GROUP BY`,
    )
  }
  return expr
}
