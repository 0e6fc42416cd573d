import type { QualifiedName } from './ast-node.ts'
import type { Statement } from './ast-statements.ts'
import type { ColumnPosition, SetProperties } from './ast-definitions.ts'
import { parsePrincipal } from './parse-access.ts'
import { parseCallArguments, parseProperties } from './parse-data.ts'
import { parseColumnDefinition } from './parse-definitions.ts'
import { parseExpression } from './parse-expressions.ts'
import { parseIdentifier, parseQualifiedName } from './parse-names.ts'
import { parseType } from './parse-types.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parseAlter(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('ALTER')
  if (cursor.accept('TABLE')) return parseAlterTable(cursor, start)
  if (cursor.acceptPair('MATERIALIZED', 'VIEW')) return parseAlterMaterializedView(cursor, start)
  if (cursor.accept('VIEW')) return parseAlterView(cursor, start)
  if (cursor.accept('SCHEMA')) return parseAlterSchema(cursor, start)
  // Kinds of entities known only to some connectors can change their owner.
  const entityKind = parseIdentifier(cursor).value.toUpperCase()
  const name = parseQualifiedName(cursor)
  return parseSetAuthorization(cursor, start, entityKind, name)
}

function parseSetAuthorization(cursor: TokenCursor, start: number, entityKind: string, name: QualifiedName): Statement {
  cursor.expect('SET', 'AUTHORIZATION')
  const principal = parsePrincipal(cursor)
  return { kind: 'SetAuthorization', span: cursor.span(start), entityKind, name, principal }
}

function parseSetProperties(
  cursor: TokenCursor,
  start: number,
  type: SetProperties['type'],
  name: QualifiedName,
): Statement {
  cursor.expect('SET', 'PROPERTIES')
  const properties = parseProperties(cursor)
  return { kind: 'SetProperties', span: cursor.span(start), type, name, properties }
}

function parseAlterSchema(cursor: TokenCursor, start: number): Statement {
  const source = parseQualifiedName(cursor)
  if (cursor.is('SET')) return parseSetAuthorization(cursor, start, 'SCHEMA', source)
  cursor.expect('RENAME', 'TO')
  const target = parseIdentifier(cursor)
  return { kind: 'RenameSchema', span: cursor.span(start), source, target }
}

function parseAlterView(cursor: TokenCursor, start: number): Statement {
  const source = parseQualifiedName(cursor)
  if (cursor.is('SET')) return parseSetAuthorization(cursor, start, 'VIEW', source)
  if (cursor.accept('REFRESH')) return { kind: 'RefreshView', span: cursor.span(start), name: source }
  cursor.expect('RENAME', 'TO')
  const target = parseQualifiedName(cursor)
  return { kind: 'RenameView', span: cursor.span(start), source, target }
}

function parseAlterMaterializedView(cursor: TokenCursor, start: number): Statement {
  const exists = cursor.acceptPair('IF', 'EXISTS')
  const source = parseQualifiedName(cursor)
  if (!exists && cursor.is('SET')) {
    return cursor.peek(1) === 'AUTHORIZATION'
      ? parseSetAuthorization(cursor, start, 'MATERIALIZED VIEW', source)
      : parseSetProperties(cursor, start, 'MATERIALIZED_VIEW', source)
  }
  cursor.expect('RENAME', 'TO')
  const target = parseQualifiedName(cursor)
  return { kind: 'RenameMaterializedView', span: cursor.span(start), source, target, exists }
}

function parseAlterTable(cursor: TokenCursor, start: number): Statement {
  const exists = cursor.acceptPair('IF', 'EXISTS')
  const table = parseQualifiedName(cursor)
  if (cursor.accept('ADD')) return parseAddColumn(cursor, start, table, exists)
  if (cursor.accept('DROP')) {
    cursor.expect('COLUMN')
    const columnExists = cursor.acceptPair('IF', 'EXISTS')
    const field = parseQualifiedName(cursor)
    return { kind: 'DropColumn', span: cursor.span(start), table, field, tableExists: exists, columnExists }
  }
  if (cursor.accept('RENAME')) return parseRename(cursor, start, table, exists)
  if (cursor.accept('ALTER')) return parseAlterColumn(cursor, start, table, exists)
  if (exists) cursor.fail()
  if (cursor.is('SET')) {
    return cursor.peek(1) === 'AUTHORIZATION'
      ? parseSetAuthorization(cursor, start, 'TABLE', table)
      : parseSetProperties(cursor, start, 'TABLE', table)
  }
  cursor.expect('EXECUTE')
  const procedure = parseIdentifier(cursor)
  const list = cursor.is('(') ? parseCallArguments(cursor) : []
  const where = cursor.accept('WHERE') ? parseExpression(cursor) : undefined
  return { kind: 'TableExecute', span: cursor.span(start), table, procedure, arguments: list, where }
}

function parseAddColumn(cursor: TokenCursor, start: number, table: QualifiedName, tableExists: boolean): Statement {
  cursor.expect('COLUMN')
  const columnNotExists = cursor.isPair('IF', 'NOT')
  if (columnNotExists) cursor.expect('IF', 'NOT', 'EXISTS')
  const column = parseColumnDefinition(cursor)
  let position: ColumnPosition | undefined
  if (cursor.isOneOf('FIRST', 'LAST')) position = { position: cursor.expectOneOf('FIRST', 'LAST') }
  else if (cursor.accept('AFTER')) position = { position: 'AFTER', column: parseIdentifier(cursor) }
  return { kind: 'AddColumn', span: cursor.span(start), table, column, tableExists, columnNotExists, position }
}

function parseRename(cursor: TokenCursor, start: number, table: QualifiedName, tableExists: boolean): Statement {
  if (cursor.accept('TO')) {
    const target = parseQualifiedName(cursor)
    return { kind: 'RenameTable', span: cursor.span(start), source: table, target, exists: tableExists }
  }
  cursor.expect('COLUMN')
  const columnExists = cursor.acceptPair('IF', 'EXISTS')
  const source = parseQualifiedName(cursor)
  cursor.expect('TO')
  const target = parseIdentifier(cursor)
  return { kind: 'RenameColumn', span: cursor.span(start), table, source, target, tableExists, columnExists }
}

function parseAlterColumn(cursor: TokenCursor, start: number, table: QualifiedName, tableExists: boolean): Statement {
  cursor.expect('COLUMN')
  const column = parseQualifiedName(cursor)
  if (column.parts.length === 1 && cursor.accept('DROP')) {
    cursor.expect('NOT', 'NULL')
    const name = column.parts[0]!
    return { kind: 'DropNotNullConstraint', span: cursor.span(start), table, column: name, tableExists }
  }
  cursor.expect('SET', 'DATA', 'TYPE')
  const type = parseType(cursor)
  return { kind: 'SetColumnType', span: cursor.span(start), table, column, type, tableExists }
}
