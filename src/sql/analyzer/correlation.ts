import type { Query } from '../syntax/ast-query.ts'
import { errorAt, type AnalysisContext } from './context.ts'
import type { AggregateNode, ColumnId, Expr, RelationNode } from './tree.ts'
import { visitColumns } from './walk.ts'

/**
 * Refuses a correlated query that Trino cannot take apart, as it does: ORDER BY, aggregates and set operations over
 * columns of the outer query, LIMIT 1 over correlated rows of more than the columns that are equal to outer ones, groups over comparisons other than `=`, conditions on an
 * UNNEST of outer arrays. DuckDB could calculate some; a statement should mean the same on both.
 */
export function verifyCorrelation(
  context: AnalysisContext,
  query: Query,
  node: RelationNode,
  outputs: readonly ColumnId[],
): void {
  const inner = new Set<ColumnId>()
  collectDefined(node, inner)
  const usesOuter = (tree: Expr | RelationNode): boolean => {
    let found = false
    visitColumns(tree, (id) => {
      if (!inner.has(id)) found = true
    })
    return found
  }
  if (!usesOuter(node)) return
  if (isSupported(node, usesOuter, outputs)) return
  throw errorAt(context, query, 'NOT_SUPPORTED', 'Given correlated subquery is not supported')
}

type UsesOuter = (tree: Expr | RelationNode) => boolean

function isSupported(node: RelationNode, usesOuter: UsesOuter, outputs: readonly ColumnId[]): boolean {
  switch (node.kind) {
    case 'filter':
      return !unnestsOuter(node.input, usesOuter) && isSupported(node.input, usesOuter, outputs)
    case 'project': {
      const needed = new Set(outputs)
      for (const { id, expression } of node.columns) {
        if (needed.delete(id)) visitColumns(expression, (column) => needed.add(column))
      }
      return isSupported(node.input, usesOuter, [...needed])
    }
    case 'sort': {
      const { input } = node
      const keys = new Set(node.keys.map((key) => key.column))
      const outerKey =
        input.kind === 'project' && input.columns.some(({ id, expression }) => keys.has(id) && usesOuter(expression))
      return !outerKey && isSupported(input, usesOuter, outputs)
    }
    case 'limit':
      if (node.count === '1' && node.input.kind !== 'sort' && correlatedFilter(node.input, usesOuter)) {
        return singleRow(node.input) || areKeys(outputs, node.input, usesOuter)
      }
      if (node.input.kind === 'sort' && unequalFilter(node.input.input, usesOuter)) return false
      return isSupported(node.input, usesOuter, outputs)
    case 'aggregate':
      if (node.aggregates.some(({ call }) => usesOuter(call))) return false
      if (node.keys.length > 0 && unequalFilter(node.input, usesOuter)) return false
      return isSupported(node.input, usesOuter, columnsOf(node))
    case 'set':
      return !usesOuter(node)
    default:
      return true
  }
}

function singleRow(node: RelationNode): boolean {
  if (node.kind === 'project') return singleRow(node.input)
  return node.kind === 'aggregate' && node.keys.length === 0
}

/** Whether all of these are columns that a condition says to be equal to one of the outer query, and there is such a one. */
function areKeys(outputs: readonly ColumnId[], node: RelationNode, usesOuter: UsesOuter): boolean {
  if (node.kind === 'project') return areKeys(outputs, node.input, usesOuter)
  if (node.kind !== 'filter') return false
  const keys = new Set<ColumnId>()
  for (const term of termsOf(node.predicate)) {
    if (term.kind !== 'compare' || term.operator !== '=') continue
    const [a, b] = [term.left, term.right]
    if (a.kind === 'column' && b.kind === 'column' && usesOuter(a) !== usesOuter(b))
      keys.add(usesOuter(a) ? b.id : a.id)
  }
  return keys.size > 0 && outputs.every((column) => keys.has(column))
}

function columnsOf({ aggregates, keys }: AggregateNode): readonly ColumnId[] {
  const columns = keys.map((key) => key.input)
  for (const { call } of aggregates) visitColumns(call, (column) => columns.push(column))
  return columns
}

function termsOf(predicate: Expr): readonly Expr[] {
  return predicate.kind === 'and' ? predicate.terms : [predicate]
}

function unnestsOuter(node: RelationNode, usesOuter: UsesOuter): boolean {
  return node.kind === 'unnest' && usesOuter(node)
}

function correlatedFilter(node: RelationNode, usesOuter: UsesOuter): boolean {
  if (node.kind === 'project') return correlatedFilter(node.input, usesOuter)
  return node.kind === 'filter' && usesOuter(node.predicate)
}

/** A condition that compares with the outer query other than by `=`. */
function unequalFilter(node: RelationNode, usesOuter: UsesOuter): boolean {
  if (node.kind === 'project') return unequalFilter(node.input, usesOuter)
  if (node.kind !== 'filter') return false
  return termsOf(node.predicate).some((term) => usesOuter(term) && !(term.kind === 'compare' && term.operator === '='))
}

/** Every column that a node or a query inside its expressions makes. */
export function collectDefined(tree: unknown, defined: Set<ColumnId>): void {
  if (typeof tree !== 'object' || tree === null) return
  if (Array.isArray(tree)) {
    for (const item of tree) collectDefined(item, defined)
    return
  }
  const { kind, id } = tree as { readonly kind?: unknown; readonly id?: unknown }
  // All objects with a number but references to columns are definitions.
  if (typeof id === 'number' && kind !== 'column') defined.add(id)
  for (const [name, value] of Object.entries(tree)) {
    if (kind === 'unnest' && name === 'ordinality' && typeof value === 'number') defined.add(value)
    if (name === 'columns' && Array.isArray(value)) {
      for (const column of value as unknown[]) if (typeof column === 'number' && kind !== 'set') defined.add(column)
    }
    if (name !== 'type' && name !== 'function' && name !== 'operator' && name !== 'handle')
      collectDefined(value, defined)
  }
}
