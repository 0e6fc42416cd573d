import { tick } from '../../shared/cpu-budget.ts'
import type { QualifiedName } from './ast.ts'
import type { Query } from './ast-query.ts'
import { childrenOf, type AnyNode } from './tree.ts'

/** Every table that a node names, except names that enclosing WITH clauses define. */
export function namesOfTables(
  node: AnyNode,
  defined: ReadonlySet<string> = new Set(),
  found: QualifiedName[] = [],
): readonly QualifiedName[] {
  tick()
  if (node.kind === 'Table') {
    const { name } = node as AnyNode & { readonly name: QualifiedName }
    if (name.parts.length > 1 || !defined.has(name.parts[0]!.value.toLowerCase())) found.push(name)
    // The version of a table may be a subquery.
    for (const child of childrenOf(node)) if (child !== name) namesOfTables(child, defined, found)
    return found
  }
  if (node.kind === 'Query') {
    const query = node as Query
    if (query.with !== undefined) {
      const names = new Set(defined)
      for (const { name, query: inner } of query.with.queries) {
        if (query.with.recursive) names.add(name.value.toLowerCase())
        namesOfTables(inner, new Set(names), found)
        names.add(name.value.toLowerCase())
      }
      for (const child of childrenOf(query)) if (child.kind !== 'With') namesOfTables(child, names, found)
      return found
    }
  }
  for (const child of childrenOf(node)) namesOfTables(child, defined, found)
  return found
}
