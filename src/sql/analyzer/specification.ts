import { EngineError } from '../../shared/engine-error.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Query, QuerySpecification } from '../syntax/ast-query.ts'
import { isComparable } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { filtered } from './filtering-queries.ts'
import { analyzeCondition, toBoolean } from './conditions.ts'
import { putAggregation, type Grouping, type Sourced } from './aggregation.ts'
import { columnOf } from './build.ts'
import {
  errorAt,
  newId,
  type AnalysisContext,
  type AnalyzedQuery,
  type AnalyzedRelation,
  type QueryColumn,
} from './context.ts'
import { analyzeExpression, inScope, type AnalyzedExpression } from './expressions.ts'
import { writtenCalls } from './expression-state.ts'
import { analyzeGroupBy } from './grouping.ts'
import { withWindows } from './nested-order.ts'
import { analyzeOrderBy, limited, plainNames, sortBy, verifyOrderAggregates, type SortItemAnalysis } from './order.ts'
import { analyzeRelation } from './relations.ts'
import type { Scope } from './scope.ts'
import { analyzeSelect, type SelectOutput } from './select.ts'
import type { ComputedColumn, ColumnId, Expr, SortKey } from './tree.ts'
import { childrenOfExpr, exprKey, isQuery, mapChildren, someExpr, visitColumns } from './walk.ts'
import { analyzeWindowDefinitions, extractWindows } from './windows.ts'

/** ORDER BY, OFFSET and LIMIT of the query around a SELECT. */
export type QueryTail = Pick<Query, 'orderBy' | 'offset' | 'limit'>

interface Output {
  readonly name: string | undefined
  readonly node: Expression
  readonly expr: Expr
  readonly column: ColumnId
  readonly field?: string
}

/** Analyzes SELECT … FROM … WHERE … GROUP BY … HAVING … ORDER BY …, clause by clause in Trino's order of checks. */
export function analyzeSpecification(
  context: AnalysisContext,
  spec: QuerySpecification,
  tail: QueryTail,
  queryScope: Scope,
): AnalyzedQuery {
  const from: AnalyzedRelation =
    spec.from === undefined
      ? { node: { kind: 'values', columns: [], rows: [[]] }, fields: [] }
      : analyzeRelation(context, spec.from, queryScope)
  const plainScope: Scope = { fields: from.fields, parent: queryScope, boundary: false }
  const defined = analyzeWindowDefinitions(context, spec.windows, () => inScope(context, plainScope))
  const scope: Scope = { ...plainScope, windows: defined.windows, select: spec }
  let node = from.node
  if (spec.where !== undefined) {
    node = filtered(node, analyzeCondition(context, spec.where, scope, 'WHERE clause'))
  }
  const local = new Set(from.fields.map((field) => field.column))
  const selected = analyzeSelect(context, spec, scope)
  const grouping = spec.groupBy === undefined ? undefined : analyzeGroupBy(context, spec, spec.groupBy, scope, selected)
  const having = spec.having === undefined ? undefined : analyzeHaving(context, spec.having, scope)
  const outputs = selected.map((output): Output => toOutput(context, output, local))
  if (spec.select.distinct) verifyDistinct(context, spec, outputs)

  const redundantOrder = queryScope.parent !== undefined && tail.limit === undefined && tail.offset === undefined
  const outputScope: Scope = {
    fields: outputs.map(({ name, expr, column }) => ({ name, relation: undefined, type: expr.type, column })),
    parent: scope,
    boundary: false,
  }
  const sortItems =
    tail.orderBy === undefined
      ? []
      : analyzeOrderBy(
          context,
          spec,
          tail.orderBy,
          outputScope,
          outputs.map((output) => output.expr),
        )

  if (grouping !== undefined) verifyOrderGroupings(sortItems, outputs)

  // ---- aggregation
  const analyzed = [
    ...selected.map((output) => output.analyzed),
    ...(having ? [having] : []),
    ...sortItems.flatMap((item) => item.analyzed ?? []),
  ]
  const byColumn = new Map(outputs.map((output) => [output.column, output]))
  const sorts = sortItems.map((item) => sortTarget(item, outputs, byColumn))
  let rewrite = (expr: Expr): Expr => expr
  if (grouping !== undefined || having !== undefined || analyzed.some((each) => each.aggregates.length > 0)) {
    verifyGroupings(context, spec, grouping, analyzed)
    const sourced: Sourced[] = [
      ...defined.parts,
      ...outputs,
      ...(having === undefined ? [] : [{ node: spec.having!, expr: having.expr }]),
      ...sorts.map(({ item, output, expr }) => ({
        node: item.node,
        expr: expr ?? outputs[output!]!.expr,
        verify: () => verifyOrderAggregates(context, item, outputs, local),
      })),
    ]
    const result = putAggregation(context, node, grouping ?? { keys: [], sets: undefined }, sourced, local)
    rewrite = result.rewrite
    node = result.node
    if (having !== undefined) node = filtered(node, rewrite(having.expr))
  } else {
    verifyGroupings(context, spec, undefined, analyzed)
  }

  // ---- windows, outputs, order
  const extraction = extractWindows(context)
  const finish = (expr: Expr): Expr => extraction.rewrite(rewrite(expr))
  const finished = outputs.map((output) => ({ ...output, expr: finish(output.expr) }))
  const sortExpressions = sorts.map((sort) => ({ ...sort, expr: sort.expr && finish(sort.expr) }))
  node = withWindows(context, node, extraction.columns)

  // Columns of outer queries become new columns here, so that a query's outputs are its own.
  const outer = new Set(outputs.flatMap(({ expr }) => (expr.kind === 'column' && !local.has(expr.id) ? [expr.id] : [])))
  // Queries in ORDER BY refer to outputs by the outputs' own columns.
  const asked = new Set(sortExpressions.flatMap(({ expr }) => (expr === undefined ? [] : columnsOfQueries(expr))))
  const definitions: ComputedColumn[] = []
  const columns = finished.map(({ name, expr, column }): QueryColumn => {
    if (expr.kind === 'column' && !outer.has(expr.id) && !asked.has(column))
      return { name, type: expr.type, column: expr.id }
    definitions.push({ id: column, expression: expr })
    return { name, type: expr.type, column }
  })
  if (definitions.length > 0) node = { kind: 'project', input: node, columns: definitions }
  if (spec.select.distinct) node = { kind: 'distinct', input: node, columns: distinctColumns(columns) }

  let keys: readonly SortKey[] = []
  if (tail.orderBy !== undefined && !redundantOrder) {
    const items = sortExpressions.map(({ item, output, expr }) => ({
      expr: output === undefined ? expr! : columnOf(columns[output]!.column, columns[output]!.type),
      descending: item.descending,
      nullsFirst: item.nullsFirst,
    }))
    if (spec.select.distinct) verifyDistinctOrder(context, spec, sortExpressions, outputs)
    ;({ node, keys } = sortBy(context, node, items))
  }
  node = limited(context, tail, node, keys)
  return { node, columns, ordered: tail.orderBy !== undefined && !redundantOrder }
}

function columnsOfQueries(expr: Expr): readonly ColumnId[] {
  const found: ColumnId[] = []
  if (isQuery(expr)) visitColumns(expr, (id) => found.push(id))
  return [...found, ...childrenOfExpr(expr).flatMap(columnsOfQueries)]
}

function distinctColumns(
  columns: readonly QueryColumn[],
): readonly { readonly id: ColumnId; readonly type: Expr['type'] }[] {
  return [...new Map(columns.map(({ column, type }) => [column, { id: column, type }])).values()]
}

function analyzeHaving(context: AnalysisContext, node: Expression, scope: Scope): AnalyzedExpression {
  const [window] = writtenCalls(context, node).windows
  if (window !== undefined) {
    throw errorAt(
      context,
      window,
      'NESTED_WINDOW',
      'HAVING clause cannot contain window functions or row pattern measures',
    )
  }
  const analyzed = analyzeExpression(context, node, scope)
  return { ...analyzed, expr: toBoolean(context, node, analyzed.expr, 'HAVING clause') }
}

/** A bare column of FROM keeps its id, since nothing is computed for it. */
function toOutput(
  context: AnalysisContext,
  { name, node, analyzed, field }: SelectOutput,
  local: ReadonlySet<ColumnId>,
): Output {
  const { expr } = analyzed
  const column = expr.kind === 'column' && local.has(expr.id) ? expr.id : newId(context)
  return { name, node, expr, column, ...(field === undefined ? {} : { field }) }
}

function verifyDistinct(context: AnalysisContext, spec: QuerySpecification, outputs: readonly Output[]): void {
  for (const { node, expr } of outputs) {
    if (isComparable(expr.type)) continue
    throw errorAt(
      context,
      spec,
      'TYPE_MISMATCH',
      `DISTINCT can only be applied to comparable types (actual: ${typeName(expr.type)}): ${context.print(node)}`,
    )
  }
}

interface SortTarget {
  readonly item: SortItemAnalysis
  /** The index of the output that it sorts by, if any. */
  readonly output: number | undefined
  readonly expr: Expr | undefined
}

/**
 * The target of a sort item: the output that it names or whose expression it repeats; otherwise an expression in which
 * output names stand for their expressions.
 */
function sortTarget(
  item: SortItemAnalysis,
  outputs: readonly Output[],
  byColumn: ReadonlyMap<ColumnId, Output>,
): SortTarget {
  if (item.output !== undefined || item.analyzed === undefined) return { item, output: item.output, expr: undefined }
  const { expr } = item.analyzed
  const key = exprKey(expr)
  const output = outputs.findIndex(
    (each) => (expr.kind === 'column' && each.column === expr.id) || exprKey(each.expr) === key,
  )
  if (output >= 0) return { item, output, expr: undefined }
  const resolve = (part: Expr): Expr =>
    part.kind === 'column' ? (byColumn.get(part.id)?.expr ?? part) : mapChildren(part, resolve)
  return { item, output: undefined, expr: resolve(expr) }
}

function verifyDistinctOrder(
  context: AnalysisContext,
  spec: QuerySpecification,
  sorts: readonly SortTarget[],
  outputs: readonly Output[],
): void {
  const names = new Set(outputs.map(({ name }) => name?.toLowerCase()))
  // A name inside an expression means the output, so the expression differs from the one in the select list.
  const isOther = ({ node, output }: SortItemAnalysis): boolean =>
    output === undefined &&
    node.kind !== 'Identifier' &&
    plainNames(node).some(({ value }) => names.has(value.toLowerCase()))
  const wrong = sorts.find(({ item, output, expr }) =>
    output === undefined ? someExpr(expr!, (part) => part.kind === 'column' || isQuery(part)) : isOther(item),
  )
  if (wrong === undefined) return
  throw errorAt(
    context,
    spec.select,
    'EXPRESSION_NOT_IN_DISTINCT',
    'For SELECT DISTINCT, ORDER BY expressions must appear in select list',
  )
}

/** GROUPING in ORDER BY refers to columns of FROM; it may not use names of outputs. */
function verifyOrderGroupings(items: readonly SortItemAnalysis[], outputs: readonly Output[]): void {
  const names = new Set(outputs.map((output) => output.name?.toLowerCase()))
  for (const { node } of items.flatMap((item) => item.analyzed?.groupings ?? [])) {
    if (!node.columns.some(({ parts }) => parts.length === 1 && names.has(parts[0]!.value.toLowerCase()))) continue
    throw new EngineError(
      'INVALID_ARGUMENTS',
      'Invalid reference to output of SELECT clause from grouping() expression in ORDER BY',
    )
  }
}

function verifyGroupings(
  context: AnalysisContext,
  spec: QuerySpecification,
  grouping: Grouping | undefined,
  analyzed: readonly AnalyzedExpression[],
): void {
  for (const { node, expr } of analyzed.flatMap((each) => each.groupings)) {
    if (grouping === undefined) {
      throw errorAt(
        context,
        spec,
        'MISSING_GROUP_BY',
        'A GROUPING() operation can only be used with a corresponding GROUPING SET/CUBE/ROLLUP/GROUP BY clause',
      )
    }
    const keys = new Set(grouping.keys.map(exprKey))
    expr.columns.forEach((column, i) => {
      if (column.kind === 'column' && keys.has(exprKey(column))) return
      throw errorAt(
        context,
        node,
        'INVALID_ARGUMENTS',
        `The arguments to GROUPING() must be expressions referenced by the GROUP BY at the associated query level. Mismatch due to ${node.columns[i]!.parts.map((part) => part.value).join('.')}.`,
      )
    })
  }
}
