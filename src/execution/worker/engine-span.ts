import { EngineError } from '../../shared/engine-error.ts'
import { splitTaskId } from '../../shared/ids.ts'
import { attributes as names } from '../../telemetry/attribute-names.ts'
import type { SpanRecord } from '../../telemetry/span.ts'
import { entitySpanId, newSpanId, parseTraceparent } from '../../telemetry/trace-context.ts'
import { EngineLost } from '../engine/engine.ts'
import type { WorkerEvent } from './worker-events.ts'

/**
 * The span of a batch in its engine, under its task. The worker sends it, for sampled traces.
 * @returns undefined when the trace is not sampled
 */
export function engineSpan(event: Extract<WorkerEvent, { type: 'batchEnded' }>): SpanRecord | undefined {
  const stage = parseTraceparent(event.traceparent)
  if (!stage?.sampled) return undefined
  const { taskId, figures, error } = event
  const errorType = figures ? undefined : errorTypeOf(error)
  return {
    name: 'engine run',
    kind: 'CLIENT',
    traceId: stage.traceId,
    spanId: newSpanId(),
    parentSpanId: entitySpanId('task', taskId),
    startMs: event.startedAt,
    endMs: Math.max(event.startedAt, event.endedAt),
    attributes: {
      [names.queryId]: splitTaskId(taskId)?.queryId ?? taskId,
      [names.taskId]: taskId,
      [names.batch]: event.batch,
      [names.dbSystem]: 'duckdb',
      [names.splits]: event.splits,
      ...(figures && {
        [names.dbReturnedRows]: figures.outputPositions,
        [names.bytes]: figures.outputBytes,
        [names.engineQueueNanos]: figures.queuedNanos,
        [names.engineNanos]: figures.wallNanos,
        [names.cpuNanos]: figures.cpuNanos,
        [names.peakMemoryBytes]: figures.peakMemoryBytes,
        [names.spilledBytes]: figures.spilledBytes,
      }),
      ...(errorType !== undefined && { [names.errorType]: errorType }),
    },
    status: errorType !== undefined ? 'ERROR' : 'UNSET',
    events: [],
    links: [],
  }
}

/** @returns undefined for a run that was cancelled: that is no error */
function errorTypeOf(error: unknown): string | undefined {
  if (error instanceof EngineError) return error.errorName
  if (error instanceof EngineLost) return error.reason === 'cancel' ? undefined : `engine_${error.reason}`
  return error instanceof Error ? error.name : '_OTHER'
}
