import type { Query } from './ast-query.ts'
import { childrenOf, type AnyNode } from './tree.ts'

/** Whether rows of this query contain a literal or a parameter of the statement. */
export function writesLiterals(query: Query): boolean {
  return partsOfRows(query).some(({ node, isValue }) => isValue && holdsLiteral(node))
}

const literalKinds: ReadonlySet<string> = new Set([
  'StringLiteral',
  'GenericLiteral',
  'IntervalLiteral',
  'BinaryLiteral',
  'LongLiteral',
  'DecimalLiteral',
  'DoubleLiteral',
  'Parameter',
])

function holdsLiteral(node: AnyNode): boolean {
  return literalKinds.has(node.kind) || childrenOf(node).some(holdsLiteral)
}

interface PartOfRows {
  readonly node: AnyNode
  /**
   * Whether the part becomes a value of the rows, or part of a value. Otherwise it decides which rows there are, and in
   * which order.
   */
  readonly isValue: boolean
}

/** Splits a query into parts that become values and parts that decide about rows. */
export function partsOfRows(node: AnyNode): readonly PartOfRows[] {
  const children = childrenOf(node)
  switch (node.kind) {
    case 'Query':
    case 'With':
    case 'WithQuery':
    case 'QuerySpecification':
    case 'Select':
    case 'SetOperation':
    case 'TableSubquery':
    case 'AliasedRelation':
    case 'SampledRelation':
    case 'Join':
    case 'Lateral':
      return children.flatMap((child) =>
        deciding.has(child.kind) ? [{ node: child, isValue: false }] : partsOfRow(node, child),
      )
    default:
      return [{ node, isValue: true }]
  }
}

/** Clauses that supply no values. */
const deciding: ReadonlySet<string> = new Set([
  'GroupBy',
  'OrderBy',
  'JoinOn',
  'JoinUsing',
  'NaturalJoin',
  'Offset',
  'Limit',
  'FetchFirst',
])

function partsOfRow(parent: AnyNode, child: AnyNode): readonly PartOfRows[] {
  const { where, having, samplePercentage } = parent as AnyNode & {
    readonly where?: AnyNode
    readonly having?: AnyNode
    readonly samplePercentage?: AnyNode
  }
  const decides = child === where || child === having || child === samplePercentage
  return decides ? [{ node: child, isValue: false }] : partsOfRows(child)
}
