import type { QueryId } from '../shared/ids.ts'
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
  /** `queryId`, wherever there is one: who is refused is told of with it. */
  | { readonly action: 'execute'; readonly queryId?: QueryId }
  /** `results`: its rows; `cancel`: to end it by the address that its client was given; `kill`: by its id. */
  | {
      readonly action: 'view' | 'kill' | 'results' | 'cancel'
      readonly query: QueryOwner
      readonly queryId?: QueryId
    }
  /** Have it in a list: as `view`, but what is left out is refused to nobody. */
  | { readonly action: 'list'; readonly query: QueryOwner }
  /** See everybody's queries in lists, and what is of no query. */
  | { readonly action: 'viewAll' }
  /** See somebody else's queries in lists, perhaps. */
  | { readonly action: 'viewOthers' }
  /** What is told of the server itself: its nodes. */
  | { readonly action: 'readSystem' }
  /** Its figures, which have the names of users. */
  | { readonly action: 'readFigures' }
  /** Have of it what is in lists. */
  | { readonly action: 'listSystem' }
  /** What administrators do with it. */
  | { readonly action: 'writeSystem' }
  /** Who was verified, by his name, wants to be a user at all. */
  | { readonly action: 'setUser'; readonly user: string; readonly queryId?: QueryId }
  | { readonly action: 'impersonate'; readonly user: string; readonly queryId?: QueryId }

/** The one place where rights are decided. */
export type Authorize = (identity: Identity, permission: Permission) => boolean

/** Without authentication configured nobody is known, so nothing can be refused. */
export const allowAll: Authorize = () => true

/** Whose queries somebody may see: everybody's, his own alone, or some people's. */
export type Sight = 'all' | 'own' | 'some'

/** The sections of a rules file that say who may do what with queries and with the server, and as whom. */
export interface QueryRules {
  readonly execute: (identity: Identity) => boolean
  /** What the section `queries` says; all, where there is none. */
  readonly queries: (identity: Identity, action: 'view' | 'kill', owner: string) => boolean
  /** The same for what a nextUri gives: nothing, where there is no such section. */
  readonly results: (identity: Identity, action: 'view' | 'kill', owner: string) => boolean
  readonly sight: (identity: Identity) => Sight
  readonly impersonation: (identity: Identity, user: string) => boolean
  /** What the section `principals` says; all, where there is none. */
  readonly setUser: (principal: string | undefined, user: string) => boolean
  readonly system: (identity: Identity, access: 'read' | 'write') => boolean
}

/** Each has what is his, and what the rules in force give him; without rules nothing else. */
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

/** Who it runs as owns a query, and who posted it as somebody else, whoever he is now. */
function owns(identity: Identity, owner: QueryOwner): boolean {
  if (identity.user === owner.user) return true
  return owner.originalUser !== undefined && posterOf(identity) === owner.originalUser
}

/** Who logged in, whoever he acts as. */
export function posterOf({ user, originalUser }: Identity): string {
  return originalUser ?? user
}
