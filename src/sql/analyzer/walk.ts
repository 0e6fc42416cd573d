import { tick } from '../../shared/cpu-budget.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { typeName } from '../types/type-text.ts'
import type { ResolvedFunction } from '../functions/resolve-function.ts'
import type { SqlType } from '../types/sql-type.ts'
import type {
  ColumnId,
  Expr,
  ExprSortKey,
  BoundFrame,
  LambdaExpr,
  LiteralsExpr,
  RelationNode,
  Subquery,
} from './tree.ts'

/** Returns the expression with `change` applied to its direct children; queries inside it stay unchanged. */
export function mapChildren(expr: Expr, change: (child: Expr) => Expr): Expr {
  tick()
  const all = (list: readonly Expr[]): readonly Expr[] => mapList(list, change)
  const sortKeys = (keys: readonly ExprSortKey[]): readonly ExprSortKey[] =>
    keys.map((key) => ({ ...key, value: change(key.value) }))
  switch (expr.kind) {
    case 'constant':
    case 'column':
    case 'lambdaArgument':
    case 'scalarSubquery':
    case 'exists':
    case 'literals':
      return expr
    case 'call':
    case 'engineCall':
      return { ...expr, arguments: all(expr.arguments) }
    case 'operator':
    case 'compare':
      return { ...expr, left: change(expr.left), right: change(expr.right) }
    case 'cast':
    case 'negate':
    case 'not':
    case 'isNull':
    case 'try':
      return { ...expr, value: change(expr.value) }
    case 'and':
    case 'or':
      return { ...expr, terms: all(expr.terms) }
    case 'case':
      return {
        ...expr,
        branches: expr.branches.map(({ when, then }) => ({ when: change(when), then: change(then) })),
        otherwise: expr.otherwise && change(expr.otherwise),
      }
    case 'coalesce':
      return { ...expr, operands: all(expr.operands) }
    case 'let':
      return { ...expr, value: change(expr.value), body: change(expr.body) }
    case 'inList':
      return { ...expr, value: change(expr.value), values: all(expr.values) }
    case 'like':
      return {
        ...expr,
        value: change(expr.value),
        pattern: change(expr.pattern),
        escape: expr.escape && change(expr.escape),
      }
    case 'between':
      return { ...expr, value: change(expr.value), min: change(expr.min), max: change(expr.max) }
    case 'row':
    case 'array':
      return { ...expr, items: all(expr.items) }
    case 'field':
      return { ...expr, base: change(expr.base) }
    case 'lambda':
      return { ...expr, body: change(expr.body) }
    case 'inSubquery':
    case 'inLiterals':
    case 'quantified':
      return { ...expr, value: change(expr.value) }
    case 'aggregate':
      return {
        ...expr,
        arguments: all(expr.arguments),
        orderBy: sortKeys(expr.orderBy),
        filter: expr.filter && change(expr.filter),
      }
    case 'window':
      return {
        ...expr,
        arguments: all(expr.arguments),
        filter: expr.filter && change(expr.filter),
        argumentOrder: sortKeys(expr.argumentOrder),
        partitionBy: all(expr.partitionBy),
        orderBy: sortKeys(expr.orderBy),
        frame: expr.frame && mapFrame(expr.frame, change),
      }
    case 'grouping':
      return { ...expr, columns: all(expr.columns) }
    default:
      return unreachable(expr)
  }
}

function mapList(list: readonly Expr[], change: (child: Expr) => Expr): readonly Expr[] {
  let changed = false
  const mapped = list.map((item) => {
    const next = change(item)
    if (next !== item) changed = true
    return next
  })
  return changed ? mapped : list
}

function mapFrame(frame: BoundFrame, change: (child: Expr) => Expr): BoundFrame {
  return {
    ...frame,
    start: { ...frame.start, value: frame.start.value && change(frame.start.value) },
    end: { ...frame.end, value: frame.end.value && change(frame.end.value) },
  }
}

/** The direct children of an expression, without those of queries inside it. */
export function childrenOfExpr(expr: Expr): readonly Expr[] {
  const children: Expr[] = []
  mapChildren(expr, (child) => {
    children.push(child)
    return child
  })
  return children
}

/** Calls `visit` for every column that an expression, or any query inside it, uses. */
export function visitColumns(tree: Expr | RelationNode, visit: (id: ColumnId, column: Expr) => void): void {
  someNode(tree, (node) => {
    if (node.kind === 'column') visit(node.id, node)
    return false
  })
}

/** Same as `visitColumns`, without the columns that rules read behind their barriers. */
export function visitStatementColumns(tree: RelationNode, visit: (id: ColumnId) => void): void {
  someNode(tree, (node) => {
    if (node.kind === 'column') visit(node.id)
    return node.kind === 'barrier' ? 'leave' : false
  })
}

export type TreeNode = Expr | RelationNode

/**
 * Whether any node of a tree satisfies the test, including queries inside expressions.
 * @param part a node or a property of a node
 * @param test returns `leave` to skip the nodes below
 */
export function someNode(part: unknown, test: (node: TreeNode) => boolean | 'leave'): boolean {
  tick()
  if (typeof part !== 'object' || part === null) return false
  if (Array.isArray(part)) return part.some((item) => someNode(item, test))
  if ('kind' in part) {
    const verdict = test(part as TreeNode)
    if (verdict !== false) return verdict === true
  }
  return Object.entries(part).some(([name, value]) => !WITHOUT_NODES.has(name) && someNode(value, test))
}

/** Properties that contain no nodes: types, functions, handles, constants and the like. */
export const WITHOUT_NODES = new Set([
  'type',
  'function',
  'operator',
  'handle',
  'question',
  'answers',
  'partitionedBy',
  'literals',
])

/** Whether any expression of the tree, excluding queries inside it, satisfies the test. */
export function someExpr(expr: Expr, test: (expr: Expr) => boolean): boolean {
  return test(expr) || childrenOfExpr(expr).some((child) => someExpr(child, test))
}

/** Whether an expression is a subquery. */
export function isQuery(expr: Expr): boolean {
  switch (expr.kind) {
    case 'scalarSubquery':
    case 'exists':
    case 'inSubquery':
    case 'quantified':
      return true
    default:
      return false
  }
}

const volatiles = new WeakMap<Expr, boolean>()

/**
 * Whether an expression may give a different value each time: random(), shuffle(x), and expressions that contain such a
 * call.
 */
export function isVolatile(expr: Expr): boolean {
  if (expr.kind === 'column' || expr.kind === 'constant' || expr.kind === 'lambdaArgument') return false
  const known = volatiles.get(expr)
  if (known !== undefined) return known
  const found = (expr.kind === 'call' && !expr.function.deterministic) || childrenOfExpr(expr).some(isVolatile)
  volatiles.set(expr, found)
  return found
}

let queryNumber = 0
const queryKeys = new WeakMap<Subquery, string>()

/** A text key: equal keys mean equal expressions. */
export function exprKey(expr: Expr): string {
  tick()
  switch (expr.kind) {
    case 'constant':
      return `${typeName(expr.type)}:${String(expr.value)}${expr.zone ?? ''}`
    case 'column':
      return `#${expr.id}`
    case 'lambdaArgument':
      return `@${expr.id}`
    case 'call':
      return `${expr.function.name}/${typeName(expr.type)}(${keys(expr.arguments)})`
    case 'engineCall':
      return `${expr.name}(${keys(expr.arguments)})`
    case 'cast':
      return `${expr.safe ? 'try_cast' : expr.stored ? 'store' : 'cast'}(${exprKey(expr.value)} as ${typeName(expr.type)})`
    case 'operator':
      return `(${exprKey(expr.left)}${expr.name}${exprKey(expr.right)})`
    case 'compare':
      return `(${exprKey(expr.left)} ${expr.operator} ${exprKey(expr.right)})`
    case 'field':
      return `${exprKey(expr.base)}.${expr.index}`
    case 'scalarSubquery':
    case 'exists':
    case 'inSubquery':
    case 'quantified': {
      const how = expr.kind === 'quantified' ? `${expr.operator}${expr.all ? 'all' : 'any'}` : ''
      return `${expr.kind}${how}?${queryKey(expr.query)}(${keys(childrenOfExpr(expr))})`
    }
    case 'aggregate':
      return `${expr.function.name}(${expr.distinct ? 'distinct ' : ''}${keys(expr.arguments)} order ${sortKeysKey(expr.orderBy)} filter ${expr.filter ? exprKey(expr.filter) : ''})`
    case 'window': {
      const { frame } = expr
      const frameTexts = frame && [
        frame.type,
        ...[frame.start, frame.end].map((end) => `${end.type}${end.value ? exprKey(end.value) : ''}`),
      ]
      return `${expr.function.name}(${expr.distinct ? 'distinct ' : ''}${keys(expr.arguments)}${expr.ignoreNulls ? ' ignore' : ''} order ${sortKeysKey(expr.argumentOrder)} filter ${expr.filter ? exprKey(expr.filter) : ''}) over (${keys(expr.partitionBy)} order ${sortKeysKey(expr.orderBy)} ${frameTexts?.join(' ') ?? ''})`
    }
    case 'case':
      return `case ${expr.branches.map(({ when, then }) => `${exprKey(when)}:${exprKey(then)}`).join(',')} else ${expr.otherwise ? exprKey(expr.otherwise) : ''}`
    case 'literals':
      return literalsKey(expr)
    case 'inLiterals':
      return `${exprKey(expr.value)} in ${literalsKey(expr.literals)}`
    case 'lambda': {
      const named = canonical(expr)
      return `(${keys(named.parameters)})->${exprKey(named.body)}`
    }
    case 'let':
      return exprKey(substituted(expr.body, new Map([[expr.name.id, expr.value]])))
    default:
      return `${expr.kind}/${typeName(expr.type)}(${keys(childrenOfExpr(expr))})`
  }
}

function literalsKey({ type, literals }: LiteralsExpr): string {
  return `${typeName(type)}${JSON.stringify(literals, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value))}`
}

/** The text of a tree. @param replace the value to write for a property that is no type, function or operator */
export function treeText(tree: Subquery | RelationNode, replace: (name: string, value: unknown) => unknown): string {
  return JSON.stringify(tree, (name, value: unknown) => {
    if (name === 'type' && typeof value === 'object') return typeName(value as SqlType)
    if (name === 'function') return (value as ResolvedFunction).name
    if (name === 'operator' && typeof value === 'object') return undefined
    if (typeof value === 'bigint') return `${value}n`
    return replace(name, value)
  })
}

/**
 * The key of a query. Its own columns are numbered by their order, since their ids are arbitrary. A volatile query
 * equals only itself.
 */
function queryKey(query: Subquery): string {
  const known = queryKeys.get(query)
  if (known !== undefined) return known
  const changes = someNode(query, (node) => node.kind === 'call' && !node.function.deterministic)
  const own = new Set<ColumnId>()
  collectDefined(query, own)
  const order = new Map<ColumnId, number>()
  const key = changes
    ? String(queryNumber++)
    : treeText(query, (_, value) => {
        if (typeof value !== 'number' || !own.has(value)) return value
        if (!order.has(value)) order.set(value, order.size)
        return `own ${order.get(value)}`
      })
  queryKeys.set(query, key)
  return key
}

/**
 * The lambda with canonical parameter ids, derived from the number of lambdas inside it, since the original ids are
 * arbitrary.
 */
function canonical(lambda: LambdaExpr): LambdaExpr {
  const depth = lambdasWithin(lambda.body)
  const parameters = lambda.parameters.map((each, i) => ({ ...each, id: -(1 + i + depth * MOST_PARAMETERS) }))
  const named = new Map(lambda.parameters.map(({ id }, i) => [id, parameters[i]!]))
  return { ...lambda, parameters, body: substituted(lambda.body, named) }
}

/** More parameters than any function's lambda has. Column ids are not negative. */
const MOST_PARAMETERS = 16

function lambdasWithin(expr: Expr): number {
  const most = childrenOfExpr(expr).reduce((depth, child) => Math.max(depth, lambdasWithin(child)), 0)
  return expr.kind === 'lambda' ? most + 1 : most
}

/** The expression with lambda arguments replaced. */
function substituted(expr: Expr, named: ReadonlyMap<ColumnId, Expr>): Expr {
  if (expr.kind === 'lambdaArgument') return named.get(expr.id) ?? expr
  return mapChildren(expr, (child) => substituted(child, named))
}

function keys(list: readonly Expr[]): string {
  return list.map(exprKey).join(',')
}

function sortKeysKey(list: readonly ExprSortKey[]): string {
  return list.map((key) => `${exprKey(key.value)}${key.descending ? '-' : '+'}${key.nullsFirst ? 'f' : 'l'}`).join(',')
}

/** Collects every column that a node, or a query inside its expressions, defines. */
export function collectDefined(tree: unknown, defined: Set<ColumnId>): void {
  tick()
  if (typeof tree !== 'object' || tree === null) return
  if (Array.isArray(tree)) {
    for (const item of tree) collectDefined(item, defined)
    return
  }
  const { kind, id } = tree as { readonly kind?: unknown; readonly id?: unknown }
  // Every object with a numeric id is a definition, except references to columns.
  if (typeof id === 'number' && kind !== 'column') defined.add(id)
  for (const [name, value] of Object.entries(tree)) {
    if (kind === 'unnest' && name === 'ordinality' && typeof value === 'number') defined.add(value)
    if (name === 'columns' && Array.isArray(value)) {
      for (const column of value as unknown[]) if (typeof column === 'number' && kind !== 'set') defined.add(column)
    }
    if (name !== 'type' && name !== 'function' && name !== 'operator' && name !== 'handle' && name !== 'literals')
      collectDefined(value, defined)
  }
}

/** The table or view itself, without the row filter and the masks around it. */
export function behindRules({ input, filtered, masked }: Extract<RelationNode, { kind: 'barrier' }>): RelationNode {
  const unmasked = masked.length > 0 && input.kind === 'project' ? input.input : input
  return filtered && unmasked.kind === 'filter' ? unmasked.input : unmasked
}
