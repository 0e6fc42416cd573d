import type { Expr, RelationNode } from '../sql/analyzer/tree.ts'

/**
 * The one row of a SELECT of literals, in the format of a result page; undefined for any other query. Drivers and pools
 * send such queries to check that a server is alive, and they need no engine.
 */
export function literalRow(node: RelationNode, columns: readonly { readonly column: number }[]): string | undefined {
  if (node.kind !== 'project' || node.input.kind !== 'values') return undefined
  const { input } = node
  if (input.columns.length > 0 || input.rows.length !== 1) return undefined
  const values: string[] = []
  for (const { column } of columns) {
    const text = wireText(node.columns.find(({ id }) => id === column)?.expression)
    if (text === undefined) return undefined
    values.push(text)
  }
  return `[${values.join(', ')}]`
}

/** The JSON text of a literal whose wire format is its value; undefined if the type has a special format. */
function wireText(expression: Expr | undefined): string | undefined {
  if (expression?.kind !== 'constant') return undefined
  const { type, value } = expression
  if (value === null) return 'null'
  switch (type.kind) {
    case 'boolean':
      return String(value)
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
      return String(value)
    case 'varchar':
      return JSON.stringify(value)
    default:
      return undefined
  }
}
