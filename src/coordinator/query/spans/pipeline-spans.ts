import type { DriverStats, OperatorStats, PipelineStats } from '../../../execution/api/task.ts'
import { attributes as names } from '../../../telemetry/attribute-names.ts'
import { entitySpanId } from '../../../telemetry/trace-context.ts'
import type { TracedTask } from './task-spans.ts'
import type { SpanDraft } from './traced-query.ts'

/** Batches of a pipeline that get a span of their own: the slowest. */
const BATCH_SPANS = 50

/** A pipeline within its task; of a profiled one also its batches and operators. */
export function pipelineSpans(ran: TracedTask, pipeline: PipelineStats): readonly SpanDraft[] {
  const traced = tracedPipeline(ran, pipeline)
  const span = pipelineSpan(ran, pipeline, traced)
  if (!ran.stats.profiled) return [span]
  const slowest = pipeline.drivers.toSorted((a, b) => b.elapsedNanos - a.elapsedNanos).slice(0, BATCH_SPANS)
  return [
    span,
    ...slowest.map((driver) => batchSpan(ran, driver, traced)),
    ...pipeline.operators.map((operator) => operatorSpan(operator, traced)),
  ]
}

interface TracedPipeline {
  /** What the ids of its parts begin with. */
  readonly entity: string
  readonly spanId: string
  readonly startMs: number
  readonly endMs: number
  readonly taskId: string
  readonly pipelineId: number
}

function tracedPipeline(ran: TracedTask, { pipelineId, drivers }: PipelineStats): TracedPipeline {
  const { taskId } = ran.task
  const entity = `${taskId}.${pipelineId}`
  const starts = drivers.map((driver) => Date.parse(driver.startTime))
  const ends = drivers.map((driver) => Date.parse(driver.endTime))
  const startMs = clamp(starts.length > 0 ? Math.min(...starts) : ran.startMs, ran.startMs, ran.endMs)
  return {
    entity,
    spanId: entitySpanId('pipeline', entity),
    startMs,
    endMs: clamp(ends.length > 0 ? Math.max(...ends) : ran.endMs, startMs, ran.endMs),
    taskId,
    pipelineId,
  }
}

function pipelineSpan(ran: TracedTask, pipeline: PipelineStats, traced: TracedPipeline): SpanDraft {
  return {
    name: 'pipeline',
    kind: 'INTERNAL',
    spanId: traced.spanId,
    parentSpanId: ran.spanId,
    startMs: traced.startMs,
    endMs: traced.endMs,
    attributes: {
      [names.taskId]: traced.taskId,
      [names.pipelineId]: traced.pipelineId,
      [names.rowsIn]: pipeline.processedInputPositions,
      [names.rowsOut]: pipeline.outputPositions,
    },
    status: 'UNSET',
  }
}

function batchSpan(ran: TracedTask, driver: DriverStats, traced: TracedPipeline): SpanDraft {
  const { entity, spanId, taskId, pipelineId } = traced
  const startMs = clamp(Date.parse(driver.startTime), ran.startMs, ran.endMs)
  return {
    name: 'batch',
    kind: 'CLIENT',
    spanId: entitySpanId('batch', `${entity}.${driver.batch}`),
    parentSpanId: spanId,
    startMs,
    endMs: clamp(Date.parse(driver.endTime), startMs, ran.endMs),
    attributes: { [names.taskId]: taskId, [names.pipelineId]: pipelineId, [names.batch]: driver.batch },
    status: 'UNSET',
  }
}

function operatorSpan(operator: OperatorStats, traced: TracedPipeline): SpanDraft {
  const { startMs, endMs } = traced
  return {
    name: `operator ${operator.engineOperator}`,
    kind: 'INTERNAL',
    spanId: entitySpanId('operator', `${traced.entity}.${operator.operatorId}`),
    parentSpanId: traced.spanId,
    startMs,
    endMs: Math.min(endMs, startMs + operator.timeNanos / 1e6),
    attributes: {
      [names.taskId]: traced.taskId,
      [names.pipelineId]: traced.pipelineId,
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
  }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), Math.max(low, high))
}
