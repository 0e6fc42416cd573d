import type { EngineError } from '../../shared/engine-error.ts'
import type { Expression } from '../syntax/ast.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type { AllColumns, QuerySpecification } from '../syntax/ast-query.ts'
import { qualifiedNameOf } from '../syntax/tree.ts'
import { errorAt, noteRead, type AnalysisContext } from './context.ts'
import { partsOfType } from '../types/sql-type.ts'
import { columnOf } from './build.ts'
import { analyzeExpression, plainExpression, type AnalyzedExpression } from './expressions.ts'
import { fieldMatches, fieldsOfRelation, type Field, type Scope } from './scope.ts'

/**
 * The limit of columns of a select list after `*` is expanded: queries that double their columns would grow without
 * bound.
 */
const MAX_COLUMNS = 10_000
/** The limit of these columns' types and their nested types: each is sent to clients and stored with the plan. */
const MAX_PARTS = 50_000

/** An output column of a SELECT, after `*` is expanded. */
export interface SelectOutput {
  readonly name: string | undefined
  readonly node: Expression
  readonly analyzed: AnalyzedExpression
  /** For a column from `*`: its name in messages. */
  readonly field?: string
}

export function analyzeSelect(context: AnalysisContext, spec: QuerySpecification, scope: Scope): SelectOutput[] {
  const outputs: SelectOutput[] = []
  let parts = 0
  for (const item of spec.select.items) {
    const before = outputs.length
    if (item.kind === 'AllColumns') outputs.push(...allColumns(context, spec, item, scope))
    else {
      const { expression, alias } = item
      const name = alias?.value ?? qualifiedNameOf(expression)?.at(-1)?.value
      outputs.push({ name, node: expression, analyzed: analyzeExpression(context, expression, scope) })
    }
    const refuse = (what: string): EngineError =>
      errorAt(context, item, 'QUERY_EXCEEDED_COMPILER_LIMIT', `Query has a select list of ${what}`)
    if (outputs.length > MAX_COLUMNS) throw refuse(`${outputs.length} columns, at most ${MAX_COLUMNS} are allowed`)
    for (const { analyzed } of outputs.slice(before)) parts += partsOfType(analyzed.expr.type)
    if (parts > MAX_PARTS) throw refuse(`more than ${MAX_PARTS} parts, its types written out`)
  }
  return outputs
}

function allColumns(
  context: AnalysisContext,
  spec: QuerySpecification,
  item: AllColumns,
  scope: Scope,
): SelectOutput[] {
  if (item.target === undefined) {
    if (spec.from === undefined) {
      throw errorAt(context, item, 'COLUMN_NOT_FOUND', 'SELECT * not allowed in queries without FROM clause')
    }
    const fields = scope.fields.filter((field) => field.hidden !== true)
    if (fields.length === 0) {
      throw errorAt(context, item, 'COLUMN_NOT_FOUND', 'SELECT * not allowed from relation that has no columns')
    }
    return fromFields(context, item, fields, scope)
  }
  const chain = qualifiedNameOf(item.target)
  if (chain !== undefined) {
    const found = relationFields(context, item, chain, scope)
    if (found?.local === false && found.fields.some((field) => field.name === undefined)) {
      const message = 'SELECT * from outer scope table not supported with anonymous columns'
      throw errorAt(context, spec.select, 'NOT_SUPPORTED', message)
    }
    if (found !== undefined) return fromFields(context, item, found.fields, scope)
  }
  return rowFields(context, spec, { ...item, target: item.target }, scope)
}

/**
 * The fields of the relation that `a.b.*` names, in the nearest scope with that relation; undefined if the name is a
 * row column.
 */
function relationFields(
  context: AnalysisContext,
  item: AllColumns,
  chain: readonly Identifier[],
  scope: Scope,
): { readonly fields: readonly Field[]; readonly local: boolean } | undefined {
  const prefix = chain.map((part) => part.value.toLowerCase())
  let local = true
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    const fields = fieldsOfRelation(at, prefix)
    if (fields.length > 0) return { fields: fields.filter((field) => field.hidden !== true), local }
    // A column that holds a row is named with its relation.
    const names = [2, 3, 4].filter((length) => length <= prefix.length).map((length) => prefix.slice(0, length))
    const holdsRow = (field: Field): boolean =>
      field.type.kind === 'row' && names.some((name) => fieldMatches(field, name))
    if (at.fields.some(holdsRow)) return undefined
    if (at.boundary) local = false
  }
  throw errorAt(context, item, 'TABLE_NOT_FOUND', `Unable to resolve reference ${prefix.join('.')}`)
}

function fromFields(
  context: AnalysisContext,
  item: AllColumns,
  fields: readonly Field[],
  scope: Scope,
): SelectOutput[] {
  verifyAliases(context, item, fields.length)
  noteRead(context, fields)
  return fields.map((field, i) => ({
    name: aliasOf(item, i) ?? field.name,
    node: referenceTo(item, field),
    field: shownField(field, scope),
    analyzed: plainExpression(columnOf(field.column, field.type)),
  }))
}

/** The name of a field; its position if it has no name. */
function shownField(field: Field, { fields }: Scope): string {
  if (field.name === undefined) return String(fields.indexOf(field) + 1)
  return `'${[...(field.relation?.slice(-1) ?? []), field.name].join('.')}'`
}

/** The reference that messages show for a column from `*`. */
function referenceTo(item: AllColumns, field: Field): Expression {
  const name = (value: string): Identifier => ({ kind: 'Identifier', span: item.span, value, quoted: false })
  const parts = [...(field.relation?.slice(-1) ?? []), field.name ?? '_col'].map(name)
  return parts
    .slice(1)
    .reduce<Expression>(
      (base, part) => ({ kind: 'DereferenceExpression', span: item.span, base, field: part }),
      parts[0]!,
    )
}

function rowFields(
  context: AnalysisContext,
  spec: QuerySpecification,
  item: AllColumns & { readonly target: Expression },
  scope: Scope,
): SelectOutput[] {
  const { target } = item
  const analyzed = analyzeExpression(context, target, scope)
  const { expr } = analyzed
  const { type } = expr
  if (type.kind !== 'row') {
    throw errorAt(context, spec, 'TYPE_MISMATCH', 'expected expression of type Row')
  }
  verifyAliases(context, item, type.fields.length)
  return type.fields.map((field, index) => ({
    name: aliasOf(item, index) ?? field.name,
    node: target,
    analyzed: { ...analyzed, expr: { kind: 'field', type: field.type, base: expr, index } },
  }))
}

/** Unquoted names in `.* AS (a, b)` become upper case; no other aliases do. */
function aliasOf(item: AllColumns, index: number): string | undefined {
  const alias = item.aliases[index]
  return alias === undefined || alias.quoted ? alias?.value : alias.value.toUpperCase()
}

function verifyAliases(context: AnalysisContext, item: AllColumns, count: number): void {
  const [first] = item.aliases
  if (first !== undefined && item.aliases.length !== count) {
    throw errorAt(
      context,
      first,
      'MISMATCHED_COLUMN_ALIASES',
      `Column alias list has ${item.aliases.length} entries but relation has ${count} columns`,
    )
  }
}
