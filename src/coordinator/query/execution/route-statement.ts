import type { Identity } from '../../../security/authorization.ts'
import { EngineError } from '../../../shared/engine-error.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import { accessDenied, accessOf, shownName, type RightsOf } from '../../../sql/access-control.ts'
import type { MetadataPort } from '../../../sql/front-end.ts'
import type { NameAsWritten } from '../../../sql/statement-names.ts'
import type { StatementSurvey } from '../../front-end-threads/thread-messages.ts'
import { decidesItself, isClusterOpen, type ClusterTarget, type ClusterView } from '../../clusters/cluster.ts'
import type { QuerySession, Routed } from '../stream/events.ts'
import type { RemoteRouted } from '../stream/remote-routed.ts'
import { isTarget } from '../../clusters/slot-queue.ts'
import { readingFor } from '../../clusters/metadata/current-statement.ts'
import { decideWithFacts } from '../../clusters/routing/decide-with-facts.ts'
import { mirrorFault, type MirroredTable } from '../../clusters/routing/mirror-fault.ts'
import {
  OWN_CATALOGS,
  isRemoteRoute,
  routeText,
  type GroupCatalogs,
  type RemoteRoute,
  type Route,
  type RouteDecision,
} from '../../clusters/routing/route.ts'
import type { Submission } from '../registry/query-handle.ts'
import {
  analyseForCluster,
  sentWithPolicy,
  type AnalysedForCluster,
  type ClusterAnalysis,
} from './analyse-for-cluster.ts'
import { targetOf, type Delegation } from './delegation.ts'
import { asksMetadata, listsCatalogs } from './metadata-statement.ts'

/** The statement to route, and the user that it runs for. */
export interface RoutedQuery {
  readonly submission: Pick<Submission, 'text' | 'session'>
  readonly survey: StatementSurvey
  readonly identity: Identity
  readonly resourceGroup: string
  /** The rights of users; undefined where no rules restrict them. */
  readonly rightsOf: RightsOf | undefined
  /** A table of this server; undefined if there is none. */
  readonly tableHere: MetadataPort['table']
  /** The compressed bytes that the statement reads here; undefined if they cannot be found out. */
  readonly bytesHere: () => Promise<number | undefined>
  readonly analysis: ClusterAnalysis['analysis']
  /** Aborts when the statement ends. */
  readonly signal: AbortSignal
}

/** The route of a statement. */
export interface RoutedTo {
  /** Undefined where no clusters and rules are configured: the statement runs here. */
  readonly routed: Routed | undefined
  /** Gives the findings of the analysis for the cluster, which begins at the call if no rights depend on it. */
  readonly analyse?: () => Promise<AnalysedForCluster | undefined>
}

/**
 * Decides where a statement runs. Only its syntax counts, because a cluster may have functions and types that this
 * server does not know. A rule about the size of a statement has it analysed here too. A query for a cluster is then
 * analysed over the metadata of the cluster: here if the rights of its user depend on it, else by the caller.
 * @throws EngineError PERMISSION_DENIED; NOT_SUPPORTED; AMBIGUOUS_NAME; MISSING_CATALOG_NAME
 */
export async function routeStatement(delegation: Delegation, query: RoutedQuery): Promise<RoutedTo> {
  const { submission, survey, identity, resourceGroup } = query
  const { session } = submission
  if (delegation.clusters.list().length === 0 && delegation.rules().length === 0) return { routed: undefined }
  const allNames = fullNames(survey, session)
  const { catalogs } = delegation
  if (listsCatalogs(survey.kind, allNames)) await catalogs.untilListed()
  const names = withoutOwnCatalogs(allNames)
  await catalogs.untilKnown(names.catalogs)
  // The whole decision uses one list of open clusters. If a cluster opens later, its mirrored tables were not compared.
  const clusters = delegation.clusters.list()
  const targets = catalogs.targets()
  const isAboutNames = asksMetadata(survey.kind, names, (catalog) => targets.local.has(catalog))
  const isAllHere = names.catalogs.every((catalog) => targets.local.has(catalog))
  const reachedBy = (target: ClusterTarget): readonly ClusterView[] =>
    clusters.filter((cluster) => isTarget(cluster, target))
  const decision = await decideWithFacts(
    isAboutNames ? delegation.rules().filter((rule) => rule.route.to === 'reject') : delegation.rules(),
    {
      user: identity.user,
      groups: identity.groups,
      source: session.source,
      clientTags: session.clientTags,
      queryType: survey.queryType,
      explains: survey.explains?.queryType,
      resourceGroup,
      catalogs: allNames.catalogs,
      written: names.written,
      unresolved: names.unresolved,
    },
    {
      ...targets,
      ...(isAboutNames && { local: new Set(names.catalogs) }),
      isOpen: (route) => hasOpen(clusters, route),
    },
    {
      bytes: async () => (isAllHere ? query.bytesHere() : undefined),
      async mirrorFault(route) {
        const reached = reachedBy(route)
        const mirrored = mirroredIn(names, targets)
        const fault = faultOf(() => {
          if (isAllHere) checkAllRights(query, names, reached)
          // The text about a difference names columns and types, so this holds also where the cluster checks rights.
          checkColumnsOf(query, mirrored)
        })
        // A statement that can run here does so if it may not be sent.
        if (fault && !isAllHere) throw fault
        if (!fault && mirrored.length > 0 && survey.namesVersions)
          return 'only this server has the version of the table'
        return fault?.message ?? differingMirror(delegation, query, mirrored, { route, group: reached[0]?.group })
      },
    },
  )
  const routed = routedTo(clusters, decision, survey)
  if (routed.to === 'local' || routed.to === 'reject') return { routed }
  const reached = reachedBy(targetOf(routed))
  const rightsOf = checkSendable(query, names, reached)
  const checked = query.rightsOf === undefined || !reached.every(decidesItself)
  const to = { routed: { ...routed, checked } }
  const isAnalysed = survey.kind === 'Query' && routed.readOnly && routed.grade !== 'unchecked'
  const analyse = () =>
    analyseForCluster({
      analysis: query.analysis,
      catalogs: catalogs.at(targetOf(routed)),
      user: identity.user,
      rightsOf,
    })
  if (!rightsOf) return isAnalysed ? { ...to, analyse } : to
  const analysed = isAnalysed ? await analyse() : undefined
  if (!analysed) checkAllColumns(query, rightsOf, names)
  return { ...to, analyse: async () => analysed }
}

/**
 * Checks that a statement may be sent to clusters, except for the rights on columns.
 * @returns the rights to check; undefined where none are checked
 * @throws EngineError PERMISSION_DENIED; NOT_SUPPORTED
 */
function checkSendable(query: RoutedQuery, names: FullNames, reached: readonly ClusterView[]): RightsOf | undefined {
  const { submission, rightsOf } = query
  const { session } = submission
  if (session.transactionId !== undefined && session.transactionId.toUpperCase() !== 'NONE')
    throw new EngineError('NOT_SUPPORTED', 'A statement inside a transaction cannot be sent to a cluster')
  checkPrepared(session)
  // A cluster that decides by its own rules for the user of the statement needs no check here.
  if (!rightsOf || reached.every(decidesItself)) return undefined
  checkNames(query, rightsOf, names)
  return rightsOf
}

/**
 * Checks that a statement may be sent to clusters, and the rights on all columns of its tables.
 * @throws EngineError PERMISSION_DENIED; NOT_SUPPORTED
 */
function checkAllRights(query: RoutedQuery, names: FullNames, reached: readonly ClusterView[]): void {
  const rightsOf = checkSendable(query, names, reached)
  if (rightsOf) checkAllColumns(query, rightsOf, names)
}

/** The error that a check throws; undefined if it throws none. */
function faultOf(check: () => void): EngineError | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    if (error instanceof EngineError) return error
    throw error
  }
}

/** The tables of this server that the statement reads. */
function mirroredIn({ reads }: FullNames, { local }: GroupCatalogs): readonly MirroredTable[] {
  return reads.flatMap(([catalog, schema, table]): MirroredTable[] =>
    catalog !== undefined && schema !== undefined && table !== undefined && local.has(catalog)
      ? [{ catalog, schema, table }]
      : [],
  )
}

/** Why a mirrored table of the statement cannot be read at a target. */
async function differingMirror(
  delegation: Delegation,
  { tableHere, signal }: RoutedQuery,
  mirrored: readonly MirroredTable[],
  { route, group }: { readonly route: RemoteRoute; readonly group: string | undefined },
): Promise<string | undefined> {
  if (group === undefined) return undefined
  const metadata = delegation.catalogs.metadataOf(group)
  return mirrorFault(mirrored, routeText(route), {
    tableHere: ({ catalog, schema, table }) => tableHere(catalog, schema, table),
    columnsThere: ({ catalog, schema, table }) => readingFor(signal, () => metadata.columns(catalog, schema, table)),
  })
}

/**
 * The decision as its event records it. A fallback is taken while no cluster of the route is open.
 * @param clusters those that the decision was made with
 */
function routedTo(
  clusters: readonly ClusterView[],
  decision: RouteDecision,
  { readOnly, explains }: StatementSurvey,
): Exclude<Routed, RemoteRouted> | Omit<RemoteRouted, 'checked'> {
  const { route, fallback, rule, grade, bytes, skipped } = decision
  const takesFallback = fallback !== undefined && !hasOpen(clusters, route)
  const taken = takesFallback ? fallback : route
  const reasons = {
    skipped: [...skipped],
    ...(rule === undefined ? {} : { rule }),
    ...(bytes === undefined ? {} : { bytes }),
    ...(takesFallback ? { fallback: true } : {}),
  }
  switch (taken.to) {
    case 'local':
      return { to: 'local', ...reasons }
    case 'reject':
      return { to: 'reject', message: taken.message, ...reasons }
    case 'group':
    case 'cluster':
      return {
        to: taken.to,
        name: taken.to === 'group' ? taken.group : taken.cluster,
        // The statement is not analysed yet.
        grade: grade === 'analysed' ? 'named' : grade,
        readOnly,
        ...(explains?.asText ? { explains: true } : {}),
        ...reasons,
      }
    default:
      return unreachable(taken)
  }
}

/** Whether a route leads to a cluster that takes statements, or to none. */
function hasOpen(clusters: readonly ClusterView[], route: Route): boolean {
  if (!isRemoteRoute(route)) return true
  return clusters.some((cluster) => isClusterOpen(cluster) && isTarget(cluster, route))
}

/** The full names of a statement's tables, and its catalogs. */
export interface FullNames {
  readonly reads: readonly NameAsWritten[]
  readonly writes: readonly NameAsWritten[]
  readonly catalogs: readonly string[]
  readonly written: readonly string[]
  readonly unresolved: boolean
}

export function fullNames(
  { reads, writes, catalogs, usesSessionCatalog, unresolved, readOnly }: StatementSurvey,
  { catalog, schema }: { readonly catalog?: string | undefined; readonly schema?: string | undefined },
): FullNames {
  const given = (part: string | undefined): readonly string[] => (part === undefined ? [] : [part])
  const full = (name: NameAsWritten): NameAsWritten => {
    if (name.length >= 3) return name
    return name.length === 2 ? [...given(catalog), ...name] : [...given(catalog), ...given(schema), ...name]
  }
  const [allReads, allWrites] = [reads.map(full), writes.map(full)]
  const catalogOf = (name: NameAsWritten): readonly string[] => (name.length === 3 ? [name[0]!] : [])
  const used = [...allReads, ...allWrites].flatMap(catalogOf)
  const allCatalogs = [...new Set([...catalogs, ...(usesSessionCatalog ? given(catalog) : []), ...used])]
  // A change without a table is one of schemas or of other objects.
  const changed = readOnly || allWrites.length > 0 ? allWrites.flatMap(catalogOf) : allCatalogs
  return { reads: allReads, writes: allWrites, catalogs: allCatalogs, written: [...new Set(changed)], unresolved }
}

/** The names without those of catalogs that only this server answers. */
function withoutOwnCatalogs({ reads, writes, catalogs, written, unresolved }: FullNames): FullNames {
  const isOther = (catalog: string): boolean => !OWN_CATALOGS.has(catalog)
  const hasOther = (name: NameAsWritten): boolean => name.length !== 3 || isOther(name[0]!)
  return {
    reads: reads.filter(hasOther),
    writes: writes.filter(hasOther),
    catalogs: catalogs.filter(isOther),
    written: written.filter(isOther),
    unresolved,
  }
}

/**
 * Checks that the names of prepared statements differ in more than case: the cluster could execute another one than the
 * one that was checked.
 * @throws EngineError NOT_SUPPORTED
 */
function checkPrepared({ preparedStatements }: Pick<QuerySession, 'preparedStatements'>): void {
  const names = Object.keys(preparedStatements)
  if (new Set(names.map((name) => name.toLowerCase())).size < names.length)
    throw new EngineError('NOT_SUPPORTED', 'Names of prepared statements must differ in more than case')
}

type Statement = NonNullable<StatementSurvey['kind']>

/** Kinds of statements whose rights are those on the tables that they name. */
const CHECKABLE = new Set<Statement>(['Query', 'ShowColumns', 'Insert', 'Delete', 'Update', 'Merge'])

/**
 * Checks the parts of a statement whose rights do not depend on its columns. Statements whose rights are not known here
 * are refused, except those that a routing rule with `unchecked` sends: of these, the names in the text are checked.
 * @throws EngineError PERMISSION_DENIED; NOT_SUPPORTED, also for a table with a row filter or a mask for this user
 */
function checkNames({ identity, survey, submission }: RoutedQuery, rightsOf: RightsOf, names: FullNames): void {
  const { session } = submission
  const access = accessOf({ rightsOf, user: identity.user })
  if (!access) return
  const { kind } = survey
  if (!names.unresolved && (kind === undefined || !CHECKABLE.has(kind)))
    throw unsupported('only queries, DESCRIBE, INSERT, DELETE, UPDATE and MERGE are sent to a cluster')
  if (session.path !== undefined) throw unsupported('a statement with a path is not sent to a cluster')
  for (const catalog of names.catalogs) access.checkCatalog(catalog)
  for (const parts of [...names.reads, ...names.writes]) {
    const name = sendableName(parts)
    if (access.policies(name)) throw sentWithPolicy(parts.join('.'))
  }
  for (const parts of names.writes) checkChange(access, sendableName(parts), kind)
  const given = new Set(session.propertyRules?.given)
  for (const property of Object.keys(session.properties)) {
    const [name, catalog] = property.split('.').reverse()
    if (!given.has(property)) access.checkSetProperty(catalog, name!)
  }
}

/**
 * Checks the rights on all columns of every table that the statement names: which of them it reads is not known here.
 * @throws EngineError PERMISSION_DENIED
 */
function checkAllColumns({ identity, survey }: RoutedQuery, rightsOf: RightsOf, names: FullNames): void {
  const access = accessOf({ rightsOf, user: identity.user })
  for (const parts of [...names.reads, ...names.writes]) checkUnrestricted(rightsOf, identity, sendableName(parts))
  for (const parts of [...names.reads, ...(survey.readsChanged ? names.writes : [])])
    access?.checkSelect(sendableName(parts), new Set())
}

/**
 * Checks the rights on all columns of tables of this server.
 * @throws EngineError PERMISSION_DENIED
 */
function checkColumnsOf({ identity, rightsOf }: RoutedQuery, tables: readonly MirroredTable[]): void {
  if (!rightsOf) return
  const access = accessOf({ rightsOf, user: identity.user })
  for (const name of tables) {
    access?.checkSelect(name, new Set())
    // All users may know the columns of these tables.
    if (name.schema !== 'information_schema') checkUnrestricted(rightsOf, identity, name)
  }
}

/** @throws EngineError PERMISSION_DENIED if the user may not read some column of the table */
function checkUnrestricted(rightsOf: RightsOf, { user }: Identity, name: MirroredTable): void {
  if (rightsOf(user).table(name.catalog, name.schema, name.table).restricted.size > 0)
    throw accessDenied(`Cannot select all columns of table ${shownName(name)}`)
}

function unsupported(what: string): EngineError {
  return new EngineError('NOT_SUPPORTED', `Under access rules, ${what}`)
}

type Access = NonNullable<ReturnType<typeof accessOf>>
type TableName = Parameters<Access['checkTable']>[0]

/** The name of a table whose rights the rules of this server decide. */
function sendableName(parts: NameAsWritten): TableName {
  const [catalog, schema, table] = parts
  if (parts.length !== 3 || catalog === undefined || schema === undefined || table === undefined)
    throw new EngineError('MISSING_CATALOG_NAME', `Table ${parts.join('.')} needs a catalog and a schema`)
  // A cluster does not filter these by the rules of this server.
  if (schema === 'information_schema' || table.includes('$'))
    throw unsupported(`table ${parts.join('.')} of a cluster cannot be read`)
  return { catalog, schema, table }
}

/** Checks the privilege for a change. A kind whose privileges are not known here needs all rights to the table. */
function checkChange(access: Access, name: TableName, kind: Statement | undefined): void {
  if (kind === undefined || !CHECKABLE.has(kind)) access.checkTable(name, 'OWNERSHIP', 'change table')
  if (kind === 'Insert' || kind === 'Merge') access.checkTable(name, 'INSERT', 'insert into table')
  if (kind === 'Delete' || kind === 'Merge') access.checkTable(name, 'DELETE', 'delete from table')
  if (kind === 'Update' || kind === 'Merge') access.checkTable(name, 'UPDATE', 'update columns in table')
}
