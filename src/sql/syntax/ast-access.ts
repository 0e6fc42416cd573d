import type { Identifier, Node, QualifiedName } from './ast-node.ts'

export type AccessStatement = CreateRole | DropRole | GrantRoles | RevokeRoles | Grant | Revoke | Deny

export interface Principal extends Node<'Principal'> {
  readonly type: 'UNSPECIFIED' | 'USER' | 'ROLE'
  readonly name: Identifier
}

export type Grantor = Principal | CurrentGrantor

export interface CurrentGrantor extends Node<'CurrentGrantor'> {
  readonly type: 'CURRENT_USER' | 'CURRENT_ROLE'
}

/** `SELECT`, `INSERT` … in upper case, or a privilege of a connector; undefined for ALL PRIVILEGES. */
export type Privileges = readonly Identifier[] | undefined

export interface GrantObject extends Node<'GrantObject'> {
  /** TABLE, SCHEMA or another word, in upper case, if written. */
  readonly entityKind: string | undefined
  readonly name: QualifiedName
}

export interface CreateRole extends Node<'CreateRole'> {
  readonly name: Identifier
  readonly grantor: Grantor | undefined
  readonly catalog: Identifier | undefined
}

export interface DropRole extends Node<'DropRole'> {
  readonly name: Identifier
  readonly exists: boolean
  readonly catalog: Identifier | undefined
}

export interface GrantRoles extends Node<'GrantRoles'> {
  readonly roles: readonly Identifier[]
  readonly grantees: readonly Principal[]
  readonly adminOption: boolean
  readonly grantor: Grantor | undefined
  readonly catalog: Identifier | undefined
}

export interface RevokeRoles extends Node<'RevokeRoles'> {
  readonly roles: readonly Identifier[]
  readonly grantees: readonly Principal[]
  readonly adminOption: boolean
  readonly grantor: Grantor | undefined
  readonly catalog: Identifier | undefined
}

export interface Grant extends Node<'Grant'> {
  readonly privileges: Privileges
  readonly object: GrantObject
  readonly grantee: Principal
  readonly withGrantOption: boolean
}

export interface Revoke extends Node<'Revoke'> {
  readonly grantOptionFor: boolean
  readonly privileges: Privileges
  readonly object: GrantObject
  readonly grantee: Principal
}

export interface Deny extends Node<'Deny'> {
  readonly privileges: Privileges
  readonly object: GrantObject
  readonly grantee: Principal
}
