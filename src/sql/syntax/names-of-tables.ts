import { tick } from '../../shared/cpu-budget.ts'
import type { QualifiedName } from './ast-node.ts'
import type { Query, Table } from './ast-query.ts'
import { childrenOf, type AnyNode } from './tree.ts'

/** The names of `tablesIn`. */
export function namesOfTables(node: AnyNode): readonly QualifiedName[] {
  return tablesIn(node).map(({ name }) => name)
}

/** Every table that a node names, except names that enclosing WITH clauses define. */
export function tablesIn(
  node: AnyNode,
  defined: ReadonlySet<string> = new Set(),
  found: Table[] = [],
): readonly Table[] {
  tick()
  if (node.kind === 'Table') {
    const table = node as Table
    const { parts } = table.name
    if (parts.length > 1 || !defined.has(parts[0]!.value.toLowerCase())) found.push(table)
    // The version of a table may be a subquery.
    for (const child of childrenOf(node)) if (child !== table.name) tablesIn(child, defined, found)
    return found
  }
  if (node.kind === 'Query') {
    const query = node as Query
    if (query.with !== undefined) {
      const names = new Set(defined)
      for (const { name, query: inner } of query.with.queries) {
        if (query.with.recursive) names.add(name.value.toLowerCase())
        tablesIn(inner, new Set(names), found)
        names.add(name.value.toLowerCase())
      }
      for (const child of childrenOf(query)) if (child.kind !== 'With') tablesIn(child, names, found)
      return found
    }
  }
  for (const child of childrenOf(node)) tablesIn(child, defined, found)
  return found
}
