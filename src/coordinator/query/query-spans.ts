import type { DriverStats, PipelineStats, TaskStats } from '../../execution/api/task.ts'
import type { Failure } from '../../shared/engine-error.ts'
import { attributes as names } from '../../telemetry/attribute-names.ts'
import type { AttributeValue, SpanEvent, SpanRecord } from '../../telemetry/span.ts'
import { entitySpanId, formatTraceparent, parseTraceparent } from '../../telemetry/trace-context.ts'
import { isTaskTerminal, type KnownQuery, type QueryState, type TaskRecord } from './state.ts'
import type { ConnectorCall } from './connector-calls.ts'
import type { FrontEndTimes } from '../../sql/front-end.ts'
import { stageTimes } from './totals.ts'

/** Batches of a task that get a span of their own: the slowest. */
const BATCH_SPANS = 50
const MAX_TEXT = 4096
/** A statement that needs no worker is over in milliseconds: of its steps only those that took one have a span. */
const BRIEF_MS = 1

export interface QuerySpansOptions {
  /**
   * Also stand-ins for the spans of requests, POST's and those that made tasks, as far as events know them: for a coordinator that died before its own left, and
   * for whoever looks at a trace that was not taken. No span is without its parent.
   */
  readonly withRequest?: boolean
  /** Polls that got no span of their own. */
  readonly pollsUnrecorded?: number
  /** Calls that only their process knows of. */
  readonly times?: FrontEndTimes | undefined
  readonly calls?: readonly ConnectorCall[]
}

/** A query whose events were told of has ended: its spans can be made. */
export interface QueryEnded {
  readonly kind: 'queryEnded'
  readonly queryId: string
  readonly options: QuerySpansOptions
}

/**
 * The trace of an ended query, from its events alone: query → stage → task → pipeline → batch and operator. The same
 * spans, ids and times whoever makes them: the coordinator that saw the end, its successor, or `/v1/query/{id}/trace`.
 */
export function querySpans(query: KnownQuery, options: QuerySpansOptions = {}): readonly SpanRecord[] {
  const parent = parseTraceparent(query.created.traceparent)
  if (!parent || (query.kind !== 'FINISHED' && query.kind !== 'FAILED')) return []
  const { traceId } = parent
  const querySpan = entitySpanId('query', query.queryId)
  const start = Date.parse(query.createdAt)
  const end = Date.parse(query.endedAt)
  const failure = query.kind === 'FAILED' ? query.failure : undefined
  const onCoordinator = query.planned?.route === 'coordinator'
  const spans: SpanRecord[] = []

  function add(span: Omit<SpanRecord, 'traceId' | 'events' | 'links' | 'attributes'> & Partial<SpanRecord>): void {
    const { startMs } = span
    spans.push({
      events: [],
      links: [],
      ...span,
      traceId,
      // A worker's clock may differ: no span ends before it starts.
      endMs: Math.max(startMs, span.endMs),
      attributes: { [names.queryId]: query.queryId, ...span.attributes },
    })
  }

  if (options.withRequest)
    add({
      name: 'POST /v1/statement',
      kind: 'SERVER',
      spanId: parent.spanId,
      ...(query.created.parentSpanId === undefined ? {} : { parentSpanId: query.created.parentSpanId }),
      startMs: start,
      endMs: query.plannedAt ? Date.parse(query.plannedAt) : start,
      attributes: { [names.httpMethod]: 'POST', [names.httpRoute]: '/v1/statement', [names.rebuilt]: true },
      status: 'UNSET',
    })
  add({
    name: 'query',
    kind: 'INTERNAL',
    spanId: querySpan,
    parentSpanId: parent.spanId,
    startMs: start,
    endMs: end,
    attributes: {
      ...queryAttributes(query),
      ...failureAttributes(failure),
      ...(options.pollsUnrecorded ? { [names.pollsUnrecorded]: options.pollsUnrecorded } : {}),
    },
    ...ending(failure, end, 'OK', stateEvents(query, end)),
  })
  if (query.queued)
    add({
      name: 'queued',
      kind: 'INTERNAL',
      spanId: entitySpanId('queued', query.queryId),
      parentSpanId: querySpan,
      startMs: Date.parse(query.queued.at),
      endMs: query.admitted ? Date.parse(query.admitted.at) : end,
      attributes: { [names.queuePosition]: query.queued.position, [names.queueReason]: query.queued.reason },
      status: 'UNSET',
    })
  const planned = query.planned
  if (planned && query.plannedAt) {
    const plannedMs = Date.parse(planned.executionStartedAt ?? query.plannedAt)
    const analyzed = Math.max(start, plannedMs - planned.planningNanos / 1e6)
    const parsed = Math.max(start, analyzed - planned.analysisNanos / 1e6)
    const began = Math.max(start, parsed - planned.parseNanos / 1e6)
    add({
      name: 'analyzer',
      kind: 'INTERNAL',
      spanId: entitySpanId('analyzer', query.queryId),
      parentSpanId: querySpan,
      startMs: began,
      endMs: analyzed,
      attributes: {
        [names.tables]: planned.tables.map(({ catalog, schema, table }) => `${catalog}.${schema}.${table}`),
      },
      status: 'UNSET',
    })
    add({
      name: 'planner',
      kind: 'INTERNAL',
      spanId: entitySpanId('planner', query.queryId),
      parentSpanId: querySpan,
      startMs: analyzed,
      endMs: Math.max(start, plannedMs),
      attributes: { [names.planStages]: planned.stages.length },
      status: 'UNSET',
    })
    if (planned.parseNanos > 0) {
      call('parse', 'analyzer', began, parsed)
      if (options.times && options.times.resolveMs > 0)
        call('access-control', 'analyzer', parsed, Math.min(analyzed, parsed + options.times.resolveMs))
      call('analyze', 'analyzer', parsed, analyzed)
    }
    if (options.times && options.times.renderMs > 0) {
      const rendered = Math.min(plannedMs, analyzed + options.times.renderMs)
      call('render', 'planner', analyzed, rendered)
      call('fragment', 'planner', rendered, plannedMs)
    }
  } else if (failure) {
    add({
      name: 'analyzer',
      kind: 'INTERNAL',
      spanId: entitySpanId('analyzer', query.queryId),
      parentSpanId: querySpan,
      startMs: start,
      endMs: end,
      attributes: failureAttributes(failure),
      ...ending(failure, end, 'UNSET', []),
    })
  }

  for (const stage of stageTimes(query)) {
    const tasks = [...query.tasks.values()].filter((task) => task.stage === stage.id)
    const stageSpan = entitySpanId('stage', `${query.queryId}.${stage.id}`)
    const startMs = Date.parse(stage.scheduledAt ?? query.plannedAt ?? query.createdAt)
    const plan = planned?.stages.find(({ id }) => id === stage.id)
    add({
      name: 'stage',
      kind: 'INTERNAL',
      spanId: stageSpan,
      parentSpanId: querySpan,
      startMs,
      endMs: stage.endedAt ? Date.parse(stage.endedAt) : end,
      attributes: {
        [names.stageId]: `${query.queryId}.${stage.id}`,
        [names.stagePartitioning]: plan?.distribution ?? 'single',
        [names.stageTasks]: tasks.length,
        [names.splits]: plan?.splits.length ?? 0,
      },
      status: 'UNSET',
      events: [{ name: 'stage_state', atMs: startMs, attributes: { [names.state]: stage.state } }],
    })
    for (const task of tasks) taskSpans(task, stageSpan)
  }
  writeSpan()
  options.calls?.forEach(connectorSpan)
  return spans

  /** A step of the analyzer or the planner. */
  function call(name: string, of: 'analyzer' | 'planner', startMs: number, endMs: number): void {
    if (onCoordinator && endMs - startMs < BRIEF_MS) return
    add({
      name,
      kind: 'INTERNAL',
      spanId: entitySpanId(name, query.queryId),
      parentSpanId: entitySpanId(of, query.queryId),
      startMs,
      endMs: Math.max(startMs, endMs),
      status: 'UNSET',
    })
  }

  /** The relay of stage 0: what it fetched of the task before it, and when it became the result. */
  function relaySpans(task: TaskRecord, stats: TaskStats, taskSpan: string, startMs: number, endMs: number): void {
    const exchange = stats.pipelines
      .flatMap(({ operators }) => operators)
      .find(({ engineOperator }) => engineOperator === 'EXCHANGE')
    if (!exchange) return
    const producers = [...query.tasks.values()].filter(({ stage, state }) => stage !== 0 && state === 'FINISHED')
    add({
      name: 'exchange',
      kind: 'CLIENT',
      spanId: entitySpanId('exchange', task.taskId),
      parentSpanId: taskSpan,
      startMs,
      endMs,
      attributes: {
        [names.taskId]: task.taskId,
        [names.exchangePages]: query.pages.length,
        [names.exchangeBytes]: stats.outputBytes,
        [names.exchangeBlockedNanos]: stats.blockedNanos,
        [names.exchangeRetries]: producers.filter((one) => one.retryOf !== undefined).length,
      },
      links: producers.map((one) => ({ traceId, spanId: entitySpanId('task', one.taskId) })),
      status: 'UNSET',
    })
    add({
      name: 'publish',
      kind: 'INTERNAL',
      spanId: entitySpanId('publish', query.queryId),
      parentSpanId: querySpan,
      startMs,
      endMs,
      attributes: { [names.pages]: query.pages.length, [names.bytes]: stats.outputBytes },
      status: 'UNSET',
    })
  }

  function connectorSpan({ operation, catalog, startMs, endMs }: ConnectorCall, index: number): void {
    add({
      name: `connector ${operation}`,
      kind: 'CLIENT',
      spanId: entitySpanId('connector', `${query.queryId}.${index}`),
      parentSpanId: entitySpanId(planned && operation === 'splits' ? 'planner' : 'analyzer', query.queryId),
      startMs,
      endMs,
      attributes: { [names.catalog]: catalog },
      status: 'UNSET',
    })
  }

  function writeSpan(): void {
    const { write, committed } = query
    if (!write || !committed) return
    add({
      name: 'commit',
      kind: 'INTERNAL',
      spanId: entitySpanId('commit', query.queryId),
      parentSpanId: querySpan,
      startMs: Date.parse(write.at),
      endMs: Date.parse(committed.at),
      attributes: { [names.dbOperation]: write.operation, [names.writeOutcome]: committed.outcome },
      status: 'UNSET',
    })
  }

  function taskSpans(task: TaskRecord, stageSpan: string): void {
    const stats = task.stats
    const createdMs = Date.parse(task.createdAt)
    const endedMs = Date.parse(task.endedAt ?? query.updatedAt)
    const failed = task.failure && isTaskTerminal(task.state) ? task.failure : undefined
    const identity = { [names.taskId]: task.taskId, [names.worker]: task.nodeId }
    if (task.stage !== 0)
      add({
        name: 'remote-task',
        kind: 'INTERNAL',
        spanId: entitySpanId('remote-task', task.taskId),
        parentSpanId: stageSpan,
        startMs: createdMs,
        endMs: endedMs,
        attributes: {
          ...identity,
          [names.taskAttempt]: task.attempt,
          ...(task.retryOf === undefined ? {} : { [names.taskRetryOf]: task.retryOf }),
          ...(task.retryReason === undefined ? {} : { [names.taskRetryReason]: task.retryReason }),
        },
        status: 'UNSET',
        events: [{ name: 'task_state', atMs: endedMs, attributes: { [names.state]: task.state } }],
      })
    if (task.stage !== 0 && options.withRequest)
      add({
        name: 'task-update',
        kind: 'CLIENT',
        spanId: entitySpanId('task-update', task.taskId),
        parentSpanId: entitySpanId('remote-task', task.taskId),
        startMs: createdMs,
        endMs: stats?.startTime ? Date.parse(stats.startTime) : createdMs,
        attributes: { [names.taskId]: task.taskId, [names.httpMethod]: 'POST', [names.rebuilt]: true },
        status: 'UNSET',
      })
    if (!stats) return
    const taskSpan = entitySpanId('task', task.taskId)
    const startMs = Date.parse(stats.startTime ?? stats.createTime)
    const endMs = Math.max(startMs, Date.parse(stats.endTime ?? task.endedAt ?? query.updatedAt))
    add({
      name: 'task',
      kind: 'INTERNAL',
      spanId: taskSpan,
      parentSpanId: stageSpan,
      startMs,
      endMs,
      attributes: {
        ...identity,
        [names.rows]: stats.outputPositions,
        [names.bytes]: stats.outputBytes,
        [names.cpuNanos]: stats.cpuNanos,
        [names.peakMemoryBytes]: stats.peakMemoryBytes,
        [names.spilledBytes]: stats.spilledBytes,
        ...failureAttributes(failed),
      },
      ...ending(failed, endMs, 'UNSET', []),
    })
    if (task.stage === 0) relaySpans(task, stats, taskSpan, startMs, endMs)
    // Without a profile its one pipeline says what the task says.
    if (onCoordinator && !stats.profiled) return
    for (const pipeline of stats.pipelines) pipelineSpans(task.taskId, pipeline, stats, taskSpan, startMs, endMs)
  }

  function pipelineSpans(
    taskId: string,
    pipeline: PipelineStats,
    stats: TaskStats,
    taskSpan: string,
    taskStart: number,
    taskEnd: number,
  ): void {
    const entity = `${taskId}.${pipeline.pipelineId}`
    const pipelineSpan = entitySpanId('pipeline', entity)
    const starts = pipeline.drivers.map((driver) => Date.parse(driver.startTime))
    const ends = pipeline.drivers.map((driver) => Date.parse(driver.endTime))
    const startMs = clamp(starts.length > 0 ? Math.min(...starts) : taskStart, taskStart, taskEnd)
    const endMs = clamp(ends.length > 0 ? Math.max(...ends) : taskEnd, startMs, taskEnd)
    const identity = { [names.taskId]: taskId, [names.pipelineId]: pipeline.pipelineId }
    add({
      name: 'pipeline',
      kind: 'INTERNAL',
      spanId: pipelineSpan,
      parentSpanId: taskSpan,
      startMs,
      endMs,
      attributes: {
        ...identity,
        [names.rowsIn]: pipeline.processedInputPositions,
        [names.rowsOut]: pipeline.outputPositions,
      },
      status: 'UNSET',
    })
    if (!stats.profiled) return
    const slowest = pipeline.drivers.toSorted((a, b) => b.elapsedNanos - a.elapsedNanos).slice(0, BATCH_SPANS)
    for (const driver of slowest) batchSpan(entity, driver, pipelineSpan, identity, taskStart, taskEnd)
    for (const operator of pipeline.operators)
      add({
        name: `operator ${operator.engineOperator}`,
        kind: 'INTERNAL',
        spanId: entitySpanId('operator', `${entity}.${operator.operatorId}`),
        parentSpanId: pipelineSpan,
        startMs,
        endMs: Math.min(endMs, startMs + operator.timeNanos / 1e6),
        attributes: {
          ...identity,
          [names.operatorId]: operator.operatorId,
          [names.operatorType]: operator.operatorType,
          [names.rowsIn]: operator.inputPositions,
          [names.rowsOut]: operator.outputPositions,
          ...(operator.estimatedPositions === undefined ? {} : { [names.rowsEstimated]: operator.estimatedPositions }),
          [names.timeNanos]: operator.timeNanos,
          // Summed over threads: the bar is an aid.
          [names.timing]: 'accumulated',
        },
        status: 'UNSET',
      })
  }

  function batchSpan(
    entity: string,
    driver: DriverStats,
    parentSpanId: string,
    identity: Readonly<Record<string, AttributeValue>>,
    taskStart: number,
    taskEnd: number,
  ): void {
    const startMs = clamp(Date.parse(driver.startTime), taskStart, taskEnd)
    add({
      name: 'batch',
      kind: 'CLIENT',
      spanId: entitySpanId('batch', `${entity}.${driver.batch}`),
      parentSpanId,
      startMs,
      endMs: clamp(Date.parse(driver.endTime), startMs, taskEnd),
      attributes: { ...identity, [names.batch]: driver.batch },
      status: 'UNSET',
    })
  }
}

function queryAttributes(query: KnownQuery): Record<string, AttributeValue> {
  const { session, sql, resourceGroup } = query.created
  const totals =
    query.kind === 'FINISHED' ? query.finished.totals : query.kind === 'FAILED' ? query.failed.totals : undefined
  const namespace = [session.catalog, session.schema].filter((one) => one !== undefined).join('|')
  const optional: Record<string, AttributeValue | undefined> = {
    [names.catalog]: session.catalog,
    [names.schema]: session.schema,
    [names.source]: session.source,
    [names.traceToken]: session.traceToken,
    [names.queryType]: query.planned?.queryType,
    [names.route]: query.planned?.route,
    [names.dbNamespace]: namespace === '' ? undefined : namespace,
    [names.dbOperation]: query.planned?.queryType,
    [names.dbSummary]: query.planned
      ? [query.planned.queryType, ...query.planned.tables.map((table) => table.table)].join(' ')
      : undefined,
    [names.rows]: query.kind === 'FINISHED' ? query.finished.rows : undefined,
    [names.bytes]: query.kind === 'FINISHED' ? query.finished.bytes : undefined,
    [names.cpuNanos]: totals?.cpuNanos,
    [names.peakMemoryBytes]: totals?.peakMemoryBytes,
    [names.splits]: totals?.totalSplits,
    [names.tasks]: totals?.totalTasks,
    [names.retries]: [...query.tasks.values()].filter((task) => task.retryOf !== undefined).length,
  }
  return {
    [names.user]: session.user,
    [names.resourceGroup]: resourceGroup,
    [names.clientTags]: session.clientTags,
    [names.dbSystem]: 'trino',
    [names.dbText]: withoutLiterals(sql).slice(0, MAX_TEXT),
    ...Object.fromEntries(
      Object.entries(optional).filter((entry): entry is [string, AttributeValue] => entry[1] !== undefined),
    ),
  }
}

/** Context of what a query causes: its own span. */
export function querySpanContext(query: QueryState): string | undefined {
  if (query.kind === 'NONE') return undefined
  const trace = parseTraceparent(query.created.traceparent)
  return trace && formatTraceparent({ ...trace, spanId: entitySpanId('query', query.queryId) })
}

/** Literals as `?`: a trace store is read by more people than the database. */
export function withoutLiterals(sql: string): string {
  return sql.replaceAll(/'(?:[^']|'')*'/g, '?').replaceAll(/\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g, '?')
}

function stateEvents(query: KnownQuery, end: number): SpanEvent[] {
  const at = (name: string, time: string | undefined): SpanEvent[] =>
    time === undefined ? [] : [{ name: 'query_state', atMs: Date.parse(time), attributes: { [names.state]: name } }]
  return [
    ...at('QUEUED', query.createdAt),
    ...at('PLANNING', query.admitted?.at),
    ...at('STARTING', query.plannedAt),
    { name: 'query_state', atMs: end, attributes: { [names.state]: query.kind } },
  ]
}

function ending(
  failure: Failure | undefined,
  atMs: number,
  good: 'OK' | 'UNSET',
  events: readonly SpanEvent[],
): Pick<SpanRecord, 'status' | 'events'> & { statusMessage?: string } {
  if (!failure) return { status: good, events }
  const about = failureAttributes(failure)
  const exception: SpanEvent = {
    name: 'exception',
    atMs,
    attributes: {
      'exception.type': failure.errorName,
      'exception.message': failure.message.slice(0, MAX_TEXT),
      ...about,
    },
  }
  return { status: 'ERROR', statusMessage: failure.message.slice(0, MAX_TEXT), events: [...events, exception] }
}

function failureAttributes(failure: Failure | undefined): Record<string, AttributeValue> {
  if (!failure) return {}
  return {
    [names.errorName]: failure.errorName,
    [names.errorCode]: failure.errorCode,
    [names.trinoErrorType]: failure.errorType,
    [names.errorType]: failure.errorName,
  }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), Math.max(low, high))
}
