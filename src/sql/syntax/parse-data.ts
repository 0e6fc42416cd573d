import type { Identifier } from './ast-node.ts'
import type { CallArgument, MergeCase, Statement, UpdateAssignment } from './ast-statements.ts'
import type { Property } from './ast-definitions.ts'
import { parseExpression } from './parse-expressions.ts'
import { parseColumnAliases, parseIdentifier, parseQualifiedName } from './parse-names.ts'
import { parseRootQuery } from './parse-query.ts'
import { parseRelation } from './parse-relations.ts'
import type { TokenCursor } from './token-cursor.ts'

/** Parses an optional `WITH (a = 1, b = DEFAULT)`. */
export function parseWithProperties(cursor: TokenCursor): Property[] {
  if (!cursor.isPair('WITH', '(')) return []
  cursor.advance()
  return cursor.parenthesized(parseProperties)
}

export function parseProperties(cursor: TokenCursor): Property[] {
  return cursor.list(() => {
    const { start } = cursor
    const name = parseIdentifier(cursor)
    cursor.expect('=')
    const isDefault = cursor.is('DEFAULT') && [',', ')', 'EOF'].includes(cursor.peek(1))
    if (isDefault) cursor.advance()
    const value = isDefault ? undefined : parseExpression(cursor)
    return { kind: 'Property', span: cursor.span(start), name, value }
  })
}

export function parseInsert(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('INSERT', 'INTO')
  const target = parseQualifiedName(cursor)
  const columns = cursor.is('(') && isColumnList(cursor) ? parseColumnAliases(cursor) : undefined
  cursor.note("'WITH'")
  const query = parseRootQuery(cursor)
  return { kind: 'Insert', span: cursor.span(start), target, columns, query }
}

/** Whether a list of columns begins here: a name in parentheses cannot begin a query. */
function isColumnList(cursor: TokenCursor): boolean {
  return cursor.isIdentifierAt(1)
}

export function parseDelete(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('DELETE', 'FROM')
  const table = parseQualifiedName(cursor)
  const where = cursor.accept('WHERE') ? parseExpression(cursor) : undefined
  return { kind: 'Delete', span: cursor.span(start), table, where }
}

export function parseUpdate(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('UPDATE')
  const table = parseQualifiedName(cursor)
  cursor.expect('SET')
  const assignments = cursor.list(parseAssignment)
  const where = cursor.accept('WHERE') ? parseExpression(cursor) : undefined
  return { kind: 'Update', span: cursor.span(start), table, assignments, where }
}

function parseAssignment(cursor: TokenCursor): UpdateAssignment {
  const { start } = cursor
  const name = parseIdentifier(cursor)
  cursor.expect('=')
  const value = parseExpression(cursor)
  return { kind: 'UpdateAssignment', span: cursor.span(start), name, value }
}

export function parseMerge(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('MERGE', 'INTO')
  const target = parseQualifiedName(cursor)
  let targetAlias: Identifier | undefined
  if (cursor.accept('AS') || cursor.isIdentifier()) targetAlias = parseIdentifier(cursor)
  cursor.expect('USING')
  const source = parseRelation(cursor)
  cursor.expect('ON')
  const predicate = parseExpression(cursor)
  const cases: MergeCase[] = []
  do cases.push(parseMergeCase(cursor))
  while (cursor.is('WHEN'))
  return { kind: 'Merge', span: cursor.span(start), target, targetAlias, source, predicate, cases }
}

function parseMergeCase(cursor: TokenCursor): MergeCase {
  const { start } = cursor
  cursor.expect('WHEN')
  const inserts = cursor.accept('NOT')
  cursor.expect('MATCHED')
  const condition = cursor.accept('AND') ? parseExpression(cursor) : undefined
  cursor.expect('THEN')
  if (inserts) {
    cursor.expect('INSERT')
    const columns = cursor.is('(') ? parseColumnAliases(cursor) : []
    cursor.expect('VALUES')
    const values = cursor.parenthesized(() => cursor.list(parseExpression))
    return { kind: 'MergeInsert', span: cursor.span(start), condition, columns, values }
  }
  if (cursor.expectOneOf('DELETE', 'UPDATE') === 'DELETE') {
    return { kind: 'MergeDelete', span: cursor.span(start), condition }
  }
  cursor.expect('SET')
  const assignments = cursor.list(parseAssignment)
  return { kind: 'MergeUpdate', span: cursor.span(start), condition, assignments }
}

export function parseTruncate(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('TRUNCATE', 'TABLE')
  const table = parseQualifiedName(cursor)
  return { kind: 'TruncateTable', span: cursor.span(start), table }
}

export function parseCallStatement(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('CALL')
  const name = parseQualifiedName(cursor)
  const list = parseCallArguments(cursor)
  return { kind: 'Call', span: cursor.span(start), name, arguments: list }
}

/** Parses `(1, name => 2)`. */
export function parseCallArguments(cursor: TokenCursor): CallArgument[] {
  return cursor.parenthesized(() => (cursor.is(')') ? [] : cursor.list(parseCallArgument)))
}

function parseCallArgument(cursor: TokenCursor): CallArgument {
  const { start } = cursor
  let name: Identifier | undefined
  if (cursor.isIdentifierAt(0) && cursor.peek(1) === '=>') {
    name = parseIdentifier(cursor)
    cursor.advance()
  }
  const value = parseExpression(cursor)
  return { kind: 'CallArgument', span: cursor.span(start), name, value }
}

export function parseAnalyze(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('ANALYZE')
  const table = parseQualifiedName(cursor)
  const properties = parseWithProperties(cursor)
  return { kind: 'Analyze', span: cursor.span(start), table, properties }
}

export function parseRefresh(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('REFRESH', 'MATERIALIZED', 'VIEW')
  const name = parseQualifiedName(cursor)
  return { kind: 'RefreshMaterializedView', span: cursor.span(start), name }
}
