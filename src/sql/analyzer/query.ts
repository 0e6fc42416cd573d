import { unreachable } from '../../shared/unreachable.ts'
import type { Query, QueryBody, Values } from '../syntax/ast-query.ts'
import { commonSuperType } from '../types/coercion.ts'
import { anonymousRow, array, row, type RowType, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, columnOf } from './build.ts'
import { analyzeWith } from './common-tables.ts'
import { errorAt, newId, noteRead, type AnalysisContext, type AnalyzedQuery, type QueryColumn } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import { verifyScalar } from './expression-state.ts'
import { declareFunctions } from './declare-functions.ts'
import { analyzeOrderBy, limited, sortBy } from './order.ts'
import { analyzeRelation } from './relations.ts'
import type { Scope } from './scope.ts'
import { analyzeSetOperation } from './set-operations.ts'
import { analyzeSpecification } from './specification.ts'
import { LONG_LIST, literalsOf } from './literal-arrays.ts'
import type { ArraysNode, Expr, RelationNode, SortKey, ValuesNode } from './tree.ts'
import { isVolatile, someNode, type TreeNode } from './walk.ts'

/**
 * Analyzes a whole query. @param outer the enclosing scope: that of the statement around a subquery, or of the left
 * side for LATERAL; undefined at the top
 */
export function analyzeQuery(context: AnalysisContext, query: Query, outer: Scope | undefined): AnalyzedQuery {
  if (query.functions.length > 0) {
    return analyzeQuery(declareFunctions(context, query.functions), { ...query, functions: [] }, outer)
  }
  const plain: Scope = { fields: [], parent: outer, boundary: true }
  if (query.with === undefined) return analyzeBody(context, query, plain)
  const { tables, scope } = analyzeWith(context, query.with, plain)
  const analyzed = analyzeBody(context, query, scope)
  return { ...analyzed, node: { kind: 'with', tables, body: analyzed.node } }
}

function analyzeBody(context: AnalysisContext, query: Query, scope: Scope): AnalyzedQuery {
  const { body } = query
  if (body.kind === 'QuerySpecification') return analyzeSpecification(context, body, query, scope)
  const analyzed = analyzeQueryBody(context, body, scope)
  const { columns } = analyzed
  let node: RelationNode = analyzed.node
  let keys: readonly SortKey[] = []
  const redundant = scope.parent !== undefined && query.limit === undefined && query.offset === undefined
  if (query.orderBy !== undefined) {
    const orderScope: Scope = { fields: fieldsOf(columns), parent: scope, boundary: false }
    const items = analyzeOrderBy(context, query, query.orderBy, orderScope, columns)
    const targets = items.map(({ node: sortNode, output, analyzed: item, descending, nullsFirst }) => {
      if (item !== undefined) verifyScalar(context, sortNode, item, 'ORDER BY clause')
      const expr = output === undefined ? item!.expr : columnOf(columns[output]!.column, columns[output]!.type)
      return { expr, descending, nullsFirst }
    })
    if (!redundant) ({ node, keys } = sortBy(context, node, targets))
  }
  node = limited(context, query, node, keys)
  return { node, columns, ordered: query.orderBy !== undefined && !redundant }
}

function fieldsOf(columns: readonly QueryColumn[]): Scope['fields'] {
  return columns.map((column) => ({ ...column, relation: undefined }))
}

/** Analyzes an operand of a set operation, or a whole query without ORDER BY, OFFSET and LIMIT. */
function analyzeQueryBody(context: AnalysisContext, body: QueryBody, scope: Scope): AnalyzedQuery {
  switch (body.kind) {
    case 'QuerySpecification':
      return analyzeSpecification(context, body, { orderBy: undefined, offset: undefined, limit: undefined }, scope)
    case 'SetOperation':
      return analyzeSetOperation(context, body, (operand) => analyzeQueryBody(context, operand, scope))
    case 'Values':
      return analyzeValues(context, body, scope)
    case 'TableSubquery':
      return context.analyzeQuery(context, body.query, scope)
    case 'Table': {
      const { node, fields } = analyzeRelation(context, body, scope)
      const columns = fields.filter((field) => field.hidden !== true)
      noteRead(context, columns)
      return { node, columns, ordered: false }
    }
    default:
      return unreachable(body)
  }
}

function analyzeValues(context: AnalysisContext, values: Values, scope: Scope): AnalyzedQuery {
  const rows = values.rows.map((expression) => {
    return analyzeExpression(context, expression, scope).expr
  })
  const rowTypes = rows.map((expr): RowType => (expr.type.kind === 'row' ? expr.type : anonymousRow([expr.type])))
  const first = rowTypes[0]!
  let common: SqlType = first
  for (const type of rowTypes) {
    if (type.fields.length !== first.fields.length) {
      throw errorAt(
        context,
        values,
        'TYPE_MISMATCH',
        `Values rows have mismatched sizes: ${first.fields.length} vs ${type.fields.length}`,
      )
    }
    const next = commonSuperType(common, type)
    if (next === undefined) {
      throw errorAt(
        context,
        values,
        'TYPE_MISMATCH',
        `Values rows have mismatched types: ${typeName(first)} vs ${typeName(type)}`,
      )
    }
    common = next
  }
  const types = (common as RowType).fields.map((field) => field.type)
  const columns = types.map((type) => ({ id: newId(context), type }))
  return {
    node: valuesNode(
      columns,
      rows.map((expr) => rowItems(expr, types)),
    ),
    columns: columns.map(({ id, type }) => ({ name: undefined, type, column: id })),
    ordered: false,
  }
}

function valuesNode(columns: ValuesNode['columns'], rows: ValuesNode['rows']): ValuesNode | ArraysNode {
  return arraysNode(columns, rows) ?? { kind: 'values', columns, rows }
}

/**
 * Stores long VALUES of constants by column. Other columns become arrays too, if their items are independent of rows.
 */
function arraysNode(columns: ValuesNode['columns'], rows: ValuesNode['rows']): ArraysNode | undefined {
  if (rows.length < LONG_LIST) return undefined
  const arrays: Expr[] = []
  let found = false
  for (const [i, { type }] of columns.entries()) {
    const items = rows.map((row) => row[i]!)
    const literals = literalsOf(type, items)
    if (!literals && !items.every(isAlone)) return undefined
    found ||= literals !== undefined
    arrays.push(literals ?? { kind: 'array', type: array(type), items })
  }
  return found ? { kind: 'arrays', columns, rowCount: rows.length, arrays } : undefined
}

/** Whether an expression reads no rows and has a single value. */
function isAlone(expr: Expr): boolean {
  return !isVolatile(expr) && !someNode(expr, (node) => node.kind === 'column' || isQueryNode(node))
}

function isQueryNode({ kind }: TreeNode): boolean {
  return kind === 'scalarSubquery' || kind === 'exists' || kind === 'inSubquery' || kind === 'quantified'
}

/** The values of one row, each converted to its column's type. */
function rowItems(expr: Expr, types: readonly SqlType[]): readonly Expr[] {
  if (expr.kind === 'row') return expr.items.map((item, i) => castTo(item, types[i]!))
  if (expr.type.kind !== 'row') return [castTo(expr, types[0]!)]
  const whole = castTo(expr, row(expr.type.fields.map((field, i) => ({ name: field.name, type: types[i]! }))))
  return types.map((type, index): Expr => ({ kind: 'field', type, base: whole, index }))
}
