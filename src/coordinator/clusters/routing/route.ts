/** Where a statement runs: here, at any cluster of a group, at one cluster, or nowhere. */
export type Route =
  | { readonly to: 'local' }
  | { readonly to: 'group'; readonly group: string }
  | { readonly to: 'cluster'; readonly cluster: string }
  | { readonly to: 'reject'; readonly message: string }

/** A route that delegates the statement. */
export type RemoteRoute = Extract<Route, { to: 'group' | 'cluster' }>

export function isRemoteRoute(route: Route): route is RemoteRoute {
  return route.to === 'group' || route.to === 'cluster'
}

/**
 * How far this server checks a statement before it delegates it.
 *
 * - `analysed`: names, types, and the rights on each column.
 * - `named`: the tables in the text, and the rights on all of their columns.
 * - `unchecked`: the same, but the statement may use further tables that this server cannot find out.
 */
export type Grade = 'analysed' | 'named' | 'unchecked'

/** A rule that fits a statement but does not apply. */
export interface SkippedRule {
  readonly rule: string
  /** The reason, as a text for users. */
  readonly why: string
}

export interface RouteDecision {
  readonly route: Route
  /** The name of the rule that decided; undefined if no rule did. */
  readonly rule: string | undefined
  /** Where the statement runs instead while no cluster of `route` can take it. */
  readonly fallback: Route | undefined
  /** `analysed` or `unchecked`. The caller replaces `analysed` by `named` for a statement that it did not analyse. */
  readonly grade: Grade
  /** The bytes that the statement would read, if a rule asked for them and they are known. */
  readonly bytes?: number
  /**
   * In the order of the file; also the deciding rule, if its fallback does not apply, and the rule after which no other
   * was tried, because only this server answers a catalog of the statement.
   */
  readonly skipped: readonly SkippedRule[]
}

/** The properties of a statement that rules test. */
export interface RoutedStatement {
  readonly user: string
  readonly groups: readonly string[]
  readonly source: string | undefined
  readonly clientTags: readonly string[]
  /** Trino's type of the statement; undefined if it has none. */
  readonly queryType: string | undefined
  /**
   * The type of the statement that it explains; undefined if it explains none. EXPLAIN has the route of the statement
   * that it explains, so a condition on the type holds for either.
   */
  readonly explains?: string | undefined
  /** The path of the resource group, such as `all.etl`. */
  readonly resourceGroup: string
  /**
   * The catalogs that the statement names, each once. Tables behind views are not looked up. A statement with one of
   * `OWN_CATALOGS` runs here, unless a rule rejects it.
   */
  readonly catalogs: readonly string[]
  /** The part of `catalogs` in which the statement changes a table or view. */
  readonly written: readonly string[]
  /** Whether this server cannot find out which tables the statement uses. */
  readonly unresolved: boolean
  /** The compressed bytes of the columns that the statement reads; undefined if unknown. Called at most once. */
  readonly bytes: () => number | undefined
}

/** The catalogs of a cluster, or those that all clusters of a group have. */
export interface RemoteCatalogs {
  /** Catalogs that only the cluster has. */
  readonly own: ReadonlySet<string>
  /** Local catalogs that the cluster reads too, under the same names. It never writes them. */
  readonly mirrors: ReadonlySet<string>
}

/** The catalogs of this server, of each group and of each cluster. */
export interface GroupCatalogs {
  /** The catalogs of this server. */
  readonly local: ReadonlySet<string>
  /** By name of the group. */
  readonly groups: ReadonlyMap<string, RemoteCatalogs>
  /** By name of the cluster. */
  readonly clusters: ReadonlyMap<string, RemoteCatalogs>
  /**
   * The reason why a mirrored table of the statement cannot be read at the target, such as different columns; undefined
   * if all can be read. Called only where the statement uses a mirrored catalog. Absent: all can be read.
   */
  readonly mirrorFault?: ((route: RemoteRoute) => string | undefined) | undefined
  /** Whether a cluster of the route is ACTIVE and HEALTHY; else its fallback is taken. Absent: each route is open. */
  readonly isOpen?: (route: Route) => boolean
}

/** Catalogs that this server always answers itself, even if a cluster has catalogs with these names. */
export const OWN_CATALOGS: ReadonlySet<string> = new Set(['system', 'jmx'])

/** A route as a text for users: `group big`. */
export function routeText(route: Route): string {
  switch (route.to) {
    case 'local':
      return 'local'
    case 'group':
      return `group ${route.group}`
    case 'cluster':
      return `cluster ${route.cluster}`
    case 'reject':
      return `reject: ${route.message}`
  }
}
