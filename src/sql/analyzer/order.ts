import type { Expression, LambdaExpression } from '../syntax/ast.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type { FetchFirst, Limit, Offset, OrderBy, Query } from '../syntax/ast-query.ts'
import type { Span } from '../syntax/span.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import { canCoerce } from '../types/coercion.ts'
import { BIGINT, isOrderable } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { constant } from './build.ts'
import { errorAt, newId, type AnalysisContext } from './context.ts'
import { analyzeExpression, type AnalyzedExpression } from './expressions.ts'
import { checkedSort } from './nested-order.ts'
import type { Scope } from './scope.ts'
import type { ColumnId, ComputedColumn, Expr, RelationNode, SortKey } from './tree.ts'
import { childrenOfExpr, visitColumns } from './walk.ts'

/** A sort item: an output column by number, or an expression. */
export interface SortItemAnalysis {
  readonly node: Expression
  /** The index of the output column, from 0; undefined if the item sorts by `analyzed`. */
  readonly output: number | undefined
  readonly analyzed: AnalyzedExpression | undefined
  readonly descending: boolean
  readonly nullsFirst: boolean
}

/**
 * @param owner the position of type errors
 * @param scope finds the outputs first
 */
export function analyzeOrderBy(
  context: AnalysisContext,
  owner: { readonly span: Span },
  orderBy: OrderBy,
  scope: Scope,
  outputs: readonly { readonly type: Expr['type'] }[],
): SortItemAnalysis[] {
  return orderBy.sortItems.map((item) => {
    const node = item.sortKey
    const direction = { descending: item.ordering === 'DESCENDING', nullsFirst: item.nullOrdering === 'FIRST' }
    if (node.kind === 'LongLiteral') {
      const output = Number(node.value) - 1
      const column = outputs[output]
      if (column === undefined) {
        throw errorAt(
          context,
          node,
          'INVALID_COLUMN_REFERENCE',
          `ORDER BY position ${node.value} is not in select list`,
        )
      }
      verifyOrderable(context, owner, column.type, `:input(${output})`)
      return { node, output, analyzed: undefined, ...direction }
    }
    const analyzed = analyzeExpression(context, node, scope)
    verifyOrderable(context, owner, analyzed.expr.type, () => context.print(node))
    return { node, output: undefined, analyzed, ...direction }
  })
}

/** Aggregates in ORDER BY run over FROM: names in them that refer to select-list columns are refused. */
export function verifyOrderAggregates(
  context: AnalysisContext,
  { node, analyzed }: SortItemAnalysis,
  outputs: readonly { readonly name: string | undefined; readonly column: ColumnId }[],
  local: ReadonlySet<ColumnId>,
): void {
  const made = new Set(outputs.map(({ column }) => column).filter((column) => !local.has(column)))
  const names = new Set(outputs.flatMap(({ name }) => (name === undefined ? [] : [name.toLowerCase()])))
  const verify = (part: AnyNode, message: string): void => {
    const wrong = plainNames(part).find(({ value }) => names.has(value.toLowerCase()))
    if (wrong !== undefined) throw errorAt(context, wrong, 'COLUMN_NOT_FOUND', message)
  }
  for (const call of analyzed?.aggregates ?? []) {
    const values = call.kind === 'FunctionCall' ? call.arguments : [call.value]
    for (const value of call.filter === undefined ? values : [...values, call.filter])
      verify(value, OUTPUT_IN_AGGREGATE)
    if (call.orderBy !== undefined) verify(call.orderBy, OUTPUT_IN_AGGREGATE_ORDER)
  }
  for (const call of analyzed === undefined ? [] : aggregatesOf(analyzed.expr)) {
    visitColumns(call, (id, column) => {
      if (!made.has(id)) return
      throw errorAt(context, context.origins.get(column) ?? node, 'COLUMN_NOT_FOUND', OUTPUT_IN_AGGREGATE)
    })
  }
}

const OUTPUT_IN_AGGREGATE = 'Invalid reference to output projection attribute from ORDER BY aggregation'
const OUTPUT_IN_AGGREGATE_ORDER = 'ORDER BY clause in aggregation function must not reference query output columns'

/** Column names that stand alone: a name before a dot may be a relation. */
export function plainNames(part: AnyNode): readonly Identifier[] {
  switch (part.kind) {
    case 'Identifier':
      return [part as Identifier]
    case 'DereferenceExpression':
    case 'QualifiedName':
      return []
    case 'LambdaExpression': {
      const { parameters, body } = part as LambdaExpression
      const own = new Set(parameters.map(({ value }) => value.toLowerCase()))
      return plainNames(body).filter(({ value }) => !own.has(value.toLowerCase()))
    }
    default:
      return childrenOf(part).flatMap(plainNames)
  }
}

function aggregatesOf(expr: Expr): readonly Expr[] {
  return expr.kind === 'aggregate' ? [expr] : childrenOfExpr(expr).flatMap(aggregatesOf)
}

function verifyOrderable(
  context: AnalysisContext,
  owner: { readonly span: Span },
  type: Expr['type'],
  text: string | (() => string),
): void {
  if (isOrderable(type)) return
  throw errorAt(
    context,
    owner,
    'TYPE_MISMATCH',
    `Type ${typeName(type)} is not orderable, and therefore cannot be used in ORDER BY: ${typeof text === 'string' ? text : text()}`,
  )
}

/** A sort by expressions; expressions that are not columns are computed first. */
export function sortBy(
  context: AnalysisContext,
  input: RelationNode,
  items: readonly { readonly expr: Expr; readonly descending: boolean; readonly nullsFirst: boolean }[],
): { readonly node: RelationNode; readonly keys: readonly SortKey[] } {
  const computed: ComputedColumn[] = []
  const keys = items
    .filter(({ expr }) => expr.kind !== 'constant')
    .map(({ expr, descending, nullsFirst }): SortKey => {
      if (expr.kind === 'column') return { column: expr.id, type: expr.type, descending, nullsFirst }
      const id = newId(context)
      computed.push({ id, expression: expr })
      return { column: id, type: expr.type, descending, nullsFirst }
    })
  if (keys.length === 0) return { node: input, keys }
  const node: RelationNode = computed.length === 0 ? input : { kind: 'project', input, columns: computed }
  const sort = checkedSort(context, node, keys)
  return { node: sort, keys: sort.keys }
}

/** Applies OFFSET, and LIMIT or FETCH FIRST, to rows sorted by `keys`. */
export function limited(
  context: AnalysisContext,
  query: Pick<Query, 'offset' | 'limit' | 'orderBy'>,
  input: RelationNode,
  keys: readonly SortKey[],
): RelationNode {
  const { limit } = query
  const offset = query.offset === undefined ? undefined : rowCount(context, query.offset)
  if (limit === undefined) {
    return offset === undefined ? input : { kind: 'limit', input, count: undefined, offset, ties: undefined }
  }
  if (limit.kind === 'FetchFirst') {
    if (limit.withTies && query.orderBy === undefined) {
      throw errorAt(context, limit, 'MISSING_ORDER_BY', 'FETCH FIRST WITH TIES clause requires ORDER BY')
    }
    const count = limit.rowCount === undefined ? '1' : rowCount(context, limit)
    if (count === undefined || BigInt(count) < 1n) {
      throw errorAt(
        context,
        limit,
        'NUMERIC_VALUE_OUT_OF_RANGE',
        `FETCH FIRST row count must be positive (actual value: ${count ?? 0})`,
      )
    }
    return { kind: 'limit', input, count, offset, ties: limit.withTies ? keys : undefined }
  }
  const count = rowCount(context, limit)
  if (count === undefined && offset === undefined) return input
  return { kind: 'limit', input, count, offset, ties: undefined }
}

/** The digits of a row count; undefined for ALL. */
function rowCount(context: AnalysisContext, clause: Offset | Limit | FetchFirst): string | undefined {
  const { rowCount: count } = clause
  if (count === undefined || count === 'ALL') return undefined
  if (count.kind === 'LongLiteral') return count.value
  const what = clause.kind === 'FetchFirst' ? 'FETCH FIRST' : clause.kind.toUpperCase()
  const { expr } = analyzeExpression(context, count, { fields: [], parent: undefined, boundary: true }, 'bigint')
  if (!canCoerce(expr.type, BIGINT)) {
    throw errorAt(context, count, 'TYPE_MISMATCH', `Cannot cast type ${typeName(expr.type)} to bigint`)
  }
  // While a statement is described, a parameter stands for any number of rows.
  if (expr.kind === 'constant' && expr.parameter !== undefined) return '1'
  const value = constant(expr)
  if (value === undefined) {
    throw errorAt(context, count, 'INVALID_ARGUMENTS', `Non constant parameter value for ${what}: ?`)
  }
  if (value === null)
    throw errorAt(context, count, 'INVALID_ARGUMENTS', `Parameter value provided for ${what} is NULL: ?`)
  if (BigInt(String(value)) < 0n) {
    throw errorAt(
      context,
      count,
      'NUMERIC_VALUE_OUT_OF_RANGE',
      `Parameter value provided for ${what} must be greater than or equal to 0: ${String(value)}`,
    )
  }
  return String(value)
}
