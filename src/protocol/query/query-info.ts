import { groupPath } from '../../coordinator/dispatch/groups/group-path.ts'
import { isTaskTerminal } from '../../execution/api/task.ts'
import type { SeesEnder } from '../../coordinator/query/stream/ending.ts'
import { isRemote } from '../../coordinator/query/stream/remote-routed.ts'
import { groupOfQuery, isOnHold, remoteOf, writtenBy, type KnownQuery } from '../../coordinator/query/stream/state.ts'
import { queryTotals, statsOf, type QueryTotals } from '../../coordinator/query/statistics/totals.ts'
import { costOf, type Cost, type Prices } from '../../readmodels/history/prices.ts'
import { clientApp } from '../../readmodels/queries/client-app.ts'
import { executionStartedAt, fingerprintText } from '../../readmodels/queries/rows.ts'
import { formatDuration, formatSize } from '../../shared/durations.ts'
import { withoutAbsent } from '../edge/without-absent.ts'
import type { QueryInfo, QueryListItem } from '../info/schemas/query.ts'
import { wireError } from '../statement/query-results.ts'
import type { LiveQueryView } from './live-queries.ts'
import { lineageInfo, planInfo } from './plan-info.ts'
import { stageTree } from './stage-tree.ts'

export interface QueryInfoContext {
  /** Scheme, host and port that the client used. */
  readonly baseUri: string
  /** Milliseconds since the epoch. Times of running parts are computed up to it. */
  readonly now: number
  /** An event of the query could not be applied: the answer shows the state before it. */
  readonly incomplete?: boolean
  readonly seesEnder: SeesEnder
  readonly prices?: Prices | undefined
}

/**
 * Body of `GET /v1/query/{queryId}`: the interface's fields, and further ones that today's clients of the family read.
 */
export function queryInfo(view: LiveQueryView, context: QueryInfoContext): QueryInfo {
  const { query, queuedReason } = view
  const { created, planned } = query
  const { session } = created
  const failure = query.kind === 'FAILED' ? query.failure : undefined
  const held = holdOf(query)
  const endedBy = query.kind === 'FAILED' ? query.failed.endedBy : undefined
  const finished = query.kind === 'FINISHED' ? query.finished : undefined
  const { redacted } = created
  const behind = clientApp(created.sql, session)
  return withoutAbsent({
    queryId: query.queryId,
    ...costNow(view, context),
    session: withoutAbsent({
      queryId: query.queryId,
      user: session.user,
      principal: session.principal,
      originalUser: session.originalUser,
      groups: session.groups,
      roles: session.roles,
      source: session.source,
      catalog: session.catalog,
      schema: session.schema,
      path: session.path,
      timeZone: session.timeZone,
      locale: session.language,
      remoteUserAddress: session.remoteUserAddress,
      userAgent: session.userAgent,
      clientInfo: session.clientInfo,
      clientTags: session.clientTags,
      clientCapabilities: session.capabilities,
      traceToken: session.traceToken,
      resourceEstimates: session.resourceEstimates,
      transactionId: session.transactionId,
      systemProperties: session.properties,
      preparedStatements: session.preparedStatements,
      startTime: Date.parse(query.createdAt),
    }),
    resourceGroupId: groupPath(groupOfQuery(query)),
    state: query.kind,
    scheduled: planned !== undefined && query.tasks.size > 0,
    self: `${context.baseUri}/v1/query/${query.queryId}`,
    events: `${context.baseUri}/v1/query/${query.queryId}/events`,
    fieldNames: planned?.columns.map((column) => column.name) ?? [],
    fieldTypes: planned?.columns.map((column) => column.type) ?? [],
    query: created.sql,
    redacted: redacted || undefined,
    queryType: planned?.queryType,
    route: planned && routeOf(query, planned),
    updateType: finished?.updateType ?? planned?.updateType,
    app: behind?.app,
    appObject: behind?.object,
    appUser: behind?.user,
    fingerprint: fingerprintText(planned?.fingerprint),
    updateCount: finished?.updateCount,
    held: held && { ...held, ...(query.hold && context.seesEnder(query.hold.by) && { by: query.hold.by }) },
    rerun: created.rerun,
    queuedReason: query.kind === 'QUEUED' ? (queuedReason ?? query.queued?.reason) : undefined,
    queryStats: queryStats(view, context.now),
    inputs: planned?.tables.filter((table) => table.mode === 'READ').map(tableOf) ?? [],
    outputs: planned?.tables.filter((table) => table.mode === 'WRITE').map(tableOf) ?? [],
    lineage: planned && lineageInfo(planned),
    plan: planned && planInfo(planned),
    outputStage: stageTree(view, context.baseUri),
    warnings: finished?.warnings ?? planned?.warnings ?? [],
    errorType: failure?.errorType,
    errorCode: failure && { code: failure.errorCode, name: failure.errorName, type: failure.errorType },
    failureInfo: failure && wireError(failure).failureInfo,
    endedBy: endedBy && context.seesEnder(endedBy) ? endedBy : undefined,
    traceId: created.traceparent?.split('-')[1],
    recoveries: query.recoveries,
    partial: finished?.partial || undefined,
    resultLost: query.lostTokens.length > 0 || undefined,
    incomplete: context.incomplete || undefined,
    finalQueryInfo: query.kind === 'FINISHED' || query.kind === 'FAILED',
  })
}

/** The act that holds a waiting query. */
export function holdOf(query: KnownQuery): QueryListItem['held'] {
  if (!isOnHold(query) || !query.hold) return undefined
  const { act, reason, at: since } = query.hold
  return { act, reason, since }
}

/** Where the query runs, and why: the recorded decision, and the last attempt at a cluster. */
function routeOf(query: KnownQuery, { route, routed }: NonNullable<KnownQuery['planned']>): QueryInfo['route'] {
  const delegated = isRemote(routed) ? routed : undefined
  const remote = remoteOf(query)
  return withoutAbsent({
    plan: route,
    to: routed?.to,
    name: delegated?.name,
    rule: routed?.rule,
    fallback: routed?.fallback,
    grade: delegated?.grade,
    bytes: routed?.bytes,
    skipped: routed?.skipped,
    cluster: remote?.cluster,
    remoteQueryId: remote?.queryId,
    attempts: remote?.attempts,
  })
}

export function totalsNow({ query, liveStats }: LiveQueryView, now: number): QueryTotals {
  if (query.kind === 'FINISHED') return query.finished.totals
  if (query.kind === 'FAILED') return query.failed.totals
  return queryTotals(query, liveStats, now)
}

/** The cost of a query up to a time. */
function costNow(view: LiveQueryView, { prices, now }: QueryInfoContext): Cost {
  const { cpuNanos, rawInputBytes, elapsedNanos, queuedNanos } = totalsNow(view, now)
  return costOf(prices, {
    createdAt: view.query.createdAt,
    cpuMs: cpuNanos / 1e6,
    rawInputBytes,
    cluster: remoteOf(view.query)?.cluster,
    ranMs: (elapsedNanos - queuedNanos) / 1e6,
  })
}

function queryStats(view: LiveQueryView, now: number): QueryInfo['queryStats'] {
  const { query } = view
  const totals = totalsNow(view, now)
  const ended = query.kind === 'FINISHED' || query.kind === 'FAILED' ? query.endedAt : undefined
  const started = executionStartedAt(query)
  const tasks = [...query.tasks.values()]
  const stats = tasks.flatMap((task) => statsOf(task, view.liveStats) ?? [])
  const sum = (pick: (one: (typeof stats)[number]) => number): number =>
    stats.reduce((total, one) => total + pick(one), 0)
  const executionEnd = ended === undefined ? now : Date.parse(ended)
  const { lastHeartbeatAt } = view
  return withoutAbsent({
    createTime: query.createdAt,
    executionStartTime: started,
    lastHeartbeat: lastHeartbeatAt === undefined ? query.updatedAt : new Date(lastHeartbeatAt).toISOString(),
    endTime: ended,
    elapsedTime: formatDuration(totals.elapsedNanos),
    queuedTime: formatDuration(totals.queuedNanos),
    analysisTime: formatDuration(totals.analysisNanos),
    planningTime: formatDuration(totals.planningNanos),
    executionTime: formatDuration(started ? Math.max(0, executionEnd - Date.parse(started)) * 1e6 : 0),
    totalTasks: totals.totalTasks,
    runningTasks: tasks.filter((task) => task.state === 'RUNNING' || task.state === 'FLUSHING').length,
    completedTasks: tasks.filter((task) => isTaskTerminal(task.state)).length,
    totalDrivers: totals.totalDrivers,
    queuedDrivers: sum((one) => one.queuedDrivers),
    runningDrivers: sum((one) => one.runningDrivers),
    completedDrivers: totals.completedDrivers,
    totalSplits: totals.totalSplits,
    completedSplits: totals.completedSplits,
    totalMemoryReservation: formatSize(ended === undefined ? sum((one) => one.memoryBytes) : 0),
    peakTotalMemoryReservation: formatSize(totals.peakMemoryBytes),
    spilledDataSize: formatSize(totals.spilledBytes),
    totalScheduledTime: formatDuration(totals.scheduledNanos),
    totalCpuTime: formatDuration(totals.cpuNanos),
    totalBlockedTime: formatDuration(totals.blockedNanos),
    rawInputDataSize: formatSize(totals.rawInputBytes),
    rawInputPositions: totals.rawInputPositions,
    processedInputDataSize: formatSize(totals.processedInputBytes),
    processedInputPositions: totals.processedInputPositions,
    outputDataSize: formatSize(totals.outputBytes),
    outputPositions: totals.outputPositions,
    writtenPositions: query.planned?.write && writtenBy(query).rows,
    physicalWrittenDataSize: query.planned?.write && formatSize(writtenBy(query).bytes),
    ...(totals.totalSplits > 0
      ? { progressPercentage: ended === undefined ? (100 * totals.completedSplits) / totals.totalSplits : 100 }
      : {}),
  })
}

function tableOf({
  catalog,
  schema,
  table,
  columns,
}: {
  catalog: string
  schema: string
  table: string
  columns: string[]
}) {
  return { catalogName: catalog, schema, table, columns: columns.map((name) => ({ name })) }
}
