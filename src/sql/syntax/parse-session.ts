import type { Expression, StringLiteral } from './ast.ts'
import type { Identifier } from './ast-node.ts'
import type {
  Execute,
  ExecuteImmediate,
  LikeClause,
  PathElement,
  SetRole,
  ShowCreate,
  ShowStatement,
  Statement,
  TransactionMode,
} from './ast-statements.ts'
import { parseGrantObject } from './parse-access.ts'
import { parseExpression } from './parse-expressions.ts'
import { isString, parseIdentifier, parseOptionalCatalog, parseQualifiedName, parseString } from './parse-names.ts'
import { parseRootQuery } from './parse-query.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parseUse(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('USE')
  const first = parseIdentifier(cursor)
  const second = cursor.accept('.') ? parseIdentifier(cursor) : undefined
  const span = cursor.span(start)
  return second === undefined
    ? { kind: 'Use', span, catalog: undefined, schema: first }
    : { kind: 'Use', span, catalog: first, schema: second }
}

/** Whether a word that may also be a name is a keyword here: it is a name if one of `namesEnd` follows. */
function isWord(cursor: TokenCursor, word: string, ...namesEnd: readonly string[]): boolean {
  return cursor.is(word) && !namesEnd.includes(cursor.peek(1))
}

export function parseSet(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('SET')
  if (cursor.accept('SESSION')) {
    if (isWord(cursor, 'AUTHORIZATION', '.', '=')) {
      cursor.advance()
      const user: Identifier | StringLiteral = isString(cursor) ? parseString(cursor) : parseIdentifier(cursor)
      return { kind: 'SetSessionAuthorization', span: cursor.span(start), user }
    }
    const name = parseQualifiedName(cursor)
    cursor.expect('=')
    const value = parseExpression(cursor)
    return { kind: 'SetSession', span: cursor.span(start), name, value }
  }
  if (cursor.accept('PATH')) {
    const path = cursor.list(parsePathElement)
    return { kind: 'SetPath', span: cursor.span(start), path }
  }
  if (cursor.accept('ROLE')) return parseSetRole(cursor, start)
  cursor.expect('TIME', 'ZONE')
  if (cursor.isPair('LOCAL', 'EOF')) {
    cursor.advance()
    return { kind: 'SetTimeZone', span: cursor.span(start), timeZone: undefined }
  }
  const timeZone = parseExpression(cursor)
  return { kind: 'SetTimeZone', span: cursor.span(start), timeZone }
}

function parsePathElement(cursor: TokenCursor): PathElement {
  const { start } = cursor
  const first = parseIdentifier(cursor)
  const second = cursor.accept('.') ? parseIdentifier(cursor) : undefined
  const [catalog, schema] = second === undefined ? [undefined, first] : [first, second]
  return { kind: 'PathElement', span: cursor.span(start), catalog, schema }
}

function parseSetRole(cursor: TokenCursor, start: number): SetRole {
  let type: SetRole['type'] = 'ROLE'
  if (cursor.is('ALL')) type = 'ALL'
  else if (cursor.is('NONE')) type = 'NONE'
  const name = parseIdentifier(cursor)
  const catalog = parseOptionalCatalog(cursor, 'IN')
  return { kind: 'SetRole', span: cursor.span(start), type, role: type === 'ROLE' ? name : undefined, catalog }
}

export function parseReset(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('RESET', 'SESSION')
  if (isWord(cursor, 'AUTHORIZATION', '.')) {
    cursor.advance()
    return { kind: 'ResetSessionAuthorization', span: cursor.span(start) }
  }
  const name = parseQualifiedName(cursor)
  return { kind: 'ResetSession', span: cursor.span(start), name }
}

function parseLike(cursor: TokenCursor): LikeClause {
  if (!cursor.accept('LIKE')) return { likePattern: undefined, escape: undefined }
  const likePattern = parseString(cursor)
  const escape = cursor.accept('ESCAPE') ? parseString(cursor) : undefined
  return { likePattern, escape }
}

export function parseShow(cursor: TokenCursor): ShowStatement {
  const { start } = cursor
  cursor.expect('SHOW')
  if (cursor.accept('CATALOGS')) return { kind: 'ShowCatalogs', ...parseLike(cursor), span: cursor.span(start) }
  if (cursor.accept('SCHEMAS')) {
    const catalog = parseOptionalCatalog(cursor, 'FROM', 'IN')
    return { kind: 'ShowSchemas', catalog, ...parseLike(cursor), span: cursor.span(start) }
  }
  if (cursor.isOneOf('TABLES', 'FUNCTIONS')) {
    const kind = cursor.type === 'TABLES' ? 'ShowTables' : 'ShowFunctions'
    cursor.advance()
    const schema = cursor.accept('FROM') || cursor.accept('IN') ? parseQualifiedName(cursor) : undefined
    return { kind, schema, ...parseLike(cursor), span: cursor.span(start) }
  }
  if (cursor.accept('COLUMNS')) {
    cursor.expectOneOf('FROM', 'IN')
    const table = parseQualifiedName(cursor)
    return { kind: 'ShowColumns', table, ...parseLike(cursor), span: cursor.span(start) }
  }
  if (cursor.accept('SESSION')) return { kind: 'ShowSession', ...parseLike(cursor), span: cursor.span(start) }
  if (cursor.accept('CREATE')) return parseShowCreate(cursor, start)
  if (cursor.accept('STATS')) return parseShowStats(cursor, start)
  if (cursor.accept('GRANTS')) {
    const object = cursor.accept('ON') ? parseGrantObject(cursor) : undefined
    return { kind: 'ShowGrants', span: cursor.span(start), object }
  }
  if (cursor.accept('ROLE')) {
    cursor.expect('GRANTS')
    const catalog = parseOptionalCatalog(cursor, 'FROM', 'IN')
    return { kind: 'ShowRoleGrants', span: cursor.span(start), catalog }
  }
  const current = cursor.accept('CURRENT')
  cursor.expect('ROLES')
  const catalog = parseOptionalCatalog(cursor, 'FROM', 'IN')
  return { kind: 'ShowRoles', span: cursor.span(start), current, catalog }
}

function parseShowCreate(cursor: TokenCursor, start: number): ShowCreate {
  const word = cursor.expectOneOf('FUNCTION', 'MATERIALIZED', 'SCHEMA', 'TABLE', 'VIEW')
  if (word === 'MATERIALIZED') cursor.expect('VIEW')
  const name = parseQualifiedName(cursor)
  return {
    kind: 'ShowCreate',
    span: cursor.span(start),
    type: word === 'MATERIALIZED' ? 'MATERIALIZED_VIEW' : word,
    name,
  }
}

function parseShowStats(cursor: TokenCursor, start: number): ShowStatement {
  cursor.expect('FOR')
  const from = cursor.start
  if (cursor.is('(')) {
    const query = cursor.parenthesized(parseRootQuery)
    const relation = { kind: 'TableSubquery', span: cursor.span(from), query } as const
    return { kind: 'ShowStats', span: cursor.span(start), relation }
  }
  const name = parseQualifiedName(cursor)
  const relation = { kind: 'Table', span: name.span, name, queryPeriod: undefined } as const
  return { kind: 'ShowStats', span: cursor.span(start), relation }
}

/** Parses DESCRIBE and DESC: INPUT and OUTPUT of a prepared statement, otherwise the columns of a table. */
export function parseDescribe(cursor: TokenCursor): Statement {
  const { start } = cursor
  const isLong = cursor.accept('DESCRIBE')
  if (!isLong) cursor.expect('DESC')
  if (isLong && cursor.isOneOf('INPUT', 'OUTPUT') && cursor.isIdentifierAt(1)) {
    const kind = cursor.type === 'INPUT' ? 'DescribeInput' : 'DescribeOutput'
    cursor.advance()
    const name = parseIdentifier(cursor)
    return { kind, span: cursor.span(start), name }
  }
  const table = parseQualifiedName(cursor)
  return { kind: 'ShowColumns', span: cursor.span(start), table, likePattern: undefined, escape: undefined }
}

export function parsePrepare(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('PREPARE')
  const name = parseIdentifier(cursor)
  cursor.expect('FROM')
  const statement = cursor.rules.statement(cursor)
  return { kind: 'Prepare', span: cursor.span(start), name, statement }
}

export function parseDeallocate(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('DEALLOCATE', 'PREPARE')
  const name = parseIdentifier(cursor)
  return { kind: 'Deallocate', span: cursor.span(start), name }
}

export function parseExecute(cursor: TokenCursor): Execute | ExecuteImmediate {
  const { start } = cursor
  cursor.expect('EXECUTE')
  const next = cursor.peek(1)
  if (cursor.is('IMMEDIATE') && (next === 'STRING_LITERAL' || next === 'UNICODE_STRING')) {
    cursor.advance()
    const statement = parseString(cursor)
    const parameters = parseUsing(cursor)
    return { kind: 'ExecuteImmediate', span: cursor.span(start), statement, parameters }
  }
  const name = parseIdentifier(cursor)
  const parameters = parseUsing(cursor)
  return { kind: 'Execute', span: cursor.span(start), name, parameters }
}

function parseUsing(cursor: TokenCursor): Expression[] {
  return cursor.accept('USING') ? cursor.list(parseExpression) : []
}

export function parseTransaction(cursor: TokenCursor): Statement {
  const { start } = cursor
  switch (cursor.expectOneOf('START', 'COMMIT', 'ROLLBACK')) {
    case 'START': {
      cursor.expect('TRANSACTION')
      const modes = cursor.isOneOf('ISOLATION', 'READ') ? cursor.list(parseTransactionMode) : []
      return { kind: 'StartTransaction', span: cursor.span(start), modes }
    }
    case 'COMMIT':
      cursor.accept('WORK')
      return { kind: 'Commit', span: cursor.span(start) }
    case 'ROLLBACK':
      cursor.accept('WORK')
      return { kind: 'Rollback', span: cursor.span(start) }
  }
}

function parseTransactionMode(cursor: TokenCursor): TransactionMode {
  const { start } = cursor
  if (cursor.accept('READ')) {
    const readOnly = cursor.expectOneOf('ONLY', 'WRITE') === 'ONLY'
    return { kind: 'TransactionAccessMode', span: cursor.span(start), readOnly }
  }
  cursor.expect('ISOLATION', 'LEVEL')
  if (cursor.accept('SERIALIZABLE')) return { kind: 'IsolationLevel', span: cursor.span(start), level: 'SERIALIZABLE' }
  if (cursor.accept('REPEATABLE')) {
    cursor.expect('READ')
    return { kind: 'IsolationLevel', span: cursor.span(start), level: 'REPEATABLE READ' }
  }
  cursor.expect('READ')
  const level = `READ ${cursor.expectOneOf('COMMITTED', 'UNCOMMITTED')}` as const
  return { kind: 'IsolationLevel', span: cursor.span(start), level }
}
