import type {
  ExistsPredicate,
  Expression,
  FunctionCall,
  InPredicate,
  QuantifiedComparisonExpression,
  SubqueryExpression,
} from '../syntax/ast.ts'
import type { EngineError } from '../../shared/engine-error.ts'
import type { Span } from '../syntax/span.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import { isNested } from '../functions/comparison.ts'
import { commonSuperType } from '../types/coercion.ts'
import {
  anonymousRow,
  BIGINT,
  BOOLEAN,
  isComparable,
  isFloating,
  isOrderable,
  row,
  type SqlType,
} from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { aggregateOf, castTo, columnOf, comparison, constantOf, letIn } from './build.ts'
import { verifyCorrelation, type SubqueryPosition } from './correlation.ts'
import { errorAt, newId, type ExpressionState } from './context.ts'
import type { Field } from './scope.ts'
import type { Expr, QuantifiedExpr, Subquery } from './tree.ts'

interface AnalyzedSubquery extends Subquery {
  /** The names of its columns. */
  readonly names: readonly (string | undefined)[]
  /** Whether the subquery reads columns of the outer query. */
  readonly correlated: boolean
}

/** @param read whether the columns of the query are read; EXISTS does not read them */
function analyzeSubquery(
  state: ExpressionState,
  node: SubqueryExpression,
  {
    read = true,
    position = 'value',
    at = node.query,
  }: { readonly read?: boolean; readonly position?: SubqueryPosition; readonly at?: { readonly span: Span } } = {},
): AnalyzedSubquery {
  if (state.lambda !== undefined) {
    throw errorAt(state.context, node, 'NOT_SUPPORTED', 'Lambda expression cannot contain subqueries')
  }
  state.found.subqueries.push(node)
  const { node: relation, columns } = state.context.analyzeQuery(state.context, node.query, state.scope)
  const outputs = read ? columns.map((column) => column.column) : []
  const correlated = verifyCorrelation(state.context, at, relation, outputs, position)
  return {
    node: relation,
    columns: columns.map(({ column, type }) => ({ id: column, type })),
    names: columns.map((column) => column.name),
    correlated,
  }
}

/** The type of a subquery's result: its only column, or a row of all columns. */
function resultType(query: Subquery): SqlType {
  return query.columns.length === 1 ? query.columns[0]!.type : anonymousRow(query.columns.map((column) => column.type))
}

export function analyzeScalarSubquery(state: ExpressionState, node: SubqueryExpression): Expr {
  const query = analyzeSubquery(state, node)
  const { columns } = query
  if (columns.length === 1) return { kind: 'scalarSubquery', type: resultType(query), query: asOneColumn(state, query) }
  const type = row(columns.map((column, i) => ({ name: query.names[i], type: column.type })))
  const found: Expr = { kind: 'scalarSubquery', type, query: asOneColumn(state, query, type) }
  if (query.correlated) return found
  // As in Trino, a query without rows gives a row of NULLs, not NULL.
  const none: Expr = { kind: 'row', type, items: columns.map((column) => constantOf(column.type, null)) }
  return { kind: 'coalesce', type, operands: [found, none] }
}

export function analyzeExists(state: ExpressionState, node: ExistsPredicate): Expr {
  return {
    kind: 'exists',
    type: BOOLEAN,
    query: analyzeSubquery(state, node.subquery, { read: false, position: 'rows', at: node }),
  }
}

function asOneColumn(state: ExpressionState, query: Subquery, wanted: SqlType = resultType(query)): Subquery {
  const [only, ...others] = query.columns
  const items = query.columns.map((column) => columnOf(column.id, column.type))
  const value: Expr =
    others.length === 0 && only !== undefined
      ? columnOf(only.id, only.type)
      : { kind: 'row', type: anonymousRow(items.map((item) => item.type)), items }
  const cast = castTo(value, wanted)
  if (cast.kind === 'column') return { node: query.node, columns: [{ id: cast.id, type: cast.type }] }
  const id = newId(state.context)
  return {
    node: { kind: 'project', input: query.node, columns: [{ id, expression: cast }] },
    columns: [{ id, type: wanted }],
  }
}

/** `value` and the query's column, converted to their common type. */
function comparedWith(
  state: ExpressionState,
  at: Expression,
  value: Expr,
  query: Subquery,
): { readonly value: Expr; readonly query: Subquery; readonly type: SqlType } {
  const result = resultType(query)
  // A row is compared with the query's columns, never with a single column that is itself a row.
  const nested = result.kind === 'row' && query.columns.length === 1
  if (value.type.kind === 'row' && value.type.fields.length === 1 && query.columns.length === 1 && !nested) {
    // A row with one field is compared with the query's only column.
    const only: Expr = { kind: 'field', type: value.type.fields[0]!.type, base: value, index: 0 }
    return comparedWith(state, at, only, query)
  }
  const common = sameShape(value.type, result) && !nested ? commonSuperType(value.type, result) : undefined
  if (common === undefined) {
    const shown = (type: SqlType, isRow: boolean): string => typeName(isRow ? type : anonymousRow([type]))
    throw errorAt(
      state.context,
      at,
      'TYPE_MISMATCH',
      `Value expression and result of subquery must be of the same type: ${shown(value.type, value.type.kind === 'row')} vs ${shown(result, query.columns.length > 1)}`,
    )
  }
  return { value: castTo(value, common), query: asOneColumn(state, query, common), type: common }
}

function sameShape(value: SqlType, result: SqlType): boolean {
  return (value.kind === 'row') === (result.kind === 'row') || value.kind === 'unknown' || result.kind === 'unknown'
}

const ofTheMatch = new Set(['first', 'last', 'prev', 'next', 'classifier', 'match_number'])

/** Refuses IN with a subquery in a row pattern if its value reads a label or uses a function of the match. */
function verifyOutsideOfMatch(state: ExpressionState, value: AnyNode): void {
  if (state.context.patternCall === undefined) return
  const refuse = (what: string): EngineError =>
    errorAt(state.context, value, 'NOT_SUPPORTED', `IN-PREDICATE with ${what} is not yet supported`)
  if (value.kind === 'DereferenceExpression') {
    const expr = state.analyze(value as Expression)
    const labelled = (field: Field): boolean =>
      field.qualified === true && expr.kind === 'column' && field.column === expr.id
    if (state.scope.fields.some(labelled)) throw refuse('labeled column reference')
  }
  if (value.kind === 'FunctionCall') {
    const name = (value as FunctionCall).name.parts.at(-1)!.value.toLowerCase()
    if (ofTheMatch.has(name)) throw refuse(`${name} function`)
  }
  for (const child of childrenOf(value)) verifyOutsideOfMatch(state, child)
}

export function analyzeInSubquery(
  state: ExpressionState,
  node: InPredicate,
  valueNode: Expression,
  subquery: SubqueryExpression,
): Expr {
  verifyOutsideOfMatch(state, valueNode)
  const value = state.analyze(valueNode)
  const query = analyzeSubquery(state, subquery, { position: 'in', at: node })
  const compared = comparedWith(state, node, value, query)
  if (!isComparable(compared.type)) {
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      `Type [${typeName(anonymousRow([compared.type]))}] must be comparable in order to be used in IN predicate`,
    )
  }
  const rows = query.correlated ? equalToThemselves(compared.query, compared.value) : compared.query
  return { kind: 'inSubquery', type: BOOLEAN, value: compared.value, query: rows }
}

/**
 * The query without values that are not equal to themselves under `=`. Trino's semi join finds NaN, and NULL inside
 * rows, arrays and maps; an equality does not. Trino's planner turns IN into a join by equality if the query is
 * correlated, or if all rows of the result must satisfy the condition.
 * @param value the left side of IN; if it is NULL, the result is NULL for any values, so all of them stay
 */
function equalToThemselves(query: Subquery, value?: Expr): Subquery {
  const [{ id, type }] = query.columns as readonly [Subquery['columns'][number]]
  if (!isFloating(type) && type.kind !== 'row' && type.kind !== 'array' && type.kind !== 'map') return query
  const own = columnOf(id, type)
  const maybeNull = value?.kind === 'column' || (value?.kind === 'cast' && value.value.kind === 'column')
  const terms: readonly Expr[] = [
    { kind: 'compare', type: BOOLEAN, operator: '=', left: own, right: own },
    { kind: 'isNull', type: BOOLEAN, value: own },
    ...(maybeNull ? [{ kind: 'isNull', type: BOOLEAN, value } as const] : []),
  ]
  return { ...query, node: { kind: 'filter', input: query.node, predicate: { kind: 'or', type: BOOLEAN, terms } } }
}

/** A condition's term as Trino's planner compares it if rows that fail it are dropped. */
export function joinedByEquality(term: Expr): Expr {
  if (term.kind === 'not' && term.value.kind === 'not') return joinedByEquality(term.value.value)
  const isJoined = term.kind === 'inSubquery' || (term.kind === 'quantified' && term.operator === '=' && !term.all)
  return isJoined ? { ...term, query: equalToThemselves(term.query) } : term
}

export function analyzeQuantified(state: ExpressionState, node: QuantifiedComparisonExpression): Expr {
  const value = state.analyze(node.value)
  const isIn = node.operator === '=' ? node.quantifier !== 'ALL' : node.operator === '<>' && node.quantifier === 'ALL'
  const subquery = analyzeSubquery(state, node.subquery, isIn ? { position: 'in', at: node } : { position: 'rows' })
  const { type, ...compared } = comparedWith(state, node, value, subquery)
  const query = isIn && subquery.correlated ? equalToThemselves(compared.query, compared.value) : compared.query
  const ordered = node.operator !== '=' && node.operator !== '<>'
  if (!(ordered ? isOrderable(type) : isComparable(type))) {
    throw errorAt(
      state.context,
      node,
      'TYPE_MISMATCH',
      `Type [${typeName(anonymousRow([type]))}] must be ${ordered ? 'orderable' : 'comparable'} in order to be used in quantified comparison`,
    )
  }
  const all = node.quantifier === 'ALL'
  if (!isIn && (isFloating(type) || (!ordered && isOrderedScalar(type)))) {
    return byBounds(state, node.operator, all, compared.value, query)
  }
  return { kind: 'quantified', type: BOOLEAN, operator: node.operator, all, ...compared, query }
}

/**
 * Whether a type has an order and is not an array, row or map. NULL inside those makes a comparison fail, so their
 * values are compared one by one.
 */
function isOrderedScalar(type: SqlType): boolean {
  return isOrderable(type) && !isNested(type) && type.kind !== 'unknown'
}

/**
 * A comparison with all values of a query, including NaN, as Trino's planner makes it: with the minimum or maximum,
 * which is NaN only if there are no other values. `<> ANY` is not `= ALL`, which is also false for NULL if the values
 * differ.
 */
function byBounds(
  state: ExpressionState,
  operator: QuantifiedExpr['operator'],
  all: boolean,
  value: Expr,
  { node, columns: [only] }: Subquery,
): Expr {
  if (operator === '<>') {
    return { kind: 'not', type: BOOLEAN, value: byBounds(state, '=', true, value, { node, columns: [only!] }) }
  }
  const column = columnOf(only!.id, only!.type)
  const aggregates = [
    aggregateOf('min', [column], undefined),
    aggregateOf('max', [column], undefined),
    aggregateOf('count', [], undefined),
    aggregateOf('count', [column], undefined),
  ].map((call) => ({ id: newId(state.context), call }))
  const items = aggregates.map(({ id, call }) => columnOf(id, call.type))
  const type = anonymousRow(items.map((item) => item.type))
  const id = newId(state.context)
  const found: Expr = {
    kind: 'scalarSubquery',
    type,
    query: {
      node: {
        kind: 'project',
        input: { kind: 'aggregate', input: node, keys: [], sets: undefined, aggregates, groupings: [] },
        columns: [{ id, expression: { kind: 'row', type, items } }],
      },
      columns: [{ id, type }],
    },
  }
  return letIn(newId(state.context), found, (bounds) => {
    const [least, greatest, rows, values] = items.map((item, index): Expr => ({
      kind: 'field',
      type: item.type,
      base: bounds,
      index,
    })) as [Expr, Expr, Expr, Expr]
    const bound = (operator === '<' || operator === '<=') === all ? least : greatest
    const compared =
      operator === '='
        ? [comparison('=', least, greatest), comparison('=', value, greatest)]
        : [comparison(operator, value, bound)]
    const ofNone = constantOf(BOOLEAN, all)
    const unknown = {
      kind: 'case',
      type: BOOLEAN,
      branches: [{ when: comparison('<>', rows, values), then: constantOf(BOOLEAN, null) }],
      otherwise: ofNone,
    } as const
    return {
      kind: 'case',
      type: BOOLEAN,
      branches: [{ when: comparison('=', rows, constantOf(BIGINT, '0')), then: ofNone }],
      otherwise: { kind: all ? 'and' : 'or', type: BOOLEAN, terms: [...compared, unknown] },
    }
  })
}
