import type { IncomingMessage, ServerResponse } from 'node:http'
import type { QueryEventOf } from '../../coordinator/query/stream/events.ts'
import { remoteAddressOf } from '../edge/client-connection.ts'
import type { KnownQuery } from '../../coordinator/query/stream/state.ts'
import type { Clock } from '../../shared/clock.ts'
import { attributes as names } from '../../telemetry/attribute-names.ts'
import type { Sampler } from '../../telemetry/sampler.ts'
import type { AttributeValue, SpanRecord, SpanSink } from '../../telemetry/span.ts'
import {
  entitySpanId,
  formatTraceparent,
  newSpanId,
  newTraceId,
  parseTraceparent,
  type TraceContext,
} from '../../telemetry/trace-context.ts'

/** The fields of QueryCreated about its trace. */
type QueryTrace = Pick<QueryEventOf<'QueryCreated'>['data'], 'traceparent' | 'tracestate' | 'parentSpanId' | 'sampled'>

/**
 * Spans of requests to the statement resource, emitted as they end. Only the root span of a query whose coordinator
 * died is made from events.
 */
export interface StatementSpans {
  /** Begins the POST's span, in the client's trace or in a new one. It ends with the answer. */
  post(request: IncomingMessage, response: ServerResponse): QueryTrace
  /** Records the span of a GET whose answer is about to be sent. */
  polled(request: IncomingMessage, response: ServerResponse, poll: Poll): void
  /** The number of polls of a query so far. */
  polls(query: KnownQuery): number
  /** The number of polls of a traced query that got no span. */
  pollsUnrecorded(query: KnownQuery): number
}

interface Poll {
  readonly query: KnownQuery
  readonly token: number
  /** Undefined where only the cluster that made the page knows it. */
  readonly rows: number | undefined
  /** Called when the answer was sent. */
  readonly bytes: () => number
  /** Wall clock, milliseconds. */
  readonly startedAt: number
}

export interface StatementSpansDeps {
  readonly spans: () => SpanSink
  readonly sampler: Sampler
  readonly clock: Clock
  /** Called for a trace that is not sampled. */
  readonly onUnsampled?: () => void
}

const POST_ROUTE = '/v1/statement'
const GET_ROUTE = '/v1/statement/{queryId}/{token}'
/** The most polls of a query that get a span; the others are counted on the span `query`. */
const POLL_SPANS = 100
const MAX_TRACESTATE = 512

export function createStatementSpans(deps: StatementSpansDeps): StatementSpans {
  const { spans, clock } = deps
  /** By `created`, which is the same object in all states of a query. */
  const polls = new WeakMap<KnownQuery['created'], number>()

  /** Emits a span when the answer was sent, or its connection is gone. */
  function whenAnswered(response: ServerResponse, make: (endMs: number) => SpanRecord): void {
    const start = clock.monotonicMs()
    const startedAt = clock.now()
    response.once('close', () => spans().emit([make(startedAt + clock.monotonicMs() - start)]))
  }

  return {
    post(request, response) {
      const client = clientContext(request)
      const traceId = client?.traceId ?? newTraceId()
      const sampled = deps.sampler(client, traceId)
      const spanId = newSpanId()
      const tracestate = request.headers['tracestate']
      if (!sampled) deps.onUnsampled?.()
      else if (spans().enabled) {
        const startMs = clock.now()
        whenAnswered(response, (endMs) => ({
          traceId,
          ...answered('POST', POST_ROUTE, request, response),
          spanId,
          ...(client ? { parentSpanId: client.spanId } : {}),
          startMs,
          endMs,
          links: [],
        }))
      }
      return {
        traceparent: formatTraceparent({ traceId, spanId, sampled }),
        sampled,
        ...(client ? { parentSpanId: client.spanId } : {}),
        ...(typeof tracestate === 'string' && tracestate.length <= MAX_TRACESTATE ? { tracestate } : {}),
      }
    },

    polled(request, response, { query, token, rows, bytes, startedAt }) {
      const count = (polls.get(query.created) ?? 0) + 1
      polls.set(query.created, count)
      if (!spans().enabled) return
      const own = parseTraceparent(query.created.traceparent)
      const client = clientContext(request)
      if (!own || !(client ? client.sampled : own.sampled)) return
      if (count > POLL_SPANS) return
      const ofQuery = { traceId: own.traceId, spanId: entitySpanId('query', query.queryId) }
      const span = answered('GET', GET_ROUTE, request, response, {
        [names.queryId]: query.queryId,
        [names.pollToken]: token,
        ...(rows === undefined ? {} : { [names.resultRows]: rows }),
      })
      whenAnswered(response, (endMs) => ({
        spanId: newSpanId(),
        ...span,
        attributes: { ...span.attributes, [names.resultBytes]: bytes() },
        traceId: client?.traceId ?? own.traceId,
        parentSpanId: client?.spanId ?? ofQuery.spanId,
        startMs: startedAt,
        endMs: Math.max(startedAt, endMs),
        links: client ? [ofQuery] : [],
      }))
    },

    polls: (query) => polls.get(query.created) ?? 0,
    pollsUnrecorded: (query) => Math.max(0, (polls.get(query.created) ?? 0) - POLL_SPANS),
  }
}

/**
 * The trace of the request's header. A GET's header that only repeats the POST's trace is still the parent of that GET.
 */
function clientContext(request: IncomingMessage): TraceContext | undefined {
  const header = request.headers['traceparent']
  return parseTraceparent(Array.isArray(header) ? header[0] : header)
}

function answered(
  method: 'GET' | 'POST',
  route: string,
  request: IncomingMessage,
  response: ServerResponse,
  more: Readonly<Record<string, AttributeValue>> = {},
): Pick<SpanRecord, 'name' | 'kind' | 'attributes' | 'status' | 'events'> {
  const agent = request.headers['user-agent']
  const address = remoteAddressOf(request)?.replace(/^::ffff:/, '')
  return {
    // Never the real address: its mac protects the result.
    name: `${method} ${route}`,
    kind: 'SERVER',
    attributes: {
      [names.httpMethod]: method,
      [names.httpRoute]: route,
      [names.httpStatus]: response.statusCode,
      ...(agent === undefined ? {} : { [names.userAgent]: agent.slice(0, 256) }),
      ...(address === undefined ? {} : { [names.clientAddress]: address }),
      ...more,
    },
    status: response.statusCode >= 500 ? 'ERROR' : 'UNSET',
    events: [],
  }
}
