import type { QueryId } from '../shared/ids.ts'
import { unreachable } from '../shared/unreachable.ts'

/** The user of a request. */
export interface Identity {
  readonly user: string
  /** The name by which the user was verified; absent where nobody is authenticated. */
  readonly principal?: string
  /** The user who logged in, where they act as another. */
  readonly originalUser?: string
  readonly groups: readonly string[]
  readonly remoteAddress?: string
}

/** The owner of a query: the user that it runs as, and the user who posted it where that is another. */
export interface QueryOwner {
  readonly user: string
  readonly originalUser?: string | undefined
}

/** An action, and the object that a user wants to do it on. */
export type Permission =
  /** `queryId`, in all permissions: named in the report of a refusal. */
  | { readonly action: 'execute'; readonly queryId?: QueryId }
  /** `results`: read its rows; `cancel`: end it by the address that its client was given; `kill`: end it by its id. */
  | {
      readonly action: 'view' | 'kill' | 'results' | 'cancel'
      readonly query: QueryOwner
      readonly queryId?: QueryId
    }
  /** See it in a list: as `view`, but leaving it out is not reported as a refusal. */
  | { readonly action: 'list'; readonly query: QueryOwner }
  /** See all users' queries in lists, and events that belong to no query. */
  | { readonly action: 'viewAll' }
  /** See at least some queries of other users in lists. */
  | { readonly action: 'viewOthers' }
  /** Read about the server itself: its nodes. */
  | { readonly action: 'readSystem' }
  /** Read the server's figures, which include names of users. */
  | { readonly action: 'readFigures' }
  /** See the server's own data in lists. */
  | { readonly action: 'listSystem' }
  /** Do an administrator's work on the server. */
  | { readonly action: 'writeSystem' }
  /** Become a user, for a principal that was verified. */
  | { readonly action: 'setUser'; readonly user: string; readonly queryId?: QueryId }
  | { readonly action: 'impersonate'; readonly user: string; readonly queryId?: QueryId }

/** Decides whether a user has a right. All decisions about rights are made here. */
export type Authorize = (identity: Identity, permission: Permission) => boolean

/** Without authentication no user is known, so nothing can be refused. */
export const allowAll: Authorize = () => true

/** The queries that a user may see: queries of all users, only their own, or queries of some users. */
export type Sight = 'all' | 'own' | 'some'

/** The sections of a rules file about queries, the server and impersonation. */
export interface QueryRules {
  readonly execute: (identity: Identity) => boolean
  /** By the section `queries`; true where there is none. */
  readonly queries: (identity: Identity, action: 'view' | 'kill', owner: string) => boolean
  /** The same for results by nextUri; false where there is no such section. */
  readonly results: (identity: Identity, action: 'view' | 'kill', owner: string) => boolean
  readonly sight: (identity: Identity) => Sight
  readonly impersonation: (identity: Identity, user: string) => boolean
  /** By the section `principals`; true where there is none. */
  readonly setUser: (principal: string | undefined, user: string) => boolean
  readonly system: (identity: Identity, access: 'read' | 'write') => boolean
}

/** Users have rights to their own queries. Rules in force grant further rights. */
export function authorizeBy(rules: () => QueryRules | undefined): Authorize {
  return (identity, permission) => {
    switch (permission.action) {
      case 'execute':
        return rules()?.execute(identity) ?? true
      case 'view':
      case 'list':
        return owns(identity, permission.query) || byRules('queries', identity, 'view', permission.query)
      case 'kill':
        return owns(identity, permission.query) || byRules('queries', identity, 'kill', permission.query)
      case 'results':
        return owns(identity, permission.query) || byRules('results', identity, 'view', permission.query)
      case 'cancel':
        return owns(identity, permission.query) || byRules('results', identity, 'kill', permission.query)
      case 'viewAll':
        return rules()?.sight(identity) === 'all'
      case 'viewOthers':
        return (rules()?.sight(identity) ?? 'own') !== 'own'
      case 'readSystem':
      case 'listSystem':
        return rules()?.system(identity, 'read') ?? true
      case 'readFigures':
        return rules()?.system(identity, 'read') ?? false
      case 'writeSystem':
        return rules()?.system(identity, 'write') ?? false
      case 'setUser':
        return rules()?.setUser(identity.principal, permission.user) ?? true
      case 'impersonate':
        return rules()?.impersonation(identity, permission.user) ?? false
      default:
        return unreachable(permission)
    }
  }

  function byRules(
    section: 'queries' | 'results',
    identity: Identity,
    action: 'view' | 'kill',
    { user }: QueryOwner,
  ): boolean {
    return rules()?.[section](identity, action, user) ?? false
  }
}

/** Whether the user owns the query: it runs as the user, or the user posted it as another user. */
function owns(identity: Identity, owner: QueryOwner): boolean {
  if (identity.user === owner.user) return true
  return owner.originalUser !== undefined && posterOf(identity) === owner.originalUser
}

/** The user who logged in, also if they act as another user. */
export function posterOf({ user, originalUser }: Identity): string {
  return originalUser ?? user
}
