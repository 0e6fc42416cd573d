import type { StringLiteral } from './ast.ts'
import type { QualifiedName } from './ast-node.ts'
import type { Statement } from './ast-statements.ts'
import type { Principal } from './ast-access.ts'
import type { ColumnDefinition, SaveMode, TableElement } from './ast-definitions.ts'
import { parseCreateRole, parseDropRole, parsePrincipal } from './parse-access.ts'
import { parseWithProperties } from './parse-data.ts'
import { parseInterval } from './parse-literals.ts'
import { parseColumnAliases, parseIdentifier, parseQualifiedName, parseString } from './parse-names.ts'
import { parseRootQuery } from './parse-query.ts'
import { parseFunctionSpecification, parseParameters } from './parse-routines.ts'
import { parseType } from './parse-types.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parseCreate(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('CREATE')
  const replace = cursor.accept('OR')
  if (replace) cursor.expect('REPLACE')
  if (cursor.is('TABLE')) return parseCreateTable(cursor, start, replace)
  if (cursor.is('VIEW')) return parseCreateView(cursor, start, replace)
  if (cursor.is('MATERIALIZED')) return parseCreateMaterializedView(cursor, start, replace)
  if (cursor.is('FUNCTION')) {
    const specification = parseFunctionSpecification(cursor)
    return { kind: 'CreateFunction', span: cursor.span(start), specification, replace }
  }
  if (!replace) {
    if (cursor.is('CATALOG')) return parseCreateCatalog(cursor, start)
    if (cursor.is('SCHEMA')) return parseCreateSchema(cursor, start)
    if (cursor.is('ROLE')) return parseCreateRole(cursor, start)
  }
  return cursor.fail()
}

function parseNotExists(cursor: TokenCursor): boolean {
  if (!cursor.isPair('IF', 'NOT')) return false
  cursor.expect('IF', 'NOT', 'EXISTS')
  return true
}

function parseOptionalComment(cursor: TokenCursor): StringLiteral | undefined {
  return cursor.accept('COMMENT') ? parseString(cursor) : undefined
}

function parseAuthorization(cursor: TokenCursor): Principal | undefined {
  return cursor.accept('AUTHORIZATION') ? parsePrincipal(cursor) : undefined
}

function parseCreateCatalog(cursor: TokenCursor, start: number): Statement {
  cursor.expect('CATALOG')
  const notExists = parseNotExists(cursor)
  const name = parseIdentifier(cursor)
  cursor.expect('USING')
  const connector = parseIdentifier(cursor)
  const comment = parseOptionalComment(cursor)
  const principal = parseAuthorization(cursor)
  const properties = parseWithProperties(cursor)
  const span = cursor.span(start)
  return { kind: 'CreateCatalog', span, name, notExists, connector, comment, principal, properties }
}

function parseCreateSchema(cursor: TokenCursor, start: number): Statement {
  cursor.expect('SCHEMA')
  const notExists = parseNotExists(cursor)
  const name = parseQualifiedName(cursor)
  const principal = parseAuthorization(cursor)
  const properties = parseWithProperties(cursor)
  return { kind: 'CreateSchema', span: cursor.span(start), name, notExists, principal, properties }
}

function parseCreateTable(cursor: TokenCursor, start: number, replace: boolean): Statement {
  cursor.expect('TABLE')
  const saveMode: SaveMode = parseNotExists(cursor) ? 'IGNORE' : replace ? 'REPLACE' : 'FAIL'
  const name = parseQualifiedName(cursor)
  const isAliases = cursor.is('(') && cursor.isIdentifierAt(1) && [',', ')'].includes(cursor.peek(2))
  if (isAliases || !cursor.is('(')) return parseCreateTableAs(cursor, start, name, saveMode)
  const elements = cursor.parenthesized(() => cursor.list(parseTableElement))
  const comment = parseOptionalComment(cursor)
  const properties = parseWithProperties(cursor)
  return { kind: 'CreateTable', span: cursor.span(start), name, elements, saveMode, comment, properties }
}

function parseCreateTableAs(cursor: TokenCursor, start: number, name: QualifiedName, saveMode: SaveMode): Statement {
  const columnAliases = cursor.is('(') ? parseColumnAliases(cursor) : undefined
  const comment = parseOptionalComment(cursor)
  const properties = parseWithProperties(cursor)
  cursor.expect('AS')
  const wrapped = cursor.is('(') && isWrappedQuery(cursor)
  const query = wrapped ? cursor.parenthesized(parseRootQuery) : parseRootQuery(cursor)
  let withData = true
  if (cursor.accept('WITH')) {
    withData = !cursor.accept('NO')
    cursor.expect('DATA')
  }
  const span = cursor.span(start)
  return { kind: 'CreateTableAsSelect', span, name, query, saveMode, properties, withData, columnAliases, comment }
}

/** Whether parentheses enclose the whole query: they then belong to the statement, not to the query. */
function isWrappedQuery(cursor: TokenCursor): boolean {
  const after = cursor.peek(cursor.closeOf(cursor.index) - cursor.index + 1)
  return cursor.peek(1) === 'WITH' || after === 'WITH' || after === 'EOF' || after === ')'
}

function parseTableElement(cursor: TokenCursor): TableElement {
  const { start } = cursor
  if (!cursor.accept('LIKE')) return parseColumnDefinition(cursor)
  const table = parseQualifiedName(cursor)
  let properties: 'INCLUDING' | 'EXCLUDING' | undefined
  if (cursor.isOneOf('INCLUDING', 'EXCLUDING')) {
    properties = cursor.expectOneOf('INCLUDING', 'EXCLUDING')
    cursor.expect('PROPERTIES')
  }
  return { kind: 'LikeTable', span: cursor.span(start), table, properties }
}

export function parseColumnDefinition(cursor: TokenCursor): ColumnDefinition {
  const { start } = cursor
  const name = parseQualifiedName(cursor)
  const type = parseType(cursor)
  const nullable = !cursor.accept('NOT')
  if (!nullable) cursor.expect('NULL')
  const comment = parseOptionalComment(cursor)
  const properties = parseWithProperties(cursor)
  return { kind: 'ColumnDefinition', span: cursor.span(start), name, type, nullable, comment, properties }
}

function parseCreateView(cursor: TokenCursor, start: number, replace: boolean): Statement {
  cursor.expect('VIEW')
  const name = parseQualifiedName(cursor)
  const comment = parseOptionalComment(cursor)
  const security = cursor.accept('SECURITY') ? cursor.expectOneOf('DEFINER', 'INVOKER') : undefined
  const properties = parseWithProperties(cursor)
  cursor.expect('AS')
  const query = parseRootQuery(cursor)
  return { kind: 'CreateView', span: cursor.span(start), name, query, replace, comment, security, properties }
}

function parseCreateMaterializedView(cursor: TokenCursor, start: number, replace: boolean): Statement {
  cursor.expect('MATERIALIZED', 'VIEW')
  const notExists = parseNotExists(cursor)
  const name = parseQualifiedName(cursor)
  const grace = cursor.accept('GRACE')
  if (grace) cursor.expect('PERIOD')
  const gracePeriod = grace ? parseInterval(cursor) : undefined
  const comment = parseOptionalComment(cursor)
  const properties = parseWithProperties(cursor)
  cursor.expect('AS')
  const query = parseRootQuery(cursor)
  const span = cursor.span(start)
  return { kind: 'CreateMaterializedView', span, name, query, replace, notExists, gracePeriod, properties, comment }
}

export function parseDrop(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('DROP')
  const exists = (): boolean => cursor.acceptPair('IF', 'EXISTS')
  if (cursor.is('ROLE')) return parseDropRole(cursor, start)
  switch (cursor.expectOneOf('CATALOG', 'FUNCTION', 'MATERIALIZED', 'SCHEMA', 'TABLE', 'VIEW')) {
    case 'CATALOG':
      return {
        kind: 'DropCatalog',
        exists: exists(),
        name: parseIdentifier(cursor),
        cascade: parseCascade(cursor),
        span: cursor.span(start),
      }
    case 'SCHEMA':
      return {
        kind: 'DropSchema',
        exists: exists(),
        name: parseQualifiedName(cursor),
        cascade: parseCascade(cursor),
        span: cursor.span(start),
      }
    case 'TABLE':
      return { kind: 'DropTable', exists: exists(), name: parseQualifiedName(cursor), span: cursor.span(start) }
    case 'VIEW':
      return { kind: 'DropView', exists: exists(), name: parseQualifiedName(cursor), span: cursor.span(start) }
    case 'MATERIALIZED':
      cursor.expect('VIEW')
      return {
        kind: 'DropMaterializedView',
        exists: exists(),
        name: parseQualifiedName(cursor),
        span: cursor.span(start),
      }
    case 'FUNCTION':
      return {
        kind: 'DropFunction',
        exists: exists(),
        name: parseQualifiedName(cursor),
        parameters: parseParameters(cursor),
        span: cursor.span(start),
      }
  }
}

function parseCascade(cursor: TokenCursor): boolean {
  if (cursor.accept('CASCADE')) return true
  cursor.accept('RESTRICT')
  return false
}

export function parseComment(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('COMMENT', 'ON')
  const type = cursor.expectOneOf('COLUMN', 'TABLE', 'VIEW')
  const name = parseQualifiedName(cursor)
  cursor.expect('IS')
  const comment = cursor.accept('NULL') ? undefined : parseString(cursor)
  return { kind: 'CommentOn', span: cursor.span(start), type, name, comment }
}
