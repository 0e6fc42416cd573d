import type { Expression, Identifier, Node } from './ast.ts'

/** Any node of the tree, where only its kind matters. */
export type AnyNode = Node<string>

function isNode(value: unknown): value is AnyNode {
  return typeof value === 'object' && value !== null && 'kind' in value && 'span' in value
}

/** The nodes right below this one. */
export function childrenOf(node: AnyNode): readonly AnyNode[] {
  const children: AnyNode[] = []
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if (Array.isArray(value)) value.forEach(collect)
    else if (isNode(value)) children.push(value)
    else Object.values(value).forEach(collect)
  }
  for (const [name, value] of Object.entries(node)) if (name !== 'span') collect(value)
  return children
}

/** The names of `a.b.c`, undefined for any expression that is not just a chain of names. */
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
