import type { Identity } from '../../../security/authorization.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import { accessDenied, accessOf, type RightsOf } from '../../../sql/access-control.ts'
import type { NameAsWritten } from '../../../sql/statement-names.ts'
import type { StatementSurvey } from '../../front-end-threads/thread-messages.ts'
import type { ClusterView } from '../../clusters/cluster.ts'
import { decideRoute } from '../../clusters/routing/decide-route.ts'
import type { GroupCatalogs, RemoteCatalogs, Route, RouteDecision } from '../../clusters/routing/route.ts'
import type { Submission } from '../registry/query-handle.ts'
import type { Delegation, Routed } from './delegation.ts'
import type { DelegatedStatement } from './remote-statement.ts'

/** The statement to route, and the user that it runs for. */
export interface RoutedQuery {
  readonly submission: Pick<Submission, 'text' | 'session'>
  readonly survey: StatementSurvey
  readonly identity: Identity
  readonly resourceGroup: string
  /** The rights of users; undefined where no rules restrict them. */
  readonly rightsOf: RightsOf | undefined
}

/** Catalogs of which this server answers every table, whatever a cluster has under their names. */
const OWN_CATALOGS = new Set(['system', 'jmx'])

/**
 * Decides where a statement runs, from its syntax alone: a cluster may know functions and types that this server does
 * not.
 * @returns undefined when it runs here
 * @throws EngineError QUERY_REJECTED by a rule; PERMISSION_DENIED; NOT_SUPPORTED; AMBIGUOUS_NAME
 */
export async function routeStatement(
  delegation: Delegation,
  query: RoutedQuery,
): Promise<Omit<DelegatedStatement, 'analysisNanos'> | undefined> {
  const { submission, survey, identity, resourceGroup } = query
  const { session, text } = submission
  const clusters = delegation.clusters.list()
  if (clusters.length === 0 && delegation.rules().length === 0) return undefined
  const names = fullNames(survey, session)
  const { queryType } = survey
  const targets = await catalogsOf(delegation, clusters)
  const decision = decideRoute(
    delegation.rules(),
    {
      user: identity.user,
      groups: identity.groups,
      source: session.source,
      clientTags: session.clientTags,
      queryType,
      resourceGroup,
      catalogs: names.catalogs.filter((catalog) => !OWN_CATALOGS.has(catalog)),
      written: names.written,
      unresolved: names.unresolved,
      bytes: () => undefined,
    },
    targets,
  )
  const routed = routedTo(delegation, decision, survey.readOnly)
  if (!routed) return undefined
  if (session.transactionId !== undefined && session.transactionId.toUpperCase() !== 'NONE')
    throw new EngineError('NOT_SUPPORTED', 'A statement inside a transaction cannot be sent to a cluster')
  const reached = clusters.filter(({ name, group }) =>
    routed.to === 'group' ? group === routed.name : name === routed.name,
  )
  // A cluster that decides by its own rules for the user of the statement needs no check here.
  if (!reached.every(({ enforcesAccess }) => enforcesAccess)) checkRights(query, names)
  return { routed, queryType: queryType ?? 'SELECT', sql: text.sql, session }
}

/** The target of a decision; undefined for this server. A fallback is taken while no cluster of the route is open. */
function routedTo({ clusters }: Delegation, decision: RouteDecision, readOnly: boolean): Routed | undefined {
  const { route, fallback, rule, grade, bytes, skipped } = decision
  const takesFallback = fallback !== undefined && !isOpen(clusters.list(), route)
  const taken = takesFallback ? fallback : route
  switch (taken.to) {
    case 'local':
      return undefined
    case 'reject':
      throw new EngineError('QUERY_REJECTED', taken.message)
    case 'group':
    case 'cluster':
      return {
        to: taken.to,
        name: taken.to === 'group' ? taken.group : taken.cluster,
        // Functions and types are not known to this server, so the statement is not analysed.
        grade: grade === 'analysed' ? 'named' : grade,
        readOnly,
        skipped: [...skipped],
        ...(rule === undefined ? {} : { rule }),
        ...(bytes === undefined ? {} : { bytes }),
        ...(takesFallback ? { fallback: true } : {}),
      }
    default:
      return unreachable(taken)
  }
}

function isOpen(clusters: readonly ClusterView[], route: Route): boolean {
  if (route.to !== 'group' && route.to !== 'cluster') return true
  return clusters.some(
    ({ name, group, state, health }) =>
      state === 'ACTIVE' &&
      health === 'HEALTHY' &&
      (route.to === 'group' ? group === route.group : name === route.cluster),
  )
}

/** Names of tables from the catalog on, and the catalogs of a statement. */
interface FullNames {
  readonly reads: readonly NameAsWritten[]
  readonly writes: readonly NameAsWritten[]
  readonly catalogs: readonly string[]
  readonly written: readonly string[]
  readonly unresolved: boolean
}

function fullNames(
  { reads, writes, catalogs, usesSessionCatalog, unresolved }: StatementSurvey,
  { catalog, schema }: { readonly catalog?: string | undefined; readonly schema?: string | undefined },
): FullNames {
  const given = (part: string | undefined): readonly string[] => (part === undefined ? [] : [part])
  const full = (name: NameAsWritten): NameAsWritten => {
    if (name.length >= 3) return name
    return name.length === 2 ? [...given(catalog), ...name] : [...given(catalog), ...given(schema), ...name]
  }
  const [allReads, allWrites] = [reads.map(full), writes.map(full)]
  const catalogOf = (name: NameAsWritten): readonly string[] => (name.length === 3 ? [name[0]!] : [])
  return {
    reads: allReads,
    writes: allWrites,
    catalogs: [
      ...new Set([
        ...catalogs,
        ...(usesSessionCatalog ? given(catalog) : []),
        ...allReads.flatMap(catalogOf),
        ...allWrites.flatMap(catalogOf),
      ]),
    ],
    written: [...new Set(allWrites.flatMap(catalogOf))],
    unresolved,
  }
}

/** Which catalogs are where. A group has the catalogs that all of its clusters have. */
async function catalogsOf(delegation: Delegation, clusters: readonly ClusterView[]): Promise<GroupCatalogs> {
  const local = new Set(delegation.localCatalogs())
  const byCluster = new Map(
    await Promise.all(
      clusters.map(async (cluster): Promise<readonly [string, RemoteCatalogs]> => {
        const given = [...(await delegation.catalogsOf(cluster))]
        const own = given.filter((name) => !local.has(name) && !OWN_CATALOGS.has(name))
        return [cluster.name, { own: new Set(own), mirrors: cluster.mirrors }]
      }),
    ),
  )
  const groups = new Map<string, RemoteCatalogs>()
  for (const { name, group } of clusters) {
    const { own, mirrors } = byCluster.get(name)!
    const before = groups.get(group)
    groups.set(
      group,
      before ? { own: common(before.own, own), mirrors: common(before.mirrors, mirrors) } : { own, mirrors },
    )
  }
  return { local, groups, clusters: byCluster }
}

function common(a: ReadonlySet<string>, b: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...a].filter((one) => b.has(one)))
}

/**
 * Checks the rights on every table that the statement names, on all of their columns: which of them it reads is not
 * known here.
 * @throws EngineError PERMISSION_DENIED; NOT_SUPPORTED for a table with a row filter or a mask for this user
 */
function checkRights({ rightsOf, identity, survey }: RoutedQuery, { reads, writes, catalogs }: FullNames): void {
  const access = rightsOf && accessOf({ rightsOf, user: identity.user })
  if (!access || !rightsOf) return
  for (const catalog of catalogs) access.checkCatalog(catalog)
  for (const [parts, isRead] of [
    ...reads.map((name) => [name, true] as const),
    ...writes.map((name) => [name, false] as const),
  ]) {
    const [catalog, schema, table] = parts
    if (parts.length !== 3 || catalog === undefined || schema === undefined || table === undefined)
      throw new EngineError('MISSING_CATALOG_NAME', `Table ${parts.join('.')} needs a catalog and a schema`)
    const name = { catalog, schema, table }
    if (access.policies(name))
      throw new EngineError(
        'NOT_SUPPORTED',
        `Table ${catalog}.${schema}.${table} has a row filter or a column mask for this user, so statements over it cannot be sent to a cluster`,
      )
    if (rightsOf(identity.user).table(catalog, schema, table).restricted.size > 0)
      throw accessDenied(`Cannot select all columns of table ${catalog}.${schema}.${table}`)
    if (isRead) access.checkSelect(name, new Set())
    else checkChange(access, name, survey.queryType)
  }
  // Rules filter lists of objects, and a cluster does not know them.
  if (reads.length + writes.length === 0 && catalogs.length > 0)
    throw new EngineError(
      'NOT_SUPPORTED',
      'Under access rules, statements about catalogs and schemas of a cluster are not supported',
    )
}

type Access = NonNullable<ReturnType<typeof accessOf>>
type TableName = Parameters<Access['checkTable']>[0]

/** Checks the privilege for a change. A change that rules have no privilege for needs the ownership of the table. */
function checkChange(access: Access, name: TableName, queryType: string | undefined): void {
  switch (queryType) {
    case 'INSERT':
      return access.checkTable(name, 'INSERT', 'insert into table')
    case 'DELETE':
      return access.checkTable(name, 'DELETE', 'delete from table')
    case 'UPDATE':
      return access.checkTable(name, 'UPDATE', 'update columns in table')
    case 'MERGE':
      access.checkTable(name, 'INSERT', 'insert into table')
      access.checkTable(name, 'DELETE', 'delete from table')
      return access.checkTable(name, 'UPDATE', 'update columns in table')
    default:
      return access.checkTable(name, 'OWNERSHIP', 'change table')
  }
}
