import type { TaskCall } from './task-calls.ts'
import { splitTaskId } from '../../shared/ids.ts'
import { attributes as names } from '../../telemetry/attribute-names.ts'
import type { SpanSink } from '../../telemetry/span.ts'
import { entitySpanId, parseTraceparent } from '../../telemetry/trace-context.ts'

const METHODS = { 'task-update': 'POST', 'task-delete': 'DELETE' } as const

/** Emits the span of a request to a worker about a task, below the coordinator's span of the task. */
export function emitTaskCall(spans: SpanSink, call: TaskCall): void {
  const context = parseTraceparent(call.traceparent)
  if (!spans.enabled || !context?.sampled) return
  const { name, taskId, status } = call
  const endMs = Date.now()
  spans.emit([
    {
      name,
      kind: 'CLIENT',
      traceId: context.traceId,
      spanId: call.spanId,
      parentSpanId: entitySpanId('remote-task', taskId),
      startMs: endMs - call.milliseconds,
      endMs,
      attributes: {
        [names.queryId]: splitTaskId(taskId)?.queryId ?? taskId,
        [names.taskId]: taskId,
        [names.httpMethod]: METHODS[name],
        [names.httpRoute]: '/v1/task/{taskId}',
        [names.serverAddress]: new URL(call.nodeUrl).hostname,
        ...(status === undefined ? { [names.errorType]: 'WorkerUnreachable' } : { [names.httpStatus]: status }),
      },
      // A client span is OK when it got a good answer.
      status: status !== undefined && status < 400 ? 'OK' : 'ERROR',
      events: [],
      links: [],
    },
  ])
}
