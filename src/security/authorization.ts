/** Who asks. */
export interface Identity {
  readonly user: string
  readonly remoteAddress?: string
}

/** What somebody wants to do with what. */
type Permission =
  | { readonly action: 'view' | 'kill'; readonly query: { readonly owner: string } }
  /** See everybody's queries in lists. */
  | { readonly action: 'viewAll' }
  | { readonly action: 'viewNodes' }

/** The one place where rights are decided. */
export type Authorize = (identity: Identity, permission: Permission) => boolean

/** Without authentication configured nobody is known, so nothing can be refused. */
export const allowAll: Authorize = () => true

/** A query belongs to its owner and to administrators. */
export function ownersAndAdministrators(administrators: ReadonlySet<string>): Authorize {
  return (identity, permission) => {
    if (administrators.has(identity.user)) return true
    switch (permission.action) {
      case 'view':
      case 'kill':
        return permission.query.owner === identity.user
      case 'viewAll':
        return false
      case 'viewNodes':
        return true
      default:
        throw new Error(`Unknown permission: ${JSON.stringify(permission satisfies never)}`)
    }
  }
}
