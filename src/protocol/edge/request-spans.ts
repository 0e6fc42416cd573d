import type { IncomingMessage, ServerResponse } from 'node:http'
import { splitTaskId } from '../../shared/ids.ts'
import { attributes as names } from '../../telemetry/attribute-names.ts'
import type { SpanRecord, SpanSink } from '../../telemetry/span.ts'
import { withinSpan } from '../../telemetry/current-span.ts'
import { newSpanId, parseTraceparent, type TraceContext } from '../../telemetry/trace-context.ts'
import { requestTarget } from './request-target.ts'
import { routeOf } from './http-metrics.ts'

const TASK = /^\/v1\/task\/([^/]+)$/

/** Records a worker's span of a request that creates a task, below the coordinator's span of the same request. */
export function traceTaskRequest(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  spans: () => SpanSink,
): void {
  if (request.method !== 'POST' || request.headers['traceparent'] === undefined || !spans().enabled) return
  const [, taskId] = TASK.exec(path) ?? []
  const parent = contextOf(request)
  if (taskId === undefined || !parent) return
  const attributes = { [names.queryId]: splitTaskId(taskId)?.queryId ?? taskId, [names.taskId]: taskId }
  const span: ServedSpan = { route: '/v1/task/{taskId}', parent, spanId: newSpanId(), attributes }
  traceRequest(request, response, span, spans)
}

/**
 * Records a read over HTTP in its client's trace: its span, and below it the queries of the read models. Without a
 * client's trace nothing is recorded.
 */
export function traceReads(
  spans: () => SpanSink,
): (request: IncomingMessage, response: ServerResponse, next: () => void) => void {
  return (request, response, next) => {
    const { path } = requestTarget(request)
    const parent = path.startsWith('/v1/query') && spans().enabled ? contextOf(request) : undefined
    if (!parent) return next()
    const spanId = newSpanId()
    traceRequest(request, response, { route: routeOf(path), parent, spanId }, spans)
    const answered = new Promise((resolve) => response.once('close', resolve))
    void withinSpan({ ...parent, spanId }, () => {
      next()
      return answered
    })
  }
}

function contextOf(request: IncomingMessage): TraceContext | undefined {
  const header = request.headers['traceparent']
  const context = parseTraceparent(Array.isArray(header) ? header[0] : header)
  return context?.sampled ? context : undefined
}

/** A request that is answered here, as a span. */
interface ServedSpan {
  /** A template, without ids. */
  readonly route: string
  readonly parent: TraceContext
  readonly spanId: string
  readonly attributes?: SpanRecord['attributes']
}

function traceRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { route, parent, spanId, attributes }: ServedSpan,
  spans: () => SpanSink,
): void {
  const start = performance.now()
  const startMs = Date.now()
  const method = request.method ?? 'GET'
  response.once('close', () =>
    spans().emit([
      {
        name: `${method} ${route}`,
        kind: 'SERVER',
        traceId: parent.traceId,
        spanId,
        parentSpanId: parent.spanId,
        startMs,
        endMs: startMs + performance.now() - start,
        attributes: {
          [names.httpMethod]: method,
          [names.httpRoute]: route,
          [names.httpStatus]: response.statusCode,
          ...attributes,
        },
        status: response.statusCode >= 500 ? 'ERROR' : 'UNSET',
        events: [],
        links: [],
      },
    ]),
  )
}
