import { propertyValue } from '../session/session-properties.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type { Query, SetOperation, Table, With, WithQuery } from '../syntax/ast-query.ts'
import { childrenOf, type AnyNode } from '../syntax/tree.ts'
import { canCoerce } from '../types/coercion.ts'
import { sameType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { castTo, columnOf } from './build.ts'
import { errorAt, newId, type AnalysisContext, type AnalyzedQuery, type QueryColumn } from './context.ts'
import type { NamedQuery, Scope } from './scope.ts'
import type { ComputedColumn, ColumnId, CommonTable, RelationNode } from './tree.ts'

/** The tables of a WITH clause, and the scope in which all of them are visible. */
export function analyzeWith(
  context: AnalysisContext,
  clause: With,
  outer: Scope,
): { readonly tables: readonly CommonTable[]; readonly scope: Scope } {
  const named = new Map<string, NamedQuery>()
  const tables: CommonTable[] = []
  // Each query sees the ones before it, since the scope shares the growing map.
  const scope: Scope = { ...outer, tables: named }
  for (const query of clause.queries) {
    const name = query.name.value.toLowerCase()
    if (named.has(name)) {
      throw errorAt(
        context,
        query,
        'DUPLICATE_NAMED_QUERY',
        `WITH query name '${query.name.value}' specified more than once`,
      )
    }
    verifyDistinctNames(context, query.columnNames)
    const recursion = clause.recursive ? recursionOf(context, query, name) : undefined
    const { table, columns } =
      recursion === undefined
        ? plainTable(context, query, scope)
        : recursiveTable(context, query, recursion, scope, named)
    tables.push(table)
    named.set(name, { table: table.id, columns })
  }
  return { tables, scope: { ...outer, tables: named } }
}

interface Named {
  readonly table: CommonTable
  readonly columns: NamedQuery['columns']
}

function plainTable(context: AnalysisContext, query: WithQuery, scope: Scope): Named {
  const analyzed = context.analyzeQuery(context, query.query, scope)
  return tableOf(context, query, analyzed)
}

function tableOf(context: AnalysisContext, query: WithQuery, { node, columns }: AnalyzedQuery): Named {
  verifyAliases(context, query.columnNames, columns.length)
  const { node: projected, columns: unique } = withUniqueColumns(context, node, columns)
  const named = unique.map((column, i) => ({ ...column, name: query.columnNames?.[i]?.value ?? column.name }))
  const table: CommonTable = {
    id: newId(context),
    node: projected,
    columns: unique.map(({ column, type }) => ({ id: column, type })),
  }
  return { table, columns: named }
}

function verifyDistinctNames(context: AnalysisContext, names: readonly Identifier[] | undefined): void {
  const seen = new Set<string>()
  for (const name of names ?? []) {
    const key = name.value.toLowerCase()
    if (seen.has(key)) {
      throw errorAt(context, name, 'DUPLICATE_COLUMN_NAME', `Column name '${name.value}' specified more than once`)
    }
    seen.add(key)
  }
}

function verifyAliases(context: AnalysisContext, aliases: readonly Identifier[] | undefined, count: number): void {
  if (aliases === undefined || aliases.length === count) return
  throw errorAt(
    context,
    aliases[0]!,
    'MISMATCHED_COLUMN_ALIASES',
    `Column alias list has ${aliases.length} entries but relation has ${count} columns`,
  )
}

/** A column that is selected twice gets an id of its own, so that references by position stay distinct. */
function withUniqueColumns(
  context: AnalysisContext,
  node: RelationNode,
  columns: readonly QueryColumn[],
): { readonly node: RelationNode; readonly columns: readonly QueryColumn[] } {
  const seen = new Set<ColumnId>()
  const copies: ComputedColumn[] = []
  const unique = columns.map((column) => {
    if (!seen.has(column.column)) {
      seen.add(column.column)
      return column
    }
    const id = newId(context)
    copies.push({ id, expression: columnOf(column.column, column.type) })
    return { ...column, column: id }
  })
  return { node: copies.length === 0 ? node : { kind: 'project', input: node, columns: copies }, columns: unique }
}

// ---- Recursion

/** The UNION of a recursive query, after checks of its form; undefined if the query is not recursive. */
function recursionOf(context: AnalysisContext, query: WithQuery, name: string): SetOperation | undefined {
  const { body } = query.query
  const references = [...referencesTo(query.query, name)]
  if (query.columnNames === undefined) {
    throw errorAt(context, query, 'MISSING_COLUMN_ALIASES', 'missing column aliases in recursive WITH query')
  }
  const nested = recursiveWithIn(query.query)
  if (nested !== undefined) throw errorAt(context, nested, 'NESTED_RECURSIVE', 'nested recursive WITH query')
  if (body.kind === 'SetOperation' && body.operator === 'UNION') {
    if (references.length === 0) return undefined
    const base = [...referencesTo(body.left, name)]
    if (base[0] !== undefined) {
      throw errorAt(
        context,
        base[0],
        'INVALID_RECURSIVE_REFERENCE',
        'WITH table name is referenced in the base relation of recursion',
      )
    }
    const step = [...referencesTo(body.right, name)]
    if (step[1] !== undefined) {
      throw errorAt(
        context,
        step[1],
        'INVALID_RECURSIVE_REFERENCE',
        'multiple recursive references in the step relation of recursion',
      )
    }
    if (step[0] !== undefined) {
      verifyTail(context, query)
      verifyStepBody(context, body.right, name)
      verifyStep(context, body, name)
      return body
    }
  }
  if (references[0] !== undefined) {
    throw errorAt(
      context,
      references[0],
      'INVALID_RECURSIVE_REFERENCE',
      'recursive reference not allowed in this context',
    )
  }
  return undefined
}

/** Refuses ORDER BY, OFFSET, LIMIT and WITH directly around the recursion. */
function verifyTail(context: AnalysisContext, { query }: WithQuery): void {
  const clause = query.with ?? query.orderBy ?? query.offset ?? query.limit
  if (clause === undefined) return
  const limit = 'FETCH FIRST / LIMIT'
  const names = { With: 'WITH', OrderBy: 'ORDER BY', Offset: 'OFFSET', Limit: limit, FetchFirst: limit }
  const name = names[clause.kind]
  const error = name === limit ? 'INVALID_LIMIT_CLAUSE' : 'NOT_SUPPORTED'
  throw errorAt(context, clause, error, `immediate ${name} clause in recursive query`)
}

/** Checks the SELECT of a step inside its parentheses: none of them may limit its rows. */
function verifyStepBody(context: AnalysisContext, step: SetOperation['right'], name: string): void {
  if (step.kind === 'TableSubquery') {
    const { limit, body } = step.query
    if (limit !== undefined) {
      const message = 'FETCH FIRST / LIMIT clause in the step relation of recursion'
      throw errorAt(context, limit, 'INVALID_LIMIT_CLAUSE', message)
    }
    verifyStepBody(context, body, name)
  } else {
    const from = step.kind === 'QuerySpecification' && step.from !== undefined ? [...referencesTo(step.from, name)] : []
    const [reference] = referencesTo(step, name)
    if (from.length > 0 || reference === undefined) return
    const message = 'recursive reference outside of FROM clause of the step relation of recursion'
    throw errorAt(context, reference, 'INVALID_RECURSIVE_REFERENCE', message)
  }
}

/** Checks the recursive reference: it may stand only where each row of the step comes from one row of the reference. */
function verifyStep(context: AnalysisContext, union: SetOperation, name: string): void {
  const forbid = (node: AnyNode | undefined, message: string): void => {
    const [reference] = node === undefined ? [] : [...referencesTo(node, name)]
    if (reference !== undefined) throw errorAt(context, reference, 'INVALID_RECURSIVE_REFERENCE', message)
  }
  const visit = (node: AnyNode): void => {
    if (node.kind === 'Join') {
      const join = node as AnyNode & { readonly type: string; readonly left: AnyNode; readonly right: AnyNode }
      const word = `${join.type}`
      if (join.type === 'LEFT' || join.type === 'FULL') {
        forbid(join.right, `recursive reference in right source of ${word} join`)
      }
      if (join.type === 'RIGHT' || join.type === 'FULL') {
        forbid(join.left, `recursive reference in left source of ${word} join`)
      }
    }
    if (node.kind === 'SetOperation') {
      const set = node as AnyNode & SetOperation
      const kind = `${set.operator} ${set.distinct ? 'DISTINCT' : 'ALL'}`
      if (set.operator !== 'UNION' && !set.distinct) forbid(set.left, `recursive reference in left relation of ${kind}`)
      if (set.operator === 'EXCEPT' || kind === 'INTERSECT ALL')
        forbid(set.right, `recursive reference in right relation of ${kind}`)
    }
    if (node.kind === 'PatternRecognitionRelation') {
      const message = 'nested row pattern recognition in recursive query'
      throw errorAt(context, node, 'NESTED_ROW_PATTERN_RECOGNITION', message)
    }
    childrenOf(node).forEach(visit)
  }
  visit(union.right)
}

function recursiveWithIn(node: AnyNode): AnyNode | undefined {
  if (node.kind === 'With' && (node as With).recursive) return node
  for (const child of childrenOf(node)) {
    const found = recursiveWithIn(child)
    if (found !== undefined) return found
  }
  return undefined
}

function* referencesTo(node: AnyNode, name: string): Generator<Table> {
  if (node.kind === 'Table') {
    const table = node as Table
    if (table.name.parts.length === 1 && table.name.parts[0]!.value.toLowerCase() === name) yield table
    return
  }
  // If a query gives the name to another query, it is not searched for references at all, not even before that
  // definition.
  const shadows = (query: Query): boolean =>
    query.with?.queries.some((each) => each.name.value.toLowerCase() === name) ?? false
  if (node.kind === 'Query' && shadows(node as Query)) return
  for (const child of childrenOf(node)) yield* referencesTo(child, name)
}

function recursiveTable(
  context: AnalysisContext,
  query: WithQuery,
  union: SetOperation,
  scope: Scope,
  named: Map<string, NamedQuery>,
): Named {
  const name = query.name.value.toLowerCase()
  const operand = (body: SetOperation['left']): AnalyzedQuery =>
    context.analyzeQuery(
      context,
      { ...query.query, with: undefined, body, orderBy: undefined, offset: undefined, limit: undefined },
      scope,
    )
  const { table: base, columns } = tableOf(context, query, operand(union.left))
  named.set(name, { table: base.id, columns, recursive: true })
  const step = operand(union.right)
  named.delete(name)
  if (step.columns.length !== columns.length) {
    throw errorAt(
      context,
      union.right,
      'TYPE_MISMATCH',
      `base and step relations of recursion have different number of fields: ${columns.length}, ${step.columns.length}`,
    )
  }
  const computed: ComputedColumn[] = []
  const outputs = step.columns.map(({ column, type }, i): ColumnId => {
    const wanted = columns[i]!.type
    if (sameType(type, wanted)) return column
    if (!canCoerce(type, wanted)) {
      throw errorAt(
        context,
        union.right,
        'TYPE_MISMATCH',
        `recursion step relation output type (${typeName(type)}) is not coercible to recursion base relation output type (${typeName(wanted)}) at column ${i + 1}`,
      )
    }
    const id = newId(context)
    computed.push({ id, expression: castTo(columnOf(column, type), wanted) })
    return id
  })
  const node: RelationNode =
    computed.length === 0 ? step.node : { kind: 'project', input: step.node, columns: computed }
  const maxDepth = propertyValue(context.session, 'max_recursion_depth')
  return {
    table: { ...base, step: { node, columns: outputs, maxDepth, distinct: union.distinct } },
    columns,
  }
}
