import { tick } from '../../shared/cpu-budget.ts'
import type { Expression } from './ast.ts'
import type { Identifier, Node } from './ast-node.ts'

/** A syntax node of which only the kind matters. */
export type AnyNode = Node<string>

/** The direct children of a node. */
export function childrenOf(node: AnyNode): readonly AnyNode[] {
  tick()
  const children: AnyNode[] = []
  const fields = node as unknown as Readonly<Record<string, unknown>>
  for (const name in fields) {
    const value = fields[name]
    if (typeof value === 'object' && value !== null && name !== 'span') collect(value, children)
  }
  return children
}

/** Collects nodes from a list, or from one of the few plain objects that are not nodes. */
function collect(value: object, children: AnyNode[]): void {
  if ('kind' in value) {
    children.push(value as AnyNode)
  } else {
    const items: readonly unknown[] = Array.isArray(value) ? value : Object.values(value)
    for (const item of items) if (typeof item === 'object' && item !== null) collect(item, children)
  }
}

/**
 * Replaces nodes in a tree or a part of one; returns the same object if nothing changes.
 * @param change returns the replacement, which is not searched further; undefined to search the node's children
 */
export function withNodes<T>(part: T, change: (node: AnyNode) => AnyNode | undefined): T {
  tick()
  if (typeof part !== 'object' || part === null) return part
  const changed = 'kind' in part ? change(part as unknown as AnyNode) : undefined
  if (changed !== undefined) return changed as unknown as T
  const fields = Object.entries(part as Record<string, unknown>)
  const others = fields.map(([name, value]) => [name, name === 'span' ? value : withNodes(value, change)] as const)
  if (others.every(([, value], at) => value === fields[at]![1])) return part
  return (Array.isArray(part) ? others.map(([, value]) => value) : Object.fromEntries(others)) as T
}

/** The names of `a.b.c`; undefined if an expression is not just a chain of names. */
export function qualifiedNameOf(expression: Expression): readonly Identifier[] | undefined {
  const parts: Identifier[] = []
  let current = expression
  while (current.kind === 'DereferenceExpression') {
    parts.unshift(current.field)
    current = current.base
  }
  if (current.kind !== 'Identifier') return undefined
  parts.unshift(current)
  return parts
}
