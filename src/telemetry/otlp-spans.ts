import type { Attributes, HrTime, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import type { resources, tracing } from '@opentelemetry/sdk-node'
import type { SpanRecord, SpanSink } from './span.ts'

/** Where spans are sent to. */
export interface SpanCollector {
  /** The whole address, path included. */
  readonly url: string
  /** Headers of every request, beside those of the exporter. */
  readonly headers: Readonly<Record<string, string>>
  /** Of the resource; the process's own attributes go before them. */
  readonly resourceAttributes: Readonly<Record<string, string>>
}

export interface SpanExport {
  readonly collector: SpanCollector
  readonly serviceName: string
  readonly instance: string
  readonly version: string
  readonly environment: string
  /** Told how many spans left, and how many the queue had no room for. */
  readonly onSpans: (result: 'exported' | 'dropped', count: number) => void
}

const QUEUE = 16_384
const BATCH = 512

/**
 * Sends spans by OTLP over HTTP. What is no setting of ours (`OTEL_EXPORTER_OTLP_COMPRESSION` …), the exporter asks the
 * environment for.
 * Loads the SDK (200 ms of CPU): called in a thread of its own, once the process serves, and only when there is an
 * endpoint. The SDK's batches, encoding and exporter are used; its tracer is not, since our spans have ended when they
 * are made, and it would make each of them twice.
 */
export async function startSpanExport(options: SpanExport): Promise<Pick<SpanSink, 'emit' | 'stop'>> {
  const [api, { tracing: sdk, resources: resourcesOf }, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-node'),
    import('@opentelemetry/exporter-trace-otlp-http'),
  ])
  const { url, headers, resourceAttributes } = options.collector
  const exporter = new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis: 1000 })
  let queued = 0
  const counted: tracing.SpanExporter = {
    export(spans, done) {
      exporter.export(spans, (result) => {
        queued = Math.max(0, queued - spans.length)
        options.onSpans(result.code === 0 ? 'exported' : 'dropped', spans.length)
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  }
  const processor = new sdk.BatchSpanProcessor(counted, {
    maxQueueSize: QUEUE,
    maxExportBatchSize: BATCH,
    scheduledDelayMillis: 500,
    exportTimeoutMillis: 1000,
  })
  const resource = resourcesOf.resourceFromAttributes(resourceAttributes).merge(
    resourcesOf.resourceFromAttributes({
      'service.name': options.serviceName,
      'service.instance.id': options.instance,
      'service.version': options.version,
      'deployment.environment.name': options.environment,
    }),
  )
  const kinds: Record<SpanRecord['kind'], SpanKind> = {
    INTERNAL: api.SpanKind.INTERNAL,
    SERVER: api.SpanKind.SERVER,
    CLIENT: api.SpanKind.CLIENT,
    PRODUCER: api.SpanKind.PRODUCER,
    CONSUMER: api.SpanKind.CONSUMER,
  }
  const statuses: Record<SpanRecord['status'], SpanStatusCode> = {
    UNSET: api.SpanStatusCode.UNSET,
    OK: api.SpanStatusCode.OK,
    ERROR: api.SpanStatusCode.ERROR,
  }
  const scope = { name: 'quipu', version: options.version }

  return {
    emit(spans) {
      for (const span of spans) {
        if (queued >= QUEUE) {
          options.onSpans('dropped', 1)
          continue
        }
        queued++
        processor.onEnd(readable(span, kinds[span.kind], statuses[span.status], resource, scope))
      }
    },
    // Its rejection says that the collector is away, which is no reason not to stop.
    stop: () => processor.shutdown().catch(() => {}),
  }
}

/** W3C flag of a trace that is taken: what arrives here is to be sent. */
const SAMPLED = 1

/** A span as the SDK's exporter reads it. */
function readable(
  span: SpanRecord,
  kind: SpanKind,
  code: SpanStatusCode,
  resource: resources.Resource,
  instrumentationScope: { readonly name: string; readonly version: string },
): tracing.ReadableSpan {
  const { traceId, parentSpanId, statusMessage } = span
  const contextOf = (spanId: string, isRemote: boolean) => ({ traceId, spanId, traceFlags: SAMPLED, isRemote })
  const own = contextOf(span.spanId, false)
  return {
    name: span.name,
    kind,
    spanContext: () => own,
    ...(parentSpanId === undefined ? {} : { parentSpanContext: contextOf(parentSpanId, true) }),
    startTime: hrTime(span.startMs),
    endTime: hrTime(span.endMs),
    status: { code, ...(statusMessage === undefined ? {} : { message: statusMessage }) },
    attributes: span.attributes as Attributes,
    links: span.links.map((link) => ({ context: { ...link, traceFlags: SAMPLED } })),
    events: span.events.map(({ name, atMs, attributes }) => ({
      name,
      time: hrTime(atMs),
      attributes: attributes as Attributes,
    })),
    duration: hrTime(Math.max(0, span.endMs - span.startMs)),
    ended: true,
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  }
}

/** Seconds and nanoseconds: a Date has whole milliseconds, which most operators do not take. */
function hrTime(milliseconds: number): HrTime {
  const seconds = Math.floor(milliseconds / 1000)
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)]
}
