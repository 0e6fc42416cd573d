import { joinedByEquality } from './subqueries.ts'
import type { AggregateNode, ColumnId, Expr, FilterNode, RelationNode } from './tree.ts'
import { exprKey } from './walk.ts'

/**
 * Filters rows by a condition. If the condition requires columns that are IN predicates computed below, Trino's planner
 * pushes it down to them and joins by equality, as in `joinedByEquality`.
 */
export function filtered(input: RelationNode, predicate: Expr): FilterNode {
  return { kind: 'filter', input: belowCondition(input, predicate), predicate }
}

function belowCondition(node: RelationNode, predicate: Expr): RelationNode {
  return columnsOf(predicate).reduce(askedBelow, node)
}

/** An aggregation whose aggregates all have the same filter: Trino applies the filter once, below the aggregation. */
export function withFilteringQueries(node: AggregateNode): AggregateNode {
  const filters = node.aggregates.map(({ call }) => call.filter)
  const [first] = filters
  if (first === undefined || node.keys.length > 0 || node.sets !== undefined) return node
  const key = exprKey(first)
  if (!filters.every((filter) => filter !== undefined && exprKey(filter) === key)) return node
  const filter = joined(first)
  if (filter === first) return { ...node, input: belowCondition(node.input, first) }
  return { ...node, aggregates: node.aggregates.map(({ id, call }) => ({ id, call: { ...call, filter } })) }
}

/** The columns that must be true for a condition to be true. */
function columnsOf(condition: Expr): readonly ColumnId[] {
  if (condition.kind === 'and') return condition.terms.flatMap(columnsOf)
  if (condition.kind === 'not' && condition.value.kind === 'not') return columnsOf(condition.value.value)
  return condition.kind === 'column' ? [condition.id] : []
}

function joined(condition: Expr): Expr {
  if (condition.kind !== 'and') return joinedByEquality(condition)
  const terms = condition.terms.map(joined)
  return terms.every((term, i) => term === condition.terms[i]) ? condition : { ...condition, terms }
}

/** Pushes the requirement down through the nodes through which Trino moves a condition. */
function askedBelow(node: RelationNode, column: ColumnId): RelationNode {
  switch (node.kind) {
    case 'project': {
      const made = node.columns.find(({ id }) => id === column)?.expression
      if (made === undefined) return { ...node, input: askedBelow(node.input, column) }
      const columns = node.columns.map((each) => (each.id === column ? { ...each, expression: joined(made) } : each))
      return { ...node, columns, input: belowCondition(node.input, made) }
    }
    case 'filter':
    case 'sort':
      return { ...node, input: askedBelow(node.input, column) }
    case 'aggregate': {
      const key = node.sets === undefined ? node.keys.find(({ id }) => id === column) : undefined
      return key === undefined ? node : { ...node, input: askedBelow(node.input, key.input) }
    }
    case 'join': {
      const [left, right] = [
        node.type !== 'right' && node.type !== 'full',
        node.type !== 'left' && node.type !== 'full',
      ]
      return {
        ...node,
        left: left ? askedBelow(node.left, column) : node.left,
        right: right ? askedBelow(node.right, column) : node.right,
      }
    }
    case 'set': {
      const position = node.columns.findIndex(({ id }) => id === column)
      if (position < 0 || node.operator !== 'union') return node
      return {
        ...node,
        inputs: node.inputs.map((input) => ({ ...input, node: askedBelow(input.node, input.columns[position]!) })),
      }
    }
    case 'with':
      return { ...node, body: askedBelow(node.body, column) }
    default:
      return node
  }
}
