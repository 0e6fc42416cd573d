import { unreachable } from '../shared/unreachable.ts'

/** Who asks. */
export interface Identity {
  readonly user: string
  /** By which name he was verified; absent where nobody is authenticated. */
  readonly principal?: string
  /** Who logged in, where he acts as another. */
  readonly originalUser?: string
  readonly groups: readonly string[]
  readonly remoteAddress?: string
}

/** Whose a query is: who it runs as, and who posted it where that was another. */
export interface QueryOwner {
  readonly user: string
  readonly originalUser?: string | undefined
}

/** What somebody wants to do with what. */
export type Permission =
  /** `results`: its rows, and to cancel it by the address that its client was given. */
  | { readonly action: 'view' | 'kill' | 'results'; readonly query: QueryOwner }
  /** See everybody's queries in lists, and what is of no query. */
  | { readonly action: 'viewAll' }
  | { readonly action: 'viewNodes' }
  | { readonly action: 'impersonate'; readonly user: string }

/** The one place where rights are decided. */
export type Authorize = (identity: Identity, permission: Permission) => boolean

/** Without authentication configured nobody is known, so nothing can be refused. */
export const allowAll: Authorize = () => true

/** The sections of a rules file that say who may do what with queries and as whom. */
export interface QueryRules {
  /** What the section `queries` says; undefined where there is none, or no rule of it matches. */
  readonly queries: (identity: Identity, action: 'view' | 'kill', owner: string) => boolean | undefined
  readonly impersonation: (identity: Identity, user: string) => boolean
}

/** Each has what is his, and what the rules in force give him. */
export function authorizeBy(rules: () => QueryRules | undefined): Authorize {
  return (identity, permission) => {
    switch (permission.action) {
      case 'view':
      case 'kill':
        return owns(identity, permission.query) || mayWith(identity, permission.action, permission.query)
      case 'results':
        return owns(identity, permission.query) || mayWith(identity, 'view', permission.query)
      case 'viewAll':
        return false
      case 'viewNodes':
        return true
      case 'impersonate':
        return rules()?.impersonation(identity, permission.user) ?? false
      default:
        return unreachable(permission)
    }
  }

  function mayWith(identity: Identity, action: 'view' | 'kill', { user }: QueryOwner): boolean {
    return rules()?.queries(identity, action, user) ?? false
  }
}

/** Who it runs as owns a query, and who posted it as somebody else, whoever he is now. */
function owns(identity: Identity, owner: QueryOwner): boolean {
  if (identity.user === owner.user) return true
  return owner.originalUser !== undefined && (identity.originalUser ?? identity.user) === owner.originalUser
}
