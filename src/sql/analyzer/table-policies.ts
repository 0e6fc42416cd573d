import { EngineError, type ErrorName } from '../../shared/engine-error.ts'
import type { RuleExpression } from '../../shared/object-rights.ts'
import type { ObjectName } from '../access-control.ts'
import type { Expression } from '../syntax/ast.ts'
import { parseExpressionText } from '../syntax/parser.ts'
import { textOrigin, type Span } from '../syntax/span.ts'
import { canCoerce } from '../types/coercion.ts'
import { BOOLEAN, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, constantOf } from './build.ts'
import { errorAt, newId, type AnalysisContext, type AnalyzedRelation } from './context.ts'
import { analyzeExpression } from './expressions.ts'
import { engineCall, textConstant } from './json-functions.ts'
import type { Field, Scope } from './scope.ts'
import type { ColumnId, ComputedColumn, Expr, RelationNode } from './tree.ts'
import { collectDefined, visitColumns, visitStatementColumns } from './walk.ts'

/**
 * A table or view as the current user may see it: the row filter removes rows, column masks replace columns. Rights to
 * read are checked at the end (`checkReads`), after errors in the statement itself.
 * Source: Trino 476, StatementAnalyzer.analyzeFiltersAndMasks.
 */
export function withPolicies(
  context: AnalysisContext,
  node: { readonly span: Span },
  name: ObjectName,
  relation: AnalyzedRelation,
  names: readonly RuleNames[] = relation.fields.map(({ name: own }) => ({ inRules: own, all: [own!] })),
): AnalyzedRelation {
  const { access } = context
  if (access === undefined) return relation
  const policies = access.policies(name)
  const seen = policies === undefined ? relation : behindBarrier(context, node, name, relation, policies, { names })
  // If the column had another name, the user needs the rights on both names.
  for (let i = 0; names.some(({ all }) => i < all.length); i++) {
    const columns = new Map(seen.fields.map(({ column }, at) => [column, names[at]!.all[i] ?? names[at]!.all[0]!]))
    context.named.push({ access, name, columns, read: context.read })
  }
  return seen
}

/** The names under which access rules on a table find one of its columns. */
export interface RuleNames {
  /** The name of the column in expressions of the rules; undefined if no name reaches it. */
  readonly inRules: string | undefined
  /** A mask or a restriction on any of these names applies to the column. The first name has precedence. */
  readonly all: readonly string[]
}

/**
 * The rows of a table that the current user may see, for a statement that changes them. This needs no right to read the
 * table, neither for the kept columns nor for the row filter; see `noteTargetReads` for columns in the statement.
 */
export function withRowFilter(
  context: AnalysisContext,
  node: { readonly span: Span },
  name: ObjectName,
  relation: AnalyzedRelation,
): AnalyzedRelation {
  const filter = context.access?.policies(name)?.filter
  return filter === undefined
    ? relation
    : behindBarrier(context, node, name, relation, { filter, masks: new Map() }, { checked: false })
}

/**
 * Notes the columns of a changed table that the statement itself reads, for `checkReads`. A user learns what is stored
 * there from a condition or a value with such a column.
 * Source: Trino 476, StatementAnalyzer.visitDelete, visitUpdate and visitMerge; TestAccessControl.testUpdateAccessControl.
 * @param expressions the conditions and values in the statement's text, without columns that are only kept
 */
export function noteTargetReads(
  context: AnalysisContext,
  { name, fields }: Pick<AnalyzedRelation, 'fields'> & { readonly name: ObjectName },
  expressions: readonly (Expr | undefined)[],
): void {
  const { access } = context
  if (access === undefined) return
  // The text names some columns that are not in the expressions, such as columns in the SELECT of an EXISTS.
  const read = new Set(context.read)
  for (const expression of expressions) if (expression) visitColumns(expression, (id) => read.add(id))
  const columns = namesOf({ fields })
  if ([...columns.keys()].some((id) => read.has(id))) context.named.push({ access, name, columns, read })
}

function behindBarrier(
  context: AnalysisContext,
  node: { readonly span: Span },
  name: ObjectName,
  relation: AnalyzedRelation,
  { filter, masks }: NonNullable<ReturnType<NonNullable<AnalysisContext['access']>['policies']>>,
  { names, checked = true }: { readonly names?: readonly RuleNames[]; readonly checked?: boolean },
): AnalyzedRelation {
  const scope = scopeOfRules(relation.fields, names)
  const expression = (kind: RuleKind, rule: RuleExpression, type: SqlType, within: Scope, column?: string): Expr =>
    analyzeRule(context, { node, name, kind, rule, type, column, checked }, within)
  const where = filter === undefined ? undefined : expression('row filter', filter, BOOLEAN, scope)
  const masked = new Map<ColumnId, ComputedColumn>()
  for (const [at, { name: own, column, type }] of relation.fields.entries()) {
    const field = (names?.[at]?.all ?? [own!]).find((one) => masks.has(one.toLowerCase()))
    if (field === undefined) continue
    const within = names === undefined ? scope : scopeOfRules(relation.fields, renamed(names, at, field))
    const mask = expression('column mask', masks.get(field.toLowerCase())!, type, within, field)
    masked.set(column, { id: newId(context), expression: mask })
  }
  const filtered: RelationNode =
    where === undefined ? relation.node : { kind: 'filter', input: relation.node, predicate: where }
  const columns = [...masked.values()]
  return {
    node: {
      kind: 'barrier',
      input: columns.length === 0 ? filtered : { kind: 'project', input: filtered, columns },
      filtered: where !== undefined,
      masked: [...masked].map(([column, { id }]) => ({ id, column })),
    },
    fields: relation.fields.map((field): Field => ({ ...field, column: masked.get(field.column)?.id ?? field.column })),
  }
}

/** A scope in which each column has its name for the rules. Rules cannot reach a column without such a name. */
function scopeOfRules(fields: readonly Field[], names: readonly RuleNames[] | undefined): Scope {
  const own = names === undefined ? fields : fields.map((field, at): Field => ({ ...field, name: names[at]!.inRules }))
  return { fields: own, parent: undefined, boundary: true }
}

/** Gives a name to the column at a position, for its mask. Another column with this name loses it. */
function renamed(names: readonly RuleNames[], position: number, name: string): readonly RuleNames[] {
  return names.map((one, at) => {
    if (at === position) return { ...one, inRules: name }
    return one.inRules === name ? { ...one, inRules: undefined } : one
  })
}

/**
 * The rows that a statement writes, each of which must pass the table's row filter.
 * Source: Trino 476, LogicalPlanner.createTableWriterPlan (checks of new rows).
 */
export function withNewRowFilter(
  context: AnalysisContext,
  node: { readonly span: Span },
  name: ObjectName,
  { node: rows, fields }: AnalyzedRelation,
): AnalyzedRelation {
  const filter = context.access?.policies(name)?.filter
  if (filter === undefined) return { node: rows, fields }
  const scope: Scope = { fields, parent: undefined, boundary: true }
  const rule: Rule = { node, name, kind: 'row filter', rule: filter, type: BOOLEAN, column: undefined, checked: true }
  const passes = analyzeRule(context, rule, scope)
  const refused = engineCall('u_raise', BOOLEAN, [
    textConstant('PERMISSION_DENIED: Access Denied: Cannot insert row that does not match a row filter'),
  ])
  const predicate: Expr = {
    kind: 'case',
    type: BOOLEAN,
    branches: [{ when: passes, then: constantOf(BOOLEAN, true) }],
    otherwise: refused,
  }
  // The LIMIT keeps DuckDB from moving the filter below the query's own conditions: rows that they remove are not
  // written and must not be checked.
  const input: RelationNode = { kind: 'limit', input: rows, count: EVERY_ROW, offset: undefined, ties: undefined }
  return { node: { kind: 'filter', input, predicate }, fields }
}

/** DuckDB does not push conditions below a LIMIT. */
const EVERY_ROW = String(2n ** 63n - 1n)

type RuleKind = 'row filter' | 'column mask'

interface Rule {
  readonly node: { readonly span: Span }
  readonly name: ObjectName
  readonly kind: RuleKind
  readonly rule: RuleExpression
  readonly type: SqlType
  /** The column of a mask; undefined for a row filter. */
  readonly column: string | undefined
  /** Whether the rule's user needs the right to read the columns of the rule's table that the rule reads. */
  readonly checked: boolean
}

const INVALID = { 'row filter': 'INVALID_ROW_FILTER', 'column mask': 'INVALID_COLUMN_MASK' } as const satisfies Record<
  RuleKind,
  ErrorName
>

/**
 * Analyzes a rule in its table's catalog and schema, over its table's columns only. Details of errors in a rule go only
 * to the operator (`onRuleFault`).
 */
function analyzeRule(context: AnalysisContext, rule: Rule, scope: Scope): Expr {
  const { name, kind, type, column } = rule
  const of = [name.catalog, name.schema, name.table, ...(column === undefined ? [] : [column])].join('.')
  const label = JSON.stringify([kind, of, context.access!.user])
  const text = `${kind} for '${of}'`
  if (context.policies.includes(label)) {
    throw errorAt(context, rule.node, INVALID[kind], `${text[0]!.toUpperCase()}${text.slice(1)} is recursive`)
  }
  const inner: AnalysisContext = {
    ...context,
    text: { sql: rule.rule.sql, origin: textOrigin },
    session: { ...context.session, catalog: name.catalog, schema: name.schema },
    parameters: { kind: 'values', values: [] },
    functions: new Map(),
    views: [],
    access: context.access!.as(rule.rule.user),
    read: new Set(),
    policies: [...context.policies, label],
  }
  const expr = ((): Expr => {
    try {
      return scalarOf(inner, parseExpressionText(rule.rule.sql), scope)
    } catch (error) {
      if (!(error instanceof EngineError) || error.errorName === 'EXCEEDED_TIME_LIMIT') throw error
      context.session.onRuleFault?.(`Invalid ${text}: ${error.message}`)
      const errorName = error.errorName === 'SYNTAX_ERROR' ? INVALID[kind] : error.errorName
      throw errorAt(context, rule.node, errorName, `Invalid ${text}`)
    }
  })()
  collectDefined(expr, context.ofRules)
  // The rule reads tables, including its own, as the user that the rule names.
  if (rule.checked) context.named.push({ access: inner.access!, name, columns: namesOf(scope), read: inner.read })
  if (canCoerce(expr.type, type)) return castTo(expr, type)
  const wanted = kind === 'row filter' ? 'BOOLEAN' : typeName(type)
  const mismatch = `Expected ${text} to be of type ${wanted}, but was ${typeName(expr.type)}`
  context.session.onRuleFault?.(mismatch)
  throw errorAt(context, rule.node, 'TYPE_MISMATCH', mismatch)
}

function scalarOf(context: AnalysisContext, expression: Expression, scope: Scope): Expr {
  const { expr, aggregates, windows, groupings } = analyzeExpression(context, expression, scope)
  if (aggregates.length + windows.length + groupings.length === 0) return expr
  throw new EngineError('EXPRESSION_NOT_SCALAR', 'It has aggregations, window functions or grouping operations')
}

/** Refuses reads without the necessary rights. @throws EngineError PERMISSION_DENIED */
export function checkReads(context: AnalysisContext, node: RelationNode): void {
  const { named, read } = context
  if (named.length === 0) return
  visitStatementColumns(node, (id) => read.add(id))
  // As in Trino, tables that the statement itself reads are checked before tables that its views read.
  const [own, ofViews] = [named.filter(({ access }) => !access.grants), named.filter(({ access }) => access.grants)]
  for (const { access, name, columns, read: ids } of [...own, ...ofViews]) {
    access.checkSelect(name, new Set([...columns].flatMap(([id, column]) => (ids.has(id) ? [column] : []))))
  }
}

function namesOf({ fields }: Pick<AnalyzedRelation, 'fields'>): ReadonlyMap<ColumnId, string> {
  return new Map(fields.flatMap(({ column, name }) => (name === undefined ? [] : [[column, name] as const])))
}
