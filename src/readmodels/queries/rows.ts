import { hash } from 'node:crypto'
import { readsForRules } from '../../execution/api/fragment.ts'
import { isTaskTerminal, type TaskStats } from '../../execution/api/task.ts'
import { groupOfQuery, remoteOf, type KnownQuery, type TaskRecord } from '../../coordinator/query/stream/state.ts'
import { queryTotals, stageTimes, type QueryTotals } from '../../coordinator/query/statistics/totals.ts'
import { storableJson, storableText } from '../../events/storable-text.ts'
import { splitTaskId, type QueryId } from '../../shared/ids.ts'
import { millis, whole, type RowOf, type ReadModelTable } from '../table.ts'
import { clientApp } from './client-app.ts'
import type { operatorsTable, queriesTable, stagesTable, tableAccessTable, tasksTable } from './tables.ts'

type RowIn<T> = T extends ReadModelTable<infer C> ? RowOf<C> : never

export type QueryRow = RowIn<typeof queriesTable>
export type StageRow = RowIn<typeof stagesTable>
export type TaskRow = RowIn<typeof tasksTable>
export type OperatorRow = RowIn<typeof operatorsTable>
export type TableAccessRow = RowIn<typeof tableAccessTable>

/** Facts about a stream's last event that the query's state does not have. */
export interface StreamPosition {
  readonly sequence: number
  readonly epoch: number
  /** Whether a later event of the stream could not be applied. */
  readonly incomplete: boolean
}

/**
 * The query's figures according to the log: those of its terminal event, else the sums over its tasks as of its last
 * event. So the same events always give the same row.
 */
function recordedTotals(query: KnownQuery): QueryTotals {
  if (query.kind === 'FINISHED') return query.finished.totals
  if (query.kind === 'FAILED') return query.failed.totals
  return queryTotals(query, new Map(), Date.parse(query.updatedAt))
}

type Work = Pick<QueryTotals, keyof QueryTotals & keyof TaskStats>

/** The columns that queries and tasks have in common; without figures all of them are null. */
function workCells(work: Work | undefined) {
  return {
    elapsed_ms: millis(work?.elapsedNanos),
    queued_ms: millis(work?.queuedNanos),
    cpu_ms: millis(work?.cpuNanos),
    scheduled_ms: millis(work?.scheduledNanos),
    blocked_ms: millis(work?.blockedNanos),
    wall_ms: millis(work?.wallNanos),
    peak_memory_bytes: whole(work?.peakMemoryBytes),
    spilled_bytes: whole(work?.spilledBytes),
    raw_input_rows: whole(work?.rawInputPositions),
    raw_input_bytes: whole(work?.rawInputBytes),
    processed_input_rows: whole(work?.processedInputPositions),
    processed_input_bytes: whole(work?.processedInputBytes),
    output_rows: whole(work?.outputPositions),
    output_bytes: whole(work?.outputBytes),
  }
}

export function executionStartedAt(query: KnownQuery): string | undefined {
  if (query.kind === 'FINISHED') return query.finished.executionStartedAt ?? query.planned.executionStartedAt
  if (query.kind === 'FAILED') return query.failed.executionStartedAt ?? query.planned?.executionStartedAt
  return query.planned?.executionStartedAt
}

export function queryRow(query: KnownQuery, position: StreamPosition): QueryRow {
  const { created, planned } = query
  const { session } = created
  const totals = recordedTotals(query)
  const failure = query.kind === 'FAILED' ? query.failure : undefined
  const finished = query.kind === 'FINISHED' ? query.finished : undefined
  const remote = remoteOf(query)
  const behind = clientApp(created.sql, session)
  return {
    query_id: query.queryId,
    state: query.kind,
    user_name: storableText(session.user),
    source: text(session.source),
    catalog_name: text(session.catalog),
    schema_name: text(session.schema),
    resource_group: storableText(groupOfQuery(query)),
    header_family: created.headerFamily,
    query_type: planned?.queryType ?? null,
    route: planned?.route ?? null,
    update_type: finished?.updateType ?? planned?.updateType ?? null,
    sql_text: storableText(created.sql),
    created_at: query.createdAt,
    planned_at: query.plannedAt ?? null,
    execution_started_at: executionStartedAt(query) ?? null,
    last_event_at: query.updatedAt,
    ended_at: query.kind === 'FINISHED' || query.kind === 'FAILED' ? query.endedAt : null,
    ...workCells(totals),
    analysis_ms: millis(totals.analysisNanos),
    planning_ms: millis(totals.planningNanos),
    output_rows: whole(finished?.rows ?? totals.outputPositions),
    output_bytes: whole(finished?.bytes ?? totals.outputBytes),
    update_count: whole(finished?.updateCount),
    total_tasks: whole(totals.totalTasks),
    total_drivers: whole(totals.totalDrivers),
    completed_drivers: whole(totals.completedDrivers),
    total_splits: whole(totals.totalSplits),
    completed_splits: whole(totals.completedSplits),
    retries: [...query.tasks.values()].filter((task) => task.retryOf !== undefined).length,
    recoveries: query.recoveries,
    error_code: failure?.errorCode ?? null,
    error_name: failure?.errorName ?? null,
    error_type: failure?.errorType ?? null,
    error_message: text(failure?.message),
    trace_id: created.traceparent?.split('-')[1] ?? null,
    cluster: text(remote?.cluster),
    remote_query_id: text(remote?.queryId),
    routing_rule: text(planned?.routed?.rule),
    app: text(behind?.app),
    app_object: text(behind?.object),
    app_user: text(behind?.user),
    client_tags: storableJson(session.clientTags),
    client_info: text(session.clientInfo),
    groups: storableJson(session.groups),
    user_agent: text(session.userAgent),
    remote_address: text(session.remoteUserAddress),
    fingerprint: fingerprintText(planned?.fingerprint),
    normalized_query: text(planned?.fingerprint?.query),
    cache_key: planned ? cacheKey(created, planned) : null,
    queued_reason: text(query.queued?.reason),
    partial: finished?.partial ?? false,
    result_lost: query.lostTokens.length > 0,
    incomplete: position.incomplete,
    last_sequence: position.sequence,
    epoch: position.epoch,
    details: storableJson({
      session,
      redacted: created.redacted,
      rerun: created.rerun,
      baseUri: created.baseUri,
      columns: planned?.columns.map(({ name, type }) => ({ name, type })),
      queuedReason: query.queued?.reason,
      warnings: finished?.warnings ?? planned?.warnings,
      location: failure?.location,
    }),
  }
}

export function stageRows(query: KnownQuery): StageRow[] {
  const planned = query.planned
  if (!planned) return []
  const times = new Map(stageTimes(query).map((stage) => [stage.id, stage]))
  return planned.stages.map((stage): StageRow => {
    const tasks = [...query.tasks.values()].filter((task) => task.stage === stage.id)
    const sum = (pick: (stats: NonNullable<TaskRecord['stats']>) => number): number =>
      tasks.reduce((total, { stats }) => total + (stats ? pick(stats) : 0), 0)
    const now = times.get(stage.id)
    return {
      query_id: query.queryId,
      stage_id: stage.id,
      state: now?.state ?? 'PLANNED',
      distribution: stage.distribution,
      scheduled_at: now?.scheduledAt ?? null,
      started_at: now?.startedAt ?? null,
      ended_at: now?.endedAt ?? null,
      total_tasks: tasks.length,
      total_splits: whole(sum((stats) => stats.totalSplits)),
      completed_splits: whole(sum((stats) => stats.completedSplits)),
      cpu_ms: millis(sum((stats) => stats.cpuNanos)),
      wall_ms: millis(sum((stats) => stats.wallNanos)),
      input_rows: whole(sum((stats) => stats.processedInputPositions)),
      input_bytes: whole(sum((stats) => stats.processedInputBytes)),
      output_rows: whole(sum((stats) => stats.outputPositions)),
      output_bytes: whole(sum((stats) => stats.outputBytes)),
      details: storableJson({
        inputs: stage.inputs,
        fragmentDigest: stage.fragmentDigest,
        splits: stage.splits.length,
        splitsOf: splitsByCatalog(stage.splits),
      }),
    }
  })
}

function splitsByCatalog(splits: readonly { readonly catalog: string }[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>()
  for (const { catalog } of splits) counts.set(catalog, (counts.get(catalog) ?? 0) + 1)
  return Object.fromEntries(counts)
}

/** Makes a task's row. It depends only on the task: a task without new events already has its row. */
export function taskRow(queryId: QueryId, task: TaskRecord): TaskRow {
  const { stats } = task
  return {
    task_id: task.taskId,
    query_id: queryId,
    stage_id: task.stage,
    task_number: splitTaskId(task.taskId)?.task ?? 0,
    attempt: task.attempt,
    retry_of: task.retryOf ?? null,
    retry_reason: text(task.retryReason),
    node_id: task.nodeId,
    node_url: task.nodeUrl,
    state: task.state,
    created_at: stats?.createTime ?? task.createdAt,
    started_at: stats?.startTime ?? null,
    ended_at: stats?.endTime ?? task.endedAt ?? null,
    last_heartbeat_at: task.endedAt ?? stats?.startTime ?? task.createdAt,
    ...workCells(stats),
    splits: whole(stats?.totalSplits ?? 0),
    queued_splits: whole(stats?.queuedSplits ?? 0),
    running_splits: whole(stats?.runningSplits ?? 0),
    completed_splits: whole(stats?.completedSplits ?? 0),
    memory_bytes: whole(stats?.memoryBytes),
    error_name: task.failure?.errorName ?? null,
    error_message: text(task.failure?.message),
    details: storableJson({ cpuExact: stats?.cpuExact, profiled: stats?.profiled, failure: task.failure }),
  }
}

/** Makes the rows of an ended task's operators; a running task has none. */
export function operatorRows(queryId: QueryId, task: TaskRecord): OperatorRow[] {
  if (!isTaskTerminal(task.state)) return []
  return (task.stats?.pipelines ?? []).flatMap((pipeline) =>
    pipeline.operators.map((operator): OperatorRow => ({
      task_id: task.taskId,
      pipeline_id: pipeline.pipelineId,
      operator_id: operator.operatorId,
      query_id: queryId,
      stage_id: task.stage,
      operator_type: storableText(operator.operatorType),
      engine_operator: storableText(operator.engineOperator),
      input_rows: whole(operator.inputPositions),
      output_rows: whole(operator.outputPositions),
      estimated_rows: operator.estimatedPositions ?? null,
      input_bytes: whole(operator.inputBytes),
      output_bytes: whole(operator.outputBytes),
      time_ms: millis(operator.timeNanos),
      blocked_ms: millis(operator.blockedNanos),
      ended_at: task.stats?.endTime ?? task.endedAt ?? null,
    })),
  )
}

/**
 * Makes a row for each table and each chain of views that leads to it. Rows of the mode `VIEW` are the views
 * themselves.
 */
export function tableAccessRows(query: KnownQuery): TableAccessRow[] {
  const { planned, plannedAt } = query
  if (!planned || !plannedAt) return []
  const columns = new Map<string, Set<string>>()
  const add = (object: readonly string[], mode: string, views: readonly string[], read: readonly string[]): void => {
    const key = JSON.stringify([...object, mode, views])
    const known = columns.get(key) ?? new Set()
    for (const column of read) known.add(column)
    columns.set(key, known)
  }
  for (const { catalog, schema, table, mode, paths, columns: read } of planned.tables)
    for (const path of paths ?? [{ views: [], columns: read }])
      add([catalog, schema, table], mode, path.views, path.columns)
  for (const { catalog, schema, view, via, columns: read } of planned.views ?? [])
    add([catalog, schema, view], 'VIEW', via, read)
  return [...columns].map(([key, names], ordinal): TableAccessRow => {
    const [catalog, schema, table, mode, views] = JSON.parse(key) as [string, string, string, string, string[]]
    return {
      query_id: query.queryId,
      ordinal,
      catalog_name: storableText(catalog),
      schema_name: storableText(schema),
      table_name: storableText(table),
      mode,
      columns: storableJson([...names]),
      user_name: storableText(query.created.session.user),
      at: plannedAt,
      via: views.length > 0 ? storableJson(views) : null,
    }
  })
}

/** Words in a statement by which its result depends on more than the rows that it reads. */
const CHANGING = /\b(?:now|rand|random|uuid|shuffle|localtime\w*|current_\w+|tablesample)\b/i

/**
 * A digest of the statement, its session and the versions of the tables that it read. A later query with the same key
 * could have been answered from a cache. NULL if a version is unknown, or if an access rule reads a table: the digest
 * would show to the user when the rows of that table change.
 */
function cacheKey(created: KnownQuery['created'], planned: NonNullable<KnownQuery['planned']>): string | null {
  const { sql, redacted, session } = created
  const read = planned.tables.filter(({ mode }) => mode === 'READ')
  if (redacted || planned.write || read.length === 0) return null
  if (read.some(({ snapshot }) => snapshot === undefined) || CHANGING.test(sql)) return null
  if (planned.stages.some(({ withheld, fragment }) => withheld || (fragment && readsForRules(fragment)))) return null
  const { catalog, schema, timeZone, properties, preparedStatements } = session
  const versions = read.map((one) => JSON.stringify([one.catalog, one.schema, one.table, one.snapshot]))
  const key = [sql, catalog, schema, timeZone, properties, preparedStatements, versions.toSorted()]
  return hash('sha256', JSON.stringify(key)).slice(0, 32)
}

/** The hash with the version of its algorithm, so that hashes of other versions differ. */
export function fingerprintText(made: NonNullable<KnownQuery['planned']>['fingerprint']): string | null {
  return made ? `v${made.version}-${made.hash}` : null
}

function text(value: string | undefined): string | null {
  return value === undefined ? null : storableText(value)
}
