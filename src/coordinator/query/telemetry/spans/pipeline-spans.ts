import type { DriverStats, OperatorStats, PipelineStats } from '../../../../execution/api/task.ts'
import { attributes as names } from '../../../../telemetry/attribute-names.ts'
import type { SpanEvent } from '../../../../telemetry/span.ts'
import { entitySpanId } from '../../../../telemetry/trace-context.ts'
import type { TracedTask } from './traced-task.ts'
import type { SpanDraft } from './traced-query.ts'

/** How many batches of a task get a span of their own: the slowest ones. */
const BATCH_SPANS = 50

/** Spans of the slowest batches of a profiled task. Each batch ran in one engine, through all pipelines. */
export function batchSpans(ran: TracedTask, pipelines: readonly PipelineStats[]): readonly SpanDraft[] {
  const batches = new Map<number, DriverStats[]>()
  for (const { drivers } of pipelines)
    for (const driver of drivers) batches.set(driver.batch, [...(batches.get(driver.batch) ?? []), driver])
  return [...batches.values()]
    .toSorted(([a], [b]) => b!.elapsedNanos - a!.elapsedNanos)
    .slice(0, BATCH_SPANS)
    .map((drivers) => batchSpan(ran, drivers))
}

/** @param drivers of one batch, one per pipeline; at least one */
function batchSpan(ran: TracedTask, drivers: readonly DriverStats[]): SpanDraft {
  const { taskId } = ran.task
  const { batch, startTime, endTime, queuedNanos, elapsedNanos } = drivers[0]!
  const startMs = clamp(Date.parse(startTime), ran.startMs, ran.endMs)
  return {
    name: 'batch',
    kind: 'INTERNAL',
    spanId: entitySpanId('batch', `${taskId}.${batch}`),
    parentSpanId: ran.spanId,
    startMs,
    endMs: clamp(Date.parse(endTime), startMs, ran.endMs),
    attributes: {
      [names.taskId]: taskId,
      [names.batch]: batch,
      [names.engineQueueNanos]: queuedNanos,
      [names.engineNanos]: elapsedNanos,
      [names.cpuNanos]: drivers.reduce((sum, { cpuNanos }) => sum + cpuNanos, 0),
    },
    status: 'UNSET',
  }
}

/**
 * The span of a pipeline within its task. Its operators are events at its end, not spans: the profiler knows how long
 * each operator worked, summed over threads and batches, but not when. A span would suggest a time.
 */
export function pipelineSpan(ran: TracedTask, pipeline: PipelineStats): SpanDraft {
  const { taskId } = ran.task
  const { pipelineId, drivers } = pipeline
  const starts = drivers.map((driver) => Date.parse(driver.startTime))
  const endTimes = drivers.map((driver) => Date.parse(driver.endTime))
  const startMs = clamp(starts.length > 0 ? Math.min(...starts) : ran.startMs, ran.startMs, ran.endMs)
  const endMs = clamp(endTimes.length > 0 ? Math.max(...endTimes) : ran.endMs, startMs, ran.endMs)
  return {
    name: 'pipeline',
    kind: 'INTERNAL',
    spanId: entitySpanId('pipeline', `${taskId}.${pipelineId}`),
    parentSpanId: ran.spanId,
    startMs,
    endMs,
    attributes: {
      [names.taskId]: taskId,
      [names.pipelineId]: pipelineId,
      [names.rowsIn]: pipeline.processedInputPositions,
      [names.rowsOut]: pipeline.outputPositions,
      [names.cpuNanos]: pipeline.cpuNanos,
    },
    status: 'UNSET',
    events: ran.stats.profiled ? pipeline.operators.map((operator) => operatorEvent(operator, endMs)) : [],
  }
}

function operatorEvent(operator: OperatorStats, atMs: number): SpanEvent {
  return {
    name: `operator ${operator.operatorType}`,
    atMs,
    attributes: {
      [names.operatorId]: operator.operatorId,
      [names.operatorType]: operator.operatorType,
      [names.operatorEngine]: operator.engineOperator,
      [names.rowsIn]: operator.inputPositions,
      [names.rowsOut]: operator.outputPositions,
      ...(operator.estimatedPositions === undefined ? {} : { [names.rowsEstimated]: operator.estimatedPositions }),
      [names.timeNanos]: operator.timeNanos,
      [names.timing]: 'accumulated',
    },
  }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), Math.max(low, high))
}
