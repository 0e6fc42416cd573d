import { EngineError } from '../../shared/engine-error.ts'
import { resolveSubscript } from '../functions/operators.ts'
import type { DereferenceExpression, Expression, GroupingOperation, SubscriptExpression } from '../syntax/ast.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import { qualifiedNameOf } from '../syntax/tree.ts'
import { BIGINT, INTEGER } from '../types/sql-type.ts'
import { castTo, columnOf } from './build.ts'
import { errorAt, locatedAt, noteRead, type ExpressionState, type LambdaScope } from './context.ts'
import { findField, startsWithColumn } from './scope.ts'
import type { Expr, GroupingExpr, LambdaArgumentExpr } from './tree.ts'

export function analyzeIdentifier(state: ExpressionState, node: Identifier): Expr {
  const name = node.value.toLowerCase()
  const argument = lambdaArgument(state.lambda, name)
  if (argument !== undefined) return argument
  const column = findColumn(state, node, [name], node.value)
  if (column === undefined) {
    throw errorAt(state.context, node, 'COLUMN_NOT_FOUND', `Column '${node.value}' cannot be resolved`)
  }
  return column
}

function lambdaArgument(scope: LambdaScope | undefined, name: string): LambdaArgumentExpr | undefined {
  for (let at = scope; at !== undefined; at = at.outer) {
    const argument = at.arguments.get(name)
    if (argument !== undefined) return argument
  }
  return undefined
}

function findColumn(
  state: ExpressionState,
  node: Expression,
  name: readonly string[],
  shown: string,
): Expr | undefined {
  const found = findField(state.scope, name)
  if (found === 'ambiguous') throw errorAt(state.context, node, 'AMBIGUOUS_NAME', `Column '${shown}' is ambiguous`)
  if (found === undefined) return undefined
  if (found.refused !== undefined) {
    throw errorAt(
      state.context,
      node,
      found.refused.errorName,
      found.refused.message.replace('%', () => shown),
    )
  }
  const column = columnOf(found.field.column, found.field.type)
  noteRead(state.context, [found.field])
  if (!found.local) state.context.origins.set(column, node)
  return column
}

export function analyzeDereference(state: ExpressionState, node: DereferenceExpression): Expr {
  const chain = qualifiedNameOf(node)
  if (chain !== undefined && lambdaArgument(state.lambda, chain[0]!.value.toLowerCase()) === undefined) {
    const name = chain.map((part) => part.value.toLowerCase())
    const shown = chain.map((part) => part.value).join('.')
    const column = findColumn(state, node, name, shown)
    if (column !== undefined) return column
    if (!startsWithColumn(state.scope, name)) {
      throw errorAt(state.context, node, 'COLUMN_NOT_FOUND', `Column '${shown}' cannot be resolved`)
    }
  }
  const base = state.analyze(node.base)
  if (base.type.kind !== 'row') {
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      `Expression ${state.context.print(node.base)} is not of type ROW`,
    )
  }
  const wanted = node.field.value.toLowerCase()
  const matches = base.type.fields.flatMap((field, index) =>
    field.name?.toLowerCase() === wanted ? [{ index, type: field.type }] : [],
  )
  const [first, second] = matches
  if (second !== undefined) {
    throw errorAt(state.context, node.field, 'AMBIGUOUS_NAME', `Ambiguous row field reference: ${node.field.value}`)
  }
  if (first === undefined) {
    throw errorAt(
      state.context,
      node,
      chain === undefined ? 'INVALID_COLUMN_REFERENCE' : 'COLUMN_NOT_FOUND',
      chain === undefined
        ? `Column reference '${node.field.value}' is invalid`
        : `Column '${state.context.print(node)}' cannot be resolved`,
    )
  }
  return { kind: 'field', type: first.type, base, index: first.index }
}

export function analyzeSubscript(state: ExpressionState, node: SubscriptExpression): Expr {
  const base = state.analyze(node.base)
  if (base.type.kind === 'row') return rowSubscript(state, node, base)
  const index = state.analyze(node.index)
  const operator = locatedAt(state.context, node, () => resolveSubscript(base.type, index.type))
  return {
    kind: 'operator',
    type: operator.result,
    name: '[]',
    operator,
    left: castTo(base, operator.left),
    right: castTo(index, operator.right),
  }
}

const MAX_INTEGER = 2 ** 31 - 1

function rowSubscript(state: ExpressionState, node: SubscriptExpression, base: Expr): Expr {
  const fields = base.type.kind === 'row' ? base.type.fields : []
  if (node.index.kind !== 'LongLiteral') {
    throw errorAt(
      state.context,
      node.index,
      'EXPRESSION_NOT_CONSTANT',
      'Subscript expression on ROW requires a constant index',
    )
  }
  const position = Number(node.index.value)
  if (position > MAX_INTEGER) {
    const message = 'Subscript expression on ROW requires integer index, found bigint'
    throw errorAt(state.context, node.index, 'TYPE_MISMATCH', message)
  }
  if (position <= 0) {
    throw errorAt(
      state.context,
      node.index,
      'INVALID_FUNCTION_ARGUMENT',
      `Invalid subscript index: ${position}. ROW indices start at 1`,
    )
  }
  const field = fields[position - 1]
  if (field === undefined) {
    throw errorAt(
      state.context,
      node.index,
      'INVALID_FUNCTION_ARGUMENT',
      `Subscript index out of bounds: ${position}, max value is ${fields.length}`,
    )
  }
  return { kind: 'field', type: field.type, base, index: position - 1 }
}

const MAX_GROUPING_ARGUMENTS = 63

export function analyzeGrouping(state: ExpressionState, node: GroupingOperation): Expr {
  if (node.columns.length === 0) {
    throw new EngineError('GENERIC_INTERNAL_ERROR', 'grouping operation columns cannot be empty')
  }
  if (node.columns.length > MAX_GROUPING_ARGUMENTS) {
    throw errorAt(
      state.context,
      node,
      'TOO_MANY_ARGUMENTS',
      `GROUPING supports up to ${MAX_GROUPING_ARGUMENTS} column arguments`,
    )
  }
  const columns = node.columns.map((name) =>
    state.analyze(
      name.parts
        .slice(1)
        .reduce<Expression>(
          (base, field) => ({ kind: 'DereferenceExpression', span: name.span, base, field }),
          name.parts[0]!,
        ),
    ),
  )
  const expr: GroupingExpr = { kind: 'grouping', type: columns.length <= 31 ? INTEGER : BIGINT, columns }
  state.found.groupings.push({ node, expr })
  return expr
}
