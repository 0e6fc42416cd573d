import type { Identifier } from './ast-node.ts'
import type { Statement } from './ast-statements.ts'
import type { GrantObject, Grantor, Principal } from './ast-access.ts'
import { parseIdentifier, parseOptionalCatalog, parseQualifiedName } from './parse-names.ts'
import type { TokenCursor } from './token-cursor.ts'

export function parsePrincipal(cursor: TokenCursor): Principal {
  const { start } = cursor
  let type: Principal['type'] = 'UNSPECIFIED'
  if (cursor.isIdentifierAt(1) && (cursor.is('USER') || cursor.is('ROLE'))) {
    type = cursor.expectOneOf('USER', 'ROLE')
  }
  const name = parseIdentifier(cursor)
  return { kind: 'Principal', span: cursor.span(start), type, name }
}

function parseGrantor(cursor: TokenCursor): Grantor {
  const { start } = cursor
  if (!cursor.isOneOf('CURRENT_USER', 'CURRENT_ROLE')) return parsePrincipal(cursor)
  const type = cursor.expectOneOf('CURRENT_USER', 'CURRENT_ROLE')
  return { kind: 'CurrentGrantor', span: cursor.span(start), type }
}

const privilegeWords = ['CREATE', 'DELETE', 'INSERT', 'SELECT', 'UPDATE'] as const

/** Parses a privilege or a role; only the token after the list shows which. */
function parsePrivilegeOrRole(cursor: TokenCursor): Identifier {
  if (!cursor.isOneOf(...privilegeWords)) return parseIdentifier(cursor)
  const { start } = cursor
  const value = cursor.textOf(cursor.index)
  cursor.advance()
  return { kind: 'Identifier', span: cursor.span(start), value: value.toUpperCase(), quoted: false }
}

/** Parses `nation`, `TABLE nation`, `SCHEMA tiny` or `WORD name`. */
export function parseGrantObject(cursor: TokenCursor): GrantObject {
  const { start } = cursor
  let entityKind: string | undefined
  // TO is a keyword that may also be a name; after one name it ends the object.
  const named = cursor.isIdentifierAt(1) && (cursor.peek(1) !== 'TO' || ['TO', 'FROM', '.'].includes(cursor.peek(2)))
  if (cursor.is('TABLE') || (cursor.isIdentifierAt(0) && named)) {
    entityKind = cursor.textOf(cursor.index).toUpperCase()
    cursor.advance()
  }
  const name = parseQualifiedName(cursor)
  return { kind: 'GrantObject', span: cursor.span(start), entityKind, name }
}

/** Returns undefined for ALL PRIVILEGES. */
function parsePrivileges(cursor: TokenCursor): Identifier[] | undefined {
  if (cursor.acceptPair('ALL', 'PRIVILEGES')) return undefined
  return cursor.list(parsePrivilegeOrRole)
}

function parseGrantedBy(cursor: TokenCursor): Grantor | undefined {
  if (!cursor.accept('GRANTED')) return undefined
  cursor.expect('BY')
  return parseGrantor(cursor)
}

export function parseGrant(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('GRANT')
  const privileges = parsePrivileges(cursor)
  if (privileges !== undefined && cursor.accept('TO')) {
    const grantees = cursor.list(parsePrincipal)
    const adminOption = cursor.accept('WITH')
    if (adminOption) cursor.expect('ADMIN', 'OPTION')
    const grantor = parseGrantedBy(cursor)
    const catalog = parseOptionalCatalog(cursor, 'IN')
    return { kind: 'GrantRoles', span: cursor.span(start), roles: privileges, grantees, adminOption, grantor, catalog }
  }
  cursor.expect('ON')
  const object = parseGrantObject(cursor)
  cursor.expect('TO')
  const grantee = parsePrincipal(cursor)
  const withGrantOption = cursor.accept('WITH')
  if (withGrantOption) cursor.expect('GRANT', 'OPTION')
  return { kind: 'Grant', span: cursor.span(start), privileges, object, grantee, withGrantOption }
}

export function parseRevoke(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('REVOKE')
  const adminOption = cursor.acceptPair('ADMIN', 'OPTION')
  const grantOptionFor = !adminOption && cursor.acceptPair('GRANT', 'OPTION')
  if (adminOption || grantOptionFor) cursor.expect('FOR')
  const privileges = adminOption ? cursor.list(parsePrivilegeOrRole) : parsePrivileges(cursor)
  if (privileges !== undefined && !grantOptionFor && cursor.accept('FROM')) {
    const grantees = cursor.list(parsePrincipal)
    const grantor = parseGrantedBy(cursor)
    const catalog = parseOptionalCatalog(cursor, 'IN')
    return { kind: 'RevokeRoles', span: cursor.span(start), roles: privileges, grantees, adminOption, grantor, catalog }
  }
  if (adminOption) cursor.expect('FROM')
  cursor.expect('ON')
  const object = parseGrantObject(cursor)
  cursor.expect('FROM')
  const grantee = parsePrincipal(cursor)
  return { kind: 'Revoke', span: cursor.span(start), grantOptionFor, privileges, object, grantee }
}

export function parseDeny(cursor: TokenCursor): Statement {
  const { start } = cursor
  cursor.expect('DENY')
  const privileges = parsePrivileges(cursor)
  cursor.expect('ON')
  const object = parseGrantObject(cursor)
  cursor.expect('TO')
  const grantee = parsePrincipal(cursor)
  return { kind: 'Deny', span: cursor.span(start), privileges, object, grantee }
}

export function parseCreateRole(cursor: TokenCursor, start: number): Statement {
  cursor.expect('ROLE')
  const name = parseIdentifier(cursor)
  let grantor: Grantor | undefined
  if (cursor.accept('WITH')) {
    cursor.expect('ADMIN')
    grantor = parseGrantor(cursor)
  }
  const catalog = parseOptionalCatalog(cursor, 'IN')
  return { kind: 'CreateRole', span: cursor.span(start), name, grantor, catalog }
}

export function parseDropRole(cursor: TokenCursor, start: number): Statement {
  cursor.expect('ROLE')
  const exists = cursor.acceptPair('IF', 'EXISTS')
  const name = parseIdentifier(cursor)
  const catalog = parseOptionalCatalog(cursor, 'IN')
  return { kind: 'DropRole', span: cursor.span(start), name, exists, catalog }
}
