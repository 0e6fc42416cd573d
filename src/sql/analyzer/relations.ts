import { EngineError } from '../../shared/engine-error.ts'
import { unreachable } from '../../shared/unreachable.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type {
  AliasedRelation,
  Join,
  Lateral,
  Relation,
  SampledRelation,
  TableSubquery,
  Unnest,
} from '../syntax/ast-query.ts'
import { commonSuperType } from '../types/coercion.ts'
import { BIGINT, BOOLEAN, isNumeric, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import {
  errorAt,
  locatedAt,
  newId,
  type AnalysisContext,
  type AnalyzedQuery,
  type AnalyzedRelation,
} from './context.ts'
import { castTo, columnOf, comparison, constant } from './build.ts'
import { analyzeExpression } from './expressions.ts'
import { verifyCorrelation } from './correlation.ts'
import { verifyScalar, verifyWrittenScalar } from './expression-state.ts'
import { analyzeJsonTable } from './json-table.ts'
import { analyzeRowPattern } from './row-patterns.ts'
import { uncorrelated, type Field, type Scope } from './scope.ts'
import { outerJoinWithQueries } from './outer-join-queries.ts'
import { analyzeTable } from './tables.ts'
import { analyzeTableFunction } from './table-functions.ts'
import { isQuery, someExpr } from './walk.ts'
import type { ComputedColumn, ColumnId, Expr, JoinNode, JoinType, RelationNode } from './tree.ts'

/**
 * @param scope the names that the relation can refer to: common tables, outer queries, and for LATERAL the left side
 */
export function analyzeRelation(context: AnalysisContext, relation: Relation, scope: Scope): AnalyzedRelation {
  switch (relation.kind) {
    case 'Table':
      return analyzeTable(context, relation, scope)
    case 'TableSubquery':
    case 'Lateral':
      return fromQuery(context, analyzeSubquery(context, relation, scope))
    case 'AliasedRelation':
      return analyzeAlias(context, relation, scope)
    case 'Join':
      return analyzeJoin(context, relation, scope)
    case 'Unnest':
      return analyzeUnnest(context, relation, scope)
    case 'SampledRelation':
      return analyzeSample(context, relation, scope)
    case 'TableFunctionInvocation':
      return analyzeTableFunction(context, relation, scope, (table) => analyzeRelation(context, table, scope))
    case 'JsonTable':
      return analyzeJsonTable(context, relation, scope)
    case 'PatternRecognitionRelation':
      return analyzeRowPattern(context, relation, analyzeRelation(context, relation.input, scope), scope)
    default:
      return unreachable(relation)
  }
}

function analyzeSubquery(
  context: AnalysisContext,
  { kind, query }: TableSubquery | Lateral,
  scope: Scope,
): AnalyzedQuery {
  const analyzed = context.analyzeQuery(context, query, scope)
  if (kind === 'Lateral') {
    verifyCorrelation(
      context,
      query,
      analyzed.node,
      analyzed.columns.map((column) => column.column),
      scope.outerJoin === true ? 'outer lateral' : 'lateral',
    )
  }
  return analyzed
}

/**
 * Gives each output column an id of its own, even if two show the same expression: GROUPING SETS, GROUP BY and USING
 * must distinguish them.
 */
function fromQuery(context: AnalysisContext, { node, columns }: AnalyzedQuery): AnalyzedRelation {
  const seen = new Set<ColumnId>()
  const copies: ComputedColumn[] = []
  const fields = columns.map((column): Field => {
    if (!seen.has(column.column)) {
      seen.add(column.column)
      return { ...column, relation: undefined }
    }
    const id = newId(context)
    copies.push({ id, expression: columnOf(column.column, column.type) })
    return { ...column, relation: undefined, column: id }
  })
  return { node: copies.length === 0 ? node : { kind: 'project', input: node, columns: copies }, fields }
}

function analyzeAlias(context: AnalysisContext, aliased: AliasedRelation, scope: Scope): AnalyzedRelation {
  const { node, fields } = analyzeRelation(context, aliased.relation, scope)
  const relation = [aliased.alias.value.toLowerCase()]
  const names = aliased.columnNames
  const visible = fields.filter((field) => field.hidden !== true)
  if (names !== undefined && names.length !== visible.length) {
    throw errorAt(
      context,
      aliased,
      'MISMATCHED_COLUMN_ALIASES',
      `Column alias list has ${names.length} entries but '${aliased.alias.value}' has ${visible.length} columns available`,
    )
  }
  if (names === undefined) return { node, fields: fields.map((field) => ({ ...field, relation })) }
  // As in Trino, unquoted aliases become upper case only after a table function.
  const upper = aliased.relation.kind === 'TableFunctionInvocation'
  const shown = ({ value, quoted }: Identifier): string => (upper && !quoted ? value.toUpperCase() : value)
  return { node, fields: visible.map((field, i) => ({ ...field, relation, name: shown(names[i]!) })) }
}

function analyzeJoin(context: AnalysisContext, join: Join, scope: Scope): AnalyzedRelation {
  if (join.criteria?.kind === 'NaturalJoin') {
    throw errorAt(context, join, 'NOT_SUPPORTED', 'Natural join not supported')
  }
  const left = analyzeRelation(context, join.left, scope)
  const bare = withoutAliases(join.right)
  const lateral = bare.kind === 'Lateral' || bare.kind === 'Unnest' || bare.kind === 'JsonTable'
  const rightScope: Scope = lateral ? lateralScope(left.fields, scope, join, bare) : scope
  const right = analyzeRelation(context, join.right, rightScope)
  if (lateral) verifyLateralJoin(context, join, bare, right)

  const type = joinType(join)
  const both = [...left.fields, ...right.fields]
  const node = (condition: Expr | undefined): JoinNode => ({
    kind: 'join',
    type,
    lateral,
    left: left.node,
    right: right.node,
    condition,
  })
  if (join.criteria === undefined) return { node: node(undefined), fields: both }
  if (join.criteria.kind === 'JoinUsing')
    return analyzeUsing(context, join.criteria.columns, { type, left, right, node })

  const { expression } = join.criteria
  const onScope: Scope = { fields: both, parent: scope, boundary: false }
  verifyWrittenScalar(context, expression, 'JOIN clause')
  const analyzed = analyzeExpression(
    context,
    expression,
    join.type === 'INNER' ? onScope : { ...onScope, refused: uncorrelated },
  )
  let condition = analyzed.expr
  if (condition.type.kind === 'unknown') condition = castTo(condition, BOOLEAN)
  if (condition.type.kind !== 'boolean') {
    throw errorAt(
      context,
      expression,
      'TYPE_MISMATCH',
      `JOIN ON clause must evaluate to a boolean: actual type ${typeName(condition.type)}`,
    )
  }
  verifyScalar(context, expression, analyzed, 'JOIN clause')
  if ((type === 'left' || type === 'right' || type === 'full') && !lateral && someExpr(condition, isQuery)) {
    const [l, r] = [sideOf(left), sideOf(right)]
    return { node: outerJoinWithQueries(context, type, condition, l, r), fields: both }
  }
  if (lateral && (type === 'right' || type === 'full')) return outerLateral(context, node(condition), left, right)
  return { node: node(condition), fields: both }
}

/**
 * RIGHT and FULL joins of LATERAL or UNNEST run per row of the left side, as in Trino: the right side's rows appear
 * once per left row, and not at all if the left side is empty. FULL is allowed only with ON TRUE.
 */
function outerLateral(
  context: AnalysisContext,
  join: JoinNode,
  left: AnalyzedRelation,
  right: AnalyzedRelation,
): AnalyzedRelation {
  const every: JoinNode = { ...join, type: join.type === 'full' ? 'left' : 'cross', condition: undefined }
  const { condition } = join
  if (condition === undefined || constant(condition) === true)
    return { node: every, fields: [...left.fields, ...right.fields] }
  const matches = newId(context)
  const columns: ComputedColumn[] = []
  const fields = left.fields.map((field): Field => {
    const value: Expr = {
      kind: 'case',
      type: field.type,
      branches: [{ when: columnOf(matches, BOOLEAN), then: columnOf(field.column, field.type) }],
      otherwise: undefined,
    }
    const id = newId(context)
    columns.push({ id, expression: value })
    return { ...field, column: id }
  })
  const matched: RelationNode = { kind: 'project', input: every, columns: [{ id: matches, expression: condition }] }
  return { node: { kind: 'project', input: matched, columns }, fields: [...fields, ...right.fields] }
}

function sideOf({ node, fields }: AnalyzedRelation): { node: RelationNode; columns: ReadonlySet<ColumnId> } {
  return { node, columns: new Set(fields.map((field) => field.column)) }
}

/**
 * The scope of LATERAL and UNNEST on the right side. In RIGHT and FULL joins, names of the left side are known but
 * refused.
 */
function lateralScope(fields: readonly Field[], parent: Scope, join: Join, bare: Relation): Scope {
  const outerJoin = join.type !== 'CROSS' && join.type !== 'IMPLICIT' && join.type !== 'INNER'
  const scope: Scope = { fields, parent, boundary: bare.kind === 'Lateral', outerJoin }
  if (join.type !== 'RIGHT' && join.type !== 'FULL') return scope
  const message = `LATERAL reference not allowed in ${join.type} JOIN`
  return { ...scope, refused: { within: 'everywhere', errorName: 'INVALID_COLUMN_REFERENCE', message } }
}

function withoutAliases(relation: Relation): Relation {
  return relation.kind === 'AliasedRelation' ? withoutAliases(relation.relation) : relation
}

function joinType(join: Join): JoinType {
  switch (join.type) {
    case 'CROSS':
    case 'IMPLICIT':
      return 'cross'
    case 'INNER':
      return 'inner'
    case 'LEFT':
      return 'left'
    case 'RIGHT':
      return 'right'
    case 'FULL':
      return 'full'
    default:
      return unreachable(join.type)
  }
}

function verifyLateralJoin(context: AnalysisContext, join: Join, bare: Relation, right: AnalyzedRelation): void {
  const { criteria } = join
  if (criteria === undefined) return
  const what = bare.kind === 'Unnest' ? 'UNNEST' : bare.kind === 'JsonTable' ? 'JSON_TABLE' : 'LATERAL relation'
  const constantTrue =
    criteria.kind === 'JoinOn' && criteria.expression.kind === 'BooleanLiteral' && criteria.expression.value
  if (constantTrue) return
  if (bare.kind === 'Lateral' && criteria.kind === 'JoinOn' && join.type !== 'FULL') {
    const columns = right.fields.map((field) => field.column)
    verifyCorrelation(context, bare.query, right.node, columns, 'joined')
    return
  }
  throw errorAt(
    context,
    criteria.kind === 'JoinOn' ? criteria.expression : join,
    'NOT_SUPPORTED',
    `${join.type} JOIN involving ${what} is only supported with condition ON TRUE`,
  )
}

/** The sides of a join, and a function that builds the join from its condition. */
interface Joined {
  readonly type: JoinType
  readonly left: AnalyzedRelation
  readonly right: AnalyzedRelation
  readonly node: (condition: Expr) => JoinNode
}

/** The columns of USING come first, once, without a relation; the other columns of both sides follow. */
function analyzeUsing(
  context: AnalysisContext,
  names: readonly Identifier[],
  { type, left, right, node }: Joined,
): AnalyzedRelation {
  const used = new Set<Field>()
  const seen = new Set<string>()
  const conditions: Expr[] = []
  const merged: { readonly field: Field; readonly expression: Expr | undefined }[] = []
  for (const name of names) {
    if (seen.has(name.value.toLowerCase())) {
      throw errorAt(
        context,
        name,
        'DUPLICATE_COLUMN_NAME',
        `Column '${name.value}' appears multiple times in USING clause`,
      )
    }
    seen.add(name.value.toLowerCase())
    const l = onlyField(context, name, left, 'left')
    const r = onlyField(context, name, right, 'right')
    used.add(l).add(r)
    const common = commonSuperType(l.type, r.type)
    if (common === undefined) {
      throw errorAt(context, name, 'TYPE_MISMATCH', `Cannot apply operator: ${typeName(l.type)} = ${typeName(r.type)}`)
    }
    const leftValue = castTo(columnOf(l.column, l.type), common)
    const rightValue = castTo(columnOf(r.column, r.type), common)
    conditions.push(locatedAt(context, name, () => comparison('=', leftValue, rightValue)))
    const value: Expr =
      type === 'full'
        ? { kind: 'coalesce', type: common, operands: [leftValue, rightValue] }
        : type === 'right'
          ? rightValue
          : leftValue
    const plain = value.kind === 'column' ? value.id : undefined
    merged.push({
      field: { name: name.value, relation: undefined, type: common, column: plain ?? newId(context) },
      expression: plain === undefined ? value : undefined,
    })
  }
  const join = node(conditions.length === 1 ? conditions[0]! : { kind: 'and', type: BOOLEAN, terms: conditions })
  const columns = merged.flatMap(({ field, expression }) =>
    expression === undefined ? [] : [{ id: field.column, expression }],
  )
  return {
    node: columns.length === 0 ? join : { kind: 'project', input: join, columns },
    fields: [
      ...merged.map(({ field }) => field),
      ...left.fields.filter((field) => !used.has(field)),
      ...right.fields.filter((field) => !used.has(field)),
    ],
  }
}

function onlyField(context: AnalysisContext, name: Identifier, { fields }: AnalyzedRelation, side: string): Field {
  const matches = fields.filter((field) => field.name?.toLowerCase() === name.value.toLowerCase())
  if (matches.length > 1) throw errorAt(context, name, 'AMBIGUOUS_NAME', `Column '${name.value}' is ambiguous`)
  if (matches[0] === undefined) {
    throw errorAt(context, name, 'COLUMN_NOT_FOUND', `Column '${name.value}' is missing from ${side} side of join`)
  }
  return matches[0]
}

function analyzeUnnest(context: AnalysisContext, unnest: Unnest, scope: Scope): AnalyzedRelation {
  const fields: Field[] = []
  const add = (type: SqlType, name?: string): number => {
    const column = newId(context)
    fields.push({ name, relation: undefined, type, column })
    return column
  }
  const args = unnest.expressions.map((expression) => {
    verifyWrittenScalar(context, expression, 'UNNEST')
    const analyzed = analyzeExpression(context, expression, scope)
    verifyScalar(context, expression, analyzed, 'UNNEST')
    const value = analyzed.expr
    const { type } = value
    switch (type.kind) {
      case 'array':
        return {
          value,
          columns:
            type.element.kind === 'row'
              ? type.element.fields.map((field) => add(field.type, field.name))
              : [add(type.element)],
        }
      case 'map':
        return { value, columns: [add(type.key), add(type.value)] }
      default:
        throw new EngineError('INVALID_FUNCTION_ARGUMENT', `Cannot unnest type: ${typeName(type)}`)
    }
  })
  const ordinality = unnest.withOrdinality ? add(BIGINT) : undefined
  return { node: { kind: 'unnest', arguments: args, ordinality }, fields }
}

function analyzeSample(context: AnalysisContext, sampled: SampledRelation, scope: Scope): AnalyzedRelation {
  const input = analyzeRelation(context, sampled.relation, scope)
  const node = sampled.samplePercentage
  const analyzed = analyzeExpression(
    context,
    node,
    scope.fields.length > 0 ? scope : { ...scope, fields: input.fields },
  )
  if (usesColumns(analyzed.expr)) {
    throw errorAt(context, node, 'EXPRESSION_NOT_CONSTANT', 'Sample percentage cannot contain column references')
  }
  if (!isNumeric(analyzed.expr.type)) {
    throw errorAt(context, node, 'TYPE_MISMATCH', 'Sample percentage should be a numeric expression')
  }
  const value = constant(analyzed.expr)
  if (value === undefined || value === null) {
    throw errorAt(context, node, 'INVALID_ARGUMENTS', 'Sample percentage cannot be NULL')
  }
  const percentage = Number(value)
  if (!(percentage >= 0)) {
    throw errorAt(context, node, 'NUMERIC_VALUE_OUT_OF_RANGE', 'Sample percentage must be greater than or equal to 0')
  }
  if (percentage > 100) {
    throw errorAt(context, node, 'NUMERIC_VALUE_OUT_OF_RANGE', 'Sample percentage must be less than or equal to 100')
  }
  return {
    node: { kind: 'sample', input: input.node, percentage, system: sampled.type === 'SYSTEM' },
    fields: input.fields,
  }
}

function usesColumns(expr: Expr): boolean {
  return someExpr(expr, (part) => part.kind === 'column')
}
