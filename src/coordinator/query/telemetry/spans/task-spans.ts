import type { TracedTask } from './traced-task.ts'
import { ROOT_STAGE } from '../../../../shared/ids.ts'
import { isTaskTerminal, type TaskStats } from '../../../../execution/api/task.ts'
import { attributes as names } from '../../../../telemetry/attribute-names.ts'
import type { AttributeValue } from '../../../../telemetry/span.ts'
import { entitySpanId } from '../../../../telemetry/trace-context.ts'
import type { TaskRecord } from '../../stream/state.ts'
import { batchSpans, pipelineSpan } from './pipeline-spans.ts'
import { relaySpans } from './relay-spans.ts'
import { failureAttributes, spanEnding } from './span-ending.ts'
import type { SpanDraft, TracedQuery } from './traced-query.ts'

/**
 * The spans of a task: as the coordinator saw it, as it ran on its node, and the work that it did there. Stage 0 runs
 * on the coordinator.
 * @param withRequest also makes a stand-in for the span of the request that created the task
 */
export function taskSpans(
  traced: TracedQuery,
  task: TaskRecord,
  stageSpanId: string,
  withRequest: boolean,
): readonly SpanDraft[] {
  const remote = task.stage !== ROOT_STAGE
  return [
    ...(remote ? [remoteTaskSpan(traced, task, stageSpanId)] : []),
    ...(remote && withRequest ? [taskUpdateSpan(task)] : []),
    ...(task.stats ? spansWhereItRan(traced, task, task.stats, stageSpanId) : []),
    // The coordinator never received figures: it was killed, or the query ended before. The worker's own spans name the
    // task as their parent.
    ...(remote && !task.stats ? [taskSpan(unreported(traced, task), stageSpanId)] : []),
  ]
}

function spansWhereItRan(
  traced: TracedQuery,
  task: TaskRecord,
  stats: TaskStats,
  stageSpanId: string,
): readonly SpanDraft[] {
  const startMs = Date.parse(stats.startTime ?? stats.createTime)
  const ran: TracedTask = {
    task,
    stats,
    spanId: entitySpanId('task', task.taskId),
    startMs,
    endMs: Math.max(startMs, Date.parse(stats.endTime ?? task.endedAt ?? traced.query.updatedAt)),
  }
  // On the coordinator, without a profile, the only pipeline repeats the task's figures.
  const pipelines = traced.onCoordinator && !stats.profiled ? [] : stats.pipelines
  return [
    taskSpan(ran, stageSpanId),
    ...(task.stage === ROOT_STAGE ? relaySpans(traced, ran) : []),
    ...(stats.profiled && task.stage !== ROOT_STAGE ? batchSpans(ran, pipelines) : []),
    ...pipelines.map((pipeline) => pipelineSpan(ran, pipeline)),
  ]
}

function remoteTaskSpan({ query }: TracedQuery, task: TaskRecord, stageSpanId: string): SpanDraft {
  const endMs = Date.parse(task.endedAt ?? query.updatedAt)
  return {
    name: 'remote-task',
    kind: 'INTERNAL',
    spanId: entitySpanId('remote-task', task.taskId),
    parentSpanId: stageSpanId,
    startMs: Date.parse(task.createdAt),
    endMs,
    attributes: {
      ...identityOf(task),
      [names.taskAttempt]: task.attempt,
      ...(task.retryOf === undefined ? {} : { [names.taskRetryOf]: task.retryOf }),
      ...(task.retryReason === undefined ? {} : { [names.taskRetryReason]: task.retryReason }),
    },
    status: 'UNSET',
    events: [{ name: 'task_state', atMs: endMs, attributes: { [names.state]: task.state } }],
  }
}

function taskUpdateSpan({ taskId, createdAt, stats }: TaskRecord): SpanDraft {
  return {
    name: 'task-update',
    kind: 'CLIENT',
    spanId: entitySpanId('task-update', taskId),
    parentSpanId: entitySpanId('remote-task', taskId),
    startMs: Date.parse(createdAt),
    endMs: Date.parse(stats?.startTime ? stats.startTime : createdAt),
    attributes: { [names.taskId]: taskId, [names.httpMethod]: 'POST', [names.rebuilt]: true },
    status: 'UNSET',
  }
}

function unreported({ query }: TracedQuery, task: TaskRecord): Omit<TracedTask, 'stats'> {
  const endMs = Date.parse(task.endedAt ?? query.updatedAt)
  return { task, spanId: entitySpanId('task', task.taskId), startMs: Date.parse(task.createdAt), endMs }
}

/** @param stats absent where the coordinator received none */
function taskSpan(
  { task, stats, spanId, startMs, endMs }: Omit<TracedTask, 'stats'> & { readonly stats?: TaskStats },
  stageSpanId: string,
): SpanDraft {
  const failure = task.failure && isTaskTerminal(task.state) ? task.failure : undefined
  return {
    name: 'task',
    kind: 'INTERNAL',
    spanId,
    parentSpanId: stageSpanId,
    startMs,
    endMs,
    attributes: {
      ...identityOf(task),
      ...(stats && figuresOf(stats)),
      ...failureAttributes(failure),
    },
    ...spanEnding(failure, endMs, 'UNSET'),
  }
}

function figuresOf(stats: TaskStats): Record<string, AttributeValue> {
  return {
    [names.rows]: stats.outputPositions,
    [names.bytes]: stats.outputBytes,
    [names.cpuNanos]: stats.cpuNanos,
    [names.peakMemoryBytes]: stats.peakMemoryBytes,
    [names.spilledBytes]: stats.spilledBytes,
  }
}

function identityOf({ taskId, nodeId }: TaskRecord): Record<string, AttributeValue> {
  return { [names.taskId]: taskId, [names.worker]: nodeId }
}
