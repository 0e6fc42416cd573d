import type { RecordedStatement } from './recorded-statement.ts'
import { StatementText } from '../sql/parsed-statement.ts'
import type { Table } from '../sql/syntax/ast-query.ts'
import type { Statement } from '../sql/syntax/ast-statements.ts'
import { parseStatement } from '../sql/syntax/parser.ts'
import { printStatement } from '../sql/syntax/printer.ts'
import { withNodes } from '../sql/syntax/tree.ts'

/** Names of catalogs on the other server, by their names here; in lower case. */
export type CatalogMap = ReadonlyMap<string, string>

/**
 * The query that a statement runs: for EXECUTE the prepared one. Undefined for texts of another dialect, and for other
 * statements.
 */
export function queryIn({ sql, session }: RecordedStatement): Statement | undefined {
  const parsed = new StatementText(sql, session.preparedStatements).parse()
  if (parsed.kind === 'invalid') return undefined
  const { tree, inner } = parsed
  if (tree.kind !== 'Execute' && tree.kind !== 'ExecuteImmediate') return tree
  const executed = inner?.parse()
  return executed?.kind === 'valid' ? executed.tree : undefined
}

/** The text with the catalogs of its tables renamed to those of the other server. */
export function withCatalogs(sql: string, catalogs: CatalogMap): string {
  if (catalogs.size === 0) return sql
  const statement = parseStatement(sql)
  const renamed = withNodes(statement, (node) =>
    node.kind === 'Table' ? renamedTable(node as Table, catalogs) : undefined,
  )
  return renamed === statement ? sql : printStatement(renamed)
}

function renamedTable(table: Table, catalogs: CatalogMap): Table {
  const [first, ...rest] = table.name.parts
  const other = rest.length === 2 ? catalogs.get(first!.value.toLowerCase()) : undefined
  if (other === undefined) return table
  return { ...table, name: { ...table.name, parts: [{ ...first!, value: other, quoted: true }, ...rest] } }
}
