import { AsyncLocalStorage } from 'node:async_hooks'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { QueryRows } from '../events/projection.ts'
import { splitTaskId } from '../shared/ids.ts'
import { attributes as names } from '../telemetry/attribute-names.ts'
import type { SpanRecord, SpanSink } from '../telemetry/span.ts'
import { newSpanId, parseTraceparent, type TraceContext } from '../telemetry/trace-context.ts'
import { requestTarget } from '../protocol/edge/request-target.ts'
import { sqlSpan } from './commit-spans.ts'
import { routeOf } from './http-metrics.ts'

const TASK = /^\/v1\/task\/([^/]+)$/

/** A worker's side of a request that makes a task: below the coordinator's span of the same request. */
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
  traceRequest(request, response, '/v1/task/{taskId}', parent, newSpanId(), spans, attributes)
}

/**
 * A read over HTTP in its client's trace: its span, and below it what the read models were asked. Without a client's
 * trace it is not worth one.
 */
export function traceReads(
  spans: () => SpanSink,
): (request: IncomingMessage, response: ServerResponse, next: () => void) => void {
  return (request, response, next) => {
    const { path } = requestTarget(request)
    const parent = path.startsWith('/v1/query') && spans().enabled ? contextOf(request) : undefined
    if (!parent) return next()
    const spanId = newSpanId()
    traceRequest(request, response, routeOf(path), parent, spanId, spans)
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

function traceRequest(
  request: IncomingMessage,
  response: ServerResponse,
  route: string,
  parent: TraceContext,
  spanId: string,
  spans: () => SpanSink,
  attributes: SpanRecord['attributes'] = {},
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

const current = new AsyncLocalStorage<TraceContext>()
let within = 0

/**
 * What is read until the promise settles belongs to a span. Followed by the runtime, since between a statement over
 * `system` and the read models lies a connector, which knows no traces; only while such a read runs, because each `await`
 * of the process is dearer meanwhile.
 */
export async function withinSpan<T>(context: TraceContext | undefined, run: () => Promise<T>): Promise<T> {
  if (!context?.sampled) return run()
  within++
  try {
    return await current.run(context, run)
  } finally {
    if (--within === 0) current.disable()
  }
}

/** Reads of the read models as spans, where they belong to one. */
export function tracedRead(read: QueryRows, spans: () => SpanSink): QueryRows {
  return async (text, values) => {
    const parent = within > 0 ? current.getStore() : undefined
    if (!parent) return read(text, values)
    const start = performance.now()
    const startMs = Date.now()
    let failed: unknown
    try {
      return await read(text, values)
    } catch (error) {
      failed = error
      throw error
    } finally {
      const [, table = 'rows'] = FROM.exec(text) ?? []
      const span = sqlSpan('SELECT', table, text)
      const sqlState = failed instanceof Error && 'code' in failed ? String(failed.code) : undefined
      spans().emit([
        {
          ...span,
          traceId: parent.traceId,
          parentSpanId: parent.spanId,
          startMs,
          endMs: startMs + performance.now() - start,
          attributes: {
            ...span.attributes,
            ...(sqlState === undefined ? {} : { [names.dbStatus]: sqlState, [names.errorType]: sqlState }),
          },
          status: failed === undefined ? 'UNSET' : 'ERROR',
          links: [],
        },
      ])
    }
  }
}

const FROM = /\bfrom\s+"?(\w+)/i
